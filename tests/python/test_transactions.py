"""Transactions: operations on queues, documents and locks that are done together, all or none."""

import base64
import json
import random
import ssl
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import until
from documents import BYTES_MAX, JSON, LOCKS, acquire, delete, error, get, grow, of, put, release
from test_cluster_join import begun, free_port, joined, machines  # noqa: F401
from test_documents_grpc import contract  # noqa: F401

TRANSACTIONS = "/v1/transactions"
LONG_MS = 600_000


def commit(server, *operations: dict, key="", path=TRANSACTIONS, headers=None) -> dict:
    named = {"Idempotency-Key": key} if key else {}
    return server.call("POST", path, {"operations": list(operations)}, {**named, **(headers or {})})


def refused(server, *operations: dict, key="", path=TRANSACTIONS, headers=None) -> dict:
    """Error of a transaction that must not be committed."""
    named = {"Idempotency-Key": key} if key else {}
    return error(server, "POST", path, {"operations": list(operations)}, {**named, **(headers or {})})


def code(server, *operations: dict, **more) -> tuple[int, str]:
    told = refused(server, *operations, **more)
    return told["status"], told["code"]


def sending(payload: str, queue="mail", **fields) -> dict:
    return {"send": {"queue": queue, "payload": payload, **fields}}


def settling(receipt: str, outcome="ack", **fields) -> dict:
    return {"settle": {"receipt": receipt, "outcome": outcome, **fields}}


def putting(key: str, content="", **fields) -> dict:
    return {"put": {"key": key, "content": content, **fields}}


def deleting(key: str, **fields) -> dict:
    return {"delete": {"key": key, **fields}}


def adding(key: str, by=1, pointer="/n", **fields) -> dict:
    return {"patch": {"key": key, "increment": [{"pointer": pointer, "by": str(by)}], **fields}}


def acquiring(key: str, **fields) -> dict:
    return {"acquire": {"key": key, "ttl_ms": LONG_MS, **fields}}


def releasing(token: str) -> dict:
    return {"release": {"token": token}}


def send(server, payload: str, queue="jobs", **fields) -> str:
    return server.call("POST", f"/v1/queues/{queue}/messages", {"payload": payload, **fields})["id"]


def receive(server, queue="jobs", **fields) -> dict | None:
    body = {"lease_ms": LONG_MS, **fields}
    return next(iter(server.call("POST", f"/v1/queues/{queue}/receive", body)["messages"]), None)


def delivery(server, payload="job", queue="jobs", lease_ms=LONG_MS, **fields) -> str:
    """The receipt of a message that was sent and received just now."""
    send(server, payload, queue, **fields)
    return receive(server, queue, lease_ms=lease_ms)["receipt"]


def messages(server, queue: str) -> list[dict]:
    status, answer = server.request("GET", f"/v1/queues/{queue}/messages?payload=true&limit=1000")
    return json.loads(answer)["messages"] if status == 200 else []


def payloads(server, queue="mail") -> list[str]:
    return [message["payload"] for message in messages(server, queue)]


def message(server, sent: str) -> dict:
    return server.call("GET", f"/v1/messages/{sent}")


def is_held(server, key: str) -> bool:
    status, answer = server.request("GET", f"{LOCKS}/{key}")
    return status == 200 and json.loads(answer)["holder_count"] > 0


def number(server, key: str, pointer="n") -> int:
    return json.loads(get(server, key)["content"]).get(pointer, 0)


def everything(server) -> dict:
    """All that is there, to see that nothing has changed."""
    queues = server.call("GET", "/v1/queues")["queues"]
    for queue in queues:
        queue.pop("oldest_ready_age_ms", None)
    documents = [one["key"] for one in server.call("GET", "/v1/documents")["documents"]]
    return {
        "queues": queues,
        "messages": {queue["name"]: messages(server, queue["name"]) for queue in queues},
        "documents": [(get(server, key), get(server, key, "/history")) for key in documents],
        "locks": server.call("GET", LOCKS)["locks"],
        "namespaces": server.call("GET", "/v1/namespaces"),
    }


class Work:
    """What a worker has at hand: a delivery, locks, documents."""

    def __init__(self, server):
        self.receipt, self.token, self.other = delivery(server), *(held(server, key) for key in ("k", "busy"))
        self.version = put(server, "k", "old", history=2)["version"]
        put(server, "n", '{"n":0}')
        put(server, "gone", "x")

    def operations(self) -> list[dict]:
        """One of each kind, all of which are admitted."""
        return [
            settling(self.receipt),
            putting("k", "new", token=self.token, if_version=self.version),
            sending("follow-up"),
            adding("n"),
            deleting("gone"),
            acquiring("free"),
            releasing(self.token),
        ]


def held(server, key: str) -> str:
    return acquire(server, key, ttl_ms=LONG_MS)


def test_a_worker_commits_its_work_as_one(server):
    send(server, "job")
    job = receive(server)
    grant = server.call("POST", LOCKS, {"key": "orders/17"})
    whole = [
        putting("orders/17", "paid", token=grant["token"], attributes={"by": "me"}, content_type="text/plain"),
        settling(job["receipt"]),
        sending("thank you", headers={"to": "ann"}),
        releasing(grant["token"]),
    ]
    status, answer = server.request("POST", TRANSACTIONS, json.dumps({"operations": whole}).encode(), JSON)
    assert status == 200, answer
    committed = json.loads(answer)
    written, settled, sent, let_go = committed["results"]
    assert committed["duplicate"] is False and settled == let_go == {} and sent.keys() == {"id"}
    document = get(server, "orders/17")
    assert document.items() >= {"content": "paid", "attributes": {"by": "me"}, **written["written"]}.items()
    assert document["content_type"] == "text/plain"
    assert written["written"].keys() == {"version", "etag", "changed_at_ms"}
    assert grow([grant["fencing_token"], document["etag"]])
    assert message(server, sent["id"]).items() >= {"payload": "thank you", "state": "ready"}.items()
    assert receive(server, "mail")["headers"] == {"to": "ann"}
    assert messages(server, "jobs") == [] and not is_held(server, "orders%2F17")
    assert server.call("GET", "/v1/queues/jobs")["totals"]["acked"] == 1
    # It is over for later calls, too.
    assert server.call("POST", "/v1/ack", {"receipt": job["receipt"]}) == {"already_settled": True}
    assert error(server, "PUT", of("orders/17"), {"content": "x", "token": grant["token"]})["code"] == "lease_lost"


