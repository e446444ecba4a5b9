//! Responses, and the order in which they go out (RFC 9113 §8.1, RFC 9218).

use bytes::Bytes;

use super::super::SendError;
use super::*;
use crate::hpack::{Encoded, Field};

/// A client whose windows are large.
fn eager(mode: EmitMode, limits: Limits) -> Client {
    let mut client = Client::silent(limits, mode);
    client.send(PREFACE);
    client.send_settings(&[Setting::InitialWindowSize(1 << 24)]);
    client.open_window(0, 1 << 24);
    client.frames();
    client
}

#[test]
fn rfc9113_8_1_interim_responses_trailers_and_constant_fields() {
    let mut client = Client::new();
    client.get(1);
    let stream = client.streams[0];
    let connection = &mut client.connection;
    connection.inform(stream, 103, [Field::new("link", "</x>")]).expect("open");
    let constant = Encoded::new([(&b"content-type"[..], &b"text/plain"[..])]);
    connection.respond(stream, 200, Some(&constant), [Field::new("etag", "\"1\"")], false).expect("open");
    connection.send_body(stream, Bytes::from_static(b"body"), false).expect("open");
    connection.send_trailers(stream, [Field::new("grpc-status", "0")]).expect("open");
    assert_eq!(
        client.frames(),
        [
            "HEADERS 1 :status=103 link=</x>",
            "HEADERS 1 :status=200 content-type=text/plain etag=\"1\"",
            "DATA 1 4",
            "HEADERS 1 grpc-status=0 end",
        ]
    );
}

#[test]
fn trailers_wait_for_the_body_before_them() {
    let mut client = Client::new();
    client.send_settings(&[Setting::InitialWindowSize(5)]);
    client.frames();
    client.get(1);
    let stream = client.streams[0];
    client.connection.respond(stream, 200, None, [], false).expect("open");
    client.connection.send_body(stream, Bytes::from_static(b"0123456789"), false).expect("open");
    client.connection.send_trailers(stream, [Field::new("x", "y")]).expect("open");
    assert_eq!(client.frames(), ["HEADERS 1 :status=200", "DATA 1 5"]);
    client.open_window(1, 5);
    assert_eq!(client.frames(), ["DATA 1 5", "HEADERS 1 x=y end"]);
    assert_eq!(client.connection.streams(), 0);
}

#[test]
fn what_is_out_of_order_is_not_sent() {
    let mut client = Client::new();
    client.get(1);
    let stream = client.streams[0];
    let connection = &mut client.connection;
    assert_eq!(connection.send_body(stream, Bytes::new(), true), Err(SendError::OutOfOrder));
    assert_eq!(connection.send_trailers(stream, []), Err(SendError::OutOfOrder));
    assert_eq!(connection.inform(stream, 101, []), Err(SendError::OutOfOrder));
    assert_eq!(connection.inform(stream, 200, []), Err(SendError::OutOfOrder));
    assert_eq!(connection.respond(stream, 200, None, [], false), Ok(()));
    assert_eq!(connection.respond(stream, 200, None, [], false), Err(SendError::OutOfOrder));
    assert_eq!(connection.send_body(stream, Bytes::new(), true), Ok(()));
    assert_eq!(connection.send_body(stream, Bytes::new(), true), Err(SendError::Gone));
    assert_eq!(client.frames(), ["HEADERS 1 :status=200", "DATA 1 0 end"]);
}

#[test]
fn rfc9113_8_1_the_rest_of_a_request_is_stopped_once_it_is_answered() {
    for body in [&b"no"[..], &[0; 40_000]] {
        let mut client = Client::new();
        client.post(1);
        client.answer(body);
        assert_eq!(client.frames().last().expect("a frame"), "RST_STREAM 1 NO_ERROR");
        assert_eq!(client.data(1, b"more", false), NONE);
        assert_eq!(client.frames(), NONE);
    }
}

#[test]
fn rfc9113_4_2_large_heads_are_continued() {
    let mut client = Client::new();
    client.get(1);
    let stream = client.streams[0];
    let value = "~".repeat(40_000);
    client.connection.respond(stream, 200, None, [Field::new("x", &value)], true).expect("open");
    let frames = client.frames();
    assert_eq!(frames[..2], ["HEADERS 1 16384...", "CONTINUATION 1 16384"]);
    assert!(frames[2].starts_with("CONTINUATION 1 ") && frames[2].ends_with(" end"), "{}", frames[2]);
    assert_eq!(frames.len(), 3);
}

#[test]
fn bodies_share_a_plan_in_turns() {
    let mut client = eager(EmitMode::Auto, Limits::default());
    for stream in [1, 3] {
        client.get(stream);
        client.answer(&[0; 40_000]);
    }
    let frames = client.frames();
    let order: Vec<&str> =
        frames.iter().filter(|frame| frame.starts_with("DATA")).map(|frame| &frame[5..6]).collect();
    assert_eq!(order[..4], ["1", "3", "1", "3"]);
}

