"""curl."""

import pytest

from conftest import PATTERN, PIECES, UPLOADED, finish, need, run, start


@pytest.fixture(scope="module")
def curl(stack):
    return [need("curl"), "--silent", "--show-error", "--max-time", "30", "--http2", "--cacert", stack.ca]


def test_requests(curl, stack):
    for size in (0, 1, 16_384, 300_000):
        assert run(*curl, f"{stack.url}/size/{size}") == PATTERN[:size]
    told = run(*curl, "--write-out", "%{http_version} %{http_code}", "--head", f"{stack.url}/size/1000").decode()
    assert "content-length: 1000\r\n" in told and told.endswith("2 200"), told
    told = run(*curl, "-X", "PURGE", "-H", "X-One: 1", "-H", "Cookie: a=1; b=2", f"{stack.url}/head?a=b").decode()
    assert told.startswith(f"PURGE {stack.url}/head?a=b ") and 'cookie="a=1; b=2"' in told and 'x-one="1"' in told


def test_bodies_are_streamed_both_ways(curl, stack):
    assert run(*curl, "--upload-file", "-", f"{stack.url}/echo", stdin=PATTERN) == PATTERN
    assert run(*curl, f"{stack.url}/pieces/64") == PIECES
    told = run(*curl, "--upload-file", "-", f"{stack.url}/sip", stdin=PATTERN).decode()
    assert told == UPLOADED.format(len(PATTERN), "")


def test_an_upload_with_an_expectation(curl, stack):
    # Over HTTP/2 curl does not wait, so that 100 (Continue) may be too late to be said.
    options = ["-H", "Expect: 100-continue", "--dump-header", "-"]
    told = run(*curl, *options, "--upload-file", "-", f"{stack.url}/upload", stdin=PATTERN[:100_000]).decode()
    assert told.removeprefix("HTTP/2 100 \r\n\r\n").startswith("HTTP/2 200 \r\n"), told
    assert told.endswith(UPLOADED.format(100_000, ""))


def test_trailers(curl, stack):
    told = run(*curl, "--dump-header", "-", f"{stack.url}/trailers").decode()
    assert "grpc-status: 0" in told and "body" in told


def test_forty_downloads_on_four_connections(curl, stack, tmp_path):
    transfers = []
    for connection in range(4):
        options = ["--parallel", "--parallel-max", "10", "--output", tmp_path / f"{connection}-#1"]
        transfers.append(start(*curl, *options, f"{stack.url}/size/262144?[1-10]"))
    for transfer in transfers:
        finish(transfer)
    files = list(tmp_path.iterdir())
    assert len(files) == 40 and all(file.read_bytes() == PATTERN[:262_144] for file in files)


def test_a_slow_reader(curl, stack):
    assert run(*curl, "--limit-rate", "400K", f"{stack.url}/size/600000") == PATTERN[:600_000]