def test_each_operation_has_its_result_at_its_place(server):
    work = Work(server)
    results = commit(server, *work.operations())["results"]
    kinds = [sorted(one) for one in results]
    assert kinds == [[], ["written"], ["id"], ["written"], [], ["grant"], []]
    assert [results[at]["written"]["version"] for at in (1, 3)] == [2, 2]
    assert results[5]["grant"].keys() == {"token", "fencing_token", "expires_at_ms"}
    assert grow([results[1]["written"]["etag"], results[3]["written"]["etag"], results[5]["grant"]["fencing_token"]])
    assert abs(results[5]["grant"]["expires_at_ms"] / 1_000 - LONG_MS / 1_000 - time.time()) < 60
    put(server, "free", "x", token=results[5]["grant"]["token"])
    assert get(server, "k", "?version=1")["content"] == "old" and number(server, "n") == 1
    release(server, results[5]["grant"]["token"])
    before = everything(server)
    server.kill()
    server.start()
    assert everything(server) == before


# Operations that are refused, each with its code.
def refusals(server, work: Work) -> dict[str, tuple[dict, str]]:
    send(server, "late", "late")
    late = receive(server, "late", lease_ms=1)["receipt"]
    until(lambda: messages(server, "late")[0]["state"] == "ready", "its lease is over")
    settled = delivery(server, "settled")
    server.call("POST", "/v1/ack", {"receipt": settled})
    cancelled = delivery(server, "cancelled", "cancelled")
    server.call("POST", f"/v1/messages/{messages(server, 'cancelled')[0]['id']}/cancel", {})
    released, ended = held(server, "k2"), acquire(server, "ended", ttl_ms=1)
    release(server, released)
    until(lambda: not is_held(server, "ended"), "its time is over")
    server.call("PUT", "/v1/queues/closed", {})
    server.call("POST", "/v1/queues/closed/close", {})
    server.call("PUT", "/v1/queues/full", {"max_messages": 1, "overflow": "refuse_new"})
    send(server, "fills", "full")
    etag = put(server, "there", "text")["etag"]
    removal = '[{"op":"remove","path":"/none"}]'
    none = "0" * 32
    return {
        "a receipt whose lease is over": (settling(late), "lease_lost"),
        "a receipt that has settled": (settling(settled), "already_settled"),
        "a nack with a receipt that has settled": (settling(settled, "nack"), "already_settled"),
        "a receipt of a cancelled message": (settling(cancelled), "cancelled"),
        "a release of what is released": (releasing(released), "lease_lost"),
        "a release of what has ended": (releasing(ended), "lease_lost"),
        "a release by nobody": (releasing(none), "lease_lost"),
        "a write under a released lock": (putting("k2", token=released), "lease_lost"),
        "a write under the lock of another key": (putting("j", token=work.other), "lease_lost"),
        "a patch under an ended lock": (adding("counted", token=ended), "lease_lost"),
        "a write of a wrong version": (putting("there", if_version=7), "version_mismatch"),
        "a write of a wrong etag": (putting("there", if_etag="7"), "version_mismatch"),
        "a write of what is there": (putting("there", if_absent=True), "version_mismatch"),
        "a write of what is not there": (putting("none", if_exists=True), "version_mismatch"),
        "a patch of what is not there": (adding("none"), "document_not_found"),
        "a patch of what is no JSON": (adding("there"), "invalid_argument"),
        "a patch of a wrong version": (
            {"patch": {"key": "counted", "merge_patch": "{}", "if_version": 7}},
            "version_mismatch",
        ),
        "a patch that fails": ({"patch": {"key": "counted", "json_patch": removal}}, "patch_failed"),
        "a deletion of what is not there": (deleting("none"), "document_not_found"),
        "a deletion of a wrong version": (deleting("there", if_version=7), "version_mismatch"),
        "a deletion under the lock of another": (deleting("there", if_etag=etag, token=none), "lease_lost"),
        "a lock that is held": (acquiring("busy"), "lock_held"),
        "a lock to share that is held": (acquiring("busy", mode="shared"), "lock_held"),
        "one of several locks that is held": ({"acquire": {"keys": ["x", "busy", "y"]}}, "lock_held"),
        "a lock that is held until the transaction": (acquiring("k"), "lock_held"),
        "a closed queue": (sending("x", "closed"), "queue_closed"),
        "a full queue": (sending("x", "full"), "queue_full"),
        "a parent that never was": (sending("x", depends_on=["000000800000002001hg"]), "parent_not_found"),
    }


def test_nothing_is_half_done_whatever_is_refused_and_wherever_it_is(server):
    work = Work(server)
    put(server, "counted", '{"n":1}')
    wrong = refusals(server, work)
    before = everything(server)
    for what, (bad, expected) in wrong.items():
        kind = next(iter(bad))
        for at in (7, 3, 0):
            operations = work.operations()
            operations.insert(at, bad)
            told = refused(server, *operations)
            assert told["code"] == expected and told["status"] in (400, 404, 409, 429), (what, at, told)
            assert told["message"].startswith(f"operations[{at}].{kind}"), (what, at, told)
            assert told["details"]["operation"] == at, (what, at, told)
            assert everything(server) == before, (what, at)
    server.kill()
    server.start()
    assert everything(server) == before
    assert "mail" not in [queue["name"] for queue in before["queues"]], "no queue is made in vain"
    assert len(commit(server, *work.operations())["results"]) == 7


