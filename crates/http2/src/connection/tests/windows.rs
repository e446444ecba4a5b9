//! Flow control (RFC 9113 §5.2, §6.9).

use super::*;

const STREAM: u32 = 65_535;

fn small_windows() -> Limits {
    Limits { stream_receive_bytes: STREAM, connection_receive_bytes: 100_000, ..Limits::default() }
}

#[test]
fn rfc9113_5_2_credit_is_given_back_when_bytes_are_consumed() {
    let mut client = Client::with(small_windows());
    client.post(1);
    let stream = client.streams[0];
    for _ in 0..3 {
        assert_eq!(client.data(1, &[0; 16_000], false), ["data 1 16000"]);
    }
    assert_eq!(client.frames(), NONE);
    client.connection.consumed(stream, 32_000);
    assert_eq!(client.frames(), NONE, "less than half of a window");
    client.connection.consumed(stream, 16_000);
    assert_eq!(client.frames(), ["WINDOW_UPDATE 1 48000"]);
    client.data(1, &[0; 16_000], false);
    assert_eq!(client.frames(), ["WINDOW_UPDATE 0 48000"], "more than what is left");
    client.connection.consumed(stream, 16_000);
    // More than was received is not given back.
    client.connection.consumed(stream, 1_000_000);
    assert_eq!(client.frames(), NONE);
}

/// Sends a window's worth of a body.
fn fill_window(client: &mut Client, stream: u32) {
    for _ in 0..16 {
        assert_eq!(client.data(stream, &[0; 16 << 10], false), [format!("data {stream} 16384")]);
    }
}

#[test]
fn the_connections_credit_is_not_withheld_while_others_hold_the_rest() {
    let mut client = Client::new();
    for stream in [1, 3, 5, 7] {
        client.post(stream);
        fill_window(&mut client, stream);
    }
    let last = client.streams[3];
    client.connection.consumed(last, 1 << 20);
    assert_eq!(client.frames(), ["WINDOW_UPDATE 0 262144", "WINDOW_UPDATE 7 262144"]);
}

#[test]
fn credit_that_is_withheld_is_given_once_little_is_left() {
    let mut client = Client::new();
    client.post(1);
    fill_window(&mut client, 1);
    let first = client.streams[0];
    client.connection.consumed(first, 1 << 20);
    assert_eq!(client.frames(), ["WINDOW_UPDATE 1 262144"]);
    for stream in [3, 5, 7] {
        client.post(stream);
        fill_window(&mut client, stream);
    }
    assert_eq!(client.frames(), ["WINDOW_UPDATE 0 262144"]);
}

