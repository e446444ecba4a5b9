"""Documents: what is left of them after crashes, restarts and backups, and in their namespaces."""

import itertools
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from conftest import until
from documents import LOCKS, JSON, error, get, grow, of, put, told
from test_cluster_join import begun, joined, machines  # noqa: F401


def write_all(server, keys, acknowledged: dict, stop: threading.Event):
    """Writes versions of these keys until it is stopped, or the server is gone."""
    for number in itertools.count(1):
        for key in keys:
            if stop.is_set():
                return
            try:
                acknowledged[key] = put(server, key, f"{key} {number}", history=1)
            except OSError:
                return


def test_documents_outlive_restarts(server):
    put(server, "k", "1", content_type="a/b", attributes={"a": "b"}, ttl_ms=600_000, history=2)
    etags = [put(server, "k", "2", ttl_ms=600_000)["etag"]]
    before = (get(server, "k"), get(server, "k", "/history"), get(server, "k", "?version=1"))
    for end in (server.stop, server.kill, server.kill):
        end()
        server.start()
        assert (get(server, "k"), get(server, "k", "/history"), get(server, "k", "?version=1")) == before
        etags.append(put(server, "other", "x")["etag"])
    assert grow(etags)


def test_what_was_acknowledged_outlives_a_kill(server):
    etags = []
    for _ in range(3):
        acknowledged, stop = {}, threading.Event()
        with ThreadPoolExecutor(8) as threads:
            keys = [[f"{at}/{number}" for number in range(5)] for at in range(8)]
            running = [threads.submit(write_all, server, mine, acknowledged, stop) for mine in keys]
            until(lambda: len(acknowledged) == 40, "all have written")
            server.kill()
            stop.set()
            for one in running:
                one.result()
        server.start()
        for key, written in acknowledged.items():
            shown = get(server, key)
            assert shown["version"] - written["version"] in (0, 1), "at most the write that was not answered"
            assert shown["content"].startswith(f"{key} ")
            if shown["version"] == written["version"]:
                assert shown["etag"] == written["etag"]
            else:
                assert int(shown["etag"]) > int(written["etag"])
            etags.append(shown["etag"])
        etags.append(put(server, "after", "x")["etag"])
        assert max(map(int, etags)) == int(etags[-1])
    assert len(set(etags)) == len(etags)


def test_documents_are_in_a_backup_and_no_etag_is_used_twice(server, tmp_path):
    first = put(server, "k", "1", history=1, content_type="a/b")
    second = put(server, "k", "2")
    assert server.sluice("backup", "copy").returncode == 0
    after = [put(server, "k", str(number))["etag"] for number in range(3, 8)]
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    shown = get(server, "k")
    assert (shown["content"], shown["version"], shown["etag"]) == ("2", 2, second["etag"])
    assert get(server, "k", "?version=1").items() >= {"content": "1", "etag": first["etag"]}.items()
    assert told(server, "k", if_etag=after[0]) == (409, "version_mismatch")
    # The same version, and another ETag than the original has given it.
    third = put(server, "k", "another 3")
    assert third["version"] == 3 and grow([first["etag"], second["etag"], *after, third["etag"]])
    assert told(server, "k", if_etag=after[0]) == (409, "version_mismatch")


def test_documents_are_encrypted_at_rest(server, tmp_path):
    put(server, "key-in-the-clear", "content-in-the-clear" * 50, attributes={"a": "attribute-in-the-clear"})
    server.stop()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert stored and b"in-the-clear" not in stored


def test_a_namespace_with_documents_is_deleted_by_force_only(server):
    server.call("PUT", "/v1/namespaces/one", {})
    server.call("PUT", of("k", namespace="one"), {"content": "1"})
    refused = error(server, "DELETE", "/v1/namespaces/one")
    assert (refused["status"], refused["code"]) == (409, "namespace_not_empty") and "document" in refused["message"]
    assert get_in(server, "one", "k")["content"] == "1"
    assert server.request("GET", of("k"))[0] == 404, "another namespace"
    server.call("DELETE", of("k", namespace="one"))
    server.call("DELETE", "/v1/namespaces/one")
    server.call("PUT", "/v1/namespaces/one", {})
    first = server.call("PUT", of("k", namespace="one"), {"content": "1", "history": 3})
    server.call("DELETE", "/v1/namespaces/one?force=true")
    assert error(server, "GET", of("k", namespace="one"))["code"] == "namespace_not_found"
    server.call("PUT", "/v1/namespaces/one", {})
    assert error(server, "GET", of("k", namespace="one"))["code"] == "document_not_found"
    again = server.call("PUT", of("k", namespace="one"), {"content": "1"})
    assert again["version"] == 1 and grow([first["etag"], again["etag"]])


