"""Encryption at rest, seen from outside: what is on the disk, and what a start without the keys says."""

import json
import os
import pathlib
import stat
import subprocess

from conftest import binary

# What nobody may find in the data directory. Long enough that chance does not write them.
PAYLOAD, HEADER, HEADER_NAME = "planted-payload-text", "planted-header-value", "planted-header-name"
QUEUE, ERROR, RESULT = "planted-queue-name", "planted-error-text", "planted-result-text"
TAG, KEY, WORKER = "planted-tag-text", "planted-ordering-key", "planted-schedule-name"
PLANTED = [PAYLOAD, HEADER, HEADER_NAME, QUEUE, ERROR, RESULT, TAG, KEY, WORKER]


def plant(server):
    """Lets everything that a message can have come to the disk."""
    messages = f"/v1/queues/{QUEUE}"
    item = {
        "payload": PAYLOAD,
        "headers": {HEADER_NAME: HEADER},
        "tags": [TAG],
        "ordering_key": KEY,
        "result_ttl_ms": 600_000,
    }
    server.call("POST", f"{messages}/messages", {"messages": [item] * 3})
    for settle in (
        {"outcome": "nack", "error": ERROR, "delay_ms": 0},
        {"outcome": "ack", "result": RESULT},
    ):
        taken = server.call("POST", f"{messages}/receive", {"max": 1, "wait_ms": 5_000})["messages"][0]
        server.call("POST", "/v1/settle", {"items": [{"receipt": taken["receipt"], **settle}]})
    every = {"every_ms": 3_600_000, "queue": QUEUE, "message": {"payload": PAYLOAD}}
    server.call("PUT", f"/v1/schedules/{WORKER}", every)


def found(directory: pathlib.Path) -> dict[str, list[str]]:
    """What was planted, by the file that it is found in."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    texts = {path: path.read_bytes() for path in files}
    hits = {path: [word for word in PLANTED if word.encode() in text] for path, text in texts.items()}
    return {str(path): words for path, words in hits.items() if words}


def test_nothing_planted_can_be_read_in_the_data_directory(server):
    plant(server)
    data = server.directory / "data"
    assert found(data) == {}
    assert server.sluice("backup", "all.backup").returncode == 0
    backup = (server.directory / "all.backup").read_bytes()
    assert [word for word in PLANTED if word.encode() in backup] == []
    assert server.stop() == 0
    server.start()
    shown = server.call("POST", f"/v1/queues/{QUEUE}/receive", {"max": 1, "wait_ms": 5_000})["messages"][0]
    assert shown["payload"] == PAYLOAD
    assert found(data) == {}


def test_without_encryption_all_of_it_is_found(server):
    server.stop()
    server.start("--no-encryption")
    plant(server)
    words = {word for words in found(server.directory / "data").values() for word in words}
    assert words == set(PLANTED), "the test above would prove nothing"


def test_the_key_file_is_the_owners_and_lies_beside_the_data(server):
    key = server.directory / "data.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not list((server.directory / "data").rglob("*.key"))


def refused(server, *arguments: str) -> str:
    """What a start says that must not succeed."""
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--data-dir", "data", *arguments]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=server.directory, env=server.env
    )
    assert run.returncode != 0, run.stdout
    return run.stderr


def test_a_start_without_its_key_names_the_key_and_changes_nothing(server):
    plant(server)
    status = json.loads(server.sluice("key", "status", "--json").stdout)
    server.stop()
    key = server.directory / "data.key"
    kept = server.directory / "kept.key"
    key.rename(kept)
    (server.directory / "wrong.key").write_text("5a" * 32)
    files = lambda: {  # noqa: E731
        path: path.read_bytes()
        for path in (server.directory / "data").rglob("*")
        if path.is_file() and path.name != "lock"
    }
    before = files()
    for arguments in ([], ["--no-encryption"], ["--key-source", "file:wrong.key"]):
        said = refused(server, *arguments)
        assert status["current"] in said and "nothing was changed" in said, said
    assert files() == before
    assert not key.exists(), "no new key takes the place of the one that is missing"
    check = ["check", "data", "--key-source"]
    assert server.sluice(*check, "file:wrong.key").returncode == 2
    assert server.sluice(*check, "file:kept.key").returncode == 0
    server.start("--key-source", "command:cat kept.key")
    assert server.sluice("queue", "list").returncode == 0


def test_a_key_file_inside_the_data_directory_is_refused(server):
    server.stop()
    said = refused(server, "--key-source", "file:data/shard-000/root.key")
    assert "lies inside the data directory" in said
    assert not (server.directory / "data/shard-000/root.key").exists()


def test_the_root_key_changes_while_messages_flow(server):
    plant(server)
    before = json.loads(server.sluice("key", "status", "--json").stdout)["current"]
    for _ in range(3):
        rotated = server.sluice("key", "rotate", "--json")
        assert rotated.returncode == 0, rotated.stderr
        server.call("POST", f"/v1/queues/{QUEUE}/messages", {"messages": [{"payload": PAYLOAD}]})
    after = json.loads(rotated.stdout)
    assert after["current"] != before
    assert {before, after["current"]} <= {key["id"] for key in after["keys"]}
    assert stat.S_IMODE(os.stat(server.directory / "data.key").st_mode) == 0o600
    server.kill()
    server.start()
    stats = server.call("GET", f"/v1/queues/{QUEUE}")
    assert stats["counts"]["ready"] >= 3
    assert found(server.directory / "data") == {}


def test_without_encryption_there_is_no_key_to_rotate(server):
    server.stop()
    server.start("--no-encryption")
    rotated = server.sluice("key", "rotate")
    assert rotated.returncode == 2 and "not encrypted" in rotated.stderr
