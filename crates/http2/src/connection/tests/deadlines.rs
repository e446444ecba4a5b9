//! Deadlines of connections and streams.

use super::*;

const SECOND_US: u64 = 1_000_000;

#[track_caller]
fn assert_ends_at(client: &mut Client, time_us: u64, code: ErrorCode) {
    assert_eq!(client.wait(time_us - 1), NONE);
    let events = client.wait(1);
    client.assert_closes(&events, code);
}

#[test]
fn a_preface_that_does_not_come() {
    let mut client = Client::silent(Limits::default(), EmitMode::Auto);
    client.send(&PREFACE[..20]);
    assert_ends_at(&mut client, Limits::default().preface_us, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn settings_that_do_not_follow_the_preface() {
    let mut client = Client::silent(Limits::default(), EmitMode::Auto);
    client.send(PREFACE);
    assert_ends_at(&mut client, Limits::default().preface_us, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn rfc9113_6_5_3_settings_that_are_not_acknowledged() {
    let mut client = Client::silent(Limits::default(), EmitMode::Auto);
    client.send(PREFACE);
    client.send_settings(&[]);
    assert_ends_at(&mut client, Limits::default().settings_ack_us, ErrorCode::SETTINGS_TIMEOUT);
}

#[test]
fn a_frame_that_comes_byte_by_byte() {
    let mut client = Client::new();
    let frame = frame(kind::PING, 0, 0, &[0; 8]);
    for &byte in &frame[..9] {
        client.send(&[byte]);
        assert_eq!(client.wait(SECOND_US), NONE);
    }
    client.send(&frame[9..10]);
    assert_ends_at(&mut client, SECOND_US, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn a_large_frame_may_come_slowly() {
    let mut client = Client::new();
    client.post(1);
    let frame = frame(kind::DATA, 0, 1, &[0; 16 << 10]);
    for piece in frame.chunks(512) {
        assert_eq!(client.wait(SECOND_US), NONE);
        client.send(piece);
    }
    let (last, _) = frame.split_at(8_000);
    client.send(last);
    assert_ends_at(&mut client, 10 * SECOND_US, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn a_header_block_that_does_not_end() {
    let mut client = Client::new();
    let block = client.block(GET);
    client.send_frame(kind::HEADERS, flag::END_STREAM, 1, &block);
    assert_eq!(client.wait(9 * SECOND_US), NONE);
    client.send_frame(kind::CONTINUATION, 0, 1, b"");
    assert_ends_at(&mut client, SECOND_US, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn what_we_do_not_read_is_not_late() {
    let limits =
        Limits { backlog_bytes: 1_024, keep_alive_us: u64::MAX, idle_us: 1 << 50, ..Limits::default() };
    let mut client = Client::silent(limits, EmitMode::Auto);
    client.send(PREFACE);
    client.send_settings(&[]);
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    while client.connection.wants_input() {
        client.send(&ping);
    }
    // The settings are not acknowledged, and a frame has begun.
    client.send(&ping[..3]);
    assert_eq!(client.wait(1_000 * SECOND_US), NONE);
    client.frames();
    assert_eq!(client.wait(9 * SECOND_US), NONE);
    let events = client.wait(SECOND_US);
    client.assert_closes(&events, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn times_that_never_come() {
    let never = u64::MAX;
    let limits = Limits {
        preface_us: never,
        frame_us: never,
        settings_ack_us: never,
        body_stall_us: never,
        read_stall_us: never,
        keep_alive_us: never,
        idle_us: never,
        drain_us: never,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    client.headers(1, 0, &and(POST, &[("content-length", "100000")]));
    client.answer(&[0; 100_000]);
    client.send(&frame(kind::PING, 0, 0, &[0; 8])[..3]);
    client.connection.shut_down(client.now_us);
    assert_eq!(client.wait(1_000_000 * SECOND_US), NONE);
}

#[test]
fn frames_that_come_whole_may_come_slowly() {
    let mut client = Client::new();
    client.post(1);
    for _ in 0..100 {
        client.send_frame(kind::PING, 0, 0, &[0; 8]);
        assert_eq!(client.wait(9 * SECOND_US), NONE);
    }
}

#[test]
fn a_body_of_known_length_that_stops() {
    let mut client = Client::new();
    client.headers(1, 0, &and(POST, &[("content-length", "100000")]));
    client.post(3);
    let stream = client.streams[0];
    for time in 0..60 {
        // A byte a second is not progress.
        let events = client.data(1, b"x", false);
        client.connection.consumed(stream, 1);
        let stalled = client.wait(SECOND_US);
        if !stalled.is_empty() {
            assert_eq!((time, stalled), (29, vec!["stalled 1 Request".to_string()]));
            break;
        }
        assert_eq!(events, ["data 1 1"]);
    }
    client.assert_resets(1, ErrorCode::CANCEL);
    // One whose length is not known may be a conversation.
    assert_eq!(client.data(3, b"x", false), ["data 3 1"]);
}

#[test]
fn a_body_that_we_do_not_consume_is_not_late() {
    let mut client = Client::new();
    client.headers(1, 0, &and(POST, &[("content-length", "100000")]));
    client.data(1, b"x", false);
    assert_eq!(client.wait(100 * SECOND_US), NONE);
    assert_eq!(client.data(1, b"x", false), ["data 1 1"]);
}

#[test]
fn a_body_has_all_its_time_once_we_have_consumed_what_came() {
    let mut client = Client::new();
    client.headers(1, 0, &and(POST, &[("content-length", "100000")]));
    client.data(1, &[0; 10_000], false);
    assert_eq!(client.wait(40 * SECOND_US), NONE);
    let stream = client.streams[0];
    client.connection.consumed(stream, 10_000);
    assert_eq!(client.wait(29 * SECOND_US), NONE);
    assert_eq!(client.wait(2 * SECOND_US), ["stalled 1 Request"]);
}

#[test]
fn a_body_that_has_no_window_because_of_others_is_not_late() {
    let limits = Limits {
        stream_receive_bytes: 65_535,
        connection_receive_bytes: 65_535,
        keep_alive_us: u64::MAX,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    client.headers(1, 0, &and(POST, &[("content-length", "100000")]));
    client.post(3);
    (0..4).for_each(|_| drop(client.data(3, &[0; 16_000], false)));
    assert_eq!(client.wait(100 * SECOND_US), NONE);
    let holder = client.streams[1];
    client.connection.consumed(holder, 64_000);
    assert_eq!(client.wait(29 * SECOND_US), NONE);
    assert_eq!(client.wait(2 * SECOND_US), ["stalled 1 Request"]);
}

#[test]
fn a_response_that_is_not_taken() {
    let mut client = Client::new();
    client.send_settings(&[Setting::InitialWindowSize(10_000)]);
    client.get(1);
    client.answer(&[0; 100_000]);
    client.frames();
    assert_eq!(client.wait(29 * SECOND_US), NONE);
    client.open_window(1, 5_000);
    client.frames();
    for _ in 0..29 {
        client.open_window(1, 1);
        client.frames();
        assert_eq!(client.wait(SECOND_US), NONE);
    }
    assert_eq!(client.wait(SECOND_US), ["stalled 1 Response"]);
    client.assert_resets(1, ErrorCode::CANCEL);
}

/// Requests an urgent response and one that is not, each larger than any window.
fn ask_for_two(client: &mut Client) {
    client.send_settings(&[Setting::InitialWindowSize(1 << 20)]);
    for (stream, priority) in [(1, "u=1"), (3, "u=3")] {
        client.headers(stream, flag::END_STREAM, &and(GET, &[("priority", priority)]));
        client.answer(&[0; 900_000]);
    }
    client.frames();
}

#[test]
fn a_response_that_waits_for_its_turn_is_not_late() {
    let mut client = Client::new();
    ask_for_two(&mut client);
    for _ in 0..40 {
        client.open_window(0, 16 << 10);
        assert_eq!(client.frames(), ["DATA 1 16384"]);
        assert_eq!(client.wait(SECOND_US), NONE);
    }
    // From now on it is: nobody takes anything.
    assert_eq!(client.wait(28 * SECOND_US), NONE);
    assert_eq!(client.wait(4 * SECOND_US), ["stalled 1 Response", "stalled 3 Response"]);
}

#[test]
fn responses_that_are_not_taken_because_of_the_connections_window() {
    let mut client = Client::new();
    ask_for_two(&mut client);
    for _ in 0..29 {
        client.open_window(0, 100);
        client.frames();
        assert_eq!(client.wait(SECOND_US), NONE);
    }
    assert_eq!(client.wait(3 * SECOND_US), ["stalled 1 Response", "stalled 3 Response"]);
}

#[test]
fn a_handler_may_take_its_time() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.connection.next_deadline(), None);
    assert_eq!(client.wait(3_600 * SECOND_US), NONE);
    client.answer(b"late");
    assert_eq!(client.frames().len(), 2);
}

#[test]
fn a_peer_with_a_stream_is_asked_for_a_sign_of_life() {
    let mut client = Client::with(Limits::default());
    let asked_after_us = Limits::default().keep_alive_us;
    client.get(1);
    client.wait(asked_after_us - 1);
    client.send_frame(kind::PING, flag::ACK, 0, b"whatever");
    assert_eq!(client.wait(asked_after_us - 1), NONE);
    assert_eq!(client.frames(), NONE, "it was heard of meanwhile");
    client.wait(1);
    assert_eq!(client.frames(), ["PING are you?"]);
    client.send_frame(kind::PING, flag::ACK, 0, b"are you?");
    assert_eq!(client.wait(asked_after_us - 1), NONE);
    assert_eq!(client.frames(), NONE);
    assert_eq!(client.wait(1), NONE);
    assert_eq!(client.frames(), ["PING are you?"]);
    let events = client.wait(asked_after_us);
    client.assert_closes(&events, ErrorCode::NO_ERROR);
}

#[test]
fn a_peer_without_a_stream_is_not_asked() {
    let mut client = Client::with(Limits::default());
    client.get(1);
    client.answer(b"x");
    client.frames();
    assert_eq!(client.wait(Limits::default().idle_us - 1), NONE);
    assert_eq!(client.frames(), NONE);
}

#[test]
fn a_connection_without_streams_ends_in_peace() {
    let mut client = Client::new();
    let idle_us = Limits::default().idle_us;
    client.wait(idle_us - 1);
    client.get(1);
    client.wait(idle_us);
    client.answer(b"x");
    client.frames();
    assert_eq!(client.wait(idle_us - 1), NONE);
    assert_eq!(client.frames(), NONE);
    client.wait(1);
    assert_eq!(client.frames(), ["GOAWAY 2147483647 NO_ERROR", "PING draining"]);
    client.wait(SECOND_US);
    assert_eq!(client.frames(), ["GOAWAY 1 NO_ERROR"]);
    assert!(client.connection.is_done());
}

/// Has so many streams open at once, and then none.
fn ask_and_answer(client: &mut Client, streams: std::ops::Range<u32>) {
    for stream in streams.clone() {
        client.get(1 + 2 * stream);
    }
    for stream in client.streams.split_off(client.streams.len() - streams.len()) {
        client.connection.respond(stream, 200, None, [], true).expect("open");
    }
    client.frames();
}

#[test]
fn who_had_many_streams_is_told_when_there_have_been_none_for_a_while() {
    let mut client = Client::new();
    ask_and_answer(&mut client, 0..8);
    assert_eq!(client.wait(10 * SECOND_US), NONE, "it keeps what few streams need");
    ask_and_answer(&mut client, 8..17);
    assert_eq!(client.wait(SECOND_US / 2), NONE);
    ask_and_answer(&mut client, 17..18);
    assert_eq!(client.wait(SECOND_US - 1), NONE, "and what is needed again soon");
    assert_eq!(client.wait(1), ["idle"]);
    assert_eq!(client.wait(10 * SECOND_US), NONE, "once");
    ask_and_answer(&mut client, 18..19);
}
