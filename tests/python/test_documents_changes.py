"""Changes of documents: what has changed since when, and waits for the next change."""

import threading
import time

from documents import allow_keys, delete, error, put

CHANGES = "/v1/document-changes"


def changes(server, **fields) -> dict:
    query = "&".join(f"{name}={value}" for name, value in fields.items())
    return server.call("GET", f"{CHANGES}?{query}")


def keys(answer: dict) -> list[str]:
    return [("-" if one.get("gone") else "") + one["key"] for one in answer["changes"]]


def test_of_each_key_the_last_change_is_told_in_order(server):
    assert changes(server) == {"changes": [], "next": "0"}
    for key in ("a", "b", "a"):
        put(server, key, "x")
    first = changes(server)
    assert keys(first) == ["b", "a"] and first["changes"][1]["document"]["version"] == 2
    delete(server, "b")
    put(server, "c", "x")
    assert keys(changes(server, after=first["next"])) == ["-b", "c"]
    assert keys(changes(server, prefix="b", after=first["next"])) == ["-b"]
    assert keys(changes(server)) == ["a", "c"], "of b nobody has to hear who never knew it"


def test_changes_are_read_in_parts(server):
    for number in range(25):
        put(server, f"k{number}", "x")
    read, after = [], ""
    while True:
        part = changes(server, limit=10, after=after)
        read += keys(part)
        after = part["next"]
        if not part.get("more"):
            break
    assert read == [f"k{number}" for number in range(25)]


def test_a_wait_ends_with_the_first_change(server):
    put(server, "a", "x")
    known = changes(server)["next"]
    began = time.monotonic()
    assert changes(server, after=known, wait_ms=300)["changes"] == []
    assert time.monotonic() - began >= 0.3
    for change in (lambda: put(server, "a", "y"), lambda: delete(server, "a")):
        later = threading.Timer(0.3, change)
        later.start()
        answer = changes(server, after=known, wait_ms=20_000)
        assert keys(answer)[0].endswith("a") and time.monotonic() - began < 10
        known = answer["next"]
        later.join()


def test_the_end_of_a_time_is_told(server):
    put(server, "a", "x", ttl_ms=400)
    known = changes(server)["next"]
    answer = changes(server, after=known, wait_ms=10_000)
    assert keys(answer) == ["-a"]


def test_a_place_is_good_after_a_restart(server):
    put(server, "a", "x")
    known = changes(server)["next"]
    put(server, "b", "x")
    delete(server, "a")
    server.stop()
    server.start()
    assert keys(changes(server, after=known)) == ["b", "-a"]


def test_a_place_that_was_never_reached_is_refused(server):
    etag = int(put(server, "a", "x")["etag"])
    known = changes(server)["next"]
    for future in (etag + 1, etag + 5, etag << 2, 2**64 - 1):
        assert error(server, "GET", f"{CHANGES}?after={future}")["code"] == "changes_forgotten", future
    assert keys(changes(server, after=known)) == []


def test_a_place_from_after_a_backup_is_refused_where_that_was_restored(server, tmp_path):
    put(server, "a", "1")
    put(server, "b", "1")
    before = changes(server)["next"]
    assert server.sluice("backup", "copy").returncode == 0
    delete(server, "a")
    put(server, "b", "2")
    lost = changes(server)["next"]
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    put(server, "d", "1")
    assert error(server, "GET", f"{CHANGES}?after={lost}")["code"] == "changes_forgotten"
    assert keys(changes(server, after=before)) == ["d"]


def test_a_place_in_a_namespace_that_was_made_anew_is_refused(server):
    team = "/v1/namespaces/team"
    nexts = []
    for key in ("a", "b"):
        server.call("PUT", team, {})
        server.call("PUT", f"{team}/documents/{key}", {"content": "x"})
        nexts.append(server.call("GET", f"{team}/document-changes")["next"])
        assert server.call("GET", f"{team}/document-changes?after={nexts[-1]}")["changes"] == []
        if key == "a":
            server.call("DELETE", f"{team}?force=true")
    assert error(server, "GET", f"{team}/document-changes?after={nexts[0]}")["code"] == "changes_forgotten"


def test_a_wait_ends_with_its_namespace(server):
    team = "/v1/namespaces/team"
    server.call("PUT", team, {})
    server.call("PUT", f"{team}/documents/a", {"content": "x"})
    known = server.call("GET", f"{team}/document-changes")["next"]
    later = threading.Timer(0.3, lambda: server.call("DELETE", f"{team}?force=true"))
    later.start()
    began = time.monotonic()
    refused = error(server, "GET", f"{team}/document-changes?after={known}&wait_ms=20000")
    assert time.monotonic() - began < 5, "its end is told at once"
    assert (refused["code"], refused["details"]) == ("namespace_not_found", {"namespace": "team"})
    later.join()


def test_a_bad_place_is_refused(server):
    for bad in ("x", "1-", "-1", "1-2-3", "99999999999999999999", "1.", "1.x", "1.2.3", ".2"):
        assert error(server, "GET", f"{CHANGES}?after={bad}")["code"] == "invalid_argument", bad


def test_a_wait_tells_nothing_of_keys_whose_right_was_taken_away(server):
    server.env["SLUICE_TOKEN"] = server.sluice("token", "create", "root", "--scope", "*=admin").stdout.strip()
    root = {"Authorization": f"Bearer {server.env['SLUICE_TOKEN']}"}
    watcher = {"Authorization": f"Bearer {server.sluice('token', 'create', 'watcher').stdout.strip()}"}

    allow_keys(server, "watcher", '"a/*", "secret/*"')
    server.call("PUT", "/v1/documents/a%2F1", {"content": "x"}, root)
    known = server.call("GET", CHANGES, None, watcher)["next"]
    told = []
    path = f"{CHANGES}?after={known}&wait_ms=20000"
    waiting = threading.Thread(target=lambda: told.append(server.call("GET", path, None, watcher)))
    waiting.start()
    time.sleep(0.3)
    allow_keys(server, "watcher", '"a/*"')
    server.call("PUT", "/v1/documents/secret%2Fx", {"content": "x"}, root)
    waiting.join()
    assert told[0]["changes"] == []
