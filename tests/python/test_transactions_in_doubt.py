"""Transactions over several namespaces that are in doubt, as operators see them: listed, shown and resolved."""

import json
import threading

from conftest import until
from documents import error, of
from test_transactions_across import asking, server, there  # noqa: F401
from transactions import TRANSACTIONS, acquiring, putting, sending

IN_DOUBT = "/v1/namespaces/b/in-doubt-transactions"


def refused(server, path: str, body: dict) -> tuple[int, str]:  # noqa: F811
    """Status and code of a call that must not succeed."""
    told = error(server, "POST", path, body)
    return told["status"], told["code"]


def listed(server) -> list[dict]:  # noqa: F811
    return server.call("GET", IN_DOUBT)["transactions"]


class Writers:
    """Many who write to two namespaces together, as long as the server answers."""

    def __init__(self, server, name: str):  # noqa: F811
        self.ask, self.name = asking(server), name
        self.threads = [threading.Thread(target=self.write, args=(at,)) for at in range(16)]
        [thread.start() for thread in self.threads]

    def write(self, writer: int):
        for at in range(10_000):
            key = f"{self.name}/{writer}/{at}"
            other = [putting(key, "secret"), acquiring(key), sending("secret")]
            operations = [putting(key, "secret"), *map(there, other)]
            if self.ask("POST", TRANSACTIONS, {"operations": operations}, {})[0] is None:
                return


def prepared(server) -> list[dict]:  # noqa: F811
    """What is prepared in `b`, and not decided, when the server was killed and has started again."""
    for at in range(20):
        writers = Writers(server, f"w{at}")
        until(lambda path=of(f"w{at}/0/3"): server.request("GET", path)[0] == 200)
        server.kill()
        [thread.join() for thread in writers.threads]
        server.start()
        found = [one for one in listed(server) if one["state"] == "prepared"]
        decided = server.call("GET", "/v1/in-doubt-transactions")["transactions"]
        decided = {one["transaction"] for one in decided}
        found = [one for one in found if one["transaction"] not in decided]
        if found:
            return found
    raise AssertionError("no kill came between two phases")


def test_what_a_crash_leaves_in_doubt_is_listed_and_ends_by_itself(server):  # noqa: F811
    assert listed(server) == []
    found = prepared(server)
    one = found[0]
    assert (one["coordinator"], one["parts"], one["operation_count"]) == ("default", [], 3)
    assert one["since_at_ms"] < one["undecided_until_ms"] <= one["since_at_ms"] + 10_000
    path = f"{IN_DOUBT}/{one['transaction']}"
    shown = server.call("GET", path)
    key = shown["operations"][0]["about"]
    assert shown["operations"] == [
        {"operation": "put", "about": key, "content_bytes": 6},
        {"operation": "acquire", "about": key},
        {"operation": "send", "about": ["mail"]},
    ]
    assert "secret" not in json.dumps(shown)
    assert server.call("GET", "/v1/status")["shards"][1]["in_doubt"] >= 1
    # It is not decided against before its time is over.
    for body in ({}, {"force": "commit"}, {"force": "abort"}):
        told = error(server, "POST", f"{path}/resolve", body)
        assert (told["status"], told["code"], told["details"]["decision"]) == (409, "wrong_state", "open")
    text = server.sluice("txn", "list", "--namespace", "b").stdout
    assert f"{one['transaction']}  prepared" in text
    assert "decided by  default" in server.sluice("txn", "show", one["transaction"], "--namespace", "b").stdout
    done = server.sluice("txn", "resolve", one["transaction"], "--namespace", "b")
    assert done.returncode == 4 and "may still be committed" in done.stderr, done
    until(lambda: not listed(server) and not server.call("GET", "/v1/in-doubt-transactions")["transactions"])
    assert refused(server, f"{path}/resolve", {}) == (404, "transaction_not_found")
    # It was not decided, so nothing of it is done.
    for namespace in ("default", "b"):
        assert server.request("GET", of(key[0], namespace=namespace))[0] == 404


def test_pages_follow_each_other_and_bad_requests_are_refused(server):  # noqa: F811
    found = [one["transaction"] for one in prepared(server)]
    first = server.call("GET", f"{IN_DOUBT}?limit=1")
    assert first["transactions"][0]["transaction"] <= found[0]
    if "next" in first:
        rest = server.call("GET", f"{IN_DOUBT}?after={first['next']}")["transactions"]
        assert all(one["transaction"] > first["next"] for one in rest)
    unknown = "0" * 20
    assert refused(server, f"{IN_DOUBT}/{unknown}/resolve", {}) == (404, "transaction_not_found")
    assert refused(server, f"{IN_DOUBT}/nonsense/resolve", {}) == (400, "invalid_argument")
    assert refused(server, f"{IN_DOUBT}/{unknown}/resolve", {"force": "maybe"}) == (400, "invalid_argument")
    done = server.sluice("txn", "resolve", unknown, "--abort", "--namespace", "b")
    assert done.returncode == 2 and "confirm it with --yes" in done.stderr
    done = server.sluice("txn", "resolve", unknown, "--abort", "--yes", "--namespace", "b")
    assert done.returncode == 3 and "is not in doubt in this namespace" in done.stderr
