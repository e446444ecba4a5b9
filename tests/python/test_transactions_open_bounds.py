"""Open transactions: memory of what they read, gRPC, and calls about a commit that is not theirs to make."""

import json
import pathlib

import grpc
import pytest
from documents import JSON, error, of, put
from test_documents_grpc import contract  # noqa: F401
from test_transactions_open import begin, getting
from transactions import acquiring, adding, payloads, putting, sending


def peak_mib(server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def test_many_reads_of_one_call_have_memory_together(server):
    content = json.dumps({"a": "x" * (2 << 20)}).encode()
    server.request("PUT", f"{of('large')}/raw", content, JSON)
    work, before = begin(server), peak_mib(server)
    told = work.refused(*[getting("large")] * 1_000)
    assert (told["status"], told["code"]) == (413, "batch_too_large")
    # What comes after a read has memory besides it.
    told = work.refused(*[operation for _ in range(500) for operation in (getting("large"), adding("large", 1, "/n"))])
    assert (told["status"], told["code"]) == (413, "batch_too_large")
    assert peak_mib(server) - before < 400
    [result] = work.stage(getting("large"))
    assert len(result["document"]["content"]) == len(content)


def test_reads_of_what_is_staged_have_memory_too(server):
    work = begin(server)
    work.stage(putting("large", "x" * (2 << 20)))
    before = peak_mib(server)
    assert work.refused(*[getting("large")] * 1_000)["code"] == "batch_too_large"
    assert peak_mib(server) - before < 400
    work.commit()


def test_many_patches_of_one_call_hold_no_more_than_a_transaction_may(server):
    content = json.dumps({"a": "x" * (2 << 20)}).encode()
    for number in range(100):
        server.request("PUT", f"{of(f'large{number}')}/raw", content, JSON)
    work, before = begin(server), peak_mib(server)
    told = work.refused(*[adding(f"large{number}", 1, "/n") for number in range(100)])
    assert (told["status"], told["code"]) == (413, "batch_too_large")
    assert peak_mib(server) - before < 100
    work.stage(adding("large0", 1, "/n"))
    work.commit()


@pytest.fixture
def calls(server, contract):  # noqa: F811
    """Calls of gRPC by name: `calls("Begin")`."""
    messages = contract("transactions_pb2")
    kinds = {"Begin": "BeginTransactionRequest", "Stage": "StageTransactionRequest"}
    kinds |= {"Close": "CloseTransactionRequest", "Rollback": "RollbackTransactionRequest"}
    with grpc.insecure_channel(server.url.split("://")[1]) as channel:
        stub = contract("transactions_pb2_grpc").TransactionsStub(channel)
        yield lambda name, **fields: getattr(stub, name)(getattr(messages, kinds[name])(**fields), timeout=20)


def code_of(caught) -> tuple[str, str]:
    trailers = dict(caught.value.trailing_metadata())
    return caught.value.code().name, trailers["sluice-code"]


def test_grpc_stages_and_commits_the_same(server, calls):
    put(server, "a", '{"n":1}')
    name = calls("Begin", ttl_ms=60_000).transaction
    operations = [{"get": {"key": "a"}}, {"get": {"key": "none"}}, {"put": {"key": "b", "content": b"\xff"}}]
    operations += [{"patch": {"key": "a", "increment": [{"pointer": "/n"}]}}]
    read, none, *others = calls("Stage", transaction=name, operations=operations).results
    assert read.found and read.document.content == b'{"n":1}' and read.document.version == 1
    assert not none.found and none.HasField("found") and not any(one.HasField("found") for one in others)
    message = {"queue": "mail", "payload": b"x", "headers": [{"name": "to", "value": "ann"}]}
    calls("Stage", transaction=name, operations=[{"send": message}, {"acquire": {"key": "l"}}])
    own = calls("Stage", transaction=name, operations=[{"get": {"key": "b"}}]).results[0].document
    assert own.content == b"\xff" and not own.HasField("version")
    with pytest.raises(grpc.RpcError) as caught:
        calls("Stage", transaction=name, operations=[{"get": {}}])
    assert code_of(caught) == ("INVALID_ARGUMENT", "missing_field")
    done = calls("Close", transaction=name)
    written, changed, sent, granted = done.results
    assert (written.written.version, changed.written.version) == (1, 2) and sent.id and granted.grant.token
    again = calls("Close", transaction=name)
    assert again.duplicate and list(again.results) == list(done.results)
    assert payloads(server) == ["x"]
    left = calls("Begin").transaction
    calls("Rollback", transaction=left)
    for call in ("Stage", "Close", "Rollback"):
        more = {"operations": [{"get": {"key": "a"}}]} if call == "Stage" else {}
        with pytest.raises(grpc.RpcError) as caught:
            calls(call, transaction=left, **more)
        assert code_of(caught) == ("ABORTED", "transaction_lost"), call


def test_what_is_sent_is_staged_and_committed_over_one_protocol(server, calls):
    work = begin(server)
    work.stage(sending("x"))
    for call in ("Stage", "Close"):
        more = {"operations": [{"send": {"queue": "mail", "payload": b"y"}}]} if call == "Stage" else {}
        with pytest.raises(grpc.RpcError) as caught:
            calls(call, transaction=work.name, **more)
        assert code_of(caught) == ("INVALID_ARGUMENT", "invalid_argument"), call
        assert "over one protocol" in caught.value.details()
    work.commit()
    assert payloads(server) == ["x"]
    # Documents are read by neither again.
    mixed = begin(server)
    mixed.stage(putting("a", "1"))
    calls("Stage", transaction=mixed.name, operations=[{"put": {"key": "b", "content": b"2"}}])
    assert len(calls("Close", transaction=mixed.name).results) == 2


def test_who_may_not_commit_a_transaction_does_not_end_it(server):
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()

    def token(name: str, scope: str) -> dict:
        made = server.sluice("token", "create", name, "--scope", scope).stdout.strip()
        return {"Authorization": f"Bearer {made}"}

    worker, reader = token("worker", "default=rw"), token("reader", "default=r")
    name = server.call("POST", "/v1/transactions/begin", {}, worker)["transaction"]
    path = f"/v1/transactions/{name}"
    for operations in ([putting("a", "1")], [acquiring("l"), sending("x")]):
        server.call("POST", f"{path}/operations", {"operations": operations}, worker)
        told = error(server, "POST", f"{path}/commit", None, reader)
        assert (told["status"], told["code"]) == (403, "forbidden")
    # Documents that the transaction changes count.
    assert told["message"].startswith("operations[1].acquire: ") and told["details"]["operation"] == 1
    assert len(server.call("POST", f"{path}/commit", None, worker)["results"]) == 3