#[test]
fn rfc9113_6_9_1_more_than_the_streams_window() {
    let mut client = Client::with(small_windows());
    client.post(1);
    for _ in 0..4 {
        client.data(1, &[0; 16_000], false);
    }
    assert_eq!(client.data(1, &[0; 1_536], false), ["reset 1 FLOW_CONTROL_ERROR"]);
    client.assert_resets(1, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn rfc9113_6_9_1_more_than_the_connections_window() {
    let mut client = Client::with(small_windows());
    client.post(1);
    client.post(3);
    for stream in [1, 3] {
        for _ in 0..3 {
            client.data(stream, &[0; 16_000], false);
        }
    }
    let events = client.data(1, &[0; 4_001], false);
    client.assert_closes(&events, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn rfc9113_6_1_padding_counts_and_is_given_back_at_once() {
    let mut client = Client::with(small_windows());
    client.post(1);
    let mut payload = vec![200];
    payload.resize(1 + 200, 0);
    for _ in 0..164 {
        assert_eq!(client.send_frame(kind::DATA, flag::PADDED, 1, &payload), NONE);
    }
    assert_eq!(client.frames(), ["WINDOW_UPDATE 1 32964"]);
}

#[test]
fn a_stream_that_ends_gives_back_what_it_held() {
    let mut client = Client::with(small_windows());
    for stream in [1, 3, 5, 7] {
        client.post(stream);
        for _ in 0..3 {
            client.data(stream, &[0; 16_000], false);
        }
        let key = *client.streams.last().expect("a stream");
        client.connection.reset(key, ErrorCode::CANCEL);
        // What nobody can see any more counts as consumed at once.
        client.data(stream, &[0; 16_000], false);
    }
    let frames = client.frames();
    let given: u32 = frames
        .iter()
        .filter_map(|frame| frame.strip_prefix("WINDOW_UPDATE 0 "))
        .map(|bytes| bytes.parse::<u32>().expect("a number"))
        .sum();
    assert!(given >= 4 * 64_000 - 50_000, "{frames:?}");
}

#[test]
fn rfc9113_6_9_1_nothing_is_sent_beyond_the_streams_window() {
    let mut client = Client::new();
    client.send_settings(&[Setting::InitialWindowSize(3)]);
    client.frames();
    client.get(1);
    client.answer(b"hello world");
    assert_eq!(client.frames(), ["HEADERS 1 :status=200", "DATA 1 3"]);
    client.open_window(1, 1);
    assert_eq!(client.frames(), ["DATA 1 1"]);
    client.open_window(1, 100);
    assert_eq!(client.frames(), ["DATA 1 7 end"]);
}

#[test]
fn rfc9113_6_9_1_nothing_is_sent_beyond_the_connections_window() {
    let mut client = Client::new();
    client.send_settings(&[Setting::InitialWindowSize(1 << 20)]);
    client.frames();
    client.get(1);
    client.answer(&[0; 70_000]);
    let sent: Vec<_> = client.frames();
    assert_eq!(sent.len(), 1 + 5);
    assert_eq!(client.connection.output.send_window, 0);
    // What has no body does not wait.
    client.get(3);
    let stream = client.streams[1];
    client.connection.respond(stream, 204, None, [], true).expect("open");
    assert_eq!(client.frames(), ["HEADERS 3 :status=204 end"]);
    client.open_window(0, 10_000);
    assert_eq!(client.frames(), ["DATA 1 4465 end"]);
}

#[test]
fn rfc9113_6_9_2_windows_move_with_the_setting_and_may_be_negative() {
    let mut client = Client::new();
    client.get(1);
    client.send_settings(&[Setting::InitialWindowSize(10)]);
    client.answer(&[0; 30]);
    assert_eq!(client.frames(), ["SETTINGS ACK", "HEADERS 1 :status=200", "DATA 1 10"]);
    client.send_settings(&[Setting::InitialWindowSize(3)]);
    client.open_window(1, 7);
    assert_eq!(client.frames(), ["SETTINGS ACK"], "-7, then 0");
    client.open_window(1, 1);
    assert_eq!(client.frames(), ["DATA 1 1"]);
    client.send_settings(&[Setting::InitialWindowSize(1_000)]);
    assert_eq!(client.frames(), ["SETTINGS ACK", "DATA 1 19 end"]);
}

#[test]
fn windows_move_once_a_frame_of_settings() {
    // Each walk costs more than the 6 bytes of a setting.
    let few = crate::limits::Allowance { burst: 1, per_second: 1 };
    let mut client = Client::with(Limits { small_windows: few, ..Limits::default() });
    client.get(1);
    let mut settings = [Setting::InitialWindowSize(0), Setting::InitialWindowSize(7)].repeat(1_000);
    assert_eq!(client.send_settings(&settings), NONE);
    client.answer(&[0; 10]);
    assert_eq!(client.frames(), ["SETTINGS ACK", "HEADERS 1 :status=200", "DATA 1 7"]);

    let mut client = Client::new();
    client.get(1);
    client.open_window(1, 65_536);
    settings.insert(1_000, Setting::InitialWindowSize((1 << 31) - 1));
    let events = client.send_settings(&settings);
    client.assert_closes(&events, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn rfc9113_6_9_1_windows_that_overflow() {
    let mut client = Client::new();
    let events = client.open_window(0, (1 << 31) - 1);
    client.assert_closes(&events, ErrorCode::FLOW_CONTROL_ERROR);

    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.open_window(1, (1 << 31) - 1), ["reset 1 FLOW_CONTROL_ERROR"]);
    client.assert_resets(1, ErrorCode::FLOW_CONTROL_ERROR);

    let mut client = Client::new();
    client.get(1);
    client.open_window(1, 65_536);
    let events = client.send_settings(&[Setting::InitialWindowSize((1 << 31) - 1)]);
    client.assert_closes(&events, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn rfc9113_6_9_windows_that_open_by_nothing() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.open_window(1, 0), ["reset 1 PROTOCOL_ERROR"]);
    client.assert_resets(1, ErrorCode::PROTOCOL_ERROR);
    let events = client.open_window(0, 0);
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
}
