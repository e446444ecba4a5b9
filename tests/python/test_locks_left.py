"""Locks whose callers leave, or whose namespace ends, while they wait."""

import json
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import until
from documents import JSON
from test_locks import LONG_MS, acquire, asked, listed, release, shown


def test_who_leaves_in_the_moment_of_its_grant_leaves_nothing(server):
    for at in range(40):
        holder = acquire(server, "k")
        waiting = asked(server, "k", owner="gone", ttl_ms=1_800_000)
        with ThreadPoolExecutor() as threads:
            threads.submit(release, server, holder)
            time.sleep(random.random() / 200)
            waiting.connection.sock.shutdown(socket.SHUT_WR)
        # It has come before, or never.
        if told := b"".join(iter(lambda: waiting.connection.sock.recv(4096), b"")):
            release(server, json.loads(told.split(b"\r\n\r\n")[1]))
        until(lambda: listed(server) == [], f"nothing is left, in round {at}")


@pytest.mark.parametrize("behind", [b"GET /v1/", b"GET /v1/locks/a HTTP/1.1\r\nhost: localhost\r\n\r\n" * 200])
def test_who_leaves_is_seen_whatever_else_it_has_asked_for(server, behind):
    holder = acquire(server, "k")
    waiting = asked(server, "k", owner="gone")
    waiting.connection.sock.sendall(behind)
    waiting.leave()
    until(lambda: shown(server, "k")["waiter_count"] == 0, "it has left the line")
    release(server, holder)
    assert listed(server) == []


def test_a_wait_ends_with_its_namespace(server):
    team = "/v1/namespaces/team"
    server.call("PUT", team, {})
    server.call("POST", f"{team}/locks", {"key": "k"})
    with ThreadPoolExecutor() as threads:
        body = {"key": "k", "wait_ms": LONG_MS}
        waiting = threads.submit(server.request, "POST", f"{team}/locks", json.dumps(body).encode(), JSON)
        until(lambda: server.call("GET", f"{team}/locks/k")["waiter_count"] == 1, "it waits")
        server.call("DELETE", f"{team}?force=true")
        status, answer = waiting.result()
    assert status == 404 and json.loads(answer)["error"]["details"] == {"namespace": "team"}


def test_requests_that_are_sent_together_are_answered_in_turn(server):
    holder = acquire(server, "k")
    waiting = asked(server, "k", owner="next")
    heads = b"".join(b"GET /v1/locks/%d HTTP/1.1\r\nhost: localhost\r\n\r\n" % at for at in range(3000))
    sending = threading.Thread(target=waiting.connection.sock.sendall, args=[heads])
    sending.start()
    release(server, holder)
    told = waiting.connection.sock.makefile("rb")
    bodies = []
    for _ in range(3001):
        fields = dict(line.lower().split(b": ", 1) for line in iter(told.readline, b"\r\n") if b": " in line)
        bodies.append(json.loads(told.read(int(fields[b"content-length"]))))
    sending.join()
    assert [body.get("key") for body in bodies[1:]] == [str(at) for at in range(3000)]
    assert "token" in bodies[0]