def test_a_refusal_is_told_as_that_of_the_operation_alone(server):
    work = Work(server)
    alone = [
        (error(server, "PUT", of("k"), {"content": "x", "if_version": 7}), putting("k", "x", if_version=7)),
        (error(server, "DELETE", of("none")), deleting("none")),
        (error(server, "POST", LOCKS, {"key": "busy"}), acquiring("busy")),
        (error(server, "PATCH", of("none"), {"merge_patch": "{}"}), {"patch": {"key": "none", "merge_patch": "{}"}}),
        (error(server, "POST", "/v1/grants/release", {"token": "0" * 32}), releasing("0" * 32)),
    ]
    for one, operation in alone:
        whole = refused(server, sending("x"), operation)
        kind = next(iter(operation))
        assert whole["message"] == f"operations[1].{kind}: {one['message']}"
        assert whole["details"] == {**one["details"], "operation": 1} and whole["code"] == one["code"]
    assert work and payloads(server) == []


def test_the_first_operation_that_is_refused_is_named(server):
    told = refused(server, acquiring("free"), deleting("a"), putting("b", if_version=1))
    assert (told["code"], told["details"]["operation"]) == ("document_not_found", 1)
    told = refused(server, acquiring("free"), putting("b", if_version=1), deleting("a"))
    assert (told["code"], told["details"]["operation"]) == ("version_mismatch", 1)


def test_no_operation_depends_on_another(server):
    token = held(server, "k")
    put(server, "old", "x")
    no_lock = (409, "lock_held")
    assert code(server, releasing(token), acquiring("k")) == no_lock
    assert code(server, acquiring("k"), releasing(token)) == no_lock
    # A lock that the transaction acquires has no token yet, and its document is written without one.
    results = commit(server, acquiring("new"), putting("new", "x"), deleting("old"), acquiring("old"))["results"]
    assert put(server, "new", "y", token=results[0]["grant"]["token"])["version"] == 2
    # A token counts for what is written and for its release, at any place.
    commit(server, releasing(token), putting("k", "x", token=token))
    assert get(server, "k")["content"] == "x" and not is_held(server, "k")
    both = server.call("POST", LOCKS, {"keys": ["a", "b"]})["token"]
    commit(server, putting("a", token=both), putting("b", token=both), releasing(both))
    assert not is_held(server, "a") and not is_held(server, "b")


def test_what_is_named_twice_is_refused(server):
    work = Work(server)
    put(server, "j", "{}")
    twice = [
        (settling(work.receipt), settling(work.receipt, "nack"), "receipt"),
        (putting("j"), putting("j"), "key"),
        (putting("j"), deleting("j"), "key"),
        (deleting("j"), putting("j"), "key"),
        (adding("j"), putting("j"), "key"),
        (adding("j"), deleting("j"), "key"),
        (acquiring("l"), acquiring("l", mode="shared"), "key"),
        (acquiring("l"), {"acquire": {"keys": ["m", "l"]}}, "keys"),
        (releasing(work.token), releasing(work.token), "token"),
    ]
    before = everything(server)
    for one, other, field in twice:
        told = refused(server, one, sending("x"), other)
        assert (told["status"], told["code"]) == (400, "invalid_argument"), (one, other, told)
        assert told["message"].startswith(f"operations[2].{next(iter(other))}.{field}"), (one, other, told)
        assert "operations[0]" in told["message"]
    assert everything(server) == before
    # The lock and the document of a key are two things, and messages may be alike.
    commit(server, acquiring("j"), adding("j"), sending("x"), sending("x"))
    assert payloads(server) == ["x", "x"]


def test_a_patch_of_what_is_named_before_is_refused_by_its_name(server):
    put(server, "j", "{}")
    for one in (putting("j"), deleting("j"), adding("j")):
        told = refused(server, one, adding("j"))
        assert (told["status"], told["code"]) == (400, "invalid_argument"), (one, told)
        assert told["message"].startswith("operations[1].patch.key: operations[0]"), (one, told)
    assert number(server, "j") == 0 and get(server, "j")["version"] == 1


def test_the_details_of_bad_input_have_its_operation(server):
    put(server, "j", "{}")
    for wrong in (putting(""), adding(""), adding("j", token="x"), acquiring("", owner="x"), releasing("x"),
                  settling("x"), putting("x", token="x"), sending("x", priority=10), sending("x", queue="$"),
                  sending("x", depends_on=["#0"]), deleting("other"), {"put": {}}, {"put": 7}, {}):  # fmt: skip
        told = refused(server, deleting("other"), wrong)
        assert told["details"].get("operation") == 1, (wrong, told)


