"""`sluice serve` itself, with clients in good faith and in bad: h2, every frame in the test's own hands, and curl."""

import contextlib
import json

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from conftest import PATTERN, begin_to_serve, ended, need, run
from raw import Raw, flood_of_continuations

KIB = 1_024


@pytest.fixture
def connect(server):
    """Opens connections, which end with the test."""
    with contextlib.ExitStack() as opened:
        yield lambda **options: opened.enter_context(contextlib.closing(Raw(server, **options)))


def send(connection: Raw, queue: str, payload: bytes) -> str:
    answer = connection.ask(f"/v1/queues/{queue}/messages/raw", payload)
    assert answer.status == 201, answer
    return json.loads(bytes(answer.body))["id"]


def receive(connection: Raw, queue: str, wait_ms: int = 0) -> int:
    """Asks for a message; its stream."""
    return connection.begin(f"/v1/queues/{queue}/receive/raw?wait_ms={wait_ms}", method="POST")


def test_forty_payloads_on_four_connections(connect):
    connections = [connect() for _ in range(4)]
    payloads = [PATTERN[number : number + 256 * KIB] for number in range(40)]
    for number, payload in enumerate(payloads):
        send(connections[number % 4], "downloads", payload)
    begun = [(each, receive(each, "downloads")) for each in connections for _ in range(10)]
    got = [bytes(connection.wait(stream).body) for connection, stream in begun]
    assert sorted(got) == sorted(payloads)


def test_a_window_that_opens_16_kib_at_a_time(connect):
    connection = connect(credit=False, settings={SettingCodes.INITIAL_WINDOW_SIZE: 16 * KIB})
    payload = PATTERN[: 1_000 * KIB]
    send(connection, "windows", payload)
    stream = receive(connection, "windows")
    connection.open_by(16 * KIB, stream)
    assert connection.answers[stream].body == payload


def test_a_payload_byte_by_byte_and_one_that_waits_for_100_continue(connect):
    connection = connect()
    stream = connection.begin("/v1/queues/slow/messages/raw", method="POST", end=False)
    for at in range(300):
        connection.send(stream, PATTERN[at : at + 1])
    connection.end(stream)
    assert connection.wait(stream).status == 201
    more = [("expect", "100-continue"), ("content-length", "1000")]
    stream = connection.begin("/v1/queues/slow/messages/raw", method="POST", end=False, more=more)
    connection.until(lambda: connection.answers[stream].interim == [100])
    connection.send(stream, PATTERN[:1_000], end=True)
    assert connection.wait(stream).status == 201
    for size in (300, 1_000):
        assert connection.wait(receive(connection, "slow")).body == PATTERN[:size]


def test_a_payload_that_is_too_large_ends_its_stream_alone(connect):
    connection = connect()
    waits = receive(connection, "beside", wait_ms=20_000)
    stream = connection.begin("/v1/queues/large/messages/raw", method="POST", end=False)
    connection.send(stream, PATTERN * 20, end=True)
    assert connection.wait(stream).status == 413
    send(connection, "beside", b"on it goes")
    assert connection.wait(waits).body == b"on it goes"


def test_two_hundred_receives_are_reset_and_take_nothing_with_them(connect):
    connection = connect()
    for _ in range(200):
        connection.h2.reset_stream(receive(connection, "resets", wait_ms=20_000), ErrorCodes.CANCEL)
        connection.flush()
    send(connection, "resets", b"the first")
    answer = connection.wait(receive(connection, "resets", wait_ms=20_000))
    assert (answer.body, answer.headers["sluice-attempt"]) == (b"the first", "1")


def test_two_thousand_continuation_frames_end_their_connection_alone(connect):
    other = connect()
    waits = receive(other, "floods", wait_ms=20_000)
    assert flood_of_continuations(connect()) == ErrorCodes.ENHANCE_YOUR_CALM
    send(connect(), "floods", b"undisturbed")
    assert other.wait(waits).body == b"undisturbed"


def test_malformed_requests_end_their_streams_alone(connect):
    connection = connect()
    waits = receive(connection, "malformed", wait_ms=20_000)
    fields = [("Upper", "case"), ("transfer-encoding", "chunked"), ("content-length", "1"), ("host", "other")]
    for wrong in [[field] for field in fields]:
        answer = connection.wait(connection.begin("/v1/status", more=wrong))
        assert (answer.status, answer.reset) == (0, ErrorCodes.PROTOCOL_ERROR), wrong
    send(connection, "malformed", b"on it goes")
    assert connection.wait(waits).body == b"on it goes"


def test_events_come_as_they_happen(connect):
    connection = connect()
    send(connection, "watched", b"makes the queue")
    stream = connection.begin("/v1/queues/watched/events?types=sent")
    connection.until(lambda: connection.answers[stream].status == 200)
    for number in range(1, 6):
        send(connection, "watched", b"an event")
        connection.until(lambda: connection.answers[stream].body.count(b"event: sent") == number)
    connection.h2.reset_stream(stream, ErrorCodes.CANCEL)
    connection.flush()
    assert connection.ask("/v1/status").status == 200


CURL = ["curl", "--silent", "--show-error", "--fail", "--max-time", "30"]


def exchange(curl: list[str], url: str, version: str, told: bytes):
    """Sends a payload and receives it."""
    sends = ["--write-out", "\n%{http_version}", "--data-binary", "@-", f"{url}/v1/queues/curl/messages/raw"]
    answer = run(*curl, version, *sends, stdin=PATTERN[:100_000])
    assert answer.rsplit(b"\n", 1)[1] == told
    assert run(*curl, version, "-X", "POST", f"{url}/v1/queues/curl/receive/raw") == PATTERN[:100_000]


def test_curl_speaks_either_version(server):
    need("curl")
    for version, told in [("--http1.1", b"1.1"), ("--http2", b"2")]:
        exchange([*CURL, "--cacert", server.ca], server.url, version, told)


def test_curl_speaks_either_version_in_clear_text(tmp_path):
    need("curl")
    process, port = begin_to_serve(tmp_path)
    with ended(process):
        # An upgrade is offered, and passed over.
        versions = {"--http1.0": b"1", "--http1.1": b"1.1", "--http2": b"1.1", "--http2-prior-knowledge": b"2"}
        for version, told in versions.items():
            exchange(CURL, f"http://127.0.0.1:{port}", version, told)
