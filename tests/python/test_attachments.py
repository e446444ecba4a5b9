"""Attachments: what goes in comes out, in ranges too, after crashes, failovers and restores."""

import base64
import hashlib
import http.client
import json
import pathlib
import random
import re
import threading

from conftest import until
from documents import acquire, delete, error, of, put
from test_cluster_join import begun, joined, machines  # noqa: F401
from test_transactions_open_kept import answered, leader_of_first_shard

MIB = 1 << 20


def some_bytes(count: int, seed=1) -> bytes:
    return random.Random(seed).randbytes(count)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def begin(server, key: str, name: str, **fields) -> str:
    return server.call("POST", of(key, "/uploads"), {"name": name, **fields})["upload"]


def append(server, key: str, upload: str, offset: int, content: bytes) -> tuple[int, bytes]:
    headers = {"Upload-Offset": str(offset), "Content-Type": "application/octet-stream"}
    return server.request("PATCH", of(key, f"/uploads/raw?upload={upload}"), content, headers)


def send(server, key: str, upload: str, content: bytes, offset=0, chunk=MIB):
    while offset < len(content):
        status, answer = append(server, key, upload, offset, content[offset : offset + chunk])
        assert status == 204, answer
        offset += chunk


def commit(server, key: str, name: str, upload: str, **fields) -> dict:
    return server.call("POST", of(key, "/uploads/commit"), {"name": name, "upload": upload, **fields})


def attach(server, key: str, name: str, content: bytes, **fields) -> dict:
    """Through an upload."""
    upload = begin(server, key, name, **fields)
    send(server, key, upload, content)
    return commit(server, key, name, upload, bytes=len(content), sha256=sha256(content))


def raw(key: str, name: str) -> str:
    return of(key, f"/attachments/raw?name={name}")


class Answer:
    """A request whose body may be sent as it comes, and its answer."""

    def __init__(self, server, method: str, path: str, body=None, **headers):
        connection = http.client.HTTPConnection(server.url.split("://")[1], timeout=120)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        connection.close()


def listed(server, key: str) -> list[dict]:
    return server.call("GET", of(key, "/attachments"))["attachments"]


