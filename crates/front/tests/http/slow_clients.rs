//! Clients that do not take their answers are cut; those that are only slow, or only wait, are not.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_front::http::HttpOptions;
use sluice_http2::frame::{flag, kind, write};
use sluice_http2::hpack::Encoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::client::requests_http2;
use crate::support::Server;
use crate::waits::until_metrics_say;

/// HTTP/2's preface and an empty SETTINGS frame: all that a client has to say before it may be silent.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const LIST: &str = "/v1/queues/q/messages?payload=true&limit=8";
const LIST_BYTES_MIN: usize = 4 << 20;
/// Less than slow clients take for all of it, and far more than for one piece.
const SLOW: Duration = Duration::from_millis(1_500);

async fn server_with_large_messages(write_timeout: Duration) -> Server {
    let server = Server::start_with(|http, _| {
        http.write_timeout = write_timeout;
        http.head_timeout = Duration::from_millis(100);
        http.idle_timeout = Duration::from_secs(1);
    })
    .await;
    for _ in 0..4 {
        server.call_with("POST", "/v1/queues/q/messages/raw", &[], &vec![b'x'; 1 << 20]).await;
    }
    server
}

/// An HTTP/2 connection whose windows let little come unasked.
async fn connect(address: SocketAddr) -> (http2::SendRequest<Empty<Bytes>>, JoinHandle<()>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(1 << 20)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let ended = tokio::spawn(async move {
        let _ = connection.await;
    });
    (sender, ended)
}

async fn get(sender: &http2::SendRequest<Empty<Bytes>>, address: SocketAddr, path: &str) -> Incoming {
    let request = Request::get(format!("http://{address}{path}")).body(Empty::new()).unwrap();
    let response = sender.clone().send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test]
async fn an_answer_over_http2_that_nobody_reads_ends_and_the_others_go_on() {
    let server = server_with_large_messages(Duration::from_millis(400)).await;
    let (sender, ended) = connect(server.address).await;
    let unread = get(&sender, server.address, LIST).await;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        get(&sender, server.address, "/healthz").await.collect().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(unread.collect().await.is_err(), "the answer was given up");
    assert!(!ended.is_finished());
    until_metrics_say(&server, "sluice_http_answer_bytes 0").await;
    until_metrics_say(&server, "sluice_http_answers_cut_total 1").await;
    until_metrics_say(&server, "sluice_http_connections_cut_total 0").await;
}

#[tokio::test]
async fn a_slow_reader_over_http2_gets_its_answer() {
    let server = server_with_large_messages(SLOW).await;
    let (sender, ended) = connect(server.address).await;
    let mut body = get(&sender, server.address, LIST).await;
    let (mut read, mut paused) = (0, 0);
    let begin = Instant::now();
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().data_ref().map_or(0, Bytes::len);
        if read >= paused {
            paused += 200 << 10;
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    }
    assert!(read > LIST_BYTES_MIN, "{read}");
    assert!(begin.elapsed() > Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(!ended.is_finished());
}

#[tokio::test]
async fn a_slow_reader_over_http1_gets_its_answer() {
    let server = server_with_large_messages(SLOW).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let head = format!("GET {LIST} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut buffer) = (0, vec![0; 32 << 10]);
    let begin = Instant::now();
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => break,
            some => read += some,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(read > LIST_BYTES_MIN, "{read}");
    assert!(begin.elapsed() > Duration::from_secs(2), "{:?}", begin.elapsed());
}

/// A request for messages, of a client that acknowledges our settings and says no more; with a body of which
/// nothing comes, if that has a length.
fn waiting_request(body_bytes: Option<&str>) -> Vec<u8> {
    let mut block = Vec::new();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", "/v1/queues/q/receive/raw?wait_ms=9000"),
    ];
    let fields = fields.into_iter().chain(body_bytes.map(|length| ("content-length", length)));
    Encoder::new().encode(fields.map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut block);
    let end = if body_bytes.is_none() { flag::END_STREAM } else { 0 };
    let mut frames = Vec::new();
    write::settings_ack(&mut frames);
    write::header(&mut frames, block.len(), kind::HEADERS, flag::END_HEADERS | end, 1);
    [frames, block].concat()
}

#[tokio::test]
async fn an_http2_client_without_a_sign_of_life_is_cut_and_one_that_waits_is_not() {
    let begins: [&[u8]; 2] = [b"", &waiting_request(None)];
    for begin in begins {
        assert_silent_client_is_cut(&[HELLO, begin].concat()).await;
    }
}

async fn assert_silent_client_is_cut(says: &[u8]) {
    let server = Server::start_with(|http, _| http.ping_interval = Duration::from_millis(500)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    silent.write_all(says).await.unwrap();
    let gone = async {
        let begin = Instant::now();
        // A reset is an end as well.
        let _ = silent.read_to_end(&mut Vec::new()).await;
        assert!(begin.elapsed() < HttpOptions::default().ping_interval, "{:?}", begin.elapsed());
        until_metrics_say(&server, "sluice_http_connections_cut_total 1").await;
    };
    let wait = [("POST", "/v1/queues/q/receive", r#"{"wait_ms":3000}"#)];
    let (answers, ()) = tokio::join!(requests_http2(server.address, &wait), gone);
    assert_eq!(answers[0].status, 200);
}

#[tokio::test]
async fn a_body_over_http2_that_nobody_reads_and_that_does_not_come_ends_its_request() {
    let server = Server::start_with(|http, _| http.body_timeout = Duration::from_millis(100)).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(&[HELLO, &waiting_request(Some("100"))].concat()).await.unwrap();
    until_metrics_say(&server, "sluice_http_bodies_cut_total 1").await;
    until_metrics_say(&server, "sluice_http_connections_cut_total 0").await;
}
