"""Locks that are taken only if nobody has them."""

import json
from concurrent.futures import ThreadPoolExecutor

from test_locks import LOCKS, acquire, error, lock_run, number, release  # noqa: F401


def test_one_that_is_first_takes_what_nobody_has(server):
    first = acquire(server, "cache", mode="shared", if_absent=True, request_id="first")
    assert number(acquire(server, "cache", mode="shared", if_absent=True, request_id="first")) == number(first)
    for asks in ({"mode": "shared"}, {"mode": "counting", "holders": 9}, {}, {"keys": ["free", "cache"]}):
        asks = {"if_absent": True, **({"key": "cache"} if "keys" not in asks else {}), **asks}
        refused = error(server, LOCKS, asks)
        assert (refused["status"], refused["code"], refused["details"]["key"]) == (409, "lock_held", "cache")
    both = error(server, LOCKS, {"key": "other", "if_absent": True, "wait_ms": 5})
    assert (both["status"], both["code"]) == (400, "conflicting_fields")
    release(server, acquire(server, "cache", mode="shared"))
    release(server, first)
    with ThreadPoolExecutor(8) as threads:
        asks = {"key": "race", "mode": "shared", "if_absent": True}
        body, headers = json.dumps(asks).encode(), {"Content-Type": "application/json"}
        told = threads.map(lambda _: server.request("POST", LOCKS, body, headers), range(16))
        assert sorted(status for status, _ in told) == [200] + [409] * 15


def test_a_command_runs_only_if_nobody_has_the_lock(server, lock_run):
    assert lock_run("k", "--shared", "--if-absent", "--", "true").wait(20) == 0
    grant = acquire(server, "k", mode="shared")
    refused = lock_run("k", "--shared", "--if-absent", "--", "true")
    assert "is held" in refused.communicate(timeout=20)[1] and refused.returncode == 4
    assert lock_run("k", "--if-absent", "--wait", "5s", "--", "true").wait(20) == 2
    assert lock_run("k", "--shared", "--", "true").wait(20) == 0
    release(server, grant)
