"""Open transactions: operations are staged over several calls, and committed together."""

import base64
import json
import random
from concurrent.futures import ThreadPoolExecutor

from conftest import until
from documents import JSON, LOCKS, error, get, of, put
from transactions import (
    TRANSACTIONS,
    acquiring,
    adding,
    checking,
    deleting,
    is_held,
    messages,
    payloads,
    putting,
    receive,
    releasing,
    send,
    sending,
    settling,
)


def begin(server, **fields) -> "Open":
    return Open(server, server.call("POST", f"{TRANSACTIONS}/begin", fields)["transaction"])


class Open:
    """A transaction that is open."""

    def __init__(self, server, name: str):
        self.server, self.name, self.path = server, name, f"{TRANSACTIONS}/{name}"

    def stage(self, *operations: dict) -> list[dict]:
        return self.server.call("POST", f"{self.path}/operations", {"operations": list(operations)})["results"]

    def refused(self, *operations: dict) -> dict:
        return error(self.server, "POST", f"{self.path}/operations", {"operations": list(operations)})

    def read(self, key: str):
        """Content of a document as the transaction sees it; None: there is none."""
        [result] = self.stage(getting(key))
        return result["document"]["content"] if result["found"] else None

    def commit(self) -> dict:
        return self.server.call("POST", f"{self.path}/commit")

    def commit_refused(self) -> dict:
        return error(self.server, "POST", f"{self.path}/commit")

    def rollback(self) -> dict:
        return self.server.call("POST", f"{self.path}/rollback")

    def is_lost(self) -> bool:
        body = json.dumps({"operations": [getting("any")]}).encode()
        status, answer = self.server.request("POST", f"{self.path}/operations", body, JSON)
        return status == 409 and json.loads(answer)["error"]["code"] == "transaction_lost"


def getting(key: str) -> dict:
    return {"get": {"key": key}}


def content(server, key: str):
    status, answer = server.request("GET", of(key))
    return json.loads(answer)["content"] if status == 200 else None


def test_all_that_is_staged_is_done_together(server):
    send(server, "job")
    job = receive(server)
    grant = server.call("POST", LOCKS, {"key": "orders/17"})
    put(server, "orders/17", "new")
    work = begin(server)
    [read] = work.stage(getting("orders/17"))
    assert read["found"] and read["document"]["content"] == "new" and read["document"]["version"] == 1
    assert read["document"]["etag"] == get(server, "orders/17")["etag"]
    assert work.stage(putting("orders/17", "paid", token=grant["token"], attributes={"by": "me"}), sending("1")) == [
        {},
        {},
    ]
    assert work.stage(settling(job["receipt"]), releasing(grant["token"]), acquiring("next"), sending("2"))
    assert content(server, "orders/17") == "new" and messages(server, "mail") == [], "nobody sees what is staged"
    assert is_held(server, "orders%2F17") and not is_held(server, "next")
    done = work.commit()
    assert done["duplicate"] is False
    written, first, settled, released, acquired, second = done["results"]
    assert written["written"]["version"] == 2 and settled == released == {}
    assert acquired["grant"]["token"] and first["id"] < second["id"]
    document = get(server, "orders/17")
    assert (document["content"], document["attributes"]) == ("paid", {"by": "me"})
    assert payloads(server, "mail") == ["1", "2"] and messages(server, "jobs") == []
    assert is_held(server, "next") and not is_held(server, "orders%2F17")
    again = work.commit()
    assert again == {**done, "duplicate": True}, "a repeat gets the first outcome"
    assert payloads(server, "mail") == ["1", "2"] and get(server, "orders/17")["version"] == 2


def test_rollback_and_time_leave_nothing(server):
    put(server, "a", "1")
    for way in ("rollback", "time"):
        work = begin(server, ttl_ms=300 if way == "time" else 60_000)
        work.stage(putting("a", "2"), putting("b", "2"), deleting("a"), sending("x"), acquiring("l"))
        if way == "rollback":
            assert work.rollback() == {}
        else:
            until(work.is_lost)
        assert work.is_lost() and work.commit_refused()["code"] == "transaction_lost"
        assert error(server, "POST", f"{work.path}/rollback")["code"] == "transaction_lost"
        assert content(server, "a") == "1" and content(server, "b") is None
        assert messages(server, "mail") == [] and not is_held(server, "l")
    for wrong in ("x", "0" * 32, "%20", "a/b"):
        assert error(server, "POST", f"{TRANSACTIONS}/{wrong}/commit")["status"] in (404, 409), wrong