def test_bad_input_is_refused_by_its_name(server):
    receipt = delivery(server)
    wrong = [
        ("unknown_field", ".ack", {"ack": {}}),
        ("missing_field", "", {}),
        ("conflicting_fields", ".delete", {**putting("a"), **deleting("b")}),
        ("missing_field", ".put.key", {"put": {"content": ""}}),
        ("missing_field", ".put.content", {"put": {"key": "a"}}),
        ("missing_field", ".patch.key", {"patch": {"merge_patch": "{}"}}),
        ("missing_field", ".patch.merge_patch", {"patch": {"key": "a"}}),
        ("missing_field", ".delete.key", {"delete": {}}),
        ("missing_field", ".acquire.key", {"acquire": {}}),
        ("missing_field", ".release", {"release": {}}),
        ("missing_field", ".send.queue", {"send": {"payload": ""}}),
        ("missing_field", ".send.payload", {"send": {"queue": "mail"}}),
        ("missing_field", ".settle.receipt", {"settle": {"outcome": "ack"}}),
        ("missing_field", ".settle.outcome", {"settle": {"receipt": receipt}}),
        ("invalid_receipt", ".settle.receipt", settling("x")),
        ("invalid_argument", ".settle.outcome", settling(receipt, "done")),
        ("invalid_argument", ".settle.result_base64", settling(receipt, result_base64="x")),
        ("invalid_argument", ".send.payload_base64", {"send": {"queue": "mail", "payload_base64": "eA"}}),
        ("invalid_argument", ".put.content_base64", {"put": {"key": "a", "content_base64": "-_=="}}),
        ("conflicting_fields", ".put", putting("a", content_base64="")),
        ("conflicting_fields", ".put", putting("a", if_absent=True, if_version=1)),
        ("invalid_argument", ".put.history", putting("a", history=101)),
        ("invalid_argument", ".put.if_version", putting("a", if_version=0)),
        ("invalid_argument", ".put", putting("a", if_etag="x")),
        ("invalid_argument", ".put", putting("a", token="x")),
        ("invalid_argument", ".put.key", putting("")),
        ("invalid_argument", ".put.key", putting("k" * 256)),
        ("invalid_argument", ".put.key", putting("a\nb")),
        ("invalid_argument", ".delete.key", deleting("")),
        ("invalid_argument", ".patch", adding("")),
        ("invalid_argument", ".patch.json_patch", {"patch": {"key": "a", "json_patch": "["}}),
        ("invalid_argument", ".acquire.key", acquiring("")),
        ("invalid_argument", ".acquire.keys", {"acquire": {"keys": []}}),
        ("invalid_argument", ".acquire.keys", {"acquire": {"keys": ["x", "x"]}}),
        ("invalid_argument", ".acquire.keys", {"acquire": {"keys": [str(at) for at in range(65)]}}),
        ("invalid_argument", ".acquire.ttl_ms", acquiring("a", ttl_ms=0)),
        ("missing_field", ".acquire.holders", acquiring("a", mode="counting")),
        ("unknown_field", ".acquire.wait_ms", acquiring("a", wait_ms=1)),
        ("unknown_field", ".acquire.request_id", acquiring("a", request_id="r")),
        ("unknown_field", ".put.request_id", putting("a", request_id="r")),
        ("invalid_argument", ".release", releasing("x")),
        ("invalid_name", ".send.queue", sending("x", "no/queue")),
        ("invalid_argument", ".send.priority", sending("x", priority=10)),
        ("invalid_argument", ".send.unique", sending("x", unique={"key": "u"})),
        ("payload_too_large", ".put.content", putting("a", "x" * (BYTES_MAX + 1))),
        ("payload_too_large", ".send.payload", sending("x" * ((1 << 20) + 1))),
    ]
    for expected, place, operation in wrong:
        told = refused(server, sending("x"), putting("other"), operation)
        assert told["code"] == expected and 400 <= told["status"] < 500, (operation, told)
        assert told["message"].startswith(f"operations[2]{place}"), (operation, told)
    assert everything(server)["documents"] == [] and payloads(server) == []


def test_a_body_that_is_no_transaction_is_refused(server):
    for expected, body in [
        ("missing_field", {}),
        ("missing_field", {"operations": []}),
        ("wrong_type", {"operations": {}}),
        ("wrong_type", {"operations": [None]}),
        ("unknown_field", {"operation": []}),
        ("unknown_field", {"operations": [sending("x")], "request_id": "r"}),
        ("invalid_argument", {"operations": [deleting("a")] * 1_001}),
    ]:
        told = error(server, "POST", TRANSACTIONS, body)
        assert (told["status"], told["code"]) == (400, expected), (body.keys(), told)
    for data in (b"", b"[]", b'{"operations":[],"operations":[]}', b'{"operations":[{"put":{},"put":{}}]}'):
        assert server.request("POST", TRANSACTIONS, data, JSON)[0] == 400, data
    for key in ("x" * 257, "a\tb"):
        assert code(server, sending("x"), key=key)[0] == 400, key
    assert server.request("GET", TRANSACTIONS)[0] == 405
    assert payloads(server) == []


def test_a_transaction_may_be_as_large_as_its_limits(server):
    many = [putting(f"{at:04}", str(at)) for at in range(400)] + [sending(str(at)) for at in range(600)]
    results = commit(server, *many)["results"]
    assert len(results) == 1_000 and all("written" in one for one in results[:400])
    assert payloads(server) == [str(at) for at in range(600)]
    assert get(server, "0399")["content"] == "399"
    assert [message(server, results[at]["id"])["payload"] for at in (400, 700, 999)] == ["0", "300", "599"]
    large = base64.b64encode(random.randbytes(BYTES_MAX)).decode()
    four = [{"put": {"key": f"large{at}", "content_base64": large}} for at in range(4)]
    assert len(commit(server, *four)["results"]) == 4
    assert get(server, "large3")["content_base64"] == large
    assert code(server, *four, putting("more", "x")) == (413, "batch_too_large")
    assert code(server, *[{"put": {"key": f"n{at}", "content_base64": large}} for at in range(5)])[0] == 413


def test_documents_messages_and_results_together_have_a_limit(server):
    receipt = delivery(server)
    full = [putting(f"k{at}", "x" * BYTES_MAX) for at in range(4)]
    for more in (putting("more", "x"), settling(receipt, result="x"), sending("x")):
        assert code(server, *full, more) == (413, "batch_too_large"), more
    assert everything(server)["documents"] == []


