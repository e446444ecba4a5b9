//! Ends of connections in order (RFC 9113 §6.8).

use super::*;

#[test]
fn rfc9113_6_8_goaway_in_two_steps() {
    let mut client = Client::new();
    client.get(1);
    client.connection.shut_down(client.now_us);
    assert_eq!(client.frames(), ["GOAWAY 2147483647 NO_ERROR", "PING draining"]);
    // Was on its way: it is served.
    assert_eq!(client.get(3), ["request 3 GET / end"]);
    client.send_frame(kind::PING, flag::ACK, 0, b"draining");
    assert_eq!(client.frames(), ["GOAWAY 3 NO_ERROR"]);
    // After the last one: nothing is done for it, and it may be sent again elsewhere.
    assert_eq!(client.headers(5, 0, &and(POST, &[("new-in-table", "x")])), NONE);
    assert_eq!(client.data(5, b"body", true), NONE);
    assert_eq!(client.frames(), NONE);
    for stream in client.streams.clone() {
        assert!(!client.connection.is_done());
        client.connection.respond(stream, 200, None, [], true).expect("open");
    }
    assert!(!client.connection.is_done(), "the last answer is not written");
    assert_eq!(client.frames(), ["HEADERS 1 :status=200 end", "HEADERS 3 :status=200 end"]);
    assert!(client.connection.is_done());
}

#[test]
fn rfc9113_6_8_the_last_stream_does_not_grow() {
    let mut client = Client::new();
    client.get(1);
    client.connection.shut_down(client.now_us);
    client.send_frame(kind::PING, flag::ACK, 0, b"draining");
    client.frames();
    assert_eq!(client.get(3), NONE, "it is to be asked elsewhere");
    let events = client.send_frame(kind::PING, 0, 1, &[0; 8]);
    assert_eq!(events, ["closed PROTOCOL_ERROR"]);
    assert_eq!(client.frames(), ["GOAWAY 1 PROTOCOL_ERROR"]);
}

#[test]
fn rfc9113_6_8_the_second_step_does_not_wait_for_ever() {
    let mut client = Client::new();
    client.connection.shut_down(client.now_us);
    client.connection.shut_down(client.now_us);
    client.frames();
    assert_eq!(client.wait(Limits::default().drain_us), NONE);
    assert_eq!(client.frames(), ["GOAWAY 0 NO_ERROR"]);
    assert!(client.connection.is_done());
}

#[test]
fn rfc9113_6_8_a_client_that_leaves_gets_its_answers() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.send_frame(kind::GOAWAY, 0, 0, &[0; 8]), ["goaway NO_ERROR"]);
    assert!(!client.connection.is_done());
    client.answer(b"bye");
    assert_eq!(client.frames(), ["HEADERS 1 :status=200", "DATA 1 3 end", "GOAWAY 1 NO_ERROR"]);
    assert!(client.connection.is_done());
}

#[test]
fn rfc9113_6_8_a_client_that_leaves_is_told_what_was_served() {
    let mut client = Client::new();
    client.get(1);
    client.answer(b"bye");
    client.frames();
    let mut bytes = frame(kind::GOAWAY, 0, 0, &[0; 8]);
    let block = client.block(GET);
    bytes.extend(frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, 3, &block));
    assert_eq!(client.send(&bytes), ["goaway NO_ERROR"]);
    assert_eq!(client.frames(), ["GOAWAY 1 NO_ERROR"]);
    assert!(client.connection.is_done());
}

#[test]
fn rfc9113_5_4_2_a_reset_of_ours_ends_a_stream_once() {
    let mut client = Client::new();
    client.get(1);
    let stream = client.streams[0];
    client.connection.reset(stream, ErrorCode::INTERNAL_ERROR);
    client.connection.reset(stream, ErrorCode::CANCEL);
    assert_eq!(client.frames(), ["RST_STREAM 1 INTERNAL_ERROR"]);
}

#[test]
fn a_reset_takes_what_was_queued() {
    let mut client = Client::new();
    client.get(1);
    client.answer(&[0; 200_000]);
    client.plan();
    assert_eq!(client.send_frame(kind::RST_STREAM, 0, 1, b"\0\0\0\x08"), ["reset 1 CANCEL"]);
    assert_eq!(client.frames(), NONE);
    client.get(3);
    assert_ne!(client.streams[0], client.streams[1], "a key is never used again");
    assert!(client.connection.respond(client.streams[0], 200, None, [], true).is_err());
}
