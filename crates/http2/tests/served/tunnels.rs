//! Extended CONNECT (RFC 8441) through the adapter: bytes both ways, as for a WebSocket.

use futures_util::future::join_all;
use http_body_util::BodyExt;
use hyper::client::conn::http2::SendRequest;
use hyper::ext::Protocol;
use hyper_util::rt::TokioIo;
use sluice_http2::emit::EmitMode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::*;

type Tunnel = TokioIo<hyper::upgrade::Upgraded>;

/// A connection that has seen the server's settings.
async fn connect(transport: &Transport, chop: Option<u64>) -> SendRequest<AnyBody> {
    let mut sender = transport.connect(10_000, EmitMode::Auto, chop).await;
    ask(&mut sender, request("GET", "/size/3", no_body())).await;
    sender
}

async fn open(sender: &mut SendRequest<AnyBody>) -> Tunnel {
    sender.ready().await.expect("a connection");
    let mut head = request("CONNECT", "/chat", no_body());
    head.extensions_mut().insert(Protocol::from_static("websocket"));
    let response = sender.send_request(head).await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["protocol"], "websocket", "the service is told");
    assert!(!response.headers().contains_key("content-length"));
    TokioIo::new(hyper::upgrade::on(response).await.expect("a tunnel"))
}

/// Sends and awaits pieces of all sizes in turns.
async fn converse(tunnel: &mut Tunnel) {
    for size in [1, 100, 5_000, 70_000, 3] {
        let sent = pattern(size);
        let mut back = vec![0; size];
        let (mut reader, mut writer) = tokio::io::split(&mut *tunnel);
        let (written, read) = tokio::join!(writer.write_all(&sent), reader.read_exact(&mut back));
        written.expect("sent");
        read.expect("received");
        assert!(back == sent, "{size} bytes");
    }
}

#[tokio::test]
async fn tunnels_echo_beside_each_other_and_beside_requests() {
    for (transport, chop) in [(Transport::Plain, None), (Transport::tls(), None), (Transport::tls(), Some(1))]
    {
        let mut sender = connect(&transport, chop).await;
        let mut tunnels = Vec::new();
        for _ in 0..4 {
            tunnels.push(open(&mut sender).await);
        }
        let answer = sender.clone().send_request(request("GET", "/size/300000", no_body()));
        join_all(tunnels.iter_mut().map(converse)).await;
        let body = answer.await.expect("an answer").into_body().collect().await.expect("a body").to_bytes();
        assert!(body == pattern(300_000));

        // One is left, which the others do not notice; they end in order.
        drop(tunnels.pop());
        for mut tunnel in tunnels {
            converse(&mut tunnel).await;
            tunnel.shutdown().await.expect("closed");
            assert_eq!(tunnel.read(&mut [0; 10]).await.expect("an end"), 0);
        }
        let answer = ask(&mut sender, request("GET", "/size/3", no_body())).await;
        assert!(answer.1 == pattern(3));
    }
}
