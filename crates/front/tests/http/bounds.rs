//! Nothing grows without bound, and nobody waits for slow clients.

use std::time::{Duration, Instant};

use sluice_front::http::HttpOptions;

use crate::client::{Bare, request};
use crate::support::Server;
use crate::waits::{soon, until, until_metrics_say, until_receives_wait};

#[tokio::test]
async fn bodies_over_the_limit_are_refused_before_they_are_read() {
    let server = Server::start_with(|_, options| {
        options.limits.payload_bytes = 1_000;
        options.limits.batch_bytes = 4_000;
        options.limits.batch_items = 10;
    })
    .await;
    let answer = server.call_with("POST", "/v1/queues/q/messages/raw", &[], &[b'x'; 1_001]).await;
    assert_eq!((answer.status, answer.code()), (413, "payload_too_large".to_owned()));
    assert_eq!(answer.json()["error"]["details"], serde_json::json!({"size": 1_001, "limit": 1_000}));
    let payload = "x".repeat(1_001);
    let answer = server.post("/v1/queues/q/messages", &format!(r#"{{"payload":"{payload}"}}"#)).await;
    assert_eq!((answer.status, answer.code()), (413, "payload_too_large".to_owned()));
    let messages = [r#"{"payload":"x"}"#; 11].join(",");
    let answer = server.post("/v1/queues/q/messages", &format!(r#"{{"messages":[{messages}]}}"#)).await;
    assert_eq!((answer.status, answer.code()), (413, "batch_too_large".to_owned()));
    let payload = "x".repeat(1 << 20);
    let answer = server.post("/v1/queues/q/messages", &format!(r#"{{"payload":"{payload}"}}"#)).await;
    assert_eq!((answer.status, answer.code()), (413, "body_too_large".to_owned()));
    let mut bare = Bare::connect(server.address).await;
    bare.write(
        "POST /v1/ack HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 99999999999\r\n\r\n",
    )
    .await;
    let begin = Instant::now();
    assert!(bare.read_until("body_too_large").await.starts_with("HTTP/1.1 413"));
    assert!(begin.elapsed() < HttpOptions::default().body_timeout, "it waits for the body");
}

#[tokio::test]
async fn message_headers_over_the_limit_are_refused() {
    let server = Server::start().await;
    let headers: Vec<String> = (0..65).map(|n| format!(r#""h{n}":"x""#)).collect();
    let body = format!(r#"{{"payload":"","headers":{{{}}}}}"#, headers.join(","));
    let answer = server.post("/v1/queues/q/messages", &body).await;
    assert_eq!((answer.status, answer.code()), (413, "headers_too_large".to_owned()));
    let body = format!(r#"{{"payload":"","headers":{{"a":"{}"}}}}"#, "x".repeat(17 << 10));
    let answer = server.post("/v1/queues/q/messages", &body).await;
    assert_eq!((answer.status, answer.code()), (413, "headers_too_large".to_owned()));
    let body = format!(r#"{{"payload":"","content_type":"{}"}}"#, "x".repeat(300));
    let answer = server.post("/v1/queues/q/messages", &body).await;
    assert!((400..500).contains(&answer.status), "{}", answer.message());
}

#[tokio::test]
async fn heads_over_the_limit_are_refused() {
    let server = Server::start().await;
    let mut bare = Bare::connect(server.address).await;
    let fields: String = (0..101).map(|n| format!("h{n}: x\r\n")).collect();
    bare.write(&format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{fields}\r\n")).await;
    let answer = bare.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer:?}");
}

#[tokio::test]
async fn a_slow_head_is_answered_408_unless_it_may_be_one_of_http2() {
    let server = Server::start_with(|http, _| http.head_timeout = Duration::from_millis(200)).await;
    for (start, answered) in [("GET /heal", "request_timeout"), ("P", "")] {
        let mut bare = Bare::connect(server.address).await;
        bare.write(start).await;
        let begin = Instant::now();
        let answer = bare.read_to_end().await;
        assert_eq!(answer.starts_with("HTTP/1.1 408"), !answered.is_empty(), "{answer}");
        assert!(answer.contains(answered), "{answer}");
        assert!(begin.elapsed() < HttpOptions::default().head_timeout, "{:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn a_slow_body_is_answered_408() {
    let server = Server::start_with(|http, _| http.body_timeout = Duration::from_millis(200)).await;
    let mut bare = Bare::connect(server.address).await;
    bare.write("POST /v1/queues/q/messages/raw HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc").await;
    let answer = bare.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("request_timeout"));
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_waiting_one_is_not() {
    let server = Server::start_with(|http, _| {
        http.idle_timeout = Duration::from_millis(200);
        http.head_timeout = Duration::from_millis(100);
    })
    .await;
    let mut idle = Bare::connect(server.address).await;
    let begin = Instant::now();
    idle.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(idle.read_to_end().await.starts_with("HTTP/1.1 200"));
    assert!(begin.elapsed() >= Duration::from_millis(150));
    let answer = server.post("/v1/queues/q/receive", r#"{"wait_ms":800}"#).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let server = Server::start_with(|http, _| {
        http.write_timeout = Duration::from_millis(300);
        http.head_timeout = Duration::from_millis(100);
    })
    .await;
    let payload = vec![b'x'; 1 << 20];
    for _ in 0..16 {
        server.call_with("POST", "/v1/queues/q/messages/raw", &[], &payload).await;
    }
    let mut bare = Bare::connect(server.address).await;
    bare.write("GET /v1/queues/q/messages?payload=true&limit=15 HTTP/1.1\r\nhost: x\r\n\r\n").await;
    until_metrics_say(&server, "sluice_http_connections_cut_total 1").await;
}

#[tokio::test]
async fn connections_over_the_limit_are_told_so() {
    let server = Server::start_with(|http, _| http.connections_max = 1).await;
    let mut first = Bare::connect(server.address).await;
    first.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    first.read_until("ok\n").await;
    let answer = request(server.address, "GET", "/healthz", &[], b"").await;
    assert_eq!(
        (answer.status, answer.code(), answer.header("retry-after")),
        (503, "overloaded".to_owned(), "1")
    );
    drop(first);
    until(async || request(server.address, "GET", "/healthz", &[], b"").await.status == 200).await;
}

#[tokio::test]
async fn requests_over_the_limit_are_pushed_back() {
    let server = Server::start_with(|http, _| http.requests_max = 1).await;
    let waiting = server.post("/v1/queues/q/receive", r#"{"wait_ms":60000}"#);
    let others = async {
        until_receives_wait(&server, 1).await;
        let answer = server.get("/v1/queues").await;
        assert_eq!(
            (answer.status, answer.code(), answer.header("retry-after")),
            (429, "overloaded".to_owned(), "1")
        );
        assert_eq!(server.get("/healthz").await.status, 200);
        server.node.drain();
    };
    let (answer, ()) = tokio::join!(soon(waiting), others);
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn waiting_receives_over_the_limit_are_pushed_back() {
    let server = Server::start_with(|_, options| options.waiting_receives = 1).await;
    let waiting = server.post("/v1/queues/q/receive", r#"{"wait_ms":60000}"#);
    let others = async {
        until_receives_wait(&server, 1).await;
        let answer = soon(server.post("/v1/queues/q/receive", r#"{"wait_ms":60000}"#)).await;
        assert_eq!((answer.status, answer.code()), (429, "overloaded".to_owned()));
        assert_ne!(answer.header("retry-after"), "");
        server.node.drain();
    };
    tokio::join!(soon(waiting), others);
}

#[tokio::test]
async fn bodies_over_the_memory_allowed_are_pushed_back() {
    let server = Server::start_with(|http, _| http.bodies_bytes_max = 1_000).await;
    let answer = server.call_with("POST", "/v1/queues/q/messages/raw", &[], &[b'x'; 2_000]).await;
    assert_eq!((answer.status, answer.code()), (429, "overloaded".to_owned()));
    assert_eq!(server.call_with("POST", "/v1/queues/q/messages/raw", &[], &[b'x'; 900]).await.status, 201);
}
