"""nghttp and h2load, of nghttp2."""

import collections
import re

import pytest

from conftest import PATTERN, PIECES, UPLOADED, finish, need, run, start


@pytest.fixture(scope="module")
def nghttp(stack):
    return [need("nghttp"), "--timeout=30", "--no-verify-peer"]


@pytest.fixture
def upload(tmp_path):
    """A file to send."""
    file = tmp_path / "upload"
    file.write_bytes(PATTERN)
    return f"--data={file}"


def test_requests(nghttp, stack):
    for size in (0, 3, 300_000):
        assert run(*nghttp, f"{stack.url}/size/{size}") == PATTERN[:size]
    assert run(*nghttp, "--no-dep", f"{stack.url}/pieces/3") == PIECES[: 3 * 8_192]


def test_bodies_are_streamed_both_ways(nghttp, stack, upload):
    assert run(*nghttp, upload, f"{stack.url}/echo") == PATTERN
    assert run(*nghttp, f"{stack.url}/pieces/64") == PIECES


def test_trailers_both_ways(nghttp, stack, upload):
    told = run(*nghttp, upload, "--trailer=checksum: 1", f"{stack.url}/upload").decode()
    assert told == UPLOADED.format(len(PATTERN), 'checksum="1"')
    assert "grpc-status: 0" in run(*nghttp, "-v", f"{stack.url}/trailers").decode()


def test_an_upload_that_waits_for_100_continue(nghttp, stack, upload):
    told = run(*nghttp, "-v", "--expect-continue", upload, f"{stack.url}/upload").decode()
    assert told.index(":status: 100") < told.index(":status: 200"), told


def test_a_window_that_opens_16_kib_at_a_time(nghttp, stack):
    told = run(*nghttp, "--window-bits=14", "--connection-window-bits=16", f"{stack.url}/size/1000000")
    assert told == PATTERN[:1_000_000]


def test_forty_downloads_on_four_connections(nghttp, stack):
    addresses = [f"{stack.url}/size/262144?{number}" for number in range(10)]
    for connection in [start(*nghttp, *addresses) for _ in range(4)]:
        # They come at once, and so does what is printed.
        assert collections.Counter(finish(connection)) == collections.Counter(PATTERN[:262_144] * 10)


def test_h2load(stack):
    for path, count, size in (("size/262144", 40, 262_144), ("size/3", 4_000, 3)):
        told = run(need("h2load"), f"-n{count}", "-c4", "-m10", f"{stack.url}/{path}").decode()
        assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in told, told
        assert f"({count * size}) data" in re.sub(r"\s+", " ", told), told


def test_h2load_with_small_windows_and_bodies(stack, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(PATTERN[:50_000])
    told = run(need("h2load"), "-n200", "-c4", "-m10", "-w14", "-W16", f"-d{body}", f"{stack.url}/echo").decode()
    assert "200 succeeded, 0 failed, 0 errored, 0 timeout" in told, told
    assert f"({200 * 50_000}) data" in told, told
