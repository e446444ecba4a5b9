//! Addresses that keep failing to show who they are.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use sluice_calls::access::{Guard, GuardOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access::make;
use crate::client::{Bare, build};
use crate::support::Server;

/// A server that asks who they are, and bans this machine as well.
async fn guarded(failures_max: u32) -> Server {
    let server = Server::start_with(|http, _| {
        let own = GuardOptions { failures_max, own_machine: true, ..GuardOptions::default() };
        http.guard = Arc::new(Guard::new(own));
    })
    .await;
    make(&server, None, json!({"name": "root", "scopes": ["sluice://ns/*?perm=admin"]})).await;
    server
}

/// A connection over which requests go one after the other, until the server closes it.
async fn ask_again(server: &Server, authorization: &str, times: usize) -> Vec<String> {
    let mut bare = Bare::connect(server.address).await;
    for _ in 0..times {
        let ask = format!("GET /v1/queues HTTP/1.1\r\nhost: x\r\n{authorization}\r\n");
        if bare.0.write_all(ask.as_bytes()).await.is_err() {
            break;
        }
    }
    let all = timeout(Duration::from_secs(10), bare.read_to_end()).await;
    let all = all.expect("the server ends the connection");
    all.split_inclusive("HTTP/1.1 ").skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_connection_that_fails_too_often_is_closed_after_its_answer() {
    for (authorization, failures_max) in [("authorization: Bearer sluice_x\r\n", 5), ("", 7)] {
        let server = guarded(failures_max).await;
        let mut before = Bare::connect(server.address).await;
        let answers = ask_again(&server, authorization, 40).await;
        assert_eq!(answers.len(), failures_max as usize, "{authorization}");
        assert!(answers.last().unwrap().contains("connection: close"), "{answers:?}");
        assert_eq!(Bare::connect(server.address).await.read_to_end().await, "", "and there is no other");
        before.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        before.read_until("ok\n").await;
    }
}

#[tokio::test]
async fn over_http2_it_is_told_to_go_away() {
    let server = guarded(5).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driven = tokio::spawn(connection);
    let mut refused = 0;
    while refused < 1_000 {
        let request = build(format!("http://{}/v1/queues", server.address), "GET", &[], b"");
        let Ok(response) = sender.send_request(request).await else { break };
        assert_eq!(response.status(), 401);
        refused += 1;
    }
    assert!((5..1_000).contains(&refused), "{refused}");
    let ended = timeout(Duration::from_secs(10), driven).await;
    assert!(ended.is_ok(), "the server ends the connection");
}
