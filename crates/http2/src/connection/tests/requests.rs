//! Requests that are right (RFC 9113 §8).

use super::*;

#[test]
fn rfc9113_8_1_request_without_body() {
    let mut client = Client::new();
    let fields = and(GET, &[("accept", "*/*"), ("te", "trailers")]);
    assert_eq!(client.headers(1, flag::END_STREAM, &fields), ["request 1 GET / accept=*/* te=trailers end"]);
    client.answer(b"hello");
    assert_eq!(client.frames(), ["HEADERS 1 :status=200", "DATA 1 5 end"]);
    assert_eq!(client.connection.streams(), 0);
}

#[test]
fn rfc9113_8_1_request_with_body_and_trailers() {
    let mut client = Client::new();
    assert_eq!(client.post(1), ["request 1 POST /"]);
    assert_eq!(client.data(1, b"abc", false), ["data 1 3"]);
    assert_eq!(client.data(1, b"", false), NONE);
    assert_eq!(client.data(1, b"de", false), ["data 1 2"]);
    assert_eq!(client.headers(1, flag::END_STREAM, &[("checksum", "1")]), ["trailers 1 checksum=1"]);
    client.answer(b"");
    assert_eq!(client.frames(), ["HEADERS 1 :status=200", "DATA 1 0 end"]);
}

#[test]
fn rfc9113_8_1_1_body_as_long_as_content_length() {
    let mut client = Client::new();
    client.headers(1, 0, &and(POST, &[("content-length", "5")]));
    assert_eq!(client.data(1, b"abc", false), ["data 1 3"]);
    assert_eq!(client.data(1, b"de", true), ["data 1 2 end"]);
    let fields = and(POST, &[("content-length", "0"), ("content-length", "0")]);
    assert_eq!(client.headers(3, flag::END_STREAM, &fields).len(), 1);
}

#[test]
fn rfc9113_6_10_block_in_many_frames() {
    let mut client = Client::new();
    let block = client.block(&and(GET, &[("x-long", &"x".repeat(100))]));
    let (first, rest) = block.split_at(10);
    assert_eq!(client.send_frame(kind::HEADERS, flag::END_STREAM, 1, first), NONE);
    for piece in rest[..20].chunks(4) {
        assert_eq!(client.send_frame(kind::CONTINUATION, 0, 1, piece), NONE);
    }
    let events = client.send_frame(kind::CONTINUATION, flag::END_HEADERS, 1, &rest[20..]);
    assert_eq!(events, [format!("request 1 GET / x-long={} end", "x".repeat(100))]);
    assert_eq!(client.get(3), ["request 3 GET / end"]);
}

#[test]
fn rfc9113_8_5_connect() {
    let mut client = Client::new();
    let connect = [(":method", "CONNECT"), (":authority", "host:443")];
    assert_eq!(client.headers(1, 0, &connect), ["request 1 CONNECT "]);
}

#[test]
fn rfc8441_4_extended_connect() {
    let mut client = Client::new();
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "sluice"),
    ];
    assert_eq!(client.headers(1, 0, &fields), ["request 1 CONNECT /chat"]);
    assert_eq!(client.connection.request().protocol(), Some(&b"websocket"[..]));
    assert_eq!(client.data(1, b"frame", false), ["data 1 5"]);
}

#[test]
fn rfc9113_8_3_1_options_of_the_whole_server_and_host_instead_of_authority() {
    let mut client = Client::new();
    let fields = [(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), ("host", "sluice")];
    assert_eq!(client.headers(1, flag::END_STREAM, &fields), ["request 1 OPTIONS * host=sluice end"]);
    let both = and(GET, &[("host", "SLUICE")]);
    assert_eq!(client.headers(3, flag::END_STREAM, &both), ["request 3 GET / host=SLUICE end"]);
}

#[test]
fn input_may_be_cut_at_every_byte() {
    let mut session = PREFACE.to_vec();
    write::settings(&mut session, &[Setting::InitialWindowSize(1_000)]);
    let mut encoder = Encoder::new();
    for stream in [1, 3] {
        let mut block = Vec::new();
        encoder.encode(POST.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut block);
        session.extend(frame(kind::HEADERS, 0, stream, &block[..3]));
        session.extend(frame(kind::CONTINUATION, flag::END_HEADERS, stream, &block[3..]));
        session.extend(frame(kind::DATA, flag::END_STREAM | flag::PADDED, stream, b"\x02body\0\0"));
    }
    let expected = ["request 1 POST /", "data 1 4 end", "request 3 POST /", "data 3 4 end"];
    for cut in 0..=session.len() {
        let mut client = Client::silent(Limits::default(), EmitMode::Auto);
        let mut events = client.send(&session[..cut]);
        events.extend(client.send(&session[cut..]));
        assert_eq!(events, expected, "cut at {cut}");
    }
    let mut client = Client::silent(Limits::default(), EmitMode::Auto);
    let events: Vec<_> = session.iter().flat_map(|&byte| client.send(&[byte])).collect();
    assert_eq!(events, expected);
}

/// A block that comes again is not decoded again, as long as it means the same.
#[test]
fn rfc7541_2_2_the_same_octets_mean_the_same_until_the_table_changes() {
    let mut client = Client::new();
    let again = |client: &mut Client, stream| {
        let events = client.get(stream);
        assert_eq!(events, [format!("request {stream} GET / end")]);
    };
    (1..).step_by(2).take(4).for_each(|stream| again(&mut client, stream));
    let octets = client.block(GET);
    assert_eq!(client.connection.repeated, octets);

    // Other requests, trailers and bad ones come in between.
    assert_eq!(client.post(11), ["request 11 POST /"]);
    assert_eq!(client.headers(11, flag::END_STREAM, &[(":status", "200")]), ["reset 11 PROTOCOL_ERROR"]);
    again(&mut client, 13);
    assert_eq!(client.post(15), ["request 15 POST /"]);
    again(&mut client, 17);
    again(&mut client, 19);
    assert_eq!(client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 15, &octets).len(), 1);
    again(&mut client, 21);

    // What was `:authority` is another field, once one more is in the table.
    client.headers(23, flag::END_STREAM, &and(GET, &[("x-new", "1")]));
    client.frames();
    assert_eq!(client.send_frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 25, &octets), NONE);
    assert_eq!(client.frames(), ["RST_STREAM 25 PROTOCOL_ERROR"]);
}

/// RFC 7541 §4.2.
#[test]
fn rfc7541_4_2_the_same_octets_are_wrong_once_the_table_has_to_be_smaller() {
    let mut client = Client::silent(Limits { decoder_table_bytes: 0, ..Limits::default() }, EmitMode::Auto);
    let mut hello = PREFACE.to_vec();
    write::settings(&mut hello, &[]);
    client.send(&hello);
    for stream in [1, 3, 5] {
        assert_eq!(client.get(stream).len(), 1);
    }
    client.send_frame(kind::SETTINGS, flag::ACK, 0, b"");
    let events = client.get(7);
    client.assert_closes(&events, ErrorCode::COMPRESSION_ERROR);
}
