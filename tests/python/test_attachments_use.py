"""`sluice attach`: connections that break, parts that are gone on with, transactions, and what uploads leave."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT, Server, until
from documents import of, put
from test_attachments import MIB, Answer, append, begin, listed, raw, sha256, some_bytes


class Breaking:
    """A way to the server on which each connection breaks after so many bytes, the first few times."""

    def __init__(self, server: Server, up: int, down: int, times: int):
        self.target = server.url.split("://")[1].split(":")
        self.bytes, self.left, self.lock = (up, down), times, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection((self.target[0], int(self.target[1])))
            ways = [(client, server, self.bytes[0]), (server, client, self.bytes[1])]
            for source, sink, most in ways:
                threading.Thread(target=self.pump, args=(source, sink, most), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket, most: int):
        count = 0
        while piece := receive(source):
            count += len(piece)
            if count > most and self.breaks():
                break
            try:
                self.pass_on(piece, sink)
            except OSError:
                break
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pass_on(self, piece: bytes, sink: socket.socket):
        sink.sendall(piece)

    def breaks(self) -> bool:
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def close(self):
        self.listener.close()


def receive(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""


def parts(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.part"))


def test_both_ways_go_on_when_connections_break(server, tmp_path):
    content = some_bytes(6 * MIB + 11)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    way = Breaking(server, up=2 * MIB + 1_000, down=3 * MIB // 2, times=2)
    done = server.sluice("attach", "put", "k", "f", "--server", way.url)
    assert done.stdout.startswith("created, version 1") and way.left <= 0, done
    assert listed(server, "k")[0]["sha256"] == sha256(content)
    way.left = 3
    got = server.sluice("attach", "get", "k", "f", "-o", "copy", "--server", way.url)
    assert got.returncode == 0 and way.left <= 0, got
    assert (tmp_path / "copy").read_bytes() == content and parts(tmp_path) == []
    way.close()


def test_get_goes_on_behind_what_is_there(server, tmp_path):
    content = some_bytes(4 * MIB + 3)
    put(server, "k", "x")
    assert Answer(server, "PUT", raw("k", "f"), content).status == 201
    etag = listed(server, "k")[0]["etag"]

    def get(part: bytes) -> str:
        (tmp_path / f"copy.{etag}.part").write_bytes(part)
        (tmp_path / "copy").write_bytes(b"the one before")
        done = server.sluice("attach", "get", "k", "f", "-o", "copy")
        assert done.returncode == 0, done
        assert (tmp_path / "copy").read_bytes() == content and parts(tmp_path) == []
        return done.stderr

    assert "going on behind 3.0 MiB" in get(content[: 3 * MIB])
    assert "going on behind 4.0 MiB" in get(content)
    assert "beginning anew" in get(b"other bytes")
    assert "going on" not in get(content + b"more")
    # A part of another version stays, and counts for nothing.
    (tmp_path / "copy.1.part").write_bytes(b"other bytes")
    assert "going on" not in server.sluice("attach", "get", "k", "f", "-o", "copy").stderr
    assert parts(tmp_path) == ["copy.1.part"] and (tmp_path / "copy").read_bytes() == content


def test_get_writes_through_what_is_no_file(server, tmp_path):
    content = some_bytes(2 * MIB)
    put(server, "k", "x")
    assert Answer(server, "PUT", raw("k", "f"), content).status == 201
    (tmp_path / "file").write_bytes(b"the one before")
    (tmp_path / "link").symlink_to("file")
    assert server.sluice("attach", "get", "k", "f", "-o", "link").returncode == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == content
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as threads:
        reading = threads.submit((tmp_path / "pipe").read_bytes)
        done = server.sluice("attach", "get", "k", "f", "-o", "pipe")
        assert (done.returncode, done.stdout) == (0, "") and reading.result() == content
    assert (tmp_path / "pipe").is_fifo() and parts(tmp_path) == []


def test_what_has_come_stays_when_the_server_goes(server, tmp_path):
    content = some_bytes(5 * MIB)
    put(server, "k", "x")
    assert Answer(server, "PUT", raw("k", "f"), content).status == 201
    etag = listed(server, "k")[0]["etag"]
    way = Breaking(server, up=MIB, down=2 * MIB, times=1)

    def breaks() -> bool:
        # Nobody listens any more once the first connection has broken.
        way.close()
        return True

    way.breaks = breaks
    failed = server.sluice("attach", "get", "k", "f", "-o", "copy", "--server", way.url)
    assert failed.returncode != 0 and f"copy.{etag}.part" in failed.stderr, failed
    there = (tmp_path / f"copy.{etag}.part").read_bytes()
    assert 0 < len(there) < len(content) and content.startswith(there)
    assert not (tmp_path / "copy").exists()
    done = server.sluice("attach", "get", "k", "f", "-o", "copy")
    assert done.returncode == 0 and "going on behind" in done.stderr, done
    assert (tmp_path / "copy").read_bytes() == content


def test_attachments_come_and_go_with_the_commit(server, tmp_path):
    put(server, "k", "x")
    (tmp_path / "f").write_bytes(b"of the transaction")
    assert Answer(server, "PUT", raw("k", "old"), b"x").status == 201
    begun = server.sluice("txn", "begin").stdout.strip()
    staged = server.sluice("attach", "put", "k", "f", "--type", "a/b", "--transaction", begun)
    assert (staged.returncode, staged.stdout) == (0, "staged\n"), staged
    staged = server.sluice("attach", "delete", "k", "old", "--transaction", begun)
    assert (staged.returncode, staged.stdout) == (0, "staged\n"), staged
    assert [one["name"] for one in listed(server, "k")] == ["old"]
    assert server.sluice("txn", "commit", "--transaction", begun).returncode == 0
    [one] = listed(server, "k")
    assert (one["name"], one["content_type"], one["sha256"]) == ("f", "a/b", sha256(b"of the transaction"))
    begun = server.sluice("txn", "begin").stdout.strip()
    assert server.sluice("attach", "put", "k", "f", "--name", "g", "--transaction", begun).returncode == 0
    assert server.sluice("txn", "rollback", "--transaction", begun).returncode == 0
    assert [one["name"] for one in listed(server, "k")] == ["f"]


def uploads(server, key: str, name: str) -> list[dict]:
    return server.call("GET", of(key, f"/uploads?name={name}"))["uploads"]


def test_a_caller_that_goes_away_leaves_nothing(server):
    put(server, "k", "x")
    host, port = server.url.split("://")[1].split(":")
    with socket.create_connection((host, int(port))) as caller:
        head = f"PUT {raw('k', 'f')} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {9 * MIB}\r\n\r\n"
        caller.sendall(head.encode() + bytes(3 * MIB))
        until(lambda: any(one["bytes"] for one in uploads(server, "k", "f")), "some chunks have come")
    until(lambda: uploads(server, "k", "f") == [], "nothing is left of it")
    upload = begin(server, "k", "f")
    assert append(server, "k", upload, 0, b"kept")[0] == 204
    assert uploads(server, "k", "f")[0]["bytes"] == 4, "an upload with an id waits for who goes on with it"


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="needs curl")
def test_an_upload_goes_as_the_page_tells_it(server, tmp_path):
    page = (ROOT / "docs/attachments.md").read_text()
    section = page.split("\n## Uploads\n")[1].split("\n## ")[0]
    commands = [
        command.replace("localhost:7070", server.url)
        for block in re.findall(r"```console\n(.*?)```", section, flags=re.S)
        for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, flags=re.M)
    ]
    content = some_bytes(2_500_000)
    (tmp_path / "video.mp4").write_bytes(content)
    put(server, "orders/17", "x")

    def run(script: str) -> str:
        done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        return done.stdout

    upload = json.loads(run(commands[0]))["upload"]
    assert commands[1].startswith("U=")
    told = run("\n".join([f"U={upload}", *commands[2:]]))
    assert told.count('"error"') == 1 and '"upload_offset"' in told and '"expected":1048576' in told, told
    [one] = listed(server, "orders/17")
    assert (one["name"], one["sha256"], one["content_type"]) == ("video.mp4", sha256(content), "video/mp4")
