"""Transactions: operations on queues, documents and locks that are done together, all or none."""

import base64
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

from conftest import until
from documents import BYTES_MAX, JSON, LOCKS, acquire, error, get, grow, of, put, release, told
from transactions import (
    LONG_MS,
    TRANSACTIONS,
    Work,
    acquiring,
    adding,
    code,
    commit,
    deleting,
    delivery,
    everything,
    held,
    is_held,
    message,
    messages,
    number,
    payloads,
    putting,
    receive,
    refused,
    releasing,
    send,
    sending,
    settling,
)


def test_a_worker_commits_its_work_as_one(server):
    send(server, "job")
    job = receive(server)
    grant = server.call("POST", LOCKS, {"key": "orders/17"})
    whole = [
        putting("orders/17", "paid", token=grant["token"], attributes={"by": "me"}, content_type="a/b"),
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
    assert document["content_type"] == "a/b"
    assert written["written"].keys() == {"version", "etag", "changed_at_ms"}
    assert grow([grant["fencing_token"], document["etag"]])
    assert message(server, sent["id"]).items() >= {"payload": "thank you", "state": "ready"}.items()
    assert receive(server, "mail")["headers"] == {"to": "ann"}
    assert messages(server, "jobs") == [] and not is_held(server, "orders%2F17")
    assert server.call("GET", "/v1/queues/jobs")["totals"]["acked"] == 1
    # It is over for later calls, too.
    assert server.call("POST", "/v1/ack", {"receipt": job["receipt"]}) == {"already_settled": True}
    assert told(server, "orders/17", token=grant["token"]) == (409, "lease_lost")


def test_each_operation_has_its_result_at_its_place(server):
    work = Work(server)
    results = commit(server, *work.operations())["results"]
    kinds = [sorted(one) for one in results]
    assert kinds == [[], ["written"], ["id"], ["written"], [], ["grant"], []]
    assert [results[at]["written"]["version"] for at in (1, 3)] == [2, 2]
    assert results[5]["grant"].keys() == {"token", "fencing_token", "expires_at_ms"}
    etags = [results[at]["written"]["etag"] for at in (1, 3)]
    assert grow([*etags, results[5]["grant"]["fencing_token"]])
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
    patch = {"merge_patch": "{}"}
    alone = [
        (error(server, "PUT", of("k"), {"content": "x", "if_version": 7}), putting("k", "x", if_version=7)),
        (error(server, "DELETE", of("none")), deleting("none")),
        (error(server, "POST", LOCKS, {"key": "busy"}), acquiring("busy")),
        (error(server, "PATCH", of("none"), patch), {"patch": {"key": "none", **patch}}),
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
    whole = [acquiring("new"), putting("new", "x"), deleting("old"), acquiring("old")]
    results = commit(server, *whole)["results"]
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
    operations = [putting(""), putting("x", token="x"), adding(""), adding("j", token="x"), deleting("other")]
    operations += [acquiring(""), releasing("x"), settling("x"), sending("x", "$"), sending("x", priority=10)]
    operations += [sending("x", depends_on=["#0"]), {"put": {}}, {"put": 7}, {}]
    for wrong in operations:
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
    too_many, too_long = [sending("x")] * 4, [putting("a", "x" * 500), putting("b", "x" * 500)]
    for operations in (too_many, too_long, [putting("a", "x" * 600), sending("x" * 500)]):
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


def test_a_patch_that_makes_too_much_is_refused_by_its_name(server):
    put(server, "k", json.dumps({"a": "x" * (BYTES_MAX - 20)}))
    told = refused(server, sending("x"), {"patch": {"key": "k", "merge_patch": '{"b":"0123456789012345"}'}})
    assert told["code"] == "payload_too_large" and told["message"].startswith("operations[1].patch"), told
