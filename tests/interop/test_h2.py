"""Python's h2, where a test needs every frame in its own hands."""

import contextlib

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from conftest import PATTERN, PIECES, UPLOADED
from raw import Raw, flood_of_continuations

KIB = 1_024


@pytest.fixture
def connect(stack):
    """Opens connections, which end with the test."""
    with contextlib.ExitStack() as opened:
        yield lambda **options: opened.enter_context(contextlib.closing(Raw(stack, **options)))


def assert_serves(connection: Raw):
    assert connection.ask("/size/100000").body == PATTERN[:100_000]


def test_requests(connect):
    connection = connect()
    for size in (0, 1, 16_384, 300_000):
        answer = connection.ask(f"/size/{size}")
        assert (answer.status, answer.body) == (200, PATTERN[:size])
        assert not size or answer.headers["content-length"] == str(size)
    assert connection.wait(connection.begin("/size/1000", method="HEAD")).body == b""


def test_bodies_are_streamed_both_ways(connect):
    connection = connect()
    stream = connection.begin("/echo", method="POST", end=False)
    for piece in (b"one", b"two", PATTERN[:40_000]):
        before = len(connection.answers[stream].body)
        connection.send(stream, piece)
        connection.until(lambda: len(connection.answers[stream].body) == before + len(piece))
        assert connection.answers[stream].body[before:] == piece, "it comes back before more is sent"
    connection.end(stream)
    assert connection.wait(stream).ended
    assert connection.ask("/sip", PATTERN).body.decode() == UPLOADED.format(len(PATTERN), "")


def test_a_body_byte_by_byte(connect):
    connection = connect()
    stream = connection.begin("/upload", method="POST", end=False)
    for at in range(500):
        connection.h2.send_data(stream, PATTERN[at : at + 1], pad_length=at % 3 or None)
        connection.flush()
    connection.end(stream)
    assert connection.wait(stream).body.decode() == UPLOADED.format(500, "")


def test_trailers_both_ways(connect):
    connection = connect()
    assert connection.ask("/trailers").trailers == {"grpc-status": "0"}
    stream = connection.begin("/echo", method="POST", end=False)
    connection.send(stream, b"up")
    connection.h2.send_headers(stream, [("checksum", "1")], end_stream=True)
    connection.flush()
    answer = connection.wait(stream)
    assert (answer.body, answer.trailers) == (b"up", {"checksum": "1"})


def test_forty_downloads_on_four_connections(connect):
    connections = [connect() for _ in range(4)]
    streams = [[each.begin("/size/262144") for _ in range(10)] for each in connections]
    for connection, begun in zip(connections, streams):
        assert all(connection.wait(stream).body == PATTERN[: 256 * KIB] for stream in begun)


def test_a_window_that_opens_16_kib_at_a_time(connect):
    connection = connect(credit=False, settings={SettingCodes.INITIAL_WINDOW_SIZE: 16 * KIB})
    stream = connection.begin("/size/1000000")
    connection.open_by(16 * KIB, stream)
    assert connection.answers[stream].body == PATTERN[:1_000_000]


def test_a_window_that_shrinks_below_nothing_and_opens_again(connect):
    connection = connect(credit=False)
    stream = connection.begin("/size/200000")
    connection.until(lambda: len(connection.answers[stream].body) == 65_535)
    connection.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1_000})
    connection.h2.increment_flow_control_window(200_000)
    connection.h2.increment_flow_control_window(64_000, stream)
    connection.flush()
    connection.h2.ping(b"in order")
    connection.flush()
    connection.until(lambda: connection.pongs == 1)
    assert len(connection.answers[stream].body) == 65_535, "64,535 bytes less than nothing, and 64,000 more"
    connection.h2.increment_flow_control_window(200_000, stream)
    connection.flush()
    assert connection.wait(stream).body == PATTERN[:200_000]


def test_512_kib_as_64_pieces_in_order(connect):
    assert connect().ask("/pieces/64").body == PIECES


