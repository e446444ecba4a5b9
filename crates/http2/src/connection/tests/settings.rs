//! The preface, SETTINGS, PING (RFC 9113 §3.4, §6.5, §6.7).

use super::*;

#[test]
fn rfc9113_3_4_both_sides_begin_with_settings() {
    let mut client = Client::silent(Limits::default(), EmitMode::Auto);
    assert_eq!(client.frames(), ["SETTINGS", "WINDOW_UPDATE 0 983041"]);
    client.send(PREFACE);
    client.send_settings(&[]);
    assert_eq!(client.frames(), ["SETTINGS ACK"]);
}

#[test]
fn rfc9113_3_4_another_preface_ends_the_connection() {
    let mut client = Client::silent(Limits::default(), EmitMode::Auto);
    let events = client.send(b"GET / HTTP/1.1\r\n\r\n");
    client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_3_4_the_first_frame_is_settings() {
    for first in [frame(kind::PING, 0, 0, &[0; 8]), frame(kind::SETTINGS, flag::ACK, 0, b"")] {
        let mut client = Client::silent(Limits::default(), EmitMode::Auto);
        client.send(PREFACE);
        let events = client.send(&first);
        client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
    }
}

#[test]
fn rfc9113_6_5_3_settings_are_acknowledged_in_order() {
    let mut client = Client::new();
    client.send_settings(&[Setting::HeaderTableSize(0), Setting::HeaderTableSize(4_096)]);
    client.send_settings(&[Setting::MaxFrameSize(1 << 20), Setting::EnablePush(false)]);
    assert_eq!(client.frames(), ["SETTINGS ACK", "SETTINGS ACK"]);
    // Unknown ones are passed over (§6.5.2).
    assert_eq!(client.send_frame(kind::SETTINGS, 0, 0, &[0xff, 0xff, 1, 2, 3, 4]), NONE);
    assert_eq!(client.frames(), ["SETTINGS ACK"]);
}

#[test]
fn rfc9113_6_5_2_wrong_settings_end_the_connection() {
    let mut client = Client::new();
    let events = client.send_settings(&[Setting::InitialWindowSize(1 << 31)]);
    client.assert_closes(&events, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn rfc9218_2_1_what_was_said_of_older_priorities_stays() {
    for (first, then) in [(&[Setting::NoRfc7540Priorities(true)][..], false), (&[], true)] {
        let mut client = Client::silent(Limits::default(), EmitMode::Auto);
        client.send(PREFACE);
        assert_eq!(client.send_settings(first), NONE);
        assert_eq!(client.send_settings(&[Setting::NoRfc7540Priorities(!then)]), NONE);
        let events = client.send_settings(&[Setting::NoRfc7540Priorities(then)]);
        client.assert_closes(&events, ErrorCode::PROTOCOL_ERROR);
    }
}

#[test]
fn rfc7541_4_2_a_smaller_table_is_told_in_the_next_block() {
    let mut client = Client::new();
    client.send_settings(&[Setting::HeaderTableSize(0)]);
    client.get(1);
    client.answer(b"");
    let bytes = client.plan();
    let ack = FrameHeader::BYTES;
    let block = &bytes[ack + FrameHeader::BYTES..];
    assert_eq!(block[0], 0x20, "a size update to 0");
}

#[test]
fn rfc9113_6_7_pings_are_answered() {
    let mut client = Client::new();
    assert_eq!(client.send_frame(kind::PING, 0, 0, b"12345678"), NONE);
    assert_eq!(client.send_frame(kind::PING, flag::ACK, 0, b"12345678"), NONE);
    assert_eq!(client.frames(), ["PING ACK 12345678"]);
}

#[test]
fn rfc9113_4_2_a_frame_that_is_too_large_ends_the_connection_before_it_is_read() {
    let mut client = Client::new();
    let header = FrameHeader { length: 16_385, kind: kind::DATA, flags: 0, stream: 1 };
    let events = client.send(&header.to_bytes());
    client.assert_closes(&events, ErrorCode::FRAME_SIZE_ERROR);
}

#[test]
fn rfc9113_5_5_unknown_frames_are_passed_over() {
    let mut client = Client::new();
    assert_eq!(client.send_frame(0xfa, 0xff, 0, b"anything"), NONE);
    assert_eq!(client.send_frame(0xfa, 0, 77, b""), NONE);
    assert_eq!(client.get(1), ["request 1 GET / end"]);
}
