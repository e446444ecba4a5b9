//! Stopping: what is in flight finishes, waits end, connections are told.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::client::{Bare, request};
use crate::support::Server;
use crate::waits::{soon, until, until_in_flight, until_receives_wait};

#[tokio::test]
async fn waiting_receives_end_empty_and_connections_are_told_to_close() {
    let mut server = Server::start_with(|http, _| http.shutdown_grace = Duration::from_secs(60)).await;
    let mut waiting = Bare::connect(server.address).await;
    let body = r#"{"wait_ms":30000}"#;
    waiting
        .write(&format!(
            "POST /v1/queues/q/receive HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    let mut idle = Bare::connect(server.address).await;
    idle.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    idle.read_until("ok\n").await;
    until_receives_wait(&server, 1).await;
    server.begin_stop();
    let answer = soon(waiting.read_to_end()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("connection: close") && answer.contains(r#"{"messages":[]}"#), "{answer}");
    assert_eq!(idle.read_to_end().await, "");
    let address = server.address;
    assert_eq!(soon(server.stopped()).await.connections_cut, 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_in_flight_is_finished() {
    let mut server = Server::start().await;
    let mut sending = Bare::connect(server.address).await;
    sending.write("POST /v1/queues/q/messages/raw HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc").await;
    until_in_flight(&server, 1).await;
    server.begin_stop();
    until(async || TcpStream::connect(server.address).await.is_err()).await;
    sending.write("def").await;
    let answer = sending.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(server.stopped().await.connections_cut, 0);
}

#[tokio::test]
async fn who_does_not_finish_in_time_is_cut() {
    let mut server = Server::start_with(|http, _| http.shutdown_grace = Duration::from_millis(200)).await;
    let mut sending = Bare::connect(server.address).await;
    sending.write("POST /v1/queues/q/messages/raw HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc").await;
    until_in_flight(&server, 1).await;
    server.begin_stop();
    assert_eq!(sending.read_to_end().await, "");
    assert_eq!(server.stopped().await.connections_cut, 1);
}

#[tokio::test]
async fn a_node_that_stops_answers_503_and_is_not_ready() {
    let server = Server::start().await;
    server.node.shutdown(Duration::from_secs(5)).await.unwrap();
    let answer = server.post("/v1/queues/q/messages", r#"{"payload":"x"}"#).await;
    assert_eq!(
        (answer.status, answer.code(), answer.header("retry-after")),
        (503, "shutting_down".to_owned(), "1")
    );
    let ready = request(server.address, "GET", "/readyz", &[], b"").await;
    assert_eq!((ready.status, &ready.body[..]), (503, &b"not ready\n"[..]));
    assert_eq!(request(server.address, "GET", "/healthz", &[], b"").await.status, 200);
}
