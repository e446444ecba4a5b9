"""`sluice attach`: the files it writes, what a refused upload leaves, and which upload is gone on with."""

import json
import os
import pathlib
import re
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import binary, strace_is_missing, until
from documents import delete, get, put
from test_attachments import MIB, Answer, append, begin, listed, raw, send, sha256, some_bytes
from test_attachments_use import Breaking, parts, uploads

NOBODY = "http://127.0.0.1:1"


class Watched(Breaking):
    """A way to the server on which something is done before the first chunk comes."""

    def __init__(self, server, do):
        self.do = [do]
        super().__init__(server, up=1 << 40, down=1 << 40, times=0)

    def pass_on(self, piece: bytes, sink):
        if piece.startswith(b"PATCH ") and self.do:
            self.do.pop()()
        super().pass_on(piece, sink)


def attached(server, content: bytes) -> str:
    """ETag of an attachment `f` of a document `k`."""
    put(server, "k", "x")
    assert Answer(server, "PUT", raw("k", "f"), content).status == 201
    return listed(server, "k")[0]["etag"]


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def link(part: pathlib.Path, other: pathlib.Path):
    part.symlink_to(other)


def hard_link(part: pathlib.Path, other: pathlib.Path):
    part.hardlink_to(other)


def pipe(part: pathlib.Path, _: pathlib.Path):
    os.mkfifo(part)


@pytest.mark.parametrize("plant", [link, hard_link, pipe])
def test_a_part_that_is_no_file_of_its_own_is_refused(server, tmp_path, plant):
    etag = attached(server, b"from the server")
    (tmp_path / "other").write_bytes(b"of another")
    part = tmp_path / f"copy.{etag}.part"
    plant(part, tmp_path / "other")
    refused = server.sluice("attach", "get", "k", "f", "-o", "copy")
    assert refused.returncode == 2 and part.name in refused.stderr and "Remove it" in refused.stderr, refused
    assert (tmp_path / "other").read_bytes() == b"of another"
    assert os.path.lexists(part) and not (tmp_path / "copy").exists()
    part.unlink()
    assert server.sluice("attach", "get", "k", "f", "-o", "copy").returncode == 0
    assert (tmp_path / "copy").read_bytes() == b"from the server"


def test_what_is_written_through_stays_until_an_answer_comes(server, tmp_path):
    attached(server, b"from the server")
    (tmp_path / "file").write_bytes(b"the one before")
    (tmp_path / "link").symlink_to("file")
    refused = server.sluice("attach", "get", "k", "missing", "-o", "link")
    assert refused.returncode == 3, refused
    failed = server.sluice("attach", "get", "k", "f", "-o", "link", "--server", NOBODY)
    assert failed.returncode == 7, failed
    assert (tmp_path / "file").read_bytes() == b"the one before"
    os.mkfifo(tmp_path / "pipe")
    assert server.sluice("attach", "get", "k", "missing", "-o", "pipe").returncode == 3, "nobody reads the pipe"
    (tmp_path / "folder").mkdir()
    refused = server.sluice("attach", "get", "k", "f", "-o", "folder")
    assert refused.returncode == 2 and "is a directory: give the path of a file" in refused.stderr, refused


def test_a_file_that_is_replaced_keeps_its_mode(server, tmp_path):
    etag = attached(server, b"from the server")
    copy, part = tmp_path / "copy", tmp_path / f"copy.{etag}.part"
    for kept in (0o600, 0o640, 0o755):
        copy.write_bytes(b"the one before")
        copy.chmod(kept)
        # Of a call before, when others could read the file.
        part.write_bytes(b"from")
        part.chmod(0o666)
        assert server.sluice("attach", "get", "k", "f", "-o", "copy").returncode == 0
        assert (mode(copy), copy.read_bytes()) == (kept, b"from the server")
    copy.unlink()
    before = os.umask(0o027)
    try:
        assert server.sluice("attach", "get", "k", "f", "-o", "copy").returncode == 0
    finally:
        os.umask(before)
    assert mode(copy) == 0o640


def test_a_hyphen_is_stdout(server, tmp_path):
    content = some_bytes(MIB + 1)
    attached(server, content)
    command = [binary(), "attach", "get", "k", "f", "-o", "-", "--server", server.url]
    got = subprocess.run(command, capture_output=True, cwd=tmp_path, env=server.env)
    assert (got.returncode, got.stdout == content, got.stderr) == (0, True, b"")
    assert not (tmp_path / "-").exists() and parts(tmp_path) == []