def test_quotas_count_all_operations_together(server):
    server.call("PUT", "/v1/namespaces/one", {"quotas": {"messages": 3, "bytes": 1_000}})
    path = "/v1/namespaces/one/transactions"
    for operations in ([sending("x")] * 4, [putting("a", "x" * 500), putting("b", "x" * 500)],
                       [putting("a", "x" * 600), sending("x" * 500)]):  # fmt: skip
        assert code(server, *operations, path=path) == (429, "quota_exceeded")
    used = server.call("GET", "/v1/namespaces/one")
    assert (used["bytes"], used["messages"], used["queues"]) == (0, 0, 0)
    commit(server, *[sending("x")] * 3, putting("a", "x" * 600), path=path)
    # Room that a transaction makes counts for later ones.
    assert code(server, deleting("a"), putting("b", "x" * 600), path=path) == (429, "quota_exceeded")
    commit(server, putting("a", "y" * 600), path=path)
    commit(server, deleting("a"), path=path)
    commit(server, putting("b", "x" * 600), path=path)


def test_namespaces_are_apart(server):
    server.call("PUT", "/v1/namespaces/one", {})
    path, receipt, token = "/v1/namespaces/one/transactions", delivery(server), held(server, "k")
    commit(server, sending("there"), putting("k", "there"), path=path, key="r")
    assert payloads(server) == [] and error(server, "GET", of("k"))["code"] == "document_not_found"
    assert server.call("GET", of("k", namespace="one"))["content"] == "there"
    told = refused(server, settling(receipt), path=path)
    assert told["code"] == "invalid_argument" and "another namespace" in told["message"]
    assert told["message"].startswith("operations[0].settle.receipt")
    assert code(server, sending("x"), releasing(token), path=path) == (409, "lease_lost")
    assert code(server, putting("k", token=token), path=path) == (409, "lease_lost")
    assert code(server, sending("x"), path="/v1/namespaces/none/transactions") == (404, "namespace_not_found")
    # An idempotency key is that of its namespace.
    assert commit(server, sending("here"), key="r")["duplicate"] is False
    assert commit(server, sending("here"), path="/v1/namespaces/default/transactions", key="r")["duplicate"]
    server.call("DELETE", "/v1/namespaces/one?force=true")
    server.call("PUT", "/v1/namespaces/one", {})
    assert commit(server, sending("anew"), path=path, key="r")["duplicate"] is False


def test_messages_are_sent_with_all_that_applies_to_them(server):
    results = commit(
        server,
        sending("low"),
        sending("high", priority=9, headers={"b": "1", "a": "grün"}, tags=["t"], content_type="a/b"),
        putting("between", "x"),
        sending("later", delay_ms=LONG_MS),
        sending("short", ttl_ms=1),
        sending("held", hold=True),
        {"send": {"queue": "mail", "payload_base64": "/wA="}},
        sending("first", "ordered", ordering_key="o"),
        sending("second", "ordered", ordering_key="o"),
    )["results"]
    found = [message(server, results[at]["id"]) for at in (0, 1, 3, 5, 6, 7, 8)]
    assert [one["state"] for one in found] == ["ready", "ready", "delayed", "held", "ready", "ready", "blocked"]
    first = receive(server, "mail")
    assert first.items() >= {"payload": "high", "priority": 9, "tags": ["t"], "content_type": "a/b"}.items()
    assert list(first["headers"].items()) == [("b", "1"), ("a", "grün")]
    assert found[4]["payload_base64"] == "/wA=" and found[5]["queue"] == "ordered"
    assert grow([str(int(one["id"], 32)) for one in results if "id" in one])


def test_parents_are_counted_among_the_messages(server):
    job = send(server, "job")
    receipt = receive(server)["receipt"]
    results = commit(
        server,
        putting("k"),
        sending("first"),
        settling(receipt),
        sending("second", depends_on=["#0"]),
        sending("third", "others", depends_on=["#1", "#0"]),
        sending("after the job", depends_on=[job]),
    )["results"]
    states = [message(server, results[at]["id"])["state"] for at in (1, 3, 4, 5)]
    assert states == ["ready", "blocked", "blocked", "ready"]
    flow = server.call("GET", f"/v1/flows/{results[4]['id']}")
    assert sorted(one["id"] for one in flow["parents"]) == sorted([results[1]["id"], results[3]["id"]])
    for wrong in ("#0", "#1", "#7", "#", "x"):
        told = refused(server, putting("j"), sending("x", depends_on=[wrong]), sending("y"))
        assert told["status"] == 400 and told["message"].startswith("operations[1].send.depends_on"), told
    for expected in ("first", "second"):
        until(lambda: messages(server, "mail"), "it is there")
        given = receive(server, "mail", max=1)
        while given["payload"] != expected:
            commit(server, settling(given["receipt"]))
            given = receive(server, "mail", wait_ms=10_000)
        commit(server, settling(given["receipt"]))
    assert receive(server, "others", wait_ms=10_000)["payload"] == "third"


def test_a_parent_that_fails_in_the_transaction_has_failed_for_its_children(server):
    parents = [send(server, "job") for _ in range(2)]
    receipts = [receive(server)["receipt"] for _ in parents]
    results = commit(
        server,
        settling(receipts[0], "reject", error="never"),
        sending("cancelled", depends_on=[parents[0]]),
        sending("held", depends_on=[parents[1]], on_parent_failed="hold"),
        settling(receipts[1], "reject"),
    )["results"]
    gone = f"/v1/messages/{results[1]['id']}"
    until(lambda: server.request("GET", gone)[0] == 404, "it is cancelled")
    until(lambda: message(server, results[2]["id"])["state"] == "held", "it is held")


