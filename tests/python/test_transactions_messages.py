"""Transactions: the messages that they send, and the deliveries that they settle."""

import base64
import random

from conftest import until
from documents import get, grow
from transactions import (
    LONG_MS,
    commit,
    delivery,
    message,
    messages,
    putting,
    receive,
    refused,
    send,
    sending,
    settling,
)


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
    states = [one["state"] for one in found]
    assert states == ["ready", "ready", "delayed", "held", "ready", "ready", "blocked"]
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
            }[kind])
            expected.append(content)
        results = commit(server, *operations)["results"]
        for operation, result, content in zip(operations, results, expected, strict=True):
            if "send" in operation:
                found = message(server, result["id"])
                assert found["payload"] == content
                assert list(found.get("headers", {}).values()) in ([content], [])
            elif "put" in operation:
                assert get(server, operation["put"]["key"])["content"] == content