@pytest.mark.skipif(strace_is_missing() != "", reason=strace_is_missing())
def test_a_file_is_on_disk_before_it_has_its_name_and_the_name_before_the_end(server, tmp_path):
    attached(server, b"from the server")
    server.env["SLUICE_SERVER"] = server.url
    calls = ["strace", "-f", "-y", "-o", "trace", "-e", "trace=write,fsync,rename,renameat,renameat2"]
    command = [*calls, binary(), "attach", "get", "k", "f", "-o", str(tmp_path / "copy")]
    assert subprocess.run(command, cwd=tmp_path, env=server.env, capture_output=True).returncode == 0
    trace = (tmp_path / "trace").read_text()
    folder = re.escape(str(tmp_path))
    order = [rf'write\(\d+<{folder}/copy\.\d+\.part>, "from the server"', rf"fsync\(\d+<{folder}/copy\.\d+\.part>\)"]
    order += [rf'rename\w*\(.*copy\.\d+\.part".*{folder}/copy"\) += 0', rf"fsync\(\d+<{folder}>\) += 0"]
    assert re.search(".*".join(order), trace, re.DOTALL), trace


def test_a_refused_put_leaves_nothing(server, tmp_path):
    (tmp_path / "f").write_bytes(b"content")
    put(server, "k", "x")
    refused = server.sluice("attach", "put", "k", "f", "--token", "0" * 32)
    assert refused.returncode == 4 and uploads(server, "k", "f") == [], refused
    gone = server.sluice("attach", "put", "k", "f", "--transaction", "0" * 40)
    assert gone.returncode != 0 and uploads(server, "k", "f") == [], gone


@pytest.mark.parametrize("resumed", [False, True])
def test_an_upload_that_another_fills_is_left_to_it(server, tmp_path, resumed):
    content = some_bytes(4 * MIB)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    if resumed:
        begun(server, content[:MIB])

    def fill():
        [one] = uploads(server, "k", "f")
        assert append(server, "k", one["upload"], one["bytes"], content[one["bytes"] :][:5])[0] == 204

    way = Watched(server, fill)
    flags = ["--resume"] if resumed else []
    refused = server.sluice("--json", "attach", "put", "k", "f", *flags, "--server", way.url)
    way.close()
    told = json.loads(refused.stderr)["error"]
    assert (refused.returncode, told["code"]) == (4, "upload_offset"), refused
    assert "Another call" in told["hints"][0] and "--resume" not in refused.stderr
    [one] = uploads(server, "k", "f")
    assert one["bytes"] == 5 + resumed * MIB, "it is there for the other"
    done = server.sluice("attach", "put", "k", "f", "--resume")
    assert done.returncode == 0 and listed(server, "k")[0]["sha256"] == sha256(content), done


def test_puts_at_once_do_not_end_one_another(server, tmp_path):
    content = some_bytes(24 * MIB)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    with ThreadPoolExecutor() as threads:
        ways = [threads.submit(server.sluice, "attach", "put", "k", "f")]
        until(lambda: any(one["bytes"] for one in uploads(server, "k", "f")), "a chunk has come")
        ways += [threads.submit(server.sluice, "attach", "put", "k", "f", "--resume") for _ in range(2)]
        done = [way.result() for way in ways]
    assert any(one.returncode == 0 for one in done), done
    assert all(one.returncode in (0, 3, 4) for one in done), done
    assert listed(server, "k")[0]["sha256"] == sha256(content)


def test_a_resume_that_is_refused_ends_no_upload_of_another(server, tmp_path):
    content = some_bytes(2 * MIB)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    begun(server, content[:MIB])
    refused = server.sluice("attach", "put", "k", "f", "--resume", "--token", "0" * 32)
    assert refused.returncode == 4 and [one["bytes"] for one in uploads(server, "k", "f")] == [2 * MIB], refused


def test_an_upload_that_is_staged_is_passed_over(server, tmp_path):
    content = some_bytes(MIB + 1)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    opened = server.sluice("txn", "begin", "--ttl", "60s").stdout.strip()
    assert server.sluice("attach", "put", "k", "f", "--transaction", opened).stdout == "staged\n"
    done = server.sluice("attach", "put", "k", "f", "--resume")
    assert done.stdout.startswith("created, version 1") and "beginning anew" in done.stderr, done
    assert server.sluice("txn", "commit", "--transaction", opened).stdout.startswith("written version 2")
    assert listed(server, "k")[0]["sha256"] == sha256(content) and uploads(server, "k", "f") == []


