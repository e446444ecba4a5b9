//! Frames allowed in each state of a stream (RFC 9113 §5.1).

use super::*;

#[test]
fn rfc9113_5_1_idle_streams_take_only_headers_and_priority() {
    for (kind, payload) in
        [(kind::DATA, &b""[..]), (kind::RST_STREAM, b"\0\0\0\x08"), (kind::WINDOW_UPDATE, b"\0\0\0\x01")]
    {
        let mut client = Client::new();
        let events = client.send_frame(kind, 0, 1, payload);
        client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
    }
    let mut client = Client::new();
    assert_eq!(client.send_frame(kind::PRIORITY, 0, 9, b"\0\0\0\x01\0"), NONE);
    assert_eq!(client.get(1), ["request 1 GET / end"]);
}

#[test]
fn rfc9113_5_1_a_stream_that_is_not_open_is_not_reset() {
    let mut client = Client::new();
    let events = client.send_frame(kind::PRIORITY, 0, 9, b"\0\0\0\x09\0");
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
    let mut client = Client::new();
    let events = client.send_frame(kind::PRIORITY, 0, 9, b"\0");
    client.assert_closes(&events, ErrorCode::FRAME_SIZE_ERROR);
    // One of the server, which opens none.
    let mut client = Client::new();
    client.get(5);
    let events = client.open_window(2, 0);
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_5_1_half_closed_streams_take_no_more_of_the_request() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.data(1, b"x", false), ["reset 1 STREAM_CLOSED"]);
    client.assert_resets(1, ErrorCode::STREAM_CLOSED);

    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.headers(1, flag::END_STREAM, &[("x", "y")]), ["reset 1 STREAM_CLOSED"]);
    client.assert_resets(1, ErrorCode::STREAM_CLOSED);
}

#[test]
fn rfc9113_5_1_half_closed_streams_take_windows_priorities_and_resets() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.open_window(1, 5_000), NONE);
    assert_eq!(client.send_frame(kind::PRIORITY, 0, 1, b"\0\0\0\0\0"), NONE);
    assert_eq!(client.send_frame(kind::RST_STREAM, 0, 1, b"\0\0\0\x08"), ["reset 1 CANCEL"]);
}

#[test]
fn rfc9113_5_1_closed_streams_take_nothing() {
    let mut client = Client::new();
    client.post(1);
    client.send_frame(kind::RST_STREAM, 0, 1, b"\0\0\0\x08");
    assert_eq!(client.data(1, b"x", false), NONE);
    client.assert_resets(1, ErrorCode::STREAM_CLOSED);

    let mut client = Client::new();
    client.get(1);
    client.answer(b"");
    client.frames();
    let events = client.headers(1, flag::END_STREAM, GET);
    client.assert_closes(&events, ErrorCode::STREAM_CLOSED);
}

#[test]
fn rfc9113_5_1_what_was_on_its_way_when_we_reset_is_passed_over() {
    let mut client = Client::new();
    client.post(1);
    let stream = client.streams[0];
    client.connection.reset(stream, ErrorCode::CANCEL);
    assert_eq!(client.frames(), ["RST_STREAM 1 CANCEL"]);
    assert_eq!(client.data(1, b"late", false), NONE);
    assert_eq!(client.open_window(1, 5_000), NONE);
    assert_eq!(client.headers(1, flag::END_STREAM, &[("new-in-table", "x")]), NONE);
    assert_eq!(client.send_frame(kind::RST_STREAM, 0, 1, b"\0\0\0\x08"), NONE);
    assert_eq!(client.frames(), NONE);
    // The block was decoded all the same.
    let fields = and(GET, &[("new-in-table", "x")]);
    assert_eq!(client.headers(3, flag::END_STREAM, &fields), ["request 3 GET / new-in-table=x end"]);
}

#[test]
fn rfc9113_5_1_what_was_on_its_way_is_passed_over_on_many_streams() {
    let mut client = Client::new();
    let ids = || (0..256).map(|index| 1 + 2 * index);
    for id in ids() {
        client.post(id);
    }
    for stream in client.streams.clone() {
        client.connection.respond(stream, 503, None, [], true).expect("open");
    }
    client.frames();
    for id in ids() {
        assert_eq!(client.data(id, b"late", false), NONE);
        assert_eq!(client.headers(id, flag::END_STREAM, &[("checksum", "1")]), NONE);
    }
    assert_eq!(client.frames(), NONE);
    assert_eq!(client.get(1_001), ["request 1001 GET / end"]);
}

#[test]
fn rfc9113_5_1_1_ids_are_odd_and_grow() {
    let mut client = Client::new();
    let events = client.get(2);
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
    let mut client = Client::new();
    client.get(5);
    let events = client.get(3);
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_5_1_2_more_streams_than_allowed_are_refused() {
    let mut client = Client::with(Limits { streams: 2, ..Limits::default() });
    client.get(1);
    client.get(3);
    assert_eq!(client.headers(5, flag::END_STREAM, &and(GET, &[("new-in-table", "x")])), NONE);
    assert_eq!(client.frames(), ["RST_STREAM 5 REFUSED_STREAM"]);
    client.answer(b"");
    assert_eq!(
        client.headers(7, flag::END_STREAM, &and(GET, &[("new-in-table", "x")])),
        ["request 7 GET / new-in-table=x end"]
    );
}

#[test]
fn requests_whose_heads_are_too_large_together_are_refused() {
    let limits = Limits { header_list_bytes: 1_024, connection_header_bytes: 1_500, ..Limits::default() };
    let mut client = Client::with(limits);
    let large = "x".repeat(700);
    assert_eq!(client.headers(1, flag::END_STREAM, &and(GET, &[("x", &large)])).len(), 1);
    assert_eq!(client.headers(3, flag::END_STREAM, &and(GET, &[("x", &large)])), NONE);
    assert_eq!(client.frames(), ["RST_STREAM 3 REFUSED_STREAM"]);
    client.answer(b"");
    assert_eq!(client.headers(5, flag::END_STREAM, &and(GET, &[("x", &large)])).len(), 1);
}

#[test]
fn rfc9113_6_2_nothing_comes_between_the_frames_of_a_block() {
    let other = frame(kind::PING, 0, 0, &[0; 8]);
    let unknown = frame(0xfa, 0, 1, b"");
    let of_another = frame(kind::CONTINUATION, flag::END_HEADERS, 3, b"");
    let second = frame(kind::HEADERS, flag::END_HEADERS, 3, b"");
    for between in [other, unknown, of_another, second] {
        let mut client = Client::new();
        let block = client.block(GET);
        assert_eq!(client.send_frame(kind::HEADERS, flag::END_STREAM, 1, &block[..2]), NONE);
        let events = client.send(&between);
        client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
    }
}

#[test]
fn rfc9113_6_10_continuation_of_nothing() {
    let mut client = Client::new();
    client.get(1);
    let events = client.send_frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"");
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_5_4_1_nothing_is_taken_after_an_error_of_the_connection() {
    let mut client = Client::new();
    client.get(1);
    let mut bytes = frame(kind::PING, 0, 1, &[0; 8]);
    bytes.extend(frame(kind::PING, 0, 0, &[0; 8]));
    assert_eq!(client.send(&bytes), ["closed PROTOCOL_ERROR"]);
    assert_eq!(client.send(&bytes), NONE);
    assert!(!client.connection.wants_input());
    let stream = client.streams[0];
    assert!(client.connection.respond(stream, 200, None, [], true).is_err());
    assert_eq!(client.frames(), ["GOAWAY 1 PROTOCOL_ERROR"]);
}
