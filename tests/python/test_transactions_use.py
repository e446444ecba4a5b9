"""Transactions: rights, and the calls over gRPC."""

import json

import pytest
from documents import LOCKS, get, of, put, release
from test_documents_grpc import contract  # noqa: F401
from transactions import (
    LONG_MS,
    Work,
    acquiring,
    adding,
    checking,
    code,
    commit,
    deleting,
    held,
    message,
    messages,
    number,
    payloads,
    putting,
    refused,
    releasing,
    sending,
    settling,
)


@pytest.fixture
def guarded(server):
    """A server with a policy, and the headers of those that it names."""
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    roles = ("coordinator", "observer", "operator", "producer", "consumer")
    tokens = {name: server.sluice("token", "create", name).stdout.strip() for name in (*roles, "worker")}
    for scope in ("r", "w", "rw", "rw2"):
        given = ("--scope", f"default={scope[:2]}")
        tokens[scope] = server.sluice("token", "create", scope, *given).stdout.strip()
    tokens["root"] = server.env["SLUICE_TOKEN"]
    server.stop()
    rule = '[[rule]]\nname = "{0} {1}"\nidentities = ["{0}"]\nrole = "{1}"\n{2}\n'
    keys, jobs, mail = 'keys = ["a/*"]', 'queues = ["jobs"]', 'queues = ["mail"]'
    rules = [rule.format(role, role, keys) for role in roles[:3]]
    rules += [rule.format("producer", "producer", mail), rule.format("consumer", "consumer", jobs)]
    of_worker = (("producer", mail), ("consumer", jobs), ("coordinator", keys))
    rules += [rule.format("worker", *more) for more in of_worker]
    (server.directory / "policy.toml").write_text("".join(rules))
    server.start("--access-policy", "policy.toml")
    return lambda name: {"Authorization": f"Bearer {tokens[name]}"}


def test_rights_are_those_of_each_operation(server, guarded):
    root = guarded("root")

    def received(queue="jobs") -> str:
        server.call("POST", f"/v1/queues/{queue}/messages", {"payload": "x"}, root)
        body = {"lease_ms": LONG_MS}
        return server.call("POST", f"/v1/queues/{queue}/receive", body, root)["messages"][0]["receipt"]

    def locked(key="a/l") -> str:
        return server.call("POST", LOCKS, {"key": key}, root)["token"]

    server.call("PUT", of("a/n"), {"content": "{}"}, root)
    server.call("PUT", of("b/n"), {"content": "{}"}, root)
    able = {
        "coordinator": {"put", "patch", "delete", "check", "acquire", "release"},
        "observer": set(),
        "operator": set(),
        "producer": {"send"},
        "consumer": {"settle"},
        "worker": {"send", "settle", "put", "patch", "delete", "check", "acquire", "release"},
        "r": {"settle"},
        "w": {"send"},
        "rw": {"send", "settle", "put", "patch", "delete", "check", "acquire", "release"},
    }
    for name, kinds in able.items():
        server.call("PUT", of("a/old"), {"content": "x"}, root)
        token, receipt = locked(), received()
        for operation in [
            sending("x"),
            settling(receipt),
            putting("a/k"),
            adding("a/n"),
            deleting("a/old"),
            checking("a/n", if_exists=True),
            acquiring(f"a/{name}"),
            releasing(token),
        ]:
            kind = next(iter(operation))
            if kind in kinds:
                commit(server, operation, headers=guarded(name))
            else:
                told = refused(server, operation, headers=guarded(name))
                assert (told["status"], told["code"]) == (403, "forbidden"), (name, kind, told)
        if "release" not in kinds:
            commit(server, releasing(token), headers=root)
    # One operation without the right is enough, and a condition that does not hold tells nothing.
    receipt, foreign = received(), received("foreign")
    allowed = [sending("x"), settling(receipt), putting("a/k", "never")]
    forbidden = [sending("x", "jobs"), sending("x", "foreign"), settling(foreign)]
    forbidden += [sending("x", chain=[{"queue": "foreign"}]), sending("x", reply_to="foreign")]
    forbidden += [putting("b/k"), adding("b/n"), deleting("b/k", if_version=7), checking("b/n", if_exists=True)]
    forbidden += [acquiring("b/k"), {"acquire": {"keys": ["a/1", "b/1"]}}]
    for wrong in forbidden:
        for operations in ([*allowed, wrong], [wrong, *allowed]):
            assert code(server, *operations, headers=guarded("worker")) == (403, "forbidden"), wrong
    assert server.call("GET", of("a/k"), None, root)["content"] != "never"
    assert code(server, *allowed) == (401, "unauthenticated")
    commit(server, *allowed, headers=guarded("worker"))


def test_the_key_of_another_caller_tells_nothing(server, guarded):
    first = commit(server, sending("x"), acquiring("k"), key="r", headers=guarded("rw"))
    told = refused(server, sending("x"), acquiring("k"), key="r", headers=guarded("rw2"))
    assert told["code"] == "idempotency_mismatch"
    assert first["results"][1]["grant"]["token"] not in json.dumps(told)
    assert commit(server, sending("x"), acquiring("k"), key="r", headers=guarded("rw"))["duplicate"]
    # A repeat needs the rights of the first.
    assert code(server, sending("x"), acquiring("k"), key="r", headers=guarded("w")) == (403, "forbidden")


