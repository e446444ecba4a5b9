"""Words of refusals about locks, and locks as the command line shows them."""

import json

from conftest import until
from documents import of
from test_locks import LOCKS, LONG_MS, Asked, acquire, error, release, shown


def test_a_lock_that_nobody_holds_and_one_waits_for_is_not_said_to_be_held(server):
    held = acquire(server, "na", owner="ann")
    waiting = Asked(server.url, {"keys": ["na", "nb"], "wait_ms": LONG_MS}).send()
    until(lambda: shown(server, "nb")["waiter_count"] == 1)
    told = error(server, LOCKS, {"key": "nb"})
    assert told["message"] == 'lock "nb" is not free, and 1 waits for it: wait for it, or come back later'
    release(server, held)
    waiting.grant()


def test_a_request_id_that_is_too_long_is_told_with_its_length(server):
    told = error(server, LOCKS, {"key": "k", "request_id": "r" * 257})
    assert told["message"] == "request_id: expected at most 256 bytes, got 257"


def test_a_header_that_is_no_token_says_what_is_expected(server):
    headers = {"Content-Type": "text/plain", "Sluice-Lock-Token": "x"}
    status, answer = server.request("PUT", f"{of('k')}/raw", b"x", headers)
    assert status == 400 and b"expected 32 characters" in answer


def test_the_command_line_shows_all_fields_of_a_lock(server):
    for verb in (["show", "free"], ["watch", "free", "--max", "1"]):
        told = server.sluice("lock", *verb, "--json")
        assert json.loads(told.stdout) == server.call("GET", f"{LOCKS}/free"), verb
