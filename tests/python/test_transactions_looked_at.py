"""Open transactions as operators see them: listed, shown, and ended by force."""

import json
import urllib.parse

from conftest import until

OPEN, BEGIN = "/v1/open-transactions", "/v1/transactions/begin"


def begin(server, *operations: dict, ttl_ms=60_000) -> str:
    transaction = server.call("POST", BEGIN, {"ttl_ms": ttl_ms})["transaction"]
    if operations:
        server.call("POST", f"/v1/transactions/{transaction}/operations", {"operations": operations})
    return transaction


def listed(server, query="") -> list[dict]:
    return server.call("GET", OPEN + query)["transactions"]


def code(server, method: str, path: str) -> tuple[int, str]:
    status, told = server.request(method, path)
    return status, json.loads(told)["error"]["code"]


def test_what_is_open_is_listed_shown_and_rolled_back(server):
    assert listed(server) == []
    server.call("PUT", "/v1/documents/read", {"content": "r"})
    first = begin(
        server,
        {"put": {"key": "orders/17", "content": "a secret"}},
        {"send": {"queue": "mail", "payload": "another secret"}},
        {"acquire": {"keys": ["a", "b"]}},
        {"get": {"key": "read"}},
    )
    second = begin(server)
    one, other = listed(server)
    assert (one["operation_count"], other["operation_count"]) == (4, 0)
    assert one["bytes"] > 100 and other["bytes"] == 0
    assert one["caller"] == "anybody" and one["expires_at_ms"] == one["begun_at_ms"] + 60_000
    assert not one["committing"]
    shown = server.call("GET", f"{OPEN}/{one['name']}")
    assert shown["operations"] == [
        {"operation": "put", "about": ["orders/17"], "content_bytes": 8},
        {"operation": "send", "about": ["mail"]},
        {"operation": "acquire", "about": ["a", "b"]},
        {"operation": "check", "about": ["read"]},
    ]
    told = json.dumps([shown, listed(server)])
    assert "secret" not in told and first not in told and second not in told
    # An id is no name, and a name no id.
    assert code(server, "GET", f"{OPEN}/{first}") == (409, "transaction_lost")
    assert code(server, "POST", f"/v1/transactions/{one['name']}/commit") == (409, "transaction_lost")
    server.call("DELETE", f"{OPEN}/{one['name']}")
    assert code(server, "POST", f"/v1/transactions/{first}/commit") == (409, "transaction_lost")
    assert code(server, "DELETE", f"{OPEN}/{one['name']}") == (409, "transaction_lost")
    assert [each["name"] for each in listed(server)] == [other["name"]]
    server.call("POST", f"/v1/transactions/{second}/commit")
    assert listed(server) == []


def test_pages_are_in_the_order_of_time_and_of_one_namespace(server):
    server.call("PUT", "/v1/namespaces/other", {})
    server.call("POST", "/v1/namespaces/other/transactions/begin", {})
    for _ in range(25):
        begin(server)
    names, after = [], ""
    while True:
        page = server.call("GET", f"{OPEN}?limit=10&after={urllib.parse.quote(after)}")
        names += [one["name"] for one in page["transactions"]]
        if "next" not in page:
            break
        after = page["next"]
    assert len(names) == 25 and names == sorted(set(names))
    begun = [one["begun_at_ms"] for one in listed(server)]
    assert begun == sorted(begun)
    assert len(server.call("GET", "/v1/namespaces/other/open-transactions")["transactions"]) == 1
    begin(server, ttl_ms=100)
    until(lambda: len(listed(server)) == 25, "its time is over")


def test_the_command_line_shows_and_ends_them(server):
    assert "no transactions are open" in server.sluice("txn", "list").stderr
    own = server.sluice("txn", "begin", "--ttl", "1m").stdout.strip()
    begin(server, {"put": {"key": "k", "content": "four"}})
    mine, other = map(json.loads, server.sluice("txn", "list", "--json").stdout.splitlines())
    assert other["name"] in server.sluice("txn", "list").stdout
    shown = server.sluice("txn", "show", other["name"]).stdout
    assert "put" in shown and "4 B" in shown and "four" not in shown
    done = server.sluice("txn", "rollback", other["name"], "--yes")
    assert (done.returncode, done.stdout) == (0, "rolled back\n"), done.stderr
    assert [one["name"] for one in listed(server)] == [mine["name"]]
    assert server.sluice("txn", "rollback", "--transaction", own).returncode == 0
    assert listed(server) == []
    assert server.sluice("txn", "rollback").returncode == 2
