"""The scenarios that every SDK has to hold: ``sdks/conformance/scenarios.json``."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import sluice
from sluice import Client, Dead, Job, LockHeld, NotFound, Operations, Outgoing, Retry, Step, To
from sluice._proto import limits_pb2, queues_pb2
from sluice.testing import Cluster, Server
from sluice.testing.plugin import own_namespace

from .conftest import eventually, working

SCENARIOS = Path(__file__).parents[2] / "conformance" / "scenarios.json"


def counts(client: Client, queue: str) -> queues_pb2.Counts:
    return client.stubs.queues.Get(queues_pb2.GetQueueRequest(queue=queue)).counts


def dead_letters(client: Client, queue: str) -> list[Any]:
    return list(client.stubs.queues.ListDead(queues_pb2.ListDeadRequest(queue=queue)).messages)


def is_empty(client: Client, queue: str) -> bool:
    left = counts(client, queue)
    return left.ready + left.delayed + left.leased + left.blocked + left.dead == 0


def client_of(cluster: Cluster, namespace: str = "", first: int = 0) -> Client:
    """A client that asks this node first."""
    files, urls = cluster.credentials, cluster.urls[first:] + cluster.urls[:first]
    ca, cert, key = files["ca"], files["cert"], files["key"]
    return Client(urls, ca=ca, cert=cert, key=key, namespace=namespace, retry_for=60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(str(tmp_path_factory.mktemp("nodes") / "cluster")) as made:
        yield made


@pytest.fixture(params=[1, 3], ids=["one_node", "three_nodes"])
def sluice_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client with a namespace of its own, of one node and of three, of which one or another is asked."""
    if request.param == 1:
        server: Server = request.getfixturevalue("sluice_server")
        with own_namespace(lambda name: Client(server.url, namespace=name)) as client:
            yield client
    else:
        nodes: Cluster = request.getfixturevalue("cluster")
        first = len(request.node.name) % 3
        with own_namespace(lambda name: client_of(nodes, name, first)) as client:
            yield client


def test_each_scenario_has_its_test() -> None:
    listed = json.loads(SCENARIOS.read_text())
    there = {name for name in globals() if name.startswith("test_")}
    assert there - {"test_each_scenario_has_its_test"} == {f"test_{one['name']}" for one in listed}
    assert [one["name"] for one in listed if one["nodes"] != [1, 3]] == ["restart", "failover"]