def test_a_put_for_which_there_is_no_room_leaves_nothing(server, tmp_path):
    content = some_bytes(3 * MIB)
    (tmp_path / "f").write_bytes(content)
    namespace = ("--namespace", "small")
    server.sluice("namespace", "create", "small", "--bytes", "2MiB")
    assert server.sluice("doc", "put", "k", "/dev/null", *namespace).returncode == 0
    refused = server.sluice("--json", "attach", "put", "k", "f", *namespace)
    told = json.loads(refused.stderr)["error"]
    assert (refused.returncode, told["code"], "hints" in told) == (6, "quota_exceeded", False), refused
    uploads_of = "/v1/namespaces/small/documents/k/uploads?name=f"
    assert server.call("GET", uploads_of)["uploads"] == []
    unreached = server.sluice("--json", "attach", "put", "k", "f", "--transaction", "0" * 32, "--server", NOBODY)
    assert "hints" in json.loads(unreached.stderr)["error"] and "--resume" not in unreached.stderr


def test_a_file_that_gets_shorter_is_told(server, tmp_path):
    content = some_bytes(6 * MIB)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    way = Watched(server, lambda: os.truncate(tmp_path / "f", 3 * MIB + 1))
    failed = server.sluice("attach", "put", "k", "f", "--server", way.url)
    way.close()
    assert failed.returncode == 1 and f"had {6 * MIB} bytes at first, and {3 * MIB + 1} came" in failed.stderr, failed
    assert listed(server, "k") == [] and uploads(server, "k", "f") == []


def test_bytes_are_not_sent_in_vain(server, tmp_path):
    (tmp_path / "f").write_bytes(b"content")

    def refused(*flags: str) -> tuple[int, str]:
        # Whoever began to read this would wait for ever.
        command = [binary(), "--json", "attach", "put", "k", "-", "--name", "f", *flags, "--server", server.url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=server.env) as putting:
            try:
                putting.wait(20)
            finally:
                putting.kill()
            return putting.returncode, json.loads(putting.stderr.read())["error"]["code"]

    assert refused() == (3, "document_not_found")
    put(server, "k", "x")
    assert refused("--if-version", "1") == (4, "version_mismatch")
    assert refused("--if-etag", "1") == (4, "version_mismatch")
    assert server.sluice("attach", "put", "k", "f", "--if-absent").returncode == 0
    etag = listed(server, "k")[0]["etag"]
    assert refused("--if-absent") == (4, "version_mismatch")
    assert refused("--if-version", "2") == (4, "version_mismatch")
    assert refused("--if-version", "1", "--if-etag", "1") == (4, "version_mismatch")
    done = server.sluice("attach", "put", "k", "f", "--if-version", "1", "--if-etag", etag)
    assert done.stdout.startswith("changed, version 2"), done
    # What is told before is what the commit tells.
    early = server.sluice("--json", "attach", "put", "k", "f", "--if-version", "1")
    upload = begin(server, "k", "f")
    body = json.dumps({"name": "f", "upload": upload, "if_version": 1}).encode()
    _, late = server.request("POST", "/v1/documents/k/uploads/commit", body, {"Content-Type": "application/json"})
    assert json.loads(early.stderr) == json.loads(late), early


def test_a_document_of_the_same_transaction_need_not_be_there(server, tmp_path):
    (tmp_path / "f").write_bytes(b"content")
    opened = server.sluice("txn", "begin").stdout.strip()
    for verb in (("doc", "put", "k", "f"), ("attach", "put", "k", "f")):
        assert server.sluice(*verb, "--transaction", opened).stdout == "staged\n"
    assert server.sluice("txn", "commit", "--transaction", opened).returncode == 0
    assert listed(server, "k")[0]["sha256"] == sha256(b"content")


