//! Requests that are not right: an error of their stream alone (RFC 9113 §8.1.1).

use super::*;

/// Each of these header lists is reset, and the connection goes on.
#[track_caller]
fn assert_malformed(lists: &[&[(&str, &str)]]) {
    for list in lists {
        let mut client = Client::new();
        assert_eq!(client.headers(1, 0, list), NONE, "{list:?}");
        client.assert_resets(1, ErrorCode::PROTOCOL_ERROR);
    }
}

#[test]
fn rfc9113_8_2_1_names() {
    for name in ["Upper", "with space", "", "colon:inside", "high\u{e9}", "nul\0", "tab\t", "a=b", "(x)"] {
        assert_malformed(&[&and(GET, &[(name, "x")])]);
    }
}

#[test]
fn rfc9113_8_2_1_values() {
    for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b", " lead", "trail ", "\ttab"] {
        assert_malformed(&[&and(GET, &[("x", value)])]);
    }
}

#[test]
fn rfc9113_8_2_2_fields_of_http_1_connections() {
    for field in [
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ] {
        assert_malformed(&[&and(GET, &[field])]);
    }
}

#[test]
fn rfc9113_8_3_pseudo_header_fields() {
    assert_malformed(&[
        &and(GET, &[(":unknown", "x")]),
        &and(GET, &[(":status", "200")]),
        &and(GET, &[("x", "y"), (":path", "/")]),
        &[("x", "y"), (":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "sluice")],
    ]);
}

#[test]
fn rfc9113_8_3_1_missing_twice_or_empty() {
    for (index, field) in GET.iter().enumerate() {
        let mut without = GET.to_vec();
        without.remove(index);
        assert_malformed(&[&without, &and(GET, &[*field])]);
        without.insert(index, (field.0, ""));
        assert_malformed(&[&without]);
    }
}

#[test]
fn rfc9113_8_3_1_values_that_could_be_read_differently_elsewhere() {
    let with = |name: &'static str, value: &'static str| -> Vec<_> {
        GET.iter().map(|field| if field.0 == name { (name, value) } else { *field }).collect()
    };
    for (name, value) in [
        (":path", "relative"),
        (":path", "/with space"),
        (":path", "/x HTTP/1.1\r\nhost: other"),
        (":path", "*"),
        (":path", "/admin#/public"),
        (":method", "GET /x"),
        (":method", "G\tT"),
        (":scheme", "ht tp"),
        (":scheme", "1http"),
        (":authority", "user@host"),
        (":authority", "host/path"),
        (":authority", "a b"),
    ] {
        assert_malformed(&[&with(name, value)]);
    }
    assert_malformed(&[
        &and(GET, &[("host", "other")]),
        &and(GET, &[("host", "sluice"), ("host", "sluice")]),
        &and(GET, &[("host", "")]),
    ]);
}

#[test]
fn rfc9113_8_5_connect_with_too_much_or_too_little() {
    let connect = [(":method", "CONNECT"), (":authority", "host:443")];
    assert_malformed(&[
        &and(&connect, &[(":path", "/")]),
        &and(&connect, &[(":scheme", "https")]),
        &connect[..1],
        &and(&connect, &[("host", "other:443")]),
        &and(&[(":protocol", "websocket")], &connect),
        &and(GET, &[(":protocol", "websocket")]),
    ]);
}

#[test]
fn rfc9113_8_1_1_content_length() {
    for value in ["-1", "+1", "1x", "", "99999999999999999999", "1, 1"] {
        assert_malformed(&[&and(POST, &[("content-length", value)])]);
    }
    assert_malformed(&[&and(POST, &[("content-length", "1"), ("content-length", "2")])]);

    let mut client = Client::new();
    assert_eq!(client.headers(1, flag::END_STREAM, &and(POST, &[("content-length", "1")])), NONE);
    client.assert_resets(1, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_8_1_1_body_of_another_length() {
    let long: (&[u8], bool) = (b"abcd", false);
    for (data, end) in [long, (b"ab", true)] {
        let mut client = Client::new();
        client.headers(1, 0, &and(POST, &[("content-length", "3")]));
        assert_eq!(client.data(1, data, end), ["reset 1 PROTOCOL_ERROR"]);
        client.assert_resets(1, ErrorCode::PROTOCOL_ERROR);
    }
    let mut client = Client::new();
    client.headers(1, 0, &and(POST, &[("content-length", "3")]));
    assert_eq!(client.headers(1, flag::END_STREAM, &[("x", "y")]), ["reset 1 PROTOCOL_ERROR"]);
}

#[test]
fn rfc9113_8_1_trailers() {
    for (flags, field) in
        [(0, ("x", "y")), (flag::END_STREAM, (":path", "/")), (flag::END_STREAM, ("Upper", "x"))]
    {
        let mut client = Client::new();
        client.post(1);
        assert_eq!(client.headers(1, flags, &[field]), ["reset 1 PROTOCOL_ERROR"]);
        client.assert_resets(1, ErrorCode::PROTOCOL_ERROR);
    }
}

#[test]
fn rfc7540_5_3_1_a_stream_that_depends_on_itself() {
    let mut client = Client::new();
    let block = client.block(GET);
    let payload = [&b"\0\0\0\x01\x10"[..], &block].concat();
    let flags = flag::PRIORITY | flag::END_HEADERS | flag::END_STREAM;
    assert_eq!(client.send_frame(kind::HEADERS, flags, 1, &payload), NONE);
    client.assert_resets(1, ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn rfc9113_10_5_1_a_list_that_is_too_large_is_answered_with_431() {
    let mut client = Client::with(Limits { header_list_bytes: 1_024, ..Limits::default() });
    let large = "x".repeat(1_000);
    assert_eq!(client.headers(1, flag::END_STREAM, &and(GET, &[("x", &large)])), NONE);
    assert_eq!(client.frames(), ["HEADERS 1 :status=431 content-length=0 end"]);
    assert_eq!(client.headers(3, 0, &and(GET, &[("x", &large)])), NONE);
    assert_eq!(client.frames(), ["HEADERS 3 :status=431 content-length=0 end", "RST_STREAM 3 NO_ERROR"]);
    // Both sides' tables are still in step.
    assert_eq!(client.get(5), ["request 5 GET / end"]);
    client.post(7);
    assert_eq!(client.headers(7, flag::END_STREAM, &[("x", &large)]), ["reset 7 ENHANCE_YOUR_CALM"]);
}

#[test]
fn rfc9113_4_3_a_block_that_cannot_be_decoded_ends_the_connection() {
    let mut client = Client::new();
    let events = client.send_frame(kind::HEADERS, flag::END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff");
    client.assert_closes(&events, ErrorCode::COMPRESSION_ERROR);
}