#[test]
fn rfc9218_4_the_more_urgent_body_goes_first_and_may_change() {
    let mut client = eager(EmitMode::Auto, Limits::default());
    for (stream, priority) in [(1, "u=5"), (3, "u=1"), (5, "u=7")] {
        client.headers(stream, flag::END_STREAM, &and(GET, &[("priority", priority)]));
        client.answer(&[0; 20_000]);
    }
    client.send_frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=0");
    // Before its stream: then it counts more than the field (RFC 9218 §7.1).
    client.send_frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x07u=6");
    client.headers(7, flag::END_STREAM, &and(GET, &[("priority", "u=0")]));
    client.answer(&[0; 20_000]);
    let order: Vec<_> = client.frames().into_iter().filter(|frame| frame.ends_with(" end")).collect();
    let streams: Vec<&str> = order.iter().map(|frame| &frame[5..6]).collect();
    assert_eq!(streams, ["5", "3", "1", "7"]);
}

#[test]
fn a_plan_of_bodies_fills_records_whole() {
    let mut client = eager(EmitMode::Auto, Limits::default());
    client.get(1);
    client.answer(&[0; 1_000_000]);
    let mut plans: Vec<usize> = Vec::new();
    while client.connection.output.has_work() {
        plans.push(client.plan().len());
    }
    let (_, full) = plans.split_last().expect("some");
    assert!(full.iter().all(|bytes| *bytes == 64 << 10), "{plans:?}");
}

#[test]
fn every_mode_sends_the_same_bodies() {
    for mode in [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive] {
        for size in [0, 1, 1_024, 1_025, 16_384, 50_000, 200_000] {
            let mut client = eager(mode, Limits::default());
            client.get(1);
            let body: Vec<u8> = (0..size).map(|at| at as u8).collect();
            let stream = client.streams[0];
            client.connection.respond(stream, 200, None, [], false).expect("open");
            for piece in body.chunks(9_000) {
                client.connection.send_body(stream, Bytes::copy_from_slice(piece), false).expect("open");
            }
            client.connection.send_body(stream, Bytes::new(), true).expect("open");
            assert_eq!(received(&mut client), body, "{mode:?} {size}");
            assert_eq!(client.connection.streams(), 0);
        }
    }
}

/// The bodies that come now, as one.
fn received(client: &mut Client) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.connection.output.has_work() {
        bytes.extend(client.plan());
    }
    let mut body = Vec::new();
    let mut rest = &bytes[..];
    while let Some(header) = FrameHeader::parse(rest) {
        let (frame, after) = rest.split_at(FrameHeader::BYTES + header.length as usize);
        rest = after;
        if header.kind == kind::DATA {
            body.extend_from_slice(&frame[FrameHeader::BYTES..]);
        }
    }
    body
}

#[test]
fn small_pieces_of_a_queue_share_frames() {
    let mut client = Client::new();
    client.send_settings(&[Setting::InitialWindowSize(0)]);
    client.get(1);
    let stream = client.streams[0];
    client.connection.respond(stream, 200, None, [], false).expect("open");
    for _ in 0..100 {
        client.connection.send_body(stream, Bytes::from_static(b"0123456789"), false).expect("open");
    }
    client.connection.send_body(stream, Bytes::new(), true).expect("open");
    client.frames();
    client.send_settings(&[Setting::InitialWindowSize(1_000)]);
    assert_eq!(client.frames(), ["SETTINGS ACK", "DATA 1 1000 end"]);
}

#[test]
fn a_producer_waits_for_room() {
    let mut client = eager(EmitMode::Auto, Limits { stream_send_bytes: 10_000, ..Limits::default() });
    client.get(1);
    let stream = client.streams[0];
    client.connection.respond(stream, 200, None, [], false).expect("open");
    assert_eq!(client.connection.send_room(stream), 10_000);
    client.connection.send_body(stream, Bytes::from(vec![0; 12_000]), false).expect("open");
    assert_eq!(client.connection.send_room(stream), 0);
    assert_eq!(client.connection.take_roomy(), None);
    client.frames();
    assert_eq!(client.connection.take_roomy(), Some(stream));
    assert_eq!(client.connection.take_roomy(), None);
    assert_eq!(client.connection.send_room(stream), 10_000);
}