def test_it_sees_its_own_changes_and_nobody_else_does(server):
    put(server, "a", '{"n":1}')
    work = begin(server)
    assert work.read("none") is None and work.read("a") == '{"n":1}'
    work.stage(adding("a", 4), putting("b", "mine", content_type="text/x", attributes={"k": "v"}))
    assert work.read("a") == '{"n":5}' and work.read("b") == "mine"
    [result] = work.stage(getting("b"))
    assert result["document"] == {"content": "mine", "content_type": "text/x", "attributes": {"k": "v"}}
    work.stage(adding("a", 10), {"patch": {"key": "a", "merge_patch": '{"m":0}'}})
    assert work.read("a") == '{"m":0,"n":15}' and content(server, "a") == '{"n":1}'
    work.stage(deleting("b"), deleting("a"))
    assert work.read("a") is None and work.read("b") is None and work.read("none") is None
    assert work.refused(putting("a", "again"))["code"] == "invalid_argument", "it would not begin anew"
    work.stage(putting("b", "again"))
    assert work.read("b") == "again" and content(server, "a") == '{"n":1}'
    binary = base64.b64encode(b"\xff\x00").decode()
    work.stage({"put": {"key": "c", "content_base64": binary}})
    assert work.stage(getting("c"))[0]["document"]["content_base64"] == binary
    work.commit()
    assert (content(server, "a"), content(server, "b")) == (None, "again")
    assert get(server, "b")["version"] == 1 and get(server, "c")["content_base64"] == binary


def test_what_was_read_must_not_change(server):
    for change in ("put", "delete", "create", "delete and put"):
        key = f"k {change}"
        if change != "create":
            put(server, key, "1")
        work = begin(server)
        work.read(key)
        work.stage(putting("decided", change))
        if change.startswith("delete"):
            server.call("DELETE", of(key))
        if change != "delete":
            put(server, key, "1")
        told = work.refused(getting(key))
        assert (told["code"], told["details"]["operation"]) == ("version_mismatch", 0), change
        told = work.commit_refused()
        assert (told["status"], told["code"]) == (409, "version_mismatch"), change
        assert told["details"]["key"] == key and "operation" not in told["details"]
        assert content(server, "decided") is None and work.is_lost()
    # A document that is written without having been read is written over what is there.
    put(server, "blind", "1")
    work = begin(server)
    work.stage(putting("blind", "3"))
    put(server, "blind", "2")
    work.commit()
    assert content(server, "blind") == "3"


def test_conditions_hold_when_they_are_staged_and_at_the_commit(server):
    etag = put(server, "a", "1")["etag"]
    work = begin(server)
    for wrong in (
        putting("a", "x", if_version=7),
        putting("a", "x", if_etag="7"),
        putting("a", "x", if_absent=True),
        deleting("a", if_version=7),
        checking("a", if_etag="7"),
        checking("none", if_exists=True),
    ):
        work.stage(getting("a"))
        told = work.refused(sending("half"), wrong)
        assert (told["code"], told["details"]["operation"]) == ("version_mismatch", 1), wrong
    later = [sending("first"), sending("second", depends_on=["#0"])]
    assert begin(server).stage(*later) == [{}, {}]
    assert work.refused(deleting("none"))["code"] == "document_not_found"
    assert work.refused(adding("none"))["code"] == "document_not_found"
    work.stage(putting("a", "2", if_etag=etag, if_version=1))
    assert work.refused(putting("a", "3", if_etag=etag))["code"] == "invalid_argument"
    assert work.refused(putting("a", "3", if_absent=True))["code"] == "version_mismatch"
    work.stage(putting("a", "3", if_exists=True, history=3), putting("a", "4"))
    work.commit()
    assert get(server, "a").items() >= {"content": "4", "version": 2, "history": 3}.items()
    assert messages(server, "mail") == [], "a refused call stages nothing"
    # One that says its condition without reading is checked at the commit.
    work = begin(server)
    work.stage(putting("b", "1", if_version=3), sending("x"))
    told = work.commit_refused()
    assert (told["code"], told["details"]["operation"]) == ("version_mismatch", 0)
    assert messages(server, "mail") == []


def test_bad_operations_are_refused_when_they_are_staged(server):
    work = begin(server)
    for operation, expected in [
        ({}, "missing_field"),
        ({"get": {}}, "missing_field"),
        ({"get": {"key": "a", "version": 1}}, "unknown_field"),
        (putting("", "x"), "invalid_argument"),
        (putting("a", "x", ttl_ms=0), "invalid_argument"),
        (putting("a", "x", content_type="a\nb"), "invalid_argument"),
        (checking("a"), "invalid_argument"),
        ({"send": {"queue": "mail"}}, "missing_field"),
        (settling("x"), "invalid_receipt"),
        (releasing("x"), "invalid_argument"),
        (acquiring("a", ttl_ms=0), "invalid_argument"),
        ({"acquire": {"keys": ["a", "a"]}}, "invalid_argument"),
        (sending("x", queue="$bad"), "invalid_name"),
        (sending("x" * 3_000_000), "payload_too_large"),
        ({"list": {}}, "unknown_field"),
    ]:
        told = work.refused(sending("half"), operation)
        assert told["code"] == expected and told["message"].startswith("operations[1]"), (operation, told)
    large = "x" * (3 << 20)
    work.stage(putting("a", large))
    told = work.refused(putting("b", large))
    assert (told["code"], told["details"]["limit"]) == ("batch_too_large", 4 << 20)
    many = [putting(f"k{number}") for number in range(1_000)]
    assert work.refused(*many)["code"] == "batch_too_large"
    told = error(server, "POST", TRANSACTIONS, {"operations": [getting("a")]})
    assert told["code"] == "invalid_argument" and "begin" in told["message"]
    for body in ({"ttl_ms": 0}, {"ttl_ms": 1_800_001}, {"x": 1}):
        assert error(server, "POST", f"{TRANSACTIONS}/begin", body)["status"] == 400
    assert error(server, "POST", f"{work.path}/commit", {"x": 1})["code"] == "unknown_field"
    work.stage(putting("a", "small"))
    work.commit()
    assert content(server, "a") == "small"