def test_chains_replies_and_results_go_with_an_ack(server):
    chained = delivery(server, "chained", chain=[{"queue": "step"}], result_ttl_ms=LONG_MS)
    asked = delivery(server, "asked", reply_to="replies")
    results = commit(
        server,
        sending("one"),
        settling(chained, result="of chained", result_content_type="a/b"),
        sending("two", chain=[{"queue": "next"}]),
        settling(asked, result_base64="/wA="),
        sending("three"),
    )["results"]
    ids = [results[at]["id"] for at in (0, 2, 4)]
    assert [message(server, sent)["payload"] for sent in ids] == ["one", "two", "three"]
    step, reply = receive(server, "step"), receive(server, "replies")
    assert step["payload"] == "of chained" and step["content_type"] == "a/b"
    assert reply["payload_base64"] == "/wA="
    assert len({*ids, step["id"], reply["id"]}) == 5
    two = next(one for one in (receive(server, "mail") for _ in range(3)) if one["payload"] == "two")
    commit(server, settling(two["receipt"], result="of two"))
    assert receive(server, "next")["payload"] == "of two"


def test_deliveries_are_settled_in_each_way(server):
    sent = [send(server, payload, result_ttl_ms=LONG_MS) for payload in "abcdef"]
    receipts = [receive(server)["receipt"] for _ in sent]
    assert commit(
        server,
        settling(receipts[0], "nack", error="not yet", delay_ms=LONG_MS),
        settling(receipts[1], "reject", error="never\n\"€\""),
        settling(receipts[2], "release"),
        settling(receipts[3], "release", delay_ms=LONG_MS),
        settling(receipts[4], result="fine", result_content_type="text/plain"),
        settling(receipts[5], "nack"),
    ) == {"results": [{}] * 6, "duplicate": False}
    found = [message(server, one) for one in sent]
    assert [one["state"] for one in found] == ["delayed", "dead", "ready", "delayed", "done", "delayed"]
    assert [one["attempts"] for one in found] == [1, 1, 0, 0, 1, 1]
    assert found[0]["history"][-1].items() >= {"end": "nacked", "error": "not yet"}.items()
    assert found[1]["reason"] == "rejected" and found[1]["history"][-1]["error"] == "never\n\"€\""
    assert found[4].items() >= {"result": "fine", "result_content_type": "text/plain"}.items()
    assert receive(server)["payload"] == "c"
    assert server.call("POST", "/v1/extend", {"receipt": receipts[0]}) == {"already_settled": True}


def test_texts_with_escapes_stay_with_their_operations(server):
    def text() -> str:
        return "".join(random.choices(["a", "\n", '"', "\\", "€", "🙂", "\x01", " "], k=random.randrange(12)))

    for _ in range(20):
        expected, operations, receipts = [], [], [delivery(server, result_ttl_ms=LONG_MS) for _ in range(4)]
        for at in range(40):
            kind, content = random.choice(["send", "bytes", "put", "patch"]), text()
            if receipts and random.random() < 0.1:
                operations.append(settling(receipts.pop(), result=content, result_content_type="a/b"))
                expected.append(None)
            octets = base64.b64encode(content.encode()).decode()
            operations.append({
                "send": sending(content, headers={f"h{at}": content}, tags=[f"t\"{at}"]),
                "bytes": {"send": {"payload_base64": octets, "queue": "mail"}},
                "put": putting(f"k{at}", content, attributes={"a": content}),
                "patch": {"put": {"content_base64": octets, "key": f"k{at}"}},
            }[kind])  # fmt: skip
            expected.append(content)
        results = commit(server, *operations)["results"]
        for operation, result, content in zip(operations, results, expected, strict=True):
            if "send" in operation:
                found = message(server, result["id"])
                assert found["payload"] == content
                assert list(found.get("headers", {}).values()) in ([content], [])
            elif "put" in operation:
                assert get(server, operation["put"]["key"])["content"] == content


def test_who_waits_is_given_what_a_transaction_gives(server):
    token = held(server, "k")
    with ThreadPoolExecutor() as threads:
        lock = threads.submit(acquire, server, "k", wait_ms=20_000)
        mail = threads.submit(receive, server, "mail", wait_ms=20_000)
        after = server.call("GET", "/v1/document-changes")["next"]
        path = f"/v1/document-changes?after={after}&wait_ms=20000"
        changes = threads.submit(server.call, "GET", path)
        until(lambda: server.call("GET", f"{LOCKS}/k")["waiter_count"] == 1, "it waits")
        time.sleep(0.2)
        commit(server, sending("x"), releasing(token), putting("a", "1"), putting("b", "2"))
        assert lock.result(10) != token and mail.result(10)["payload"] == "x"
        assert [one["key"] for one in changes.result(10)["changes"]][0] == "a"
    told = server.call("GET", f"/v1/document-changes?after={after}")["changes"]
    assert [one["key"] for one in told] == ["a", "b"]


def test_a_repeat_gets_the_first_outcome_and_does_nothing(server):
    operations = Work(server).operations()
    first = commit(server, *operations, key="r")
    before = everything(server)
    for end in (lambda: None, server.kill, server.stop):
        end()
        if server.process.poll() is not None:
            server.start()
        assert commit(server, *operations, key="r") == {**first, "duplicate": True}
        assert everything(server) == before
    # Also when nothing is as it was.
    delete(server, "n")
    put(server, "k", "another")
    release(server, first["results"][5]["grant"]["token"])
    receive(server, "mail")
    before = everything(server)
    assert commit(server, *operations, key="r") == {**first, "duplicate": True}
    assert everything(server) == before
    assert code(server, *operations[:3], key="s") == (409, "already_settled")


