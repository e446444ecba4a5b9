"""Budgets: costs of messages, and those that workers report, in limits by rate."""

import json

from transactions import commit, refused, sending, settling

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def budget(server, name="tokens", queue="prompts", count=100, **more):
    rate = {"count": count, "period_ms": DAY_MS}
    server.call("PUT", f"/v1/limits/{name}", {"rate_per_key": rate, **more})
    server.call("PUT", f"/v1/queues/{queue}", {"limit": name})


def send(server, payload: str, cost: int | None = None, key="ann", queue="prompts", **fields) -> dict:
    body = {"payload": payload, "limit_key": key, **fields} | ({} if cost is None else {"cost": cost})
    return server.call("POST", f"/v1/queues/{queue}/messages", body)


def receive(server, queue="prompts", **fields) -> list[dict]:
    body = {"max": 10, "lease_ms": HOUR_MS, **fields}
    return server.call("POST", f"/v1/queues/{queue}/receive", body)["messages"]


def spent(server, key="ann", name="tokens") -> int:
    keys = server.call("GET", f"/v1/limits/{name}?key={key}")["keys"]
    return keys[0].get("spent", 0) if keys else 0


def test_a_cost_larger_than_the_limit_is_delivered_and_paid_off(server):
    budget(server)
    send(server, "huge", 5_000)
    send(server, "small")
    send(server, "free", 0)
    send(server, "bob", 30, key="bob")
    assert [one["payload"] for one in receive(server)] == ["huge", "bob"]
    assert (spent(server), spent(server, "bob")) == (5_000, 30)
    shown = server.call("GET", "/v1/limits/tokens?waiting=true")["keys"]
    assert [(one["key"], one["waiting"]) for one in shown] == [("ann", 2)]
    assert shown[0]["next_at_ms"] > 0


def test_every_delivery_spends_and_a_restart_forgets_nothing(server):
    budget(server, count=1_000)
    send(server, "a", 200)
    for outcome, times in [("nack", 1), ("release", 2)]:
        for _ in range(times):
            receipt = receive(server)[0]["receipt"]
            item = {"receipt": receipt, "outcome": outcome, "delay_ms": 0, "add_cost": 10}
            assert server.call("POST", "/v1/settle", {"items": [item]})["results"] == [{"ok": True}]
    assert spent(server) == 3 * 210
    receipt = receive(server)[0]["receipt"]
    server.call("POST", "/v1/extend", {"receipt": receipt, "add_cost": 500})
    before = spent(server)
    assert before == 3 * 210 + 200 + 500
    server.kill()
    server.start()
    assert before - 1 <= spent(server) <= before
    send(server, "b")
    assert receive(server) == []
    server.call("POST", "/v1/ack", {"receipt": receipt, "add_cost": 1})
    assert receive(server) == [], "debt outlasts the message"


def test_transactions_send_and_settle_with_costs(server):
    budget(server, count=1_000)
    commit(server, sending("a", "prompts", limit_key="ann", cost=100))
    receipt = receive(server)[0]["receipt"]
    settled = settling(receipt, add_cost=50)
    refused(server, settled, {"check": {"key": "none", "if_exists": True}})
    assert spent(server) == 100, "what is not committed counts nothing"
    commit(server, settled)
    assert spent(server) == 150


def test_schedules_chains_duplicates_and_dead_letters_carry_costs(server):
    budget(server, count=1_000)
    message = {"payload": "s", "limit_key": "s", "cost": 7}
    schedule = {"every_ms": HOUR_MS, "queue": "prompts", "message": message}
    server.call("PUT", "/v1/schedules/tick", schedule)
    assert server.call("GET", "/v1/schedules/tick")["message"]["cost"] == 7
    server.call("POST", "/v1/schedules/tick/trigger")
    step = {"queue": "prompts", "payload": "step", "limit_key": "c", "cost": 11}
    send(server, "first", queue="start", chain=[step])
    server.call("POST", "/v1/ack", {"receipt": receive(server, "start")[0]["receipt"]})
    unique = {"key": "u"}
    first = send(server, "u", 13, key="u", unique=unique)
    again = send(server, "u", 900, key="u", unique=unique)
    assert again == {"id": first["id"], "duplicate": True}
    given = {one["payload"]: one for one in receive(server)}
    assert set(given) == {"s", "step", "u"}
    assert [spent(server, key) for key in "scu"] == [7, 11, 13]
    server.call("POST", "/v1/reject", {"receipt": given["u"]["receipt"]})
    server.call("POST", "/v1/queues/prompts/dead/redrive", {"all": True})
    assert len(receive(server)) == 1
    assert spent(server, "u") == 26


def test_a_limit_as_a_whole_counts_costs_and_the_command_line_shows_them(server):
    budget(server, rate={"count": 50, "period_ms": DAY_MS})
    assert server.sluice("send", "prompts", "a", "--limit-key", "ann", "--cost", "45").returncode == 0
    receipt = receive(server)[0]["receipt"]
    send(server, "b", 20, key="bob")
    assert len(receive(server)) == 1
    send(server, "c", key="eve")
    assert receive(server) == []
    assert server.sluice("ack", receipt, "--add-cost", "35").returncode == 0
    shown = server.sluice("limit", "show", "tokens").stdout
    assert "spent" in shown and "100/50" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith(("ann", "bob"))] == [
        ["ann", "0", "80/100", "0", "-"],
        ["bob", "1", "20/100", "0", "-"],
    ]
    listed = server.sluice("limit", "list").stdout
    assert "100/50" in listed


def test_under_another_rate_what_was_spent_stays(server):
    day = {"count": 100, "period_ms": DAY_MS}
    budget(server, rate=day)
    send(server, "a", 100)
    send(server, "b", 30)
    assert [one["payload"] for one in receive(server)] == ["a"]
    budget(server, count=1_000, rate=day | {"count": 1_000})
    assert spent(server) == 100
    assert [one["payload"] for one in receive(server)] == ["b"], "after a raise what waits is delivered"
    budget(server, count=50, rate=day | {"count": 200})
    limit = server.call("GET", "/v1/limits/tokens?key=ann")
    assert limit["spent"] == 130
    assert limit["keys"][0]["spent"] == 50, "more than the burst is forgiven"
    server.kill()
    server.start()
    assert spent(server) == 50


def test_a_rate_that_no_clock_can_tell_is_refused(server):
    body, headers = {"rate": {"count": 100_001, "period_ms": 1}}, {"Content-Type": "application/json"}
    status, answer = server.request("PUT", "/v1/limits/fast", json.dumps(body).encode(), headers)
    error = json.loads(answer)["error"]
    assert (status, error["code"], error["details"]["field"]) == (400, "invalid_argument", "rate.count")
    assert "100001 in 1 ms is more than 100000 in each millisecond" in error["message"]
    server.call("PUT", "/v1/limits/fast", {"rate": {"count": 1_000_000_000, "period_ms": 10_000}})