def test_memory_of_those_left_open_is_bounded_and_comes_back(server):
    large = json.dumps({"operations": [putting("a", "x" * 4_000_000)]}).encode()

    def hold() -> str:
        """The error of a transaction that holds much; empty: it holds it."""
        path = f"{begin(server, ttl_ms=8_000).path}/operations"
        status, answer = server.request("POST", path, large, JSON)
        return "" if status == 200 else json.loads(answer)["error"]["code"]

    told = [hold() for _ in range(18)]
    assert told == [""] * 16 + ["overloaded"] * 2, told
    put(server, "b", "others go on")
    until(lambda: hold() == "")


def test_nothing_staged_commits_nothing(server):
    assert begin(server).commit() == {"results": [], "duplicate": False}
    work = begin(server)
    assert work.read("none") is None
    assert work.commit() == {"results": [], "duplicate": False}


def test_transfers_of_many_clients_keep_the_sum(server):
    """Strict serializability, seen from outside: reads and writes of two accounts, and audits of all."""
    accounts = [f"account/{number}" for number in range(4)]
    for account in accounts:
        put(server, account, "100")

    def transfer(seed: int) -> int:
        rng, done = random.Random(seed), 0
        for _ in range(25):
            source, target = rng.sample(accounts, 2)
            work = begin(server)
            try:
                if rng.random() < 0.2:
                    total = sum(int(result["document"]["content"]) for result in work.stage(*map(getting, accounts)))
                    if "results" in json.loads(commit_of(work)):
                        assert total == 400, total
                    continue
                have = int(work.read(source))
                work.stage(putting(source, str(have - 1)))
                work.stage(putting(target, str(int(work.read(target)) + 1)))
                done += "results" in json.loads(commit_of(work))
            except AssertionError as conflict:
                assert "version_mismatch" in str(conflict), conflict
        return done

    def commit_of(work: Open) -> bytes:
        return server.request("POST", f"{work.path}/commit")[1]

    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(transfer, range(4)))
    assert done > 10
    assert sum(int(content(server, account)) for account in accounts) == 400
    versions = sum(get(server, account)["version"] - 1 for account in accounts)
    assert versions == 2 * done, "each that was committed has written two documents, and no other one any"


def test_a_restart_loses_what_is_open_and_remembers_what_was_committed(server):
    put(server, "a", "1")
    left, done = begin(server, ttl_ms=60_000), begin(server)
    left.stage(putting("a", "2"), sending("x"))
    done.stage(putting("b", "1"), sending("y"))
    outcome = done.commit()
    server.kill()
    server.start()
    assert left.is_lost() and left.commit_refused()["code"] == "transaction_lost"
    assert content(server, "a") == "1" and payloads(server, "mail") == ["y"]
    assert done.commit() == {**outcome, "duplicate": True}
    assert payloads(server, "mail") == ["y"]


def test_who_has_no_right_begins_nothing_and_others_are_told_no_outcome(server):
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()

    def token(name: str, *scope: str) -> dict:
        return {"Authorization": f"Bearer {server.sluice('token', 'create', name, *scope).stdout.strip()}"}

    worker, reader = token("worker", "--scope", "default=rw"), token("reader", "--scope", "default=r")
    nobody = token("nobody")
    begun = server.call("POST", f"{TRANSACTIONS}/begin", {}, worker)["transaction"]
    path = f"{TRANSACTIONS}/{begun}"
    server.call("POST", f"{path}/operations", {"operations": [acquiring("l"), putting("a", "1")]}, worker)
    outcome = server.call("POST", f"{path}/commit", None, worker)
    assert server.call("POST", f"{path}/commit", None, worker) == {**outcome, "duplicate": True}
    told = error(server, "POST", f"{path}/commit", None, reader)
    assert (told["status"], told["code"]) == (409, "transaction_lost"), "the token of the grant is not theirs"
    for call in ("begin", f"{begun}/commit", f"{begun}/rollback"):
        for namespace in ("default", "absent"):
            at = f"/v1/namespaces/{namespace}/transactions/{call}"
            assert error(server, "POST", at, None, nobody)["status"] == 403, (call, namespace)