def test_another_request_with_the_key_is_refused(server):
    work = Work(server)
    operations = work.operations()
    commit(server, *operations, key="r")
    before = everything(server)
    others = [operations[:-1], [*operations, sending("x")], operations[::-1], [sending("follow-up")]]
    for at, changed in [
        (0, settling(work.receipt, "nack")),
        (0, settling(work.receipt, result="x")),
        (0, settling(work.other.ljust(45, "0"))),
        (1, putting("k", "newer", token=work.token, if_version=1)),
        (1, putting("k", "new", token=work.token)),
        (1, putting("k", "new", if_version=1)),
        (1, putting("k", "new", token=work.token, if_version=1, ttl_ms=5)),
        (1, putting("k", "new", token=work.token, if_version=1, attributes={"a": "b"})),
        (2, sending("follow-up", "others")),
        (2, sending("follow-up", delay_ms=1)),
        (3, adding("n", 2)),
        (3, adding("n", pointer="/m")),
        (3, adding("m")),
        (3, {"patch": {"key": "n", "merge_patch": "{}"}}),
        (3, adding("n", if_version=1)),
        (4, deleting("gone", if_version=1)),
        (4, deleting("k")),
        (5, acquiring("other")),
        (5, acquiring("free", mode="shared")),
        (5, acquiring("free", ttl_ms=5)),
        (5, acquiring("free", owner="me")),
        (6, releasing(work.other)),
    ]:
        others.append([*operations[:at], changed, *operations[at + 1 :]])
    for other in others:
        told = refused(server, *other, key="r")
        if told["code"] != "idempotency_mismatch":
            assert told["status"] == 400, (other, told)
    assert everything(server) == before


def test_patches_that_are_repeated_are_not_made_again(server):
    put(server, "n", '{"n":0}')
    put(server, "list", '["a"]')
    taken = {"patch": {"key": "list", "json_patch": '[{"op":"remove","path":"/0"}]'}}
    operations = [adding("n"), taken, sending("x")]
    first = commit(server, *operations, key="r")
    commit(server, adding("n", 10))
    again = {**first, "duplicate": True}
    # The list is empty by now, so that the patch by itself fails.
    assert commit(server, *operations, key="r") == again
    assert code(server, *operations) == (409, "patch_failed")
    assert code(server, adding("n", 2), *operations[1:], key="r") == (409, "idempotency_mismatch")
    delete(server, "list")
    server.kill()
    server.start()
    assert commit(server, *operations, key="r") == again
    assert number(server, "n") == 11 and payloads(server) == ["x"]


def test_what_was_refused_is_not_remembered(server):
    put(server, "k", "x")
    operations = [putting("k", "y", if_version=2), sending("x")]
    assert code(server, *operations, key="r") == (409, "version_mismatch")
    put(server, "k", "z")
    assert commit(server, *operations, key="r")["duplicate"] is False
    # Keys of sends and groups are others.
    server.call("POST", "/v1/queues/mail/messages", {"payload": "y"}, {"Idempotency-Key": "r"})
    assert payloads(server) == ["x", "y"]


def test_repeats_at_the_same_time_do_it_once(server):
    put(server, "n", '{"n":0}')
    for at in range(20):
        operations = [adding("n"), sending(str(at)), acquiring(f"l{at}")]
        with ThreadPoolExecutor(8) as threads:
            done = list(threads.map(lambda _: commit(server, *operations, key=str(at)), range(8)))
        assert [one["duplicate"] for one in done].count(False) == 1
        assert all(one["results"] == done[0]["results"] for one in done)
    assert number(server, "n") == 20 and payloads(server) == [str(at) for at in range(20)]


def test_increments_of_many_callers_all_count(server):
    put(server, "a", "{}")
    put(server, "b", "{}")

    def add(at):
        both = [adding("a", at), adding("b", -at)]
        commit(server, *both[:: random.choice([1, -1])], sending(str(at)))

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(add, range(240)))
    assert number(server, "a") == sum(range(240)) == -number(server, "b")
    assert get(server, "a")["version"] == get(server, "b")["version"] == 241
    assert sorted(map(int, payloads(server))) == list(range(240))


def test_money_is_moved_and_neither_made_nor_lost(server):
    accounts = "abc"
    for account in accounts:
        put(server, account, "1000")

    def move(at):
        while True:
            one, other = random.sample(accounts, 2)
            read = {key: get(server, key) for key in (one, other)}
            amount = random.randrange(100)
            held = {key: int(read[key]["content"]) for key in read}
            operations = [
                putting(one, str(held[one] - amount), if_version=read[one]["version"]),
                putting(other, str(held[other] + amount), if_etag=read[other]["etag"]),
            ]
            body = json.dumps({"operations": operations}).encode()
            status, answer = server.request("POST", TRANSACTIONS, body, JSON)
            if status == 200:
                return
            assert json.loads(answer)["error"]["code"] == "version_mismatch", answer
            time.sleep(random.random() / 50)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(move, range(120)))
    assert sum(int(get(server, account)["content"]) for account in accounts) == 3_000
    assert sum(get(server, account)["version"] - 1 for account in accounts) == 240


def test_each_message_has_its_effect_once_through_kills(server):
    server.stop()
    server.listen = f"127.0.0.1:{free_port()}"
    server.start()
    count, done = 150, threading.Event()
    for payload in range(count):
        send(server, str(payload), max_attempts=10_000)
    put(server, "n", '{"n":0}')

    def ask(call):
        """Repeats what was not answered."""
        while True:
            try:
                return call()
            except OSError:
                time.sleep(0.01)

    def work(_):
        while not done.is_set():
            job = ask(lambda: receive(server, lease_ms=2_000, wait_ms=100))
            if job is None:
                continue
            operations = [settling(job["receipt"]), adding("n"), putting(f"done/{job['payload']}", if_absent=True),
                          sending(job["payload"])]  # fmt: skip
            body, key = json.dumps({"operations": operations}).encode(), {"Idempotency-Key": job["receipt"]}
            status, answer = 503, b""
            while status == 503:
                status, answer = ask(lambda: server.request("POST", TRANSACTIONS, body, {**JSON, **key}))
            assert status == 200 or json.loads(answer)["error"]["code"] == "lease_lost", answer

    with ThreadPoolExecutor(8) as threads:
        workers = [threads.submit(work, at) for at in range(8)]
        for _ in range(4):
            time.sleep(random.random())
            server.kill()
            server.start()
        until(lambda: messages(server, "jobs") == [], "all is done")
        done.set()
        for worker in workers:
            worker.result()
    assert number(server, "n") == count
    assert sorted(map(int, payloads(server))) == list(range(count))


