//! HTTP/1.1 with keep-alive, and HTTP/2 by prior knowledge, on one port.

use serde_json::json;

use crate::client::{Bare, requests_http2};
use crate::support::Server;
use crate::waits::until_receives_wait;

#[tokio::test]
async fn http2_streams_go_side_by_side() {
    let server = Server::start().await;
    let answers = requests_http2(
        server.address,
        &[
            ("POST", "/v1/queues/q/receive", r#"{"wait_ms":5000}"#),
            ("POST", "/v1/queues/q/messages", r#"{"payload":"over two"}"#),
            ("GET", "/healthz", ""),
            ("GET", "/v1/queues/none", ""),
            ("HEAD", "/healthz", ""),
        ],
    )
    .await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 201, 200, 404, 200]);
    assert_eq!(answers[0].json()["messages"][0]["payload"], "over two");
    assert_eq!(answers[4].body.len(), 0);
}

#[tokio::test]
async fn a_client_that_vanishes_over_http2_loses_no_message() {
    let server = Server::start().await;
    let wait = [("POST", "/v1/queues/q/receive", r#"{"wait_ms":20000}"#)];
    let waiting = requests_http2(server.address, &wait);
    tokio::select! {
        answers = waiting => panic!("{answers:?}"),
        () = until_receives_wait(&server, 1) => {}
    }
    until_receives_wait(&server, 0).await;
    server.send("q", "x").await;
    assert_eq!(server.receive("q").await["payload"], json!("x"));
}

#[tokio::test]
async fn http1_connections_are_kept() {
    let server = Server::start().await;
    let mut bare = Bare::connect(server.address).await;
    for _ in 0..3 {
        bare.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        bare.read_until("ok\n").await;
    }
    // Pipelined, and in chunks.
    bare.write(
        "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nPOST /v1/queues/q/messages/raw HTTP/1.1\r\nhost: x\r\n\
        transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
    )
    .await;
    let answers = bare.read_until("duplicate").await;
    assert!(answers.contains("ok\n") && answers.contains("201 Created"), "{answers}");
    assert_eq!(server.receive("q").await["payload"], json!("abcdef"));
}