@pytest.fixture
def grpc_commit(server, contract):  # noqa: F811
    """Commits operations over gRPC; `.refused` tells status, code, message and details."""
    import grpc

    messages = contract("transactions_pb2")
    with grpc.insecure_channel(server.url.split("://")[1]) as channel:
        stub = contract("transactions_pb2_grpc").TransactionsStub(channel)

        def call(*operations: dict, **fields):
            return stub.Commit(messages.CommitTransactionRequest(operations=operations, **fields), timeout=20)

        def fails(*operations: dict, **fields):
            with pytest.raises(grpc.RpcError) as caught:
                call(*operations, **fields)
            told, trailers = caught.value, dict(caught.value.trailing_metadata())
            details = trailers["grpc-status-details-bin"]
            return told.code().name, trailers["sluice-code"], told.details(), details

        call.refused = fails
        yield call


def test_grpc_commits_the_same(server, grpc_commit):
    work = Work(server)
    operations = work.operations()
    for operation in operations:
        kind = next(iter(operation))
        for field in ("payload", "content"):
            if field in operation[kind]:
                operation[kind][field] = operation[kind][field].encode()
    first = grpc_commit(*operations, idempotency_key="r")
    assert not first.duplicate and len(first.results) == 7
    assert first.results[1].written.version == 2 and first.results[3].written.version == 2
    shown = [[field.name for field, _ in one.ListFields()] for one in first.results]
    assert shown == [[], ["written"], ["id"], ["written"], [], ["grant"], []]
    assert message(server, first.results[2].id)["payload"] == "follow-up"
    release(server, first.results[5].grant.token)
    again = grpc_commit(*operations, idempotency_key="r")
    assert again.duplicate and list(again.results) == list(first.results)
    assert commit(server, *work.operations(), key="r")["duplicate"], "over HTTP it is the same request"
    assert get(server, "k")["content"] == "new" and number(server, "n") == 1
    assert messages(server, "jobs") == []


def test_grpc_refuses_the_same(server, grpc_commit):
    put(server, "k", "x")
    receipt = {"receipt": "x", "outcome": "ack"}
    good = {"send": {"queue": "mail", "payload": b"x"}}
    token = held(server, "l")
    for status, expected, begins, operation in [
        ("ABORTED", "version_mismatch", "put: ", {"put": {"key": "k", "content": b"", "if_version": 7}}),
        ("NOT_FOUND", "document_not_found", "delete: ", {"delete": {"key": "none"}}),
        ("NOT_FOUND", "document_not_found", "patch: ", {"patch": {"key": "none", "merge_patch": "{}"}}),
        ("ABORTED", "lock_held", "acquire: ", {"acquire": {"key": "l"}}),
        ("ABORTED", "lease_lost", "release: ", {"release": {"token": "0" * 32}}),
        ("ABORTED", "lease_lost", "put: ", {"put": {"key": "k", "content": b"", "token": token}}),
        ("INVALID_ARGUMENT", "invalid_receipt", "settle.receipt: ", {"settle": receipt}),
        ("INVALID_ARGUMENT", "missing_field", "put.key: ", {"put": {"content": b""}}),
        ("INVALID_ARGUMENT", "missing_field", "", {}),
    ]:
        told = grpc_commit.refused(good, operation)
        assert told[:2] == (status, expected), (operation, told)
        assert told[2].startswith(f"operations[1].{begins}" if begins else "operations[1]"), (operation, told)
        if status != "INVALID_ARGUMENT":
            assert b"operation" in told[3] and b"sluice" in told[3], told
    assert grpc_commit.refused()[1] == "missing_field"
    assert grpc_commit.refused(*[{"delete": {"key": "k"}}] * 1_001)[1] == "invalid_argument"
    assert grpc_commit.refused(good, namespace="none")[:2] == ("NOT_FOUND", "namespace_not_found")
    grpc_commit(good, idempotency_key="r")
    other = {"send": {"queue": "mail", "payload": b"y"}}
    told = grpc_commit.refused(other, idempotency_key="r")
    assert told[:2] == ("FAILED_PRECONDITION", "idempotency_mismatch")
    assert payloads(server) == ["x"] and get(server, "k")["version"] == 1


def test_without_a_right_a_settled_message_is_forbidden_too(server, guarded):
    root = guarded("root")
    server.call("POST", "/v1/queues/jobs/messages", {"payload": "x"}, root)
    receipt = server.call("POST", "/v1/queues/jobs/receive", {}, root)["messages"][0]["receipt"]
    server.call("POST", "/v1/ack", {"receipt": receipt}, root)
    commit(server, putting("a/x"), key="theirs", headers=root)
    for key in ("theirs", "nobodys"):
        told = refused(server, settling(receipt), key=key, headers=guarded("producer"))
        assert (told["status"], told["code"], told["details"]["operation"]) == (403, "forbidden", 0), told
    told = refused(server, settling(receipt), putting("b"), headers=guarded("worker"))
    assert (told["code"], told["details"]["operation"]) == ("forbidden", 1), told
    assert told["message"].startswith("operations[1].put: "), told


def test_conditions_in_headers_are_refused(server):
    for name in ("If-Match", "If-None-Match", "Sluice-Lock-Token"):
        told = refused(server, putting("k"), headers={name: "*"})
        assert (told["code"], told["details"]["field"]) == ("invalid_argument", name.lower()), told
    assert server.call("GET", "/v1/documents")["documents"] == []