def test_what_is_wrong_here_is_told_before_the_server_is_asked(server, tmp_path):
    missing = server.sluice("attach", "put", "k", "missing", "--server", NOBODY)
    assert missing.returncode == 2 and "cannot read missing" in missing.stderr, missing
    os.mkfifo(tmp_path / "pipe")
    holder = os.open(tmp_path / "pipe", os.O_RDWR)
    for file in ("-", "pipe"):
        refused = server.sluice("attach", "put", "k", file, "--name", "f", "--resume", "--server", NOBODY)
        assert refused.returncode == 2 and "cannot be read again" in refused.stderr, refused
    os.close(holder)


def begun(server, content: bytes, **fields) -> str:
    upload = begin(server, "k", "f", **fields)
    send(server, "k", upload, content)
    return upload


def test_the_longest_upload_that_has_the_bytes_of_the_file_is_gone_on_with(server, tmp_path):
    content = some_bytes(4 * MIB)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    begun(server, content + b"more")
    begun(server, some_bytes(3 * MIB + 1, seed=2))
    begun(server, content[:MIB])
    begun(server, content[: 2 * MIB], content_type="a/b")
    begun(server, content[: MIB + 5])
    begin(server, "k", "f")
    done = server.sluice("attach", "put", "k", "f", "--resume")
    assert done.returncode == 0 and "going on behind 2.0 MiB" in done.stderr, done
    assert (listed(server, "k")[0]["sha256"], listed(server, "k")[0]["content_type"]) == (sha256(content), "a/b")
    assert [one["bytes"] for one in uploads(server, "k", "f")] == [4 * MIB + 4, 3 * MIB + 1, MIB, MIB + 5, 0]


def test_without_an_upload_of_its_bytes_a_put_begins_anew(server, tmp_path):
    (tmp_path / "f").write_bytes(b"content")
    put(server, "k", "x")
    done = server.sluice("attach", "put", "k", "f", "--resume", "--type", "a/b")
    assert done.returncode == 0 and "beginning anew" in done.stderr, done
    begun(server, b"other")
    (tmp_path / "f").write_bytes(b"contents")
    done = server.sluice("attach", "put", "k", "f", "--resume", "--type", "c/d")
    assert done.returncode == 0 and "beginning anew" in done.stderr, done
    [one] = listed(server, "k")
    assert (one["sha256"], one["content_type"]) == (sha256(b"contents"), "c/d")


def test_the_type_of_an_upload_is_not_lost_silently(server, tmp_path):
    (tmp_path / "f").write_bytes(b"content")
    put(server, "k", "x")
    upload = begun(server, b"con", content_type="a/b")
    refused = server.sluice("attach", "put", "k", "f", "--resume", "--type", "c/d")
    assert refused.returncode == 2 and "--type" in refused.stderr, refused
    assert listed(server, "k") == [] and uploads(server, "k", "f")[0]["upload"] == upload
    assert server.sluice("attach", "put", "k", "f", "--resume").returncode == 0
    assert listed(server, "k")[0]["content_type"] == "a/b"


def test_an_interrupted_put_is_kept(server, tmp_path):
    content = some_bytes(3 * MIB)
    (tmp_path / "f").write_bytes(content)
    put(server, "k", "x")
    os.mkfifo(tmp_path / "pipe")
    command = [binary(), "attach", "put", "k", "pipe", "--name", "f", "--server", server.url]
    with subprocess.Popen(command, cwd=tmp_path, env=server.env) as putting:
        with (tmp_path / "pipe").open("wb") as writer:
            writer.write(content[: 2 * MIB])
            until(lambda: any(one["bytes"] for one in uploads(server, "k", "f")), "a chunk has come")
            putting.kill()
            putting.wait()
    done = server.sluice("attach", "put", "k", "f", "--resume")
    assert done.returncode == 0 and "going on behind" in done.stderr, done
    assert listed(server, "k")[0]["sha256"] == sha256(content) and uploads(server, "k", "f") == []


def test_a_transaction_says_what_it_has_created(server, tmp_path):
    put(server, "there", "x")
    put(server, "gone", "x")
    delete(server, "gone")
    keys = ["new", "there", "gone"]
    operations = {"operations": [{"put": {"key": key, "content": "y"}} for key in keys]}
    (tmp_path / "operations").write_text(json.dumps(operations))
    done = server.sluice("--json", "txn", "commit", "operations")
    assert done.returncode == 0, done
    written = [one["written"] for one in json.loads(done.stdout)["results"]]
    assert [(one["version"], one["created"]) for one in written] == [(1, True), (2, False), (1, True)]
    assert get(server, "new")["version"] == 1
