//! Limits on input that costs the server more than the peer (RFC 9113 §10.5).

use super::*;
use crate::limits::Allowance;

const FEW: Allowance = Allowance { burst: 10, per_second: 1 };

/// Sends the same again and again: ten times is fine, the eleventh ends the connection; a second earlier, it
/// would not have.
#[track_caller]
fn assert_counted(limits: Limits, mut once: impl FnMut(&mut Client, u32) -> Vec<String>) {
    let mut client = Client::with(limits);
    client.post(1);
    for time in 0..11 {
        client.now_us += if time == 10 { 1_000_000 } else { 0 };
        let events = once(&mut client, time);
        assert!(!events.iter().any(|event| event.starts_with("closed")), "{events:?}");
    }
    let events = once(&mut client, 11);
    client.assert_closes(&events, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn cve_2023_44487_rapid_reset() {
    assert_counted(Limits { resets: FEW, ..Limits::default() }, |client, time| {
        client.get(3 + 2 * time);
        client.send_frame(kind::RST_STREAM, 0, 3 + 2 * time, b"\0\0\0\x08")
    });
}

#[test]
fn two_hundred_resets_are_nothing() {
    let mut client = Client::new();
    for stream in 0..200 {
        client.get(1 + 2 * stream);
        client.send_frame(kind::RST_STREAM, 0, 1 + 2 * stream, b"\0\0\0\x08");
    }
    assert_eq!(client.get(401), ["request 401 GET / end"]);
}

#[test]
fn cve_2025_8671_resets_that_the_peer_provokes() {
    assert_counted(Limits { resets: FEW, ..Limits::default() }, |client, time| {
        client.get(3 + 2 * time);
        client.open_window(3 + 2 * time, 0)
    });
    assert_counted(Limits { resets: FEW, streams: 1, ..Limits::default() }, |client, time| {
        client.get(3 + 2 * time)
    });
}

#[test]
fn cve_2024_27316_continuation_flood() {
    let mut client = Client::new();
    let block = client.block(GET);
    client.send_frame(kind::HEADERS, flag::END_STREAM, 1, &block);
    let mut events = Vec::new();
    let mut frames = 0;
    while events.is_empty() {
        events = client.send_frame(kind::CONTINUATION, 0, 1, b"");
        frames += 1;
    }
    assert_eq!(frames, Limits::default().continuation_frames);
    client.assert_closes(&events, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn rfc9113_10_5_1_large_header_blocks() {
    let mut client = Client::new();
    client.send_frame(kind::HEADERS, flag::END_STREAM, 1, &[0; 16_384]);
    client.send_frame(kind::CONTINUATION, 0, 1, &[0; 16_384]);
    client.send_frame(kind::CONTINUATION, 0, 1, &[0; 16_384]);
    let events = client.send_frame(kind::CONTINUATION, 0, 1, &[0; 1]);
    client.assert_closes(&events, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn cve_2019_9512_ping_flood() {
    assert_counted(Limits { pings: FEW, ..Limits::default() }, |client, _| {
        client.send_frame(kind::PING, 0, 0, &[0; 8])
    });
}

#[test]
fn pings_and_windows_in_answer_to_data_are_never_too_many() {
    // gRPC's clients measure the bandwidth: DATA, and at once a WINDOW_UPDATE for it and a PING.
    let mut client = Client::new();
    let mut probe = frame(kind::WINDOW_UPDATE, 0, 0, &5_u32.to_be_bytes());
    probe.extend(frame(kind::PING, 0, 0, &[0; 8]));
    for call in 0..20_000 {
        client.get(1 + 2 * call);
        client.answer(b"12345");
        client.frames();
        assert_eq!(client.send(&probe), NONE, "call {call}");
    }
    // The same on a stream of events.
    client.get(100_001);
    let stream = *client.streams.last().expect("a stream");
    client.connection.respond(stream, 200, None, [], false).expect("open");
    for event in 0..20_000 {
        client.connection.send_body(stream, bytes::Bytes::from_static(b"event"), false).expect("open");
        client.frames();
        assert_eq!(client.send(&probe), NONE, "event {event}");
        assert_eq!(client.open_window(100_001, 5), NONE, "event {event}");
    }
    // It has been paid for: those that follow without any data are not.
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let events: Vec<_> = (0..1_000).flat_map(|_| client.send(&ping)).collect();
    client.assert_closes(&events, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn cve_2019_9515_settings_flood() {
    // The first settings of the connection count as well.
    let limits = Limits { settings: Allowance { burst: 11, per_second: 1 }, ..Limits::default() };
    assert_counted(limits, |client, _| client.send_settings(&[]));
}

#[test]
fn cve_2019_9518_empty_frames() {
    let limits = || Limits { empty_frames: FEW, ..Limits::default() };
    assert_counted(limits(), |client, _| client.data(1, b"", false));
    assert_counted(limits(), |client, _| client.send_frame(kind::DATA, flag::PADDED, 1, b"\0"));
}

#[test]
fn cve_2019_9513_priorities_and_other_frames_that_change_nothing() {
    let limits = || Limits { idle_frames: FEW, ..Limits::default() };
    assert_counted(limits(), |client, _| client.send_frame(kind::PRIORITY, 0, 1, b"\0\0\0\0\0"));
    assert_counted(limits(), |client, _| client.send_frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"));
    assert_counted(limits(), |client, _| client.send_frame(0xfa, 0, 0, b""));
    assert_counted(limits(), |client, _| client.send_frame(kind::GOAWAY, 0, 0, &[0; 8]));
}

#[test]
fn cve_2019_9517_windows_that_open_by_little() {
    let limits = || Limits { small_updates: FEW, ..Limits::default() };
    assert_counted(limits(), |client, _| client.open_window(0, 1));
    assert_counted(limits(), |client, _| client.open_window(1, 1_023));
    let mut client = Client::with(limits());
    for _ in 0..1_000 {
        assert_eq!(client.open_window(0, 1_024), NONE);
    }
    let limits = || Limits { small_windows: FEW, ..Limits::default() };
    assert_counted(limits(), |client, time| client.send_settings(&[Setting::InitialWindowSize(time)]));
}

#[test]
fn cve_2019_9511_data_that_dribbles_pays_for_nothing() {
    let mut client = Client::with(Limits { small_windows: FEW, ..Limits::default() });
    client.send_settings(&[Setting::InitialWindowSize(0)]);
    client.get(1);
    client.answer(&[0; 1_000]);
    client.frames();
    for _ in 0..9 {
        assert_eq!(client.open_window(1, 1), NONE);
        assert_eq!(client.frames(), ["DATA 1 1"]);
    }
    let events = client.open_window(1, 1);
    client.assert_closes(&events, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn rfc9113_5_1_windows_that_open_after_the_end_are_never_too_many() {
    // Go's clients open the stream's window by what they have read, in steps of 4 KiB, and that when the
    // stream may have ended.
    let mut client = Client::new();
    for stream in (0..10_000).map(|call| 1 + 2 * call) {
        client.get(stream);
        client.answer(&[0; 16 << 10]);
        client.frames();
        for _ in 0..4 {
            assert_eq!(client.open_window(stream, 4 << 10), NONE, "stream {stream}");
        }
        assert_eq!(client.open_window(0, 16 << 10), NONE);
    }
}

#[test]
fn rfc9113_5_1_what_was_on_its_way_may_be_a_window_in_small_frames() {
    let mut client = Client::new();
    for stream in [1, 3, 5, 7] {
        client.post(stream);
        client.answer(b"too early");
    }
    for time in 0..10_485 {
        for stream in [1, 3, 5, 7] {
            assert_eq!(client.data(stream, &[0; 25], false), NONE, "message {time}");
        }
    }
}

#[test]
fn frames_on_streams_that_have_ended() {
    let limits = || Limits { late_frames: FEW, ..Limits::default() };
    let reset = |client: &mut Client, time: u32, payload: &[u8], kind| {
        if time == 0 {
            client.connection.reset(client.streams[0], ErrorCode::CANCEL);
        }
        client.send_frame(kind, 0, 1, payload)
    };
    assert_counted(limits(), |client, time| reset(client, time, b"late", kind::DATA));
    assert_counted(limits(), |client, time| reset(client, time, b"\0\0\0\x08", kind::RST_STREAM));
    assert_counted(limits(), |client, time| {
        reset(client, time, &5_000_u32.to_be_bytes(), kind::WINDOW_UPDATE)
    });
}
