"""Watchers of locks: what they are told, and that it is never less than the last state."""

import http.client
import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from conftest import binary, until
from test_cluster_join import free_port
from test_locks import LOCKS, LONG_MS, acquire, asked, release


class Watcher:
    """A reader of the stream of a lock, on a thread of its own."""

    def __init__(self, server, key: str):
        self.states, self.ended = [], threading.Event()
        self.connection = http.client.HTTPConnection(server.url.split("://")[1], timeout=60)
        self.connection.request("GET", f"{LOCKS}/{quote(key, safe='')}/stream")
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for told in self.answer:
                if told.startswith(b"data: "):
                    self.states.append(json.loads(told[6:]))
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self.ended.set()

    def sees(self, holders: int, waiters: int) -> bool:
        last = self.states[-1] if self.states else {"holder_count": -1, "waiter_count": -1}
        return (last["holder_count"], last["waiter_count"]) == (holders, waiters)

    def until(self, holders: int, waiters: int):
        until(lambda: self.sees(holders, waiters), f"{holders} hold it and {waiters} wait")


def test_watchers_hear_each_change_of_their_lock(server):
    watcher = Watcher(server, "a/b")
    watcher.until(0, 0)
    grant = acquire(server, "a/b", owner="ann")
    watcher.until(1, 0)
    assert watcher.states[-1]["holders"][0]["fencing_token"] == grant["fencing_token"]
    waiting = asked(server, "a/b", owner="bob")
    watcher.until(1, 1)
    assert watcher.states[-1]["waiters"][0]["owner"] == "bob"
    release(server, grant)
    until(lambda: watcher.states[-1]["holders"][0]["owner"] == "bob", "the next in line has it")
    waiting.grant()
    server.call("DELETE", f"{LOCKS}/a%2Fb")
    watcher.until(0, 0)
    acquire(server, "a/b", ttl_ms=100)
    watcher.until(1, 0)
    watcher.until(0, 0)
    several = acquire_several(server, ["x", "a/b", "y"])
    watcher.until(1, 0)
    release(server, several)
    watcher.until(0, 0)
    count = len(watcher.states)
    release(server, acquire(server, "other"))
    assert len(watcher.states) == count


def test_a_grant_from_the_line_is_told_once_with_its_whole_time(server):
    watcher = Watcher(server, "k")
    for number in range(20):
        grant = acquire(server, "k", owner="ann", ttl_ms=LONG_MS)
        waiting = asked(server, "k", owner="bob", ttl_ms=60_000, request_id=f"r{number}")
        watcher.until(1, 1)
        release(server, grant)
        following = waiting.grant()
        until(lambda: watcher.states[-1]["holders"][0]["owner"] == "bob", "the next in line has it")
        release(server, following)
        watcher.until(0, 0)
        told = [state["holders"][0] for state in watcher.states if state["holders"]]
        told = [holder for holder in told if holder["fencing_token"] == following["fencing_token"]]
        assert [holder["expires_at_ms"] for holder in told] == [following["expires_at_ms"]]


def acquire_several(server, keys: list[str]) -> dict:
    return server.call("POST", LOCKS, {"keys": keys})


def test_the_last_state_is_told_however_fast_they_follow_each_other(server):
    watchers = [Watcher(server, "k") for _ in range(10)]

    def work(at):
        for _ in range(20):
            release(server, acquire(server, "k", owner=f"worker-{at}", wait_ms=LONG_MS))

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(work, range(5)))
    last = acquire(server, "k", owner="last")
    held = last["fencing_token"]
    for watcher in watchers:
        until(lambda: [it["fencing_token"] for it in watcher.states[-1]["holders"]] == [held], "the last one")


def test_a_command_watches_a_lock_through_a_restart(server):
    # Where it is found again.
    server.stop()
    server.listen = f"127.0.0.1:{free_port()}"
    server.start()
    command = [binary(), "lock", "watch", "k", "--json", "--server", server.url, "--max", "4"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert json.loads(running.stdout.readline())["holder_count"] == 0
    grant = acquire(server, "k", owner="ann", ttl_ms=600_000)
    assert json.loads(running.stdout.readline())["holders"][0]["owner"] == "ann"
    server.stop()
    server.start()
    assert json.loads(running.stdout.readline())["holders"][0]["fencing_token"] == grant["fencing_token"]
    release(server, grant)
    assert json.loads(running.stdout.readline())["holder_count"] == 0
    assert running.wait(20) == 0


def test_the_stream_of_a_lock_ends_with_its_namespace(server):
    server.call("PUT", "/v1/namespaces/short", {})
    path = "/v1/namespaces/short/locks/k/stream"
    connection = http.client.HTTPConnection(server.url.split("://")[1], timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.readline() == b"event: lock\n"
    server.call("DELETE", "/v1/namespaces/short")
    assert b"event" not in answer.read()
    assert json.loads(server.request("GET", path)[1])["error"]["code"] == "namespace_not_found"