def get_in(server, namespace: str, key: str) -> dict:
    return server.call("GET", of(key, namespace=namespace))


def test_documents_count_against_the_bytes_of_their_namespace(server):
    server.call("PUT", "/v1/namespaces/one", {"quotas": {"bytes": 1_000}})

    def write(key, size, **fields):
        body = json.dumps({"content": "x" * size, **fields}).encode()
        return server.request("PUT", of(key, namespace="one"), body, JSON)[0]

    def used():
        return server.call("GET", "/v1/namespaces/one")["bytes"]

    assert write("k", 600) == 201 and 600 <= used() <= 650
    assert write("k", 900) == 200, "it takes the place of the former one"
    assert write("k", 500, history=1) == 429 and write("j", 500) == 429
    assert error(server, "PUT", of("j", namespace="one"), {"content": "x" * 500})["code"] == "quota_exceeded"
    assert get_in(server, "one", "k")["content_bytes"] == 900
    assert write("k", 300) == 200 and write("k", 300, history=1) == 200 and 600 <= used() <= 650
    server.kill()
    server.start()
    assert 600 <= used() <= 650
    server.call("DELETE", of("k", namespace="one"))
    assert used() == 0


def test_documents_outlive_the_leader_of_a_cluster(machines):  # noqa: F811
    one = begun(machines)
    two, three = joined(machines, "two", one), joined(machines, "three", one)
    until(lambda: "voters=[1, 2, 3]" in (one.directory / "log").read_text(), "all nodes vote")
    latest, guard, killed = [0], threading.Lock(), threading.Event()

    def ask(machine, method, path, body=None):
        """Repeats what was not answered, or has no outcome."""
        while True:
            status, answer = machine.request(method, path, body)
            if status is not None and status < 500:
                return status, answer

    def add(machine, mine: str):
        """Adds a name to the list in the document, once."""
        while True:
            status, read = ask(machine, "GET", of("k"))
            names = json.loads(read["content"]) if status == 200 else []
            if mine in names:
                return
            when = {"if_etag": read["etag"]} if status == 200 else {"if_absent": True}
            body = {"content": json.dumps([*names, mine]), "request_id": f"{mine} {random.random()}", **when}
            status, written = ask(machine, "PUT", of("k"), body)
            if status < 300:
                with guard:
                    latest[0] = max(latest[0], written["version"])
                return
            assert written["error"]["code"] == "version_mismatch", written
            time.sleep(random.random() / 20)

    def look(machine):
        """Each read shows what was acknowledged before it."""
        while not killed.is_set() or latest[0] < 60:
            at_least = latest[0]
            status, read = ask(machine, "GET", of("k"))
            assert (read["version"] if status == 200 else 0) >= at_least

    with ThreadPoolExecutor(10) as threads:
        readers = [threads.submit(look, machine) for machine in (two, three)]
        writers = [
            threads.submit(lambda at=at: [add((two, three)[at % 2], f"{at}/{turn}") for turn in range(10)])
            for at in range(6)
        ]
        until(lambda: latest[0] >= 15, "some are written")
        one.kill()
        killed.set()
        for running in [*writers, *readers]:
            running.result(60)
    names = json.loads(ask(two, "GET", of("k"))[1]["content"])
    assert sorted(names) == sorted(f"{at}/{turn}" for at in range(6) for turn in range(10))
    shown = [ask(machine, "GET", of("k"))[1] for machine in (two, three)]
    assert shown[0] == shown[1] and shown[0]["version"] == 60
    until(lambda: ask(three, "GET", of("k", "?stale=true"))[1] == shown[0], "it has followed")
    # A lock and its token outlive the leader with the document.
    token = ask(two, "POST", LOCKS, {"key": "k", "ttl_ms": 600_000})[1]["token"]
    one.start()
    leader = next((machine for machine in (two, three) if any(machine.members().get(number) for number in (2, 3))), two)
    leader.kill()
    left = three if leader is two else two
    status, written = ask(left, "PUT", of("k"), {"content": "held", "token": token})
    assert status == 200 and grow([shown[0]["etag"], written["etag"]])
    assert ask(one, "GET", of("k"))[1]["content"] == "held"
