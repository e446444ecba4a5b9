"""Documents over gRPC, with the client of Python."""

import importlib
import random
import sys

import pytest
from conftest import ROOT
from documents import BYTES_MAX, KEYS, acquire, get, get_raw, grow, listed, release


@pytest.fixture(scope="module")
def contract(tmp_path_factory):
    """The modules that protoc makes of the contract: `contract("documents_pb2")`."""
    from grpc_tools import protoc

    folder = tmp_path_factory.mktemp("contract")
    files = sorted(str(path) for path in (ROOT / "proto" / "sluice" / "v1").glob("*.proto"))
    outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", *outputs, *files]) == 0
    sys.path.insert(0, str(folder))
    yield lambda module: importlib.import_module(f"sluice.v1.{module}")
    sys.path.remove(str(folder))


@pytest.fixture
def grpc_documents(server, contract):
    """Calls by name: `grpc_documents("Put", key="k", content=b"x")`."""
    import grpc

    messages = contract("documents_pb2")
    names = {"Put": "PutDocumentRequest", "Get": "GetDocumentRequest", "List": "ListDocumentsRequest"}
    names |= {"History": "DocumentHistoryRequest", "Delete": "DeleteDocumentRequest"}
    names |= {"Watch": "WatchDocumentsRequest"}
    # Python's own limit is 4 MiB for a whole message.
    options = [("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(server.url.split("://")[1], options) as channel:
        stub = contract("documents_pb2_grpc").DocumentsStub(channel)

        def call(name, **fields):
            return getattr(stub, name)(getattr(messages, names[name])(**fields), timeout=20)

        def refused(name, status, begins="", **fields):
            with pytest.raises(grpc.RpcError) as caught:
                call(name, **fields)
            assert caught.value.code() == getattr(grpc.StatusCode, status), (fields, caught.value)
            assert caught.value.details().startswith(begins), (fields, caught.value.details())

        call.refused = refused
        yield call


def test_grpc_writes_reads_and_deletes(server, grpc_documents):
    call = grpc_documents
    attributes = {"grün": "€", "a": ""}
    first = call("Put", key="a/1", content=b"\xff\0", content_type="a/b", attributes=attributes, history=3)
    assert first.version == 1
    read = call("Get", key="a/1")
    assert (read.content, read.content_type, dict(read.attributes)) == (b"\xff\0", "a/b", attributes)
    assert (read.version, read.etag, read.content_bytes, read.history) == (1, first.etag, 2, 3)
    assert read.changed_at_ms == first.changed_at_ms and read.expires_at_ms == 0
    assert get(server, "a/1")["etag"] == first.etag and get_raw(server, "a/1").body == b"\xff\0"
    second = call("Put", key="a/1", content=b"", if_etag=first.etag, ttl_ms=600_000, request_id="r")
    again = call("Put", key="a/1", content=b"", if_etag=first.etag, ttl_ms=600_000, request_id="r")
    assert second == again and (second.version, grow([first.etag, second.etag])) == (2, True)
    read = call("Get", key="a/1", stale=True)
    assert read.HasField("content") and read.content == b"" and read.expires_at_ms == second.changed_at_ms + 600_000
    assert call("Get", key="a/1", version=1).content == b"\xff\0"
    assert [one.version for one in call("History", key="a/1").versions] == [2, 1]
    for key in KEYS:
        call("Put", key=key, content=key.encode())
    keys, after = [], ""
    while after or not keys:
        page = call("List", limit=5, after=after)
        assert not any(one.HasField("content") for one in page.documents)
        keys += [one.key for one in page.documents]
        after = page.next
    assert keys == sorted(KEYS, key=str.encode) == listed(server)
    assert [one.key for one in call("List", prefix="a/").documents] == ["a//", "a/1", "a/2"]
    call("Delete", key="a/1", if_version=3)
    call.refused("Get", "NOT_FOUND", key="a/1")


def test_grpc_refuses_as_http_does(server, grpc_documents):
    call = grpc_documents
    for fields in ({"if_version": 1}, {"if_etag": "7"}, {"if_exists": True}):
        call.refused("Put", "ABORTED", "document", key="k", content=b"x", **fields)
    call("Put", key="k", content=b"1", if_absent=True)
    call.refused("Put", "ABORTED", "document", key="k", content=b"x", if_absent=True)
    call.refused("Delete", "ABORTED", "document", key="k", if_version=7)
    for name in ("Get", "History", "Delete"):
        call.refused(name, "NOT_FOUND", key="none")
    call.refused("Get", "NOT_FOUND", key="k", version=2)
    wrong = [("if_etag", "x"), ("history", 101), ("token", "x"), ("content_type", "x" * 256), ("ttl_ms", 1 << 60)]
    wrong += [("key", key) for key in ("", "k" * 256, "a\nb", "a\0b")]
    for field, value in wrong:
        call.refused("Put", "INVALID_ARGUMENT", field, **{"key": "k", "content": b"x", field: value})
    call.refused("Put", "INVALID_ARGUMENT", "content", key="k")
    call.refused("Put", "INVALID_ARGUMENT", key="k", content=b"x", if_absent=True, if_exists=True)
    call.refused("Put", "INVALID_ARGUMENT", "attributes", key="k", content=b"x", attributes={"": "x"})
    token = acquire(server, "k")
    call("Put", key="k", content=b"2", token=token)
    call.refused("Put", "ABORTED", key="other", content=b"x", token=token)
    release(server, token)
    call.refused("Put", "ABORTED", key="k", content=b"x", token=token)
    call.refused("Delete", "ABORTED", key="k", token=token)
    largest = random.randbytes(BYTES_MAX)
    call("Put", key="large", content=largest)
    assert call("Get", key="large").content == largest
    call.refused("Put", "INVALID_ARGUMENT", "content: ", key="large", content=largest + b"x")
    assert call("Get", key="k").content == b"2"


def test_grpc_watches(server, grpc_documents):
    call = grpc_documents
    call("Put", key="a", content=b"x")
    watch = call("Watch")
    first, current = next(watch), next(watch)
    assert first.key == "a" and first.document.version == 1 and not first.current
    assert current.current and not current.key
    call("Delete", key="a")
    gone = next(watch)
    assert gone.gone and gone.position == gone.etag
    again = call("Watch", after=current.position)
    assert next(again).gone and next(again).current
    call("Put", key="b", content=b"x")
    only = call("Watch", prefix="b")
    assert next(only).key == "b"
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        next(call("Watch", after="yesterday"))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
