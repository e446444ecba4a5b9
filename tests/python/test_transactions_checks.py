"""Checks in transactions: conditions on documents that are read and not written."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

from documents import JSON, LOCKS, get, put
from transactions import TRANSACTIONS, checking, commit, code, deleting, messages, putting, refused, releasing, sending


def test_what_is_checked_has_to_hold(server):
    etag = put(server, "config", "a")["etag"]
    assert commit(server, checking("config", if_etag=etag), sending("1"))["results"][0] == {}
    assert commit(server, checking("none", if_absent=True), checking("config", if_exists=True), sending("2"))
    put(server, "config", "b")
    told = refused(server, sending("3"), checking("config", if_etag=etag))
    assert (told["status"], told["code"]) == (409, "version_mismatch")
    assert told["details"] == {"key": "config", "version": 2, "operation": 1}
    assert told["message"].startswith('operations[1].check: document "config"')
    assert code(server, checking("config", if_absent=True), sending("4")) == (409, "version_mismatch")
    assert code(server, checking("none", if_exists=True), sending("5")) == (409, "version_mismatch")
    assert [message["payload"] for message in messages(server, "mail")] == ["1", "2"]
    assert get(server, "config")["version"] == 2, "a check writes nothing"


def test_a_lock_can_be_checked(server):
    grant = server.call("POST", LOCKS, {"key": "config", "ttl_ms": 60_000})
    assert commit(server, checking("config", token=grant["token"]), sending("1"))
    told = refused(server, checking("other", token=grant["token"]), sending("2"))
    assert told["code"] == "lease_lost", told
    commit(server, releasing(grant["token"]))
    assert code(server, checking("config", token=grant["token"]), sending("3")) == (409, "lease_lost")


def test_bad_checks_are_named(server):
    put(server, "a", "x")
    for operations, expected in [
        ([checking("a")], ("invalid_argument", "operations[0].check: a check has a condition")),
        ([{"check": {"if_exists": True}}], ("missing_field", "operations[0].check.key")),
        ([checking("", if_exists=True)], ("invalid_argument", "operations[0].check.key")),
        ([checking("a", if_version=0)], ("invalid_argument", "operations[0].check.if_version")),
        ([checking("a", if_etag="x")], ("invalid_argument", "operations[0].check.if_etag")),
        ([checking("a", token="x")], ("invalid_argument", "operations[0].check.token")),
        ([checking("a", ttl_ms=1)], ("unknown_field", "operations[0].check.ttl_ms")),
        ([checking("a", if_absent=True, if_version=1)], ("conflicting_fields", "operations[0].check: if_absent")),
        ([checking("a", if_exists=True), putting("a")], ("invalid_argument", "operations[1].put.key")),
        ([deleting("a"), checking("a", if_exists=True)], ("invalid_argument", "operations[1].check.key")),
    ]:
        told = refused(server, *operations)
        assert told["code"] == expected[0] and expected[1] in json.dumps(told), (operations, told)
    assert get(server, "a")["content"] == "x"


def test_decisions_by_what_others_write_do_not_cross(server):
    """Of two doctors one stays on call, although each decides by the record of the other alone."""
    doctors = ["ann", "bob"]
    for round_number in range(20):
        for doctor in doctors:
            put(server, doctor, "on call")

        def leave(doctor: str) -> bool:
            other = doctors[1 - doctors.index(doctor)]
            read = get(server, other)
            if read["content"] != "on call":
                return False
            body = {"operations": [putting(doctor, "home"), checking(other, if_etag=read["etag"])]}
            status, _ = server.request("POST", TRANSACTIONS, json.dumps(body).encode(), JSON)
            return status == 200

        order = random.Random(round_number).sample(doctors, 2)
        with ThreadPoolExecutor(2) as pool:
            gone = list(pool.map(leave, order))
        on_call = [doctor for doctor in doctors if get(server, doctor)["content"] == "on call"]
        assert len(on_call) == 2 - sum(gone) >= 1, (round_number, gone, on_call)

