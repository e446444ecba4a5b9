use super::*;
use crate::error::Scope;

fn parse(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<Frame<'_>, Fault> {
    Frame::parse(FrameHeader { length: payload.len() as u32, kind, flags, stream }, payload)
}

/// The code of an error that ends the connection.
#[track_caller]
fn connection_error(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> ErrorCode {
    let fault = parse(kind, flags, stream, payload).expect_err("must be refused");
    assert_eq!(fault.scope, Scope::Connection);
    fault.code
}

#[track_caller]
fn stream_error(kind: u8, stream: u32, payload: &[u8]) -> ErrorCode {
    let fault = parse(kind, 0, stream, payload).expect_err("must be refused");
    assert_eq!(fault.scope, Scope::Stream(stream));
    fault.code
}

#[test]
fn rfc9113_6_1_data() {
    let frame = parse(kind::DATA, flag::END_STREAM, 1, b"abc");
    assert_eq!(frame, Ok(Frame::Data { stream: 1, data: b"abc", flow_bytes: 3, end_stream: true }));
    let frame = parse(kind::DATA, flag::PADDED, 1, b"\x02abc\0\0");
    assert_eq!(frame, Ok(Frame::Data { stream: 1, data: b"abc", flow_bytes: 6, end_stream: false }));
}

#[test]
fn rfc9113_6_1_padding_may_fill_the_frame_and_not_more() {
    let frame = parse(kind::DATA, flag::PADDED, 1, b"\x02\0\0");
    assert_eq!(frame, Ok(Frame::Data { stream: 1, data: b"", flow_bytes: 3, end_stream: false }));
    assert_eq!(connection_error(kind::DATA, flag::PADDED, 1, b"\x03\0\0"), ErrorCode::PROTOCOL_ERROR);
    assert_eq!(connection_error(kind::HEADERS, flag::PADDED, 1, b"\x03\0\0"), ErrorCode::PROTOCOL_ERROR);
    assert_eq!(connection_error(kind::DATA, flag::PADDED, 1, b""), ErrorCode::FRAME_SIZE_ERROR);
}

#[test]
fn rfc9113_6_frames_of_streams_are_not_on_stream_0() {
    for (kind, payload) in [
        (kind::DATA, &b""[..]),
        (kind::HEADERS, b""),
        (kind::PRIORITY, b"\0\0\0\x01\0"),
        (kind::RST_STREAM, b"\0\0\0\0"),
        (kind::CONTINUATION, b""),
    ] {
        assert_eq!(connection_error(kind, 0, 0, payload), ErrorCode::PROTOCOL_ERROR, "{kind}");
    }
}

#[test]
fn rfc9113_6_frames_of_the_connection_are_on_stream_0() {
    for (kind, payload) in [
        (kind::SETTINGS, &b""[..]),
        (kind::PING, b"12345678"),
        (kind::GOAWAY, b"12345678"),
        (kind::PRIORITY_UPDATE, b"\0\0\0\x01"),
    ] {
        assert_eq!(connection_error(kind, 0, 1, payload), ErrorCode::PROTOCOL_ERROR, "{kind}");
    }
}

#[test]
fn rfc9113_6_2_headers() {
    let flags = flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
    let frame = parse(kind::HEADERS, flags, 3, b"\x01\x80\0\0\x01\x10abc\0");
    let expected = Frame::Headers {
        stream: 3,
        fragment: b"abc",
        end_stream: false,
        end_headers: true,
        depends_on_itself: false,
    };
    assert_eq!(frame, Ok(expected));
    assert_eq!(
        connection_error(kind::HEADERS, flag::PRIORITY, 3, b"\0\0\0\x01"),
        ErrorCode::FRAME_SIZE_ERROR
    );
}

#[test]
fn rfc7540_5_3_1_a_stream_cannot_depend_on_itself() {
    assert_eq!(stream_error(kind::PRIORITY, 3, b"\0\0\0\x03\0"), ErrorCode::PROTOCOL_ERROR);
    let frame = parse(kind::HEADERS, flag::PRIORITY, 3, b"\0\0\0\x03\0");
    assert!(matches!(frame, Ok(Frame::Headers { depends_on_itself: true, .. })));
}

#[test]
fn rfc9113_6_3_priority_of_another_size_ends_the_stream() {
    assert_eq!(parse(kind::PRIORITY, 0, 3, b"\0\0\0\x01\0"), Ok(Frame::Priority { stream: 3 }));
    assert_eq!(stream_error(kind::PRIORITY, 3, b"\0\0\0\x01"), ErrorCode::FRAME_SIZE_ERROR);
    assert_eq!(stream_error(kind::PRIORITY, 3, b"\0\0\0\x01\0\0"), ErrorCode::FRAME_SIZE_ERROR);
}

#[test]
fn rfc9113_6_frames_of_fixed_size() {
    for (kind, stream, size) in [
        (kind::RST_STREAM, 1, 4),
        (kind::PING, 0, 8),
        (kind::WINDOW_UPDATE, 0, 4),
        (kind::WINDOW_UPDATE, 1, 4),
    ] {
        let bytes = [1; 9];
        assert!(parse(kind, 0, stream, &bytes[..size]).is_ok());
        assert_eq!(connection_error(kind, 0, stream, &bytes[..size - 1]), ErrorCode::FRAME_SIZE_ERROR);
        assert_eq!(connection_error(kind, 0, stream, &bytes[..=size]), ErrorCode::FRAME_SIZE_ERROR);
    }
    assert_eq!(connection_error(kind::GOAWAY, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE_ERROR);
    assert_eq!(connection_error(kind::SETTINGS, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE_ERROR);
    assert_eq!(connection_error(kind::SETTINGS, flag::ACK, 0, &[0; 6]), ErrorCode::FRAME_SIZE_ERROR);
    assert_eq!(connection_error(kind::PRIORITY_UPDATE, 0, 0, &[0; 3]), ErrorCode::FRAME_SIZE_ERROR);
}

#[test]
fn rfc9113_6_6_a_client_may_not_push() {
    assert_eq!(connection_error(kind::PUSH_PROMISE, 0, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_6_9_windows_open_by_something() {
    let frame = parse(kind::WINDOW_UPDATE, 0, 1, &[0x80, 0, 0, 5]);
    assert_eq!(frame, Ok(Frame::WindowUpdate { stream: 1, increment: 5 }));
    assert_eq!(stream_error(kind::WINDOW_UPDATE, 1, &[0x80, 0, 0, 0]), ErrorCode::PROTOCOL_ERROR);
    assert_eq!(connection_error(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9218_7_1_priority_update() {
    let frame = parse(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=1");
    assert_eq!(frame, Ok(Frame::PriorityUpdate { stream: 5, value: b"u=1" }));
    assert_eq!(connection_error(kind::PRIORITY_UPDATE, 0, 0, &[0; 4]), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_5_5_unknown_kinds_are_passed_over() {
    assert_eq!(parse(0x20, 0xff, 7, b"anything"), Ok(Frame::Unknown));
}