#[test]
fn all_producers_wait_while_all_streams_have_too_much_together() {
    let limits = Limits { stream_send_bytes: 10_000, connection_send_bytes: 15_000, ..Limits::default() };
    let mut client = Client::with(limits);
    for stream in [1, 3, 5] {
        client.get(stream);
    }
    let [first, second, third] = client.streams[..] else { panic!("three requests") };
    for stream in [first, second, third] {
        client.connection.respond(stream, 200, None, [], false).expect("open");
    }
    for stream in [first, second] {
        assert!(client.connection.send_room(stream) >= 3_000);
        client.connection.send_body(stream, Bytes::from(vec![0; 12_000]), false).expect("open");
    }
    assert_eq!(client.connection.send_room(third), 0);
    client.connection.reset(first, ErrorCode::CANCEL);
    client.frames();
    assert_eq!(client.connection.take_roomy(), Some(third));
    assert_eq!(client.connection.send_room(third), 10_000);
}

#[test]
fn nothing_is_read_while_answers_pile_up() {
    let mut client = Client::with(Limits { backlog_bytes: 1_024, ..Limits::default() });
    let mut pings = 0;
    while client.connection.wants_input() {
        assert_eq!(client.send_frame(kind::PING, 0, 0, &[0; 8]), NONE);
        pings += 1;
    }
    assert_eq!(pings, 1_024_u32.div_ceil(17));
    client.plan();
    assert!(client.connection.wants_input());
}

#[test]
fn small_pieces_do_not_pile_up() {
    let mut client = Client::new();
    client.send_settings(&[Setting::InitialWindowSize(0)]);
    client.frames();
    let stream = begin(&mut client, 1);
    let mut pieces = 0;
    while client.connection.send_room(stream) > 0 {
        client.connection.send_body(stream, Bytes::from_static(b"x"), false).expect("open");
        pieces += 1;
    }
    assert_eq!(pieces, 64);
    client.open_window(1, 1_000);
    assert_eq!(client.frames(), ["DATA 1 64"]);
    assert_eq!(client.connection.take_roomy(), Some(stream));
}

/// Sixteen responses that the client does not take, with all that may be queued.
fn crowd(client: &mut Client) {
    client.send_settings(&[Setting::InitialWindowSize(0)]);
    for stream in (0..16).map(|index| 1 + 2 * index) {
        client.get(stream);
        client.answer(&[0; 64 << 10]);
    }
    client.frames();
}

/// One more, of whose response the head is sent.
fn begin(client: &mut Client, id: u32) -> StreamKey {
    client.get(id);
    let stream = *client.streams.last().expect("a stream");
    client.connection.respond(stream, 200, None, [], false).expect("open");
    client.frames();
    stream
}

#[test]
fn room_that_resets_make_is_told() {
    let mut client = Client::new();
    crowd(&mut client);
    let stream = begin(&mut client, 33);
    assert_eq!(client.connection.send_room(stream), 0);
    for stuck in (0..16).map(|index| 1 + 2 * index) {
        client.send_frame(kind::RST_STREAM, 0, stuck, b"\0\0\0\x08");
    }
    assert_eq!(client.plan(), b"", "there is nothing to write");
    assert_eq!(client.connection.take_roomy(), Some(stream));
    assert!(client.connection.send_room(stream) > 0);
}

#[test]
fn streams_that_are_not_read_do_not_silence_the_others() {
    let mut client = Client::new();
    crowd(&mut client);
    let stream = begin(&mut client, 33);
    assert_eq!(client.connection.send_room(stream), 0, "its window is closed");
    client.open_window(33, 100);
    assert_eq!(client.connection.take_roomy(), Some(stream));
    assert!(client.connection.send_room(stream) > 0);
    client.connection.send_body(stream, Bytes::from_static(b"abc"), false).expect("open");
    assert_eq!(client.frames(), ["DATA 33 3"]);
    // More than goes at once.
    client.connection.send_body(stream, Bytes::from(vec![0; 2_000]), false).expect("open");
    assert_eq!(client.frames(), ["DATA 33 97"]);
    assert_eq!(client.connection.send_room(stream), 0);
    client.open_window(33, 10_000);
    assert_eq!(client.frames(), ["DATA 33 1903"]);
    assert_eq!(client.connection.take_roomy(), Some(stream));
}

#[test]
fn the_reserve_of_small_pieces_ends() {
    let mut client = Client::new();
    crowd(&mut client);
    let mut streams = Vec::new();
    let refused = loop {
        let id = 33 + 2 * streams.len() as u32;
        let stream = begin(&mut client, id);
        client.open_window(id, 1 << 20);
        if client.connection.send_room(stream) == 0 {
            break stream;
        }
        // Large pieces, and soon the connection's window is closed.
        client.connection.send_body(stream, Bytes::from(vec![0; 64 << 10]), false).expect("open");
        client.frames();
        streams.push(stream);
    };
    assert_eq!(streams.len(), 1 + 8, "the connection's window, and half of 1 MiB");
    assert_eq!(client.connection.take_roomy(), None);
    client.open_window(0, 1 << 20);
    client.frames();
    assert_eq!(client.connection.take_roomy(), Some(refused));
}