def test_two_hundred_streams_are_reset_and_the_next_is_served(connect):
    connection = connect()
    for _ in range(200):
        stream = connection.begin("/size/100000")
        connection.h2.reset_stream(stream, ErrorCodes.CANCEL)
        connection.flush()
    assert_serves(connection)


def test_two_thousand_continuation_frames_end_their_connection_alone(connect):
    other = connect()
    download = other.begin("/pieces/64")
    assert flood_of_continuations(connect()) == ErrorCodes.ENHANCE_YOUR_CALM
    assert other.wait(download).body == PIECES
    assert_serves(connect())


def test_malformed_requests_end_their_streams_alone(connect):
    connection = connect()
    download = connection.begin("/pieces/64")
    for wrong in ([("Upper", "case")], [("connection", "close")], [(":status", "200")], [("content-length", "1")]):
        answer = connection.wait(connection.begin("/size/3", more=wrong))
        assert (answer.status, answer.reset) == (0, ErrorCodes.PROTOCOL_ERROR), wrong
    assert connection.wait(download).body == PIECES


def test_more_streams_than_allowed_are_refused_alone(connect):
    connection = connect()
    limit = connection.h2.remote_settings.max_concurrent_streams
    waiting = [connection.begin("/upload", method="POST", end=False) for _ in range(limit)]
    connection.h2.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = limit + 1
    connection.h2.remote_settings.acknowledge()
    refused = connection.wait(connection.begin("/size/3"))
    assert refused.reset == ErrorCodes.REFUSED_STREAM
    for stream in waiting:
        connection.end(stream)
    assert all(connection.wait(stream).status == 200 for stream in waiting)
    assert_serves(connection)


def test_an_answer_before_the_upload_is_over(connect):
    connection = connect()
    stream = connection.begin("/status/413", method="POST", end=False)
    connection.send(stream, PATTERN * 4, end=True)
    answer = connection.wait(stream)
    assert answer.status == 413
    assert_serves(connection)


def test_an_answer_that_breaks_off(connect):
    connection = connect()
    answer = connection.ask("/fails")
    assert answer.reset == ErrorCodes.INTERNAL_ERROR and not answer.ended
    assert_serves(connection)


def test_an_upload_that_waits_for_100_continue(connect):
    connection = connect()
    stream = connection.begin("/upload", method="POST", end=False, more=[("expect", "100-continue")])
    connection.until(lambda: connection.answers[stream].interim)
    assert connection.answers[stream].interim == [100]
    connection.send(stream, PATTERN[:1_000], end=True)
    assert connection.wait(stream).status == 200
    # Whoever refuses the body does not ask for it.
    stream = connection.begin("/status/417", method="POST", end=False, more=[("expect", "100-continue")])
    connection.until(lambda: connection.answers[stream].status)
    assert connection.answers[stream].interim == []


def test_a_tunnel(connect):
    """Extended CONNECT (RFC 8441): bytes both ways, as for a WebSocket."""
    connection = connect()
    assert connection.h2.remote_settings.enable_connect_protocol == 1
    download = connection.begin("/pieces/64")
    more = [(":protocol", "websocket")]
    tunnels = [connection.begin("/chat", method="CONNECT", end=False, more=more) for _ in range(3)]
    for stream in tunnels:
        connection.until(lambda: connection.answers[stream].status)
        assert connection.answers[stream].status == 200
        headers = connection.answers[stream].headers
        assert headers["protocol"] == "websocket" and "content-length" not in headers
    for number in range(20):
        for stream in tunnels:
            before = len(connection.answers[stream].body)
            connection.send(stream, PATTERN[: 1 + number * 500])
            connection.until(lambda: len(connection.answers[stream].body) == before + 1 + number * 500)
            assert connection.answers[stream].body[before:] == PATTERN[: 1 + number * 500]
    connection.h2.reset_stream(tunnels[0], ErrorCodes.CANCEL)
    for stream in tunnels[1:]:
        connection.end(stream)
        assert connection.wait(stream).ended
    assert connection.wait(download).body == PIECES
