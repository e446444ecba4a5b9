"""Transactions: repeats with an idempotency key, and many callers at the same time."""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

from documents import JSON, delete, get, put, release
from transactions import (
    TRANSACTIONS,
    Work,
    acquiring,
    adding,
    code,
    commit,
    deleting,
    everything,
    held,
    number,
    payloads,
    putting,
    receive,
    refused,
    releasing,
    sending,
    settling,
)


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
        (0, settling(work.receipt, add_cost=5)),
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


def test_repeats_of_patches_at_the_same_time_get_the_first_outcome(server):
    """Those that come late read what was patched already, where the patch would fail."""
    steps = [{"op": "test", "path": "/s", "value": "new"}, {"op": "replace", "path": "/s", "value": "paid"}]
    pay = {"patch": {"key": "d", "json_patch": json.dumps(steps)}}
    with ThreadPoolExecutor(8) as callers:
        for number in range(40):
            put(server, "d", '{"s":"new"}')
            told = list(callers.map(lambda _: commit(server, pay, key=f"key-{number}"), range(8)))
            assert all(one["results"] == told[0]["results"] for one in told)
            assert [one["duplicate"] for one in told].count(False) == 1


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


def test_a_key_is_forgotten_after_its_window(server):
    server.stop()
    server.start("--limits-idempotency-window", "1s")
    put(server, "n", '{"n":0}')
    for operations in ([sending("x")], [adding("n")], [adding("n"), sending("x")]):
        assert [commit(server, *operations, key="r")["duplicate"] for _ in range(2)] == [False, True]
        time.sleep(1.1)
        assert commit(server, *operations, key="r")["duplicate"] is False, operations
        time.sleep(1.1)
    assert number(server, "n") == 4 and payloads(server) == ["x"] * 4
