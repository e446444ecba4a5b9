"""Calls of other services over a session: what they may do, and what they cost."""

import queue
import threading
import time
from contextlib import suppress

import grpc
import pytest
from conftest import until
from documents import LOCKS, acquire
from test_documents_grpc import contract  # noqa: F401

WAIT_S = 20


class Session:
    """A session whose results are kept by the numbers of their frames."""

    def __init__(self, contract, url, token=""):  # noqa: F811
        self.frame_of = contract("session_pb2")
        self.channel = grpc.insecure_channel(url.split("://")[1])
        self.frames, self.results, self.count = queue.Queue(), {}, 0
        self.changed = threading.Condition()
        metadata = [("authorization", f"Bearer {token}")] if token else None
        stub = contract("session_pb2_grpc").SessionsStub(self.channel)
        self.stream = stub.Session(iter(self.frames.get, None), metadata=metadata)
        threading.Thread(target=self.read, daemon=True).start()
        self.result(self.say(open=self.frame_of.Open()))

    def read(self):
        with suppress(grpc.RpcError):
            for frame in self.stream:
                with self.changed:
                    self.results[frame.result.number] = frame.result
                    self.changed.notify_all()

    def say(self, **frame) -> int:
        self.count += 1
        self.frames.put(self.frame_of.ClientFrame(number=self.count, **frame))
        return self.count

    def begin(self, method: str, request) -> int:
        return self.say(call=self.frame_of.Call(method=method, request=request.SerializeToString()))

    def result(self, number: int):
        with self.changed:
            assert self.changed.wait_for(lambda: number in self.results, WAIT_S), f"no result of frame {number}"
            return self.results[number]

    def call(self, method: str, request):
        return self.result(self.begin(method, request))

    def end(self):
        self.frames.put(None)
        self.channel.close()


@pytest.fixture
def session(server, contract):  # noqa: F811
    opened = []

    def begin(token="") -> Session:
        opened.append(Session(contract, server.url, token))
        return opened[-1]

    yield begin
    for one in opened:
        one.end()


@pytest.fixture
def token(server) -> str:
    """The token of a caller who may read and write."""
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    return server.sluice("token", "create", "worker", "--scope", "default=rw").stdout.strip()


def test_calls_wait_over_a_session_for_a_caller_with_a_token(server, session, contract, token):  # noqa: F811
    locks, documents = contract("locks_pb2"), contract("documents_pb2")
    worker = session(token)
    granted = worker.call("Locks/Acquire", locks.AcquireLockRequest(key="k", wait_ms=5_000, ttl_ms=60_000))
    grant = locks.AcquireLockResponse.FromString(granted.answer)
    assert grant.token, granted
    waiting = worker.begin("Locks/Acquire", locks.AcquireLockRequest(key="k", wait_ms=20_000))
    following = worker.begin("Documents/Changes", documents.DocumentChangesRequest(wait_ms=20_000))
    time.sleep(0.2)
    assert waiting not in worker.results and following not in worker.results
    released = worker.call("Locks/Release", locks.ReleaseLockRequest(token=grant.token))
    assert not released.HasField("error"), released
    assert locks.AcquireLockResponse.FromString(worker.result(waiting).answer).token
    written = worker.call("Documents/Put", documents.PutDocumentRequest(key="d", content=b"x"))
    assert not written.HasField("error"), written
    told = documents.DocumentChangesResponse.FromString(worker.result(following).answer)
    assert [change.key for change in told.changes] == ["d"]


def test_the_request_of_a_call_that_waits_is_small(server, session, contract):  # noqa: F811
    locks = contract("locks_pb2")
    acquire(server, "k", ttl_ms=600_000)
    one = session()
    large = locks.AcquireLockRequest(key="k", wait_ms=600_000, owner="x" * 100_000)
    refused = one.call("Locks/Acquire", large).error
    assert (refused.code, "65536" in refused.message) == ("body_too_large", True), refused
    # The budget for requests, of which those that wait take a part.
    one.end()
    server.stop()
    server.start("--http-bodies", "8MiB")
    one = session()
    owners = locks.AcquireLockRequest(owner="x" * 60_000).SerializeToString()
    claim = owners + locks.AcquireLockRequest(key="k", wait_ms=600_000, owner="me").SerializeToString()
    numbers = [one.say(call=one.frame_of.Call(method="Locks/Acquire", request=claim)) for _ in range(900)]
    until(lambda: server.call("GET", f"{LOCKS}/k")["waiter_count"] > 100)
    one.call("Locks/Renew", locks.RenewLockRequest())
    codes = {one.results[number].error.code for number in numbers if number in one.results}
    assert codes == {"overloaded"}
    assert server.call("GET", f"{LOCKS}/k")["waiter_count"] < 150


def test_a_method_that_is_not_there_is_told_shortly(session, contract):  # noqa: F811
    one = session()
    for method in ("Locks/Steal", "Queues/Delete", "x" * 1_000_000, ""):
        result = one.result(one.say(call=one.frame_of.Call(method=method, request=b"")))
        assert result.error.code == "method_not_allowed" and result.ByteSize() < 1_000, result


def test_what_ends_work_is_hardly_refused_for_the_rate(server, session, contract, token):  # noqa: F811
    locks = contract("locks_pb2")
    server.stop()
    server.start("--access-requests-per-s", "1", "--access-burst", "10")
    worker = {"Authorization": f"Bearer {token}"}
    grants = [server.call("POST", LOCKS, {"key": key, "ttl_ms": 600_000}, worker)["token"] for key in "ab"]
    time.sleep(1.1)
    one = session(token)
    while server.request("GET", "/v1/documents", None, worker)[0] == 200:
        pass
    renewed = one.call("Locks/Renew", locks.RenewLockRequest(token=grants[0]))
    released = one.call("Locks/Release", locks.ReleaseLockRequest(token=grants[1]))
    assert not renewed.HasField("error") and not released.HasField("error"), (renewed, released)