def memory_peak(server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


def on_disk(server) -> int:
    files = (server.directory / "data").rglob("*")
    return sum(size(path) for path in files)


def size(path):
    """Bytes of a file; none of a directory, or of a file that is removed meanwhile."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def test_what_was_uploaded_comes_back(server):
    content = some_bytes(2 * MIB + 12_345)
    put(server, "k", "x")
    upload = begin(server, "k", "a b", content_type="video/mp4")
    assert append(server, "k", upload, 0, content[:1000])[0] == 204
    assert append(server, "k", upload, 0, content[:1000])[0] == 204, "a repeat"
    status, refused = append(server, "k", upload, 1001, b"x")
    assert (status, json.loads(refused)["error"]["details"]["expected"]) == (409, 1000)
    [shown] = server.call("GET", of("k", f"/uploads?upload={upload}"))["uploads"]
    assert (shown["bytes"], shown["sha256"], shown["chunk_bytes_max"]) == (1000, sha256(content[:1000]), MIB)
    assert append(server, "k", upload, 1000, content[1000 : 1001 + MIB])[0] == 413
    send(server, "k", upload, content, 1000)
    assert listed(server, "k") == [], "nothing is visible before the commit"
    wrong = {"name": "a b", "upload": upload, "sha256": sha256(b"other")}
    assert error(server, "POST", of("k", "/uploads/commit"), wrong)["code"] == "digest_mismatch"
    wrong = {"name": "a b", "upload": upload, "bytes": 5}
    assert error(server, "POST", of("k", "/uploads/commit"), wrong)["code"] == "upload_incomplete"
    assert listed(server, "k") == []
    written = commit(server, "k", "a b", upload, sha256=sha256(content), if_absent=True)
    assert commit(server, "k", "a b", upload, sha256=sha256(content), if_absent=True) == written, "a repeat"
    [one] = listed(server, "k")
    assert one.items() >= {"name": "a b", "bytes": len(content), "sha256": sha256(content), "version": 1}.items()
    read = Answer(server, "GET", raw("k", "a%20b"))
    assert (read.status, read.body == content) == (200, True)
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    expected = {"Content-Type": "video/mp4", "ETag": f'"{one["etag"]}"', "Repr-Digest": f"sha-256=:{digest}:"}
    assert {name: read.headers[name] for name in expected} == expected
    assert int(read.headers["Content-Length"]) == len(content)
    head = Answer(server, "HEAD", raw("k", "a%20b"))
    assert (head.status, head.headers["Content-Length"], head.body) == (200, str(len(content)), b"")
    assert Answer(server, "GET", raw("k", "a%20b"), If_None_Match=read.headers["ETag"]).status == 304
    server.call("DELETE", of("k", "/attachments?name=a%20b"))
    assert Answer(server, "GET", raw("k", "a%20b")).status == 404


def test_ranges_are_slices(server):
    content = some_bytes(MIB + MIB // 2)
    put(server, "k", "x")
    upload = begin(server, "k", "f")
    send(server, "k", upload, content, chunk=300_001)
    commit(server, "k", "f", upload)
    chance = random.Random(3)
    for _ in range(40):
        first = chance.randrange(len(content))
        last = min(first + chance.choice([0, 1, 299_999, 300_001, 900_000]), len(content) - 1)
        read = Answer(server, "GET", raw("k", "f"), Range=f"bytes={first}-{last}")
        assert (read.status, read.body == content[first : last + 1]) == (206, True), (first, last)
        assert read.headers["Content-Range"] == f"bytes {first}-{last}/{len(content)}"
    assert Answer(server, "GET", raw("k", "f"), Range="bytes=-7").body == content[-7:]
    assert Answer(server, "GET", raw("k", "f"), Range=f"bytes={len(content) - 3}-").body == content[-3:]
    beyond = Answer(server, "GET", raw("k", "f"), Range=f"bytes={len(content)}-")
    assert (beyond.status, beyond.headers["Content-Range"]) == (416, f"bytes */{len(content)}")
    assert Answer(server, "GET", raw("k", "f"), Range="bytes=0-1", If_Range='"1"').status == 200
    part = server.call("GET", of("k", "/attachments/read?name=f&offset=300002"))
    assert base64.b64decode(part["content_base64"]) == content[300_002 : 2 * 300_001]


def test_one_request_attaches_a_body_of_any_length(server):
    put(server, "k", "x")
    content = some_bytes(5 * MIB + 1)
    put_by = {"Content_Type": "text/plain", "If_None_Match": "*"}
    assert Answer(server, "PUT", raw("k", "f"), content, **put_by).status == 201
    assert Answer(server, "PUT", raw("k", "f"), content, **put_by).status == 412
    pieces = (content[at : at + 77_777] for at in range(0, len(content), 77_777))
    chunked = Answer(server, "PUT", raw("k", "f"), pieces)
    assert (chunked.status, json.loads(chunked.body)["version"]) == (200, 2)
    assert Answer(server, "GET", raw("k", "f")).body == content
    digest = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    wrong = Answer(server, "PUT", raw("k", "f"), content, Repr_Digest=f"sha-256=:{digest}:")
    assert (wrong.status, json.loads(wrong.body)["error"]["code"]) == (409, "digest_mismatch")
    assert listed(server, "k")[0]["version"] == 2
    assert Answer(server, "PUT", raw("k", "empty"), b"").status == 201
    assert Answer(server, "GET", raw("k", "empty")).body == b""
    nowhere = Answer(server, "PUT", raw("none", "f"), b"x")
    assert (nowhere.status, json.loads(nowhere.body)["error"]["code"]) == (404, "document_not_found")
    assert server.call("GET", of("k", "/uploads?name=f"))["uploads"] == [], "nothing is left of what was refused"


def test_an_upload_goes_on_after_a_kill(server):
    content = some_bytes(6 * MIB + 5)
    put(server, "k", "x")
    upload = begin(server, "k", "f")
    reached = []

    def until_killed():
        for at in range(0, len(content), MIB):
            try:
                assert append(server, "k", upload, at, content[at : at + MIB])[0] == 204
            except OSError:
                return
            reached.append(at + MIB)

    sending = threading.Thread(target=until_killed)
    sending.start()
    until(lambda: len(reached) >= 3, "some chunks have come")
    server.kill()
    sending.join()
    server.start()
    [shown] = server.call("GET", of("k", "/uploads?name=f"))["uploads"]
    assert shown["upload"] == upload and shown["bytes"] >= reached[-1]
    assert shown["sha256"] == sha256(content[: shown["bytes"]])
    send(server, "k", upload, content, shown["bytes"])
    commit(server, "k", "f", upload, sha256=sha256(content))
    server.kill()
    server.start()
    assert Answer(server, "GET", raw("k", "f")).body == content


def test_they_go_with_their_document_and_their_bytes_are_reclaimed(server):
    put(server, "keep", "x")
    attach(server, "keep", "small", b"small")
    for number in range(3):
        put(server, f"k{number}", "x")
        assert Answer(server, "PUT", raw(f"k{number}", "f"), some_bytes(60 * MIB, number)).status == 201
    assert on_disk(server) > 370 * MIB
    for number in range(3):
        delete(server, f"k{number}")
        assert error(server, "GET", of(f"k{number}", "/attachments"))["code"] == "document_not_found"
    put(server, "k0", "again")
    assert listed(server, "k0") == []

    # A reserve of 64 MiB stays, and the segment that grows with those that are ready ahead.
    until(lambda: on_disk(server) < 270 * MIB, "the bytes are reclaimed")
    assert Answer(server, "GET", raw("keep", "small")).body == b"small"


def test_they_are_encrypted_and_in_a_backup(server, tmp_path):
    word = b"a word that must not be readable anywhere "
    content = word * 40_000
    put(server, "k", "x")
    attach(server, "k", "f", content)
    assert server.sluice("backup", "copy").returncode == 0
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()] + [tmp_path / "copy"]
    assert not [path for path in files if word in path.read_bytes()]
    server.kill()
    restored = server.sluice("restore", "copy", "restored", "--key-source", "file:data.key")
    assert restored.returncode == 0, restored.stderr
    (tmp_path / "data").rename(tmp_path / "original")
    (tmp_path / "restored").rename(tmp_path / "data")
    server.start()
    assert Answer(server, "GET", raw("k", "f")).body == content


def test_conditions_and_the_lock_of_the_document(server):
    put(server, "k", "x")
    first = attach(server, "k", "f", b"1")
    upload = begin(server, "k", "f")
    send(server, "k", upload, b"2")
    body = {"name": "f", "upload": upload}
    refused = [{"if_absent": True}, {"if_version": 2}, {"if_etag": "1"}, {"token": acquire(server, "other")}]
    for condition in refused:
        assert error(server, "POST", of("k", "/uploads/commit"), {**body, **condition})["status"] == 409
    token = acquire(server, "k")
    second = commit(server, "k", "f", upload, if_etag=first["etag"], token=token)
    assert second["version"] == 2 and int(second["etag"]) > int(first["etag"])
    assert error(server, "DELETE", of("k", "/attachments?name=f&if_version=1"))["code"] == "version_mismatch"


def test_memory_stays_bounded(server):
    server.stop()
    server.start("--cache", "16MiB")
    put(server, "k", "x")
    chunk = some_bytes(MIB)
    count, digest = 300, hashlib.sha256()
    for _ in range(count):
        digest.update(chunk)
    before = memory_peak(server)
    written = Answer(server, "PUT", raw("k", "f"), (chunk for _ in range(count)))
    assert written.status == 201, written.body
    assert listed(server, "k")[0]["sha256"] == digest.hexdigest()
    connection = http.client.HTTPConnection(server.url.split("://")[1], timeout=120)
    connection.request("GET", raw("k", "f"))
    answer, read = connection.getresponse(), hashlib.sha256()
    while piece := answer.read(MIB):
        read.update(piece)
    assert read.hexdigest() == digest.hexdigest()
    assert memory_peak(server) < before + 96 * MIB


def test_the_command_line_attaches_and_resumes(server, tmp_path):
    content = some_bytes(3 * MIB + 7)
    (tmp_path / "report.bin").write_bytes(content)
    put(server, "k", "x")
    done = server.sluice("attach", "put", "k", "report.bin", "--type", "a/b")
    assert done.stdout.startswith("created, version 1, etag "), done
    assert server.sluice("attach", "get", "k", "report.bin", "-o", "copy").returncode == 0
    assert (tmp_path / "copy").read_bytes() == content
    head, row = server.sluice("attach", "list", "k").stdout.splitlines()
    assert row.split()[0] == "report.bin" and row.split()[-1] == sha256(content)
    upload = begin(server, "k", "report.bin")
    send(server, "k", upload, content[: 2 * MIB])
    resumed = server.sluice("attach", "put", "k", "report.bin", "--resume")
    assert resumed.stdout.startswith("changed, version 2") and "going on behind 2.0 MiB" in resumed.stderr, resumed
    assert server.call("GET", of("k", "/uploads?name=report.bin"))["uploads"] == []
    upload = begin(server, "k", "report.bin")
    send(server, "k", upload, b"other bytes")
    anew = server.sluice("attach", "put", "k", "report.bin", "--resume")
    assert anew.stdout.startswith("changed, version 3") and "beginning anew" in anew.stderr, anew
    assert Answer(server, "GET", raw("k", "report.bin")).body == content
    assert server.sluice("attach", "delete", "k", "report.bin").stdout == "deleted report.bin\n"
    assert server.sluice("attach", "get", "k", "report.bin", "-o", "none").returncode == 3
    assert not (tmp_path / "none").exists() and not (tmp_path / "none.part").exists()
    assert server.sluice("attach", "put", "none", "report.bin").returncode == 3


def test_a_document_and_its_attachment_come_with_one_transaction(server):
    upload = begin(server, "k", "f")
    send(server, "k", upload, b"scan")
    attaching = {"attach": {"key": "k", "name": "f", "upload": upload, "sha256": sha256(b"scan")}}
    refused = error(server, "POST", "/v1/transactions", {"operations": [attaching]})
    assert refused["code"] == "document_not_found" and refused["message"].startswith("operations[0].attach: ")
    putting = {"put": {"key": "k", "content": "x", "if_absent": True}}
    done = server.call("POST", "/v1/transactions", {"operations": [attaching, putting]})
    assert done["results"][0]["written"]["version"] == 1
    assert Answer(server, "GET", raw("k", "f")).body == b"scan"
    wrong = [{"delete": {"key": "k"}}, {"delete_attachment": {"key": "k", "name": "f"}}]
    assert error(server, "POST", "/v1/transactions", {"operations": wrong})["code"] == "invalid_argument"
    upload = begin(server, "k", "g")
    send(server, "k", upload, b"other")
    staged = [{"attach": {"key": "k", "name": "g", "upload": upload}}, wrong[1]]
    path = f"/v1/transactions/{server.call('POST', '/v1/transactions/begin', {})['transaction']}"
    server.call("POST", f"{path}/operations", {"operations": staged})
    assert [one["name"] for one in listed(server, "k")] == ["f"]
    server.call("POST", f"{path}/commit", {})
    assert [one["name"] for one in listed(server, "k")] == ["g"]
    assert Answer(server, "GET", raw("k", "g")).body == b"other"


def test_an_upload_goes_on_under_another_leader(machines):  # noqa: F811
    nodes = [begun(machines)]
    nodes += [joined(machines, name, nodes[0]) for name in ("two", "three")]
    until(lambda: "voters=[1, 2, 3]" in (nodes[0].directory / "log").read_text(), "all nodes vote")
    leader = nodes[leader_of_first_shard(nodes[0]) - 1]
    one, other = [node for node in nodes if node is not leader]
    content = some_bytes(200_000)
    assert answered(one, "PUT", of("k"), {"content": "x"})[0] == 201
    upload = answered(one, "POST", of("k", "/uploads"), {"name": "f"})[1]["upload"]

    def chunk(node, first: int, last: int):
        body = {"upload": upload, "offset": first, "content_base64": base64.b64encode(content[first:last]).decode()}
        status, answer = answered(node, "POST", of("k", "/uploads/chunks"), body)
        assert (status, answer) == (200, {"bytes": last})

    chunk(one, 0, 70_000)
    chunk(other, 70_000, 100_001)
    leader.kill()
    chunk(one, 70_000, 100_001)
    chunk(other, 100_001, len(content))
    body = {"name": "f", "upload": upload, "sha256": sha256(content)}
    assert answered(one, "POST", of("k", "/uploads/commit"), body)[0] == 201
    status, part = answered(other, "GET", of("k", "/attachments/read?name=f&offset=70000"))
    assert status == 200 and base64.b64decode(part["content_base64"]) == content[70_000:100_001]
