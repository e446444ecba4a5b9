"""What was acknowledged is there, whatever happens to the process."""

import threading

from conftest import until

SEND = "/v1/queues/jobs/messages"


def drain(server) -> list[str]:
    """Receives and acks everything; the payloads."""
    payloads = []
    while messages := server.call("POST", "/v1/queues/jobs/receive", {"max": 1000})["messages"]:
        payloads += [message["payload"] for message in messages]
        receipts = [message["receipt"] for message in messages]
        results = server.call("POST", "/v1/ack", {"receipts": receipts})["results"]
        assert all(result["ok"] for result in results)
    return payloads


def test_a_kill_under_load_loses_nothing_that_was_acknowledged(server):
    acknowledged = set()

    def send_until_killed(name: str):
        for number in range(100_000):
            payload = f"{name}-{number}"
            try:
                server.call("POST", SEND, {"payload": payload})
            except OSError:
                return
            acknowledged.add(payload)

    for round_ in range(3):
        names = [f"{round_}-{sender}" for sender in range(4)]
        senders = [threading.Thread(target=send_until_killed, args=[name]) for name in names]
        for sender in senders:
            sender.start()
        wanted = len(acknowledged) + 10
        until(lambda: len(acknowledged) >= wanted)
        server.kill()
        for sender in senders:
            sender.join()
        server.start()

    payloads = drain(server)
    assert len(acknowledged) > 20
    assert len(payloads) == len(set(payloads)), "a message was stored twice"
    assert acknowledged <= set(payloads)


def test_receipts_and_settlements_survive_a_kill(server):
    server.call("POST", SEND, {"messages": [{"payload": "a"}, {"payload": "b"}]})
    first, second = server.call("POST", "/v1/queues/jobs/receive", {"max": 2})["messages"]
    assert server.call("POST", "/v1/ack", {"receipt": first["receipt"]}) == {}
    server.kill()
    server.start()
    assert server.call("POST", "/v1/ack", {"receipt": first["receipt"]}) == {"already_settled": True}
    assert server.call("POST", "/v1/ack", {"receipt": second["receipt"]}) == {}
    assert not any(server.call("GET", "/v1/queues/jobs")["counts"].values())


def test_an_idempotency_key_survives_a_kill(server):
    def send():
        return server.call("POST", SEND, {"payload": "once"}, {"Idempotency-Key": "signup-4711"})

    first = send()
    server.kill()
    server.start()
    assert send() == {"id": first["id"], "duplicate": True}
    assert drain(server) == ["once"]


def test_sigterm_wakes_who_waits_and_ends_well(server):
    answers = []
    path = "/v1/queues/jobs/receive"
    waiting = threading.Thread(target=lambda: answers.append(server.call("POST", path, {"wait_ms": 60_000})))
    waiting.start()
    until(lambda: server.call("GET", "/v1/status")["shards"][0]["waiting_receives"] == 1)
    assert server.stop() == 0
    waiting.join(timeout=10)
    assert answers == [{"messages": []}]


def test_a_backup_taken_under_load_holds_what_was_acknowledged_before(server, tmp_path):
    acknowledged, stop = set(), threading.Event()

    def send_until_told():
        number = 0
        while not stop.is_set():
            server.call("POST", SEND, {"payload": str(number)})
            acknowledged.add(str(number))
            number += 1

    sender = threading.Thread(target=send_until_told)
    sender.start()
    until(lambda: len(acknowledged) >= 10)
    before = set(acknowledged)
    assert server.sluice("backup", "copy").returncode == 0
    stop.set()
    sender.join()
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    payloads = drain(server)
    assert before and before <= set(payloads)
    assert len(payloads) == len(set(payloads))