def test_send_and_receive(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    sent = client.send(queue, b"\x00\xffhello", headers={"to": "ann", "x": "1"}, content_type="image/png")
    [message] = client.receive(queue, wait=5)
    assert (message.id, message.payload) == (sent.id, b"\x00\xffhello")
    assert (message.headers, message.content_type) == ({"to": "ann", "x": "1"}, "image/png")
    assert client.receive(queue) == []
    client.ack(message)
    assert is_empty(client, queue)


def test_send_many(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    sent = client.send_many(queue, [{"n": n} for n in range(1000)])
    assert len(set(sent.ids)) == 1000
    got: Counter[int] = Counter()
    while messages := client.receive(queue, max=300):
        got.update(message.value["n"] for message in messages)
        assert client.settle(sluice.Settlement.ack(one.receipt) for one in messages) == [None] * len(messages)
    assert got == Counter(range(1000))


def test_send_options(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    client.send_many(queue, ["low", Outgoing("high", priority=9, tags=["a", "b"])])
    [first, second] = client.receive(queue, max=2)
    assert (first.value, first.tags, second.value) == ("high", ["a", "b"], "low")
    _delays(client, queue + "-delay")
    _keys(client, queue + "-keys")
    _ends(client, queue + "-ttl")
    sends = [client.send(queue, "x", idempotency_key="k") for _ in range(2)]
    assert (sends[0].id, sends[0].duplicate, sends[1].duplicate) == (sends[1].id, False, True)


def _delays(client: Client, queue: str) -> None:
    client.send(queue, "later", delay=0.4)
    client.send(queue, "at", deliver_at=datetime.now(timezone.utc) + timedelta(milliseconds=600))
    assert client.receive(queue) == []
    began = time.monotonic()
    assert [client.receive(queue, wait=5)[0].value for _ in range(2)] == ["later", "at"]
    assert time.monotonic() - began >= 0.3


def _keys(client: Client, queue: str) -> None:
    client.send_many(queue, [Outgoing(n, ordering_key="o") for n in (1, 2)])
    [one] = client.receive(queue, max=2)
    client.ack(one)
    [two] = client.receive(queue, max=2)
    assert (one.value, two.value) == (1, 2)
    unique = [client.send(queue, "u", unique="only") for _ in range(2)]
    assert (unique[0].id, unique[0].duplicate, unique[1].duplicate) == (unique[1].id, False, True)


def _ends(client: Client, queue: str) -> None:
    client.send(queue, "short", ttl=0.2)
    eventually(lambda: counts(client, queue).dead == 1)
    assert dead_letters(client, queue)[0].reason == "expired"


def test_send_again(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    first = client.send_many(queue, ["a", "b"], idempotency_key="once")
    again = client.send_many(queue, ["a", "b"], idempotency_key="once")
    assert (again.ids, first.duplicate, again.duplicate) == (first.ids, False, True)
    assert counts(client, queue).ready == 2
    with pytest.raises(sluice.Conflict, match="idempotency_mismatch"):
        client.send_many(queue, ["c"], idempotency_key="once")


def test_work_acks(sluice_client: Client, queue: str) -> None:
    client, handled, at_once, most = sluice_client, Counter[int](), 0, 0
    lock = threading.Lock()

    def handler(job: Job) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
            handled[job.value] += 1
        time.sleep(0.01)
        with lock:
            at_once -= 1

    client.send_many(queue, list(range(100)))
    with working(client, queue, handler, {"concurrency": 8}) as it:
        eventually(lambda: is_empty(client, queue))
    assert handled == Counter(range(100))
    assert 1 < most <= 8
    assert it.summary.acked == 100


def test_work_renews(sluice_client: Client, queue: str) -> None:
    client, attempts = sluice_client, []

    def handler(job: Job) -> None:
        attempts.append(job.message.attempt)
        time.sleep(2.5)
        assert not job.lost.is_set()

    client.send(queue, "long")
    with working(client, queue, handler, {"lease": 1}) as it:
        eventually(lambda: len(attempts) == 1)
        for _ in range(10):
            assert client.receive(queue, wait=0.2) == []
        eventually(lambda: is_empty(client, queue))
    assert (attempts, it.summary.acked) == ([1], 1)


def test_work_retries(sluice_client: Client, queue: str) -> None:
    client, began = sluice_client, []

    async def handler(job: Job) -> None:
        began.append((job.message.attempt, time.monotonic()))
        if len(began) == 1:
            raise Retry("not yet", after=0.5)
        if len(began) == 2:
            raise RuntimeError("by the backoff of the message")

    client.send(queue, "x", backoff=0.2)
    with working(client, queue, handler, {}) as it:
        eventually(lambda: is_empty(client, queue))
    assert [attempt for attempt, _ in began] == [1, 2, 3]
    assert began[1][1] - began[0][1] >= 0.49
    assert began[2][1] - began[1][1] >= 0.19
    assert (it.summary.nacked, it.summary.acked) == (2, 1)


def test_work_dead(sluice_client: Client, queue: str) -> None:
    client = sluice_client

    def handler(job: Job) -> None:
        if job.value == "never":
            raise Dead("not an image")
        raise ValueError("no good")

    client.send(queue, "each time", max_attempts=2, backoff=0.01)
    client.send(queue, "never")
    with working(client, queue, handler, {}):
        eventually(lambda: counts(client, queue).dead == 2)
    found = {one.payload: one for one in dead_letters(client, queue)}
    failed, rejected = found[b"each time"], found[b"never"]
    assert failed.reason == "max_attempts"
    assert [one.error for one in failed.history] == ["ValueError: no good"] * 2
    assert (rejected.reason, rejected.history[-1].error) == ("rejected", "not an image")


def test_work_refused(sluice_client: Client, queue: str) -> None:
    client, begun = sluice_client, threading.Barrier(20)

    def handler(job: Job) -> bytes:
        begun.wait(30)
        return bytes(300_000) if job.value == 5 else b"done"

    client.send_many(queue, [Outgoing(n, max_attempts=1) for n in range(20)])
    with working(client, queue, handler, {"concurrency": 20}) as it:
        eventually(lambda: counts(client, queue).dead == 1 and counts(client, queue).leased == 0)
    assert (it.summary.acked, it.summary.nacked, it.summary.unsettled) == (19, 1, 0)
    [dead] = dead_letters(client, queue)
    assert "262144" in dead.history[-1].error


def test_work_stops(sluice_client: Client, queue: str) -> None:
    client, begun, go, done = sluice_client, threading.Event(), threading.Event(), []

    def handler(job: Job) -> None:
        begun.set()
        assert go.wait(60)
        done.append(job.value)

    client.send_many(queue, list(range(5)))
    with working(client, queue, handler, {"concurrency": 1, "prefetch": 2}) as it:
        assert begun.wait(60)
        it.tell()
        eventually(lambda: counts(client, queue).ready == 4)
        client.send(queue, 5)
        go.set()
    assert done == [0]
    left = counts(client, queue)
    assert (left.ready, left.leased) == (5, 0)
    assert (it.summary.acked, it.summary.nacked) == (1, 0)
    # What was given back has no attempt counted.
    assert {one.attempt for one in client.receive(queue, max=5)} == {1}


def test_request_and_reply(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    with working(client, queue, lambda job: {"sum": sum(job.value)}, {}):
        assert client.request(queue, [1, 2, 3], timeout=60).value == {"sum": 6}
        client.send(queue, [4], reply_to=queue + "-replies", correlation_id="c1")
        [reply] = client.receive(queue + "-replies", wait=10)
        assert (reply.value, reply.correlation_id) == ({"sum": 4}, "c1")
    with pytest.raises(sluice.Timeout):
        client.request(queue, [1], timeout=0.3)


def test_results(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    sent = client.send(queue, "6*7", result_ttl=60)
    assert client.look(sent).state == "pending"
    found: list[sluice.Result] = []
    waiting = threading.Thread(target=lambda: found.append(client.result(sent.id, timeout=60)))
    waiting.start()
    [message] = client.receive(queue)
    client.ack(message, b"42")
    waiting.join(60)
    assert [one.payload for one in found] == [b"42"]
    dead = client.send(queue, "no")
    client.reject(client.receive(queue)[0], "never")
    with pytest.raises(sluice.MessageDead, match="rejected"):
        client.result(dead, timeout=5)


def test_flow(sluice_client: Client, queue: str) -> None:
    client, first, second, end = sluice_client, queue + "-1", queue + "-2", queue + "-end"
    client.chain(To(first, "a"), Step(second, headers={"w": "80"}))
    assert client.receive(second) == []
    client.ack(client.receive(first)[0], {"got": "A"})
    [step] = client.receive(second, wait=5)
    assert (step.value, step.headers) == ({"got": "A"}, {"w": "80"})

    group = client.group([To(first, n) for n in range(3)], To(end, "all done"))
    for message in client.receive(first, max=3):
        assert client.receive(end) == []
        client.ack(message)
    [callback] = client.receive(end, wait=5)
    assert (callback.id, callback.value, callback.headers["sluice-done"]) == (group.id, "all done", "3")


def test_schedule(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    client.schedules.put("each-second", queue, {"n": 1}, every=1, headers={"by": "schedule"})
    messages = [client.receive(queue, wait=5)[0] for _ in range(2)]
    assert [(one.value, one.headers["by"]) for one in messages] == [({"n": 1}, "schedule")] * 2
    client.schedules.put("daily", queue, "report", cron="0 9 * * MON-FRI", time_zone="Europe/Berlin")
    assert [one.name for one in client.schedules.list()] == ["daily", "each-second"]
    assert len(client.schedules.next("daily", 3)) == 3
    client.schedules.delete("each-second")
    client.receive(queue)
    assert client.receive(queue, wait=1.5) == []


def test_budget(sluice_client: Client, queue: str) -> None:
    client, stubs = sluice_client, sluice_client.stubs

    def allow(period_ms: int) -> None:
        rate = limits_pb2.Rate(count=1000, period_ms=period_ms)
        stubs.limits.Put(limits_pb2.PutLimitRequest(name="tokens", rate_per_key=rate))

    allow(60_000)
    stubs.queues.Put(queues_pb2.SetQueueRequest(queue=queue, limit="tokens"))
    sent = [("large", "ann", 2000), ("next", "ann", 1), ("other", "bob", 1)]
    client.send_many(queue, [Outgoing(text, limit_key=key, cost=cost) for text, key, cost in sent])
    [large, other] = client.receive(queue, max=10)
    assert (large.value, other.value) == ("large", "other")
    client.extend(large, add_cost=600)
    client.ack(large, add_cost=400)
    [of_ann] = stubs.limits.Get(limits_pb2.GetLimitRequest(name="tokens", key="ann")).keys
    assert (2800 <= of_ann.spent <= 3000, of_ann.waiting) == (True, 1)
    assert client.receive(queue) == []
    # Other rules forgive the debt, and what is left is made up for within a millisecond.
    allow(1000)
    assert [one.value for one in client.receive(queue, wait=5)] == ["next"]


def test_lock(sluice_client: Client) -> None:
    client = sluice_client
    tokens: list[int] = []
    released: list[bool] = []

    def second() -> None:
        with client.lock("deploy", ttl=5, owner="second") as held:
            assert released
            tokens.append(held.fencing_token)

    with client.lock("deploy", ttl=5) as held:
        with pytest.raises(LockHeld), client.lock("deploy", wait=0):
            pass
        waiting = threading.Thread(target=second)
        waiting.start()
        eventually(lambda: client.locks.show("deploy").waiter_count == 1)
        assert tokens == []
        released.append(True)
    waiting.join(60)
    assert tokens[0] > held.fencing_token
    assert client.locks.show("deploy").holder_count == 0


def test_lock_is_renewed(sluice_client: Client) -> None:
    client = sluice_client
    with client.lock("long", ttl=2) as held:
        assert not held.lost.wait(4.5)
        assert client.locks.show("long").holders[0].fencing_token == str(held.fencing_token)
    with pytest.raises(sluice.LeaseLost), client.lock("long", ttl=1) as held:
        client.locks.break_("long")
        assert held.lost.wait(5)


def test_documents(sluice_client: Client) -> None:
    docs = sluice_client.documents
    first = docs.put("orders/17", {"state": "new", "total": 80}, history=2, attributes={"by": "ann"})
    read = docs.get("orders/17")
    assert (read.version, read.value, read.attributes) == (1, {"state": "new", "total": 80}, {"by": "ann"})
    docs.put("orders/17", {"state": "paid", "total": 80}, if_version=read.version)
    with pytest.raises(sluice.VersionMismatch):
        docs.put("orders/17", {"state": "lost"}, if_etag=first.etag)
    with pytest.raises(sluice.VersionMismatch):
        docs.put("orders/17", {}, if_absent=True)
    docs.patch("orders/17", {"draft": True})
    docs.json_patch("orders/17", [{"op": "remove", "path": "/draft"}])
    assert docs.increment("orders/17", "/total", 20).version == 5
    assert docs.get("orders/17").value == {"state": "paid", "total": 100}
    assert [one.version for one in docs.history("orders/17")] == [5, 4, 3]
    docs.put("orders/18", {"state": "new", "total": 5})
    assert [one.key for one in docs.query({"/total": {"ge": 50}}, prefix="orders/")] == ["orders/17"]
    assert [one.key for one in docs.query(sort=["-/total"], page=1)] == ["orders/17", "orders/18"]
    assert [one.key for one in docs.list("orders/", page=1)] == ["orders/17", "orders/18"]
    _watches(sluice_client)
    docs.delete("orders/17")
    assert docs.find("orders/17") is None
    with pytest.raises(NotFound):
        docs.get("orders/17")


def _watches(client: Client) -> None:
    changes = client.documents.watch("orders/")
    assert {next(changes).key for _ in range(2)} == {"orders/17", "orders/18"}
    client.documents.delete("orders/18")
    change = next(changes)
    assert (change.key, change.document) == ("orders/18", None)


def test_transaction(sluice_client: Client, queue: str) -> None:
    client, out = sluice_client, queue + "-out"
    client.documents.put("o/1", {"state": "new"})
    client.send(queue, "work")
    [message] = client.receive(queue)

    def operations(version: int) -> Operations:
        paid = Operations().ack(message).put("o/1", {"state": "paid"}, if_version=version)
        return paid.send(out, "thank you")

    with pytest.raises(sluice.VersionMismatch) as refused:
        client.commit(operations(7))
    assert refused.value.details["operation"] == "1"
    assert (counts(client, queue).leased, client.documents.get("o/1").version) == (1, 1)
    done = client.commit(operations(1), idempotency_key=message.receipt)
    written = done.results[1].written
    assert written is not None
    assert (written.version, bool(done.results[2].id)) == (2, True)
    assert client.commit(operations(1), idempotency_key=message.receipt).duplicate
    assert is_empty(client, queue)
    assert [one.value for one in client.receive(out, max=5)] == ["thank you"]
    _interactive(client, queue)


def _interactive(client: Client, queue: str) -> None:
    client.send(queue, "more")
    with client.transaction() as tx:
        [message] = tx.receive(queue)
        document = tx.get("o/1")
        assert document is not None
        tx.put("o/2", {"was": document.value["state"], "for": message.value})
        assert client.documents.find("o/2") is None
    assert client.documents.get("o/2").value == {"was": "paid", "for": "more"}
    assert is_empty(client, queue)
    with pytest.raises(ZeroDivisionError), client.transaction() as tx:
        tx.delete("o/2")
        1 // 0
    assert client.documents.get("o/2").version == 1
    with pytest.raises(sluice.VersionMismatch), client.transaction() as tx:
        tx.get("o/1")
        client.documents.patch("o/1", {"x": 1})
        tx.put("o/3", "never")


def test_errors(sluice_client: Client, queue: str) -> None:
    client = sluice_client
    cases: list[tuple[type[sluice.SluiceError], str, dict[str, str], Callable[[], Any]]] = [
        (NotFound, "queue_not_found", {"queue": queue}, lambda: counts(client, queue)),
        (sluice.InvalidArgument, "invalid_name", {}, lambda: client.send("no such name!", "x")),
        (sluice.InvalidArgument, "invalid_receipt", {}, lambda: client.ack("nonsense")),
        (sluice.TooLarge, "payload_too_large", {}, lambda: client.send(queue, bytes(2 << 20))),
        (sluice.Conflict, "patch_failed", {}, lambda: _bad_patch(client)),
    ]
    for kind, code, details, call in cases:
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert error.code == code
        assert error.message
        assert details.items() <= error.details.items()
    client.send(queue, "x")
    [message] = client.receive(queue, lease=0.05)
    time.sleep(0.1)
    with pytest.raises(sluice.LeaseLost) as lost:
        client.extend(message)
    assert lost.value.code == "lease_lost"
    with pytest.raises(sluice.Unavailable) as away, Client("127.0.0.1:1", connect_retry_for=0.1) as nobody:
        nobody.send(queue, "x")
    assert away.value.code == "unreachable"


def _bad_patch(client: Client) -> None:
    client.documents.put("text", {"n": "text"})
    client.documents.increment("text", "/n")


def test_failover(tmp_path: Path, queue: str) -> None:
    with Cluster(str(tmp_path / "cluster")) as nodes, client_of(nodes) as client:
        killed = 0

        def before(sent: int) -> None:
            nonlocal killed
            if sent in KILLS:
                killed = client.portal.run(_asked)
                nodes.kill(killed)
            elif sent - 50 in KILLS:
                nodes.start(killed)

        _goes_on(client, queue, before)


def test_restart(tmp_path: Path, queue: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    server = Server(f"--data-dir={tmp_path}", listen=listen)
    with Client(listen, retry_for=60, connect_retry_for=60) as client:

        def before(sent: int) -> None:
            nonlocal server
            if sent in KILLS:
                server.process.kill()
                server.stop()
                server = Server(f"--data-dir={tmp_path}", listen=listen)

        try:
            _goes_on(client, queue, before)
        finally:
            server.stop()


#: Of 300 messages so many are sent before each of the kills.
KILLS = (100, 200)


def _goes_on(client: Client, queue: str, before: Callable[[int], None]) -> None:
    """Sends, works and holds a lock; does something before each send, by the number of those before it."""
    handled: set[str] = set()
    sent: list[str] = []
    options: Any = {"concurrency": 4, "lease": 5}
    with client.lock("leader", ttl=20) as held:
        with working(client, queue, lambda job: handled.add(job.message.id), options):
            for n in range(300):
                before(n)
                sent.append(client.send(queue, n).id)
            eventually(lambda: handled >= set(sent), within=90)
        assert not held.lost.is_set()
        assert client.locks.show("leader").holders[0].fencing_token == str(held.fencing_token)
    eventually(lambda: is_empty(client, queue), within=90)


async def _asked(client: sluice.aio.Client) -> int:
    return client._core.current