def test_transactions_are_in_a_backup(server, tmp_path):
    operations = Work(server).operations()
    first = commit(server, *operations, key="r")
    before = everything(server)
    assert server.sluice("backup", "copy").returncode == 0
    commit(server, sending("after"))
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    assert everything(server) == before
    assert commit(server, *operations, key="r") == {**first, "duplicate": True}


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
    rules += [rule.format("worker", *more) for more in
              (("producer", mail), ("consumer", jobs), ("coordinator", keys))]  # fmt: skip
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
        token = server.call("POST", LOCKS, {"key": key}, root)["token"]
        return token

    server.call("PUT", of("a/n"), {"content": "{}"}, root)
    server.call("PUT", of("b/n"), {"content": "{}"}, root)
    able = {
        "coordinator": {"put", "patch", "delete", "acquire", "release"},
        "observer": set(),
        "operator": set(),
        "producer": {"send"},
        "consumer": {"settle"},
        "worker": {"send", "settle", "put", "patch", "delete", "acquire", "release"},
        "r": {"settle"},
        "w": {"send"},
        "rw": {"send", "settle", "put", "patch", "delete", "acquire", "release"},
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
    for wrong in (sending("x", "jobs"), sending("x", "foreign"), settling(foreign), putting("b/k"), adding("b/n"),
                  deleting("b/k", if_version=7), acquiring("b/k"), {"acquire": {"keys": ["a/1", "b/1"]}},
                  sending("x", chain=[{"queue": "foreign"}]), sending("x", reply_to="foreign")):  # fmt: skip
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
            trailers = dict(caught.value.trailing_metadata())
            told = caught.value
            return told.code().name, trailers["sluice-code"], told.details(), trailers["grpc-status-details-bin"]

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
    assert get(server, "k")["content"] == "new" and number(server, "n") == 1 and messages(server, "jobs") == []


def test_grpc_refuses_the_same(server, grpc_commit):
    put(server, "k", "x")
    good = {"send": {"queue": "mail", "payload": b"x"}}
    token = held(server, "l")
    for status, expected, begins, operation in [
        ("ABORTED", "version_mismatch", "put: ", {"put": {"key": "k", "content": b"", "if_version": 7}}),
        ("NOT_FOUND", "document_not_found", "delete: ", {"delete": {"key": "none"}}),
        ("NOT_FOUND", "document_not_found", "patch: ", {"patch": {"key": "none", "merge_patch": "{}"}}),
        ("ABORTED", "lock_held", "acquire: ", {"acquire": {"key": "l"}}),
        ("ABORTED", "lease_lost", "release: ", {"release": {"token": "0" * 32}}),
        ("ABORTED", "lease_lost", "put: ", {"put": {"key": "k", "content": b"", "token": token}}),
        ("INVALID_ARGUMENT", "invalid_receipt", "settle.receipt: ", {"settle": {"receipt": "x", "outcome": "ack"}}),
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


def test_a_transaction_outlives_the_leader_of_a_cluster(machines):  # noqa: F811
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in (one.directory / "log").read_text(), "all nodes vote")
    tls = two.directory / "data-tls"
    context = ssl.create_default_context(cafile=tls / "ca.pem")
    context.load_cert_chain(tls / "admin.pem", tls / "admin.key")

    def ask(machine, operations, key) -> tuple[int, dict]:
        """Repeats what was not answered, or has no outcome."""
        body = json.dumps({"operations": operations}).encode()
        while True:
            headers = {**JSON, "Idempotency-Key": key}
            request = urllib.request.Request(machine.url + TRANSACTIONS, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as failed:
                if failed.code < 500:
                    return failed.code, json.loads(failed.read())
            except OSError:
                pass
            time.sleep(0.01)

    def read(machine, method, path, body=None) -> dict:
        while True:
            status, answer = machine.request(method, path, body)
            if status == 200:
                return answer

    ask(one, [putting("n", '{"n":0}')], "first")
    receipt = read(two, "POST", "/v1/queues/jobs/receive", {"lease_ms": LONG_MS})["messages"][0]["receipt"]
    work = [settling(receipt), adding("n"), sending("x"), acquiring("l")]
    status, first = ask(two, work, "work")
    assert status == 200 and not first["duplicate"]
    with ThreadPoolExecutor(6) as threads:
        adds = [threads.submit(ask, (two, three)[at % 2], [adding("n"), sending(str(at))], f"add {at}")
                for at in range(60)]  # fmt: skip
        until(lambda: sum(add.done() for add in adds) > 10, "some are done")
        one.kill()
        assert ask(three, work, "work") == (200, {**first, "duplicate": True})
        assert all(add.result()[0] == 200 for add in adds)
    assert ask(two, [sending("y")], "work")[1]["error"]["code"] == "idempotency_mismatch"
    assert json.loads(read(three, "GET", of("n"))["content"]) == {"n": 61}
    sent = read(two, "GET", "/v1/queues/mail/messages?payload=true")["messages"]
    assert sorted(one["payload"] for one in sent) == sorted(["x", *map(str, range(60))])
    assert read(three, "GET", f"{LOCKS}/l")["holder_count"] == 1
