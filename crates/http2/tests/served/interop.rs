//! hyper's client against a server on this stack, in clear text and over TLS, through pipes of all kinds.

use super::support::*;
use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use sluice_http2::emit::EmitMode;

const MODES: [EmitMode; 4] = [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive];

/// Requests of all kinds on one connection, at the same time.
async fn ask_everything(transport: &Transport, pipe_bytes: usize, mode: EmitMode, chop: Option<u64>) {
    let sender = transport.connect(pipe_bytes, mode, chop).await;
    let asked = [0, 3, 1_024, 16_384, 70_000, 300_000].map(|bytes| {
        let (mut down, mut up) = (sender.clone(), sender.clone());
        async move {
            let answer = ask(&mut down, request("GET", &format!("/size/{bytes}"), no_body())).await;
            assert!(answer == (StatusCode::OK, pattern(bytes)), "{bytes} down");
            let answer = ask(&mut up, request("POST", "/echo", full(pattern(bytes)))).await;
            assert!(answer == (StatusCode::OK, pattern(bytes)), "{bytes} up and down");
        }
    });
    join_all(asked).await;
}

#[tokio::test]
async fn everything_in_clear_text() {
    for mode in MODES {
        ask_everything(&Transport::Plain, 64 << 10, mode, None).await;
    }
}

#[tokio::test]
async fn everything_over_tls() {
    let transport = Transport::tls();
    for mode in MODES {
        ask_everything(&transport, 64 << 10, mode, None).await;
    }
}

#[tokio::test]
async fn everything_in_random_pieces() {
    let tls = Transport::tls();
    for seed in 0..4 {
        ask_everything(&Transport::Plain, 1_000 << seed, EmitMode::Auto, Some(seed)).await;
        ask_everything(&tls, 1_000 << seed, EmitMode::Auto, Some(seed)).await;
    }
}

#[tokio::test]
async fn forty_downloads_on_four_connections() {
    let transport = Transport::tls();
    let connections = (0..4).map(|_| async {
        let sender = transport.connect(64 << 10, EmitMode::Auto, None).await;
        join_all((0..10).map(|_| async {
            let answer = ask(&mut sender.clone(), request("GET", "/size/262144", no_body())).await;
            assert!(answer == (StatusCode::OK, pattern(262_144)));
        }))
        .await;
    });
    join_all(connections).await;
}

#[tokio::test]
async fn pieces_keep_their_order() {
    let mut sender = Transport::tls().connect(64 << 10, EmitMode::Auto, None).await;
    let (_, body) = ask(&mut sender, request("GET", "/pieces/64", no_body())).await;
    let expected: Vec<u8> = (0..64).flat_map(|number| [number; 8 << 10]).collect();
    assert!(body == expected);
}

#[tokio::test]
async fn trailers_both_ways() {
    let mut sender = Transport::tls().connect(64 << 10, EmitMode::Auto, None).await;
    let response = sender.send_request(request("GET", "/trailers", no_body())).await.expect("an answer");
    let collected = response.into_body().collect().await.expect("a body");
    assert_eq!(collected.trailers().expect("trailers")["grpc-status"], "0");
    assert_eq!(collected.to_bytes(), "body");

    let trailers =
        [("checksum".parse().expect("a name"), "1".parse().expect("a value"))].into_iter().collect();
    let frames = [Ok(Frame::data(Bytes::from_static(b"up"))), Ok(Frame::trailers(trailers))];
    let body = StreamBody::new(futures_util::stream::iter(frames)).boxed();
    let response = sender.send_request(request("POST", "/echo", body)).await.expect("an answer");
    let collected = response.into_body().collect().await.expect("a body");
    assert_eq!(collected.trailers().expect("trailers")["checksum"], "1");
}

#[tokio::test]
async fn heads_and_answers_without_a_body() {
    let mut sender = Transport::Plain.connect(64 << 10, EmitMode::Auto, None).await;
    let mut with_fields = request("GET", "/head?a=b", no_body());
    with_fields.headers_mut().append("cookie", "a=1".parse().expect("a value"));
    with_fields.headers_mut().append("cookie", "b=2".parse().expect("a value"));
    with_fields.headers_mut().append("x", "1".parse().expect("a value"));
    with_fields.headers_mut().append("x", "2".parse().expect("a value"));
    let (_, head) = ask(&mut sender, with_fields).await;
    assert_eq!(
        head, "GET https://localhost/head?a=b cookie=\"a=1; b=2\" x=\"1\" x=\"2\"",
        "pieces of a cookie become one (RFC 9113 §8.2.3)"
    );

    let response = sender.send_request(request("HEAD", "/size/1000", no_body())).await.expect("an answer");
    assert_eq!(response.headers()["content-length"], "1000");
    assert!(response.headers().contains_key("date"));
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "");
    for status in [200, 204, 304, 404] {
        let (got, body) = ask(&mut sender, request("GET", &format!("/status/{status}"), no_body())).await;
        assert_eq!((got.as_u16(), body.len()), (status, 0));
    }
}

#[tokio::test]
async fn heads_that_are_not_right_are_put_right_or_not_sent() {
    let mut sender = Transport::Plain.connect(64 << 10, EmitMode::Auto, None).await;
    let response = sender.send_request(request("GET", "/lies/204", no_body())).await.expect("an answer");
    assert!(!response.headers().contains_key("content-length"), "RFC 9110 §8.6");
    let response = sender.send_request(request("GET", "/lies/304", no_body())).await.expect("an answer");
    assert_eq!(response.headers()["content-length"], "5");
    // A final response is none of these (RFC 9113 §8.1, §8.6).
    for status in [100, 101, 103] {
        let path = format!("/status/{status}");
        let error = sender.send_request(request("GET", &path, no_body())).await.expect_err("reset");
        assert!(format!("{error:?}").contains("INTERNAL_ERROR"), "{error:?}");
    }
}

#[tokio::test]
async fn two_hundred_streams_are_dropped_and_the_next_is_served() {
    let mut sender = Transport::tls().connect(64 << 10, EmitMode::Auto, None).await;
    for _ in 0..200 {
        sender.ready().await.expect("a connection");
        let response =
            sender.send_request(request("GET", "/size/100000", no_body())).await.expect("an answer");
        drop(response);
    }
    let answer = ask(&mut sender, request("GET", "/size/100000", no_body())).await;
    assert!(answer == (StatusCode::OK, pattern(100_000)));
}

#[tokio::test]
async fn a_response_that_fails_ends_its_stream_alone() {
    let mut sender = Transport::Plain.connect(64 << 10, EmitMode::Auto, None).await;
    let response = sender.send_request(request("GET", "/fails", no_body())).await;
    let error = match response {
        Ok(response) => response.into_body().collect().await.map(|_| ()).expect_err("broken off"),
        Err(error) => error,
    };
    assert!(format!("{error:?}").contains("INTERNAL_ERROR"), "{error:?}");
    assert_eq!(ask(&mut sender, request("GET", "/size/3", no_body())).await, (StatusCode::OK, pattern(3)));
}
