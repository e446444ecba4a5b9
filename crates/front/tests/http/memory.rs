//! Answers that clients do not read take bounded memory: beyond it nothing is taken that could not be
//! answered.

use http::Request;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpStream;

use crate::support::{Server, receipt};
use crate::waits::{until, until_receives_wait};

const BUDGET: usize = 1 << 20;

/// A client over one HTTP/2 connection that reads no answer to its end.
struct Lazy {
    sender: http2::SendRequest<Full<Bytes>>,
    unread: Vec<Incoming>,
}

impl Lazy {
    async fn connect(server: &Server) -> Lazy {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(1_000).initial_connection_window_size(65_535);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Lazy { sender, unread: Vec::new() }
    }

    async fn receive(&mut self, server: &Server, max: u32) -> u16 {
        let request = Request::post(format!("http://{}/v1/queues/large/receive", server.address));
        self.ask(request.body(Full::new(json!({"max": max}).to_string().into())).unwrap()).await
    }

    async fn get(&mut self, server: &Server, path: &str) -> u16 {
        let request = Request::get(format!("http://{}{path}", server.address));
        self.ask(request.body(Full::default()).unwrap()).await
    }

    async fn ask(&mut self, request: Request<Full<Bytes>>) -> u16 {
        let response = self.sender.clone().send_request(request).await.unwrap();
        let status = response.status().as_u16();
        self.unread.push(response.into_body());
        status
    }
}

/// A server with 40 messages of 100 KiB in `large`.
async fn server(server_bytes: usize, connection_bytes: usize) -> Server {
    let server = Server::start_with(|http, _| {
        http.answers_bytes_max = server_bytes;
        http.connection_answers_bytes_max = connection_bytes;
    })
    .await;
    for _ in 0..40 {
        server.call_with("POST", "/v1/queues/large/messages/raw", &[], &vec![b'x'; 100 << 10]).await;
    }
    server
}

async fn delivered(server: &Server, queue: &str) -> u64 {
    let metrics = server.get("/metrics").await;
    let line =
        format!("sluice_queue_events_total{{namespace=\"default\",queue=\"{queue}\",event=\"delivered\"}} ");
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    text.lines().find_map(|l| l.strip_prefix(&line)).unwrap().parse().unwrap()
}

/// Receives until the memory is used up; tells how often it was refused in all.
async fn fill(server: &Server, lazy: &mut Lazy) -> u64 {
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(lazy.receive(server, 10).await);
    }
    assert!(statuses.contains(&200) && statuses.ends_with(&[429, 429]), "{statuses:?}");
    delivered(server, "large").await
}

#[tokio::test]
async fn pages_that_nobody_reads_stay_within_the_servers_memory() {
    let server = server(BUDGET, 64 << 20).await;
    let small: Vec<_> = (0..1_000).map(|_| json!({"payload": "x"})).collect();
    server.post("/v1/queues/small/messages", &json!({"messages": small}).to_string()).await;
    for path in ["/v1/queues/small/messages?limit=1000", "/v1/queues/large/peek?limit=100", "/openapi.json"] {
        let mut lazy = Lazy::connect(&server).await;
        let mut refused = 0;
        for _ in 0..40 {
            refused += u32::from(lazy.get(&server, path).await == 429);
            let metrics = server.get("/metrics").await;
            let text = String::from_utf8_lossy(&metrics.body).into_owned();
            let bytes = text.lines().find_map(|line| line.strip_prefix("sluice_http_answer_bytes ")).unwrap();
            assert!(bytes.parse::<usize>().unwrap() <= BUDGET, "{path}: {bytes}");
        }
        assert!(refused > 0, "{path}");
        drop(lazy);
        until(async || {
            let text = server.get("/metrics").await;
            String::from_utf8_lossy(&text.body).contains("sluice_http_answer_bytes 0\n")
        })
        .await;
    }
}

#[tokio::test]
async fn beyond_the_servers_memory_nothing_is_taken_and_the_rest_goes_on() {
    let server = server(BUDGET, 64 << 20).await;
    server.send("small", "x").await;
    let message = server.receive("small").await;
    let mut lazy = Lazy::connect(&server).await;
    let taken = fill(&server, &mut lazy).await;
    assert!((8..=13).contains(&taken), "{taken}");
    for path in ["/v1/queues/large/peek", "/v1/queues/large/messages?payload=true", "/v1/queues"] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, "1"), "{path}");
    }
    let answer = server.post("/v1/queues/large/receive", "{}").await;
    assert_eq!((answer.status, answer.code(), answer.header("retry-after")), (429, "overloaded".into(), "1"));
    assert_eq!(server.call_with("POST", "/v1/queues/large/receive/raw", &[], b"").await.status, 429);
    assert_eq!(delivered(&server, "large").await, taken);
    // What makes room, and what is small, is never refused.
    assert_eq!(server.post("/v1/extend", &receipt(&message)).await.status, 200);
    assert_eq!(server.post("/v1/ack", &receipt(&message)).await.status, 200);
    server.send("small", "y").await;
    drop(lazy);
    until(async || server.get("/v1/queues").await.status == 200).await;
    assert_eq!(server.receive("small").await["payload"], "y");
}

#[tokio::test]
async fn a_connection_cannot_use_up_the_memory_of_the_others() {
    let server = server(64 << 20, BUDGET).await;
    let mut lazy = Lazy::connect(&server).await;
    let taken = fill(&server, &mut lazy).await;
    assert!((8..=13).contains(&taken), "{taken}");
    assert_eq!(server.receive("large").await["attempt"], 1);
}

#[tokio::test]
async fn a_message_larger_than_the_memory_of_a_connection_is_shown_when_nothing_else_waits() {
    let server = server(64 << 20, BUDGET).await;
    server.call_with("POST", "/v1/queues/zeros/messages/raw", &[], &[0; 256 << 10]).await;
    let peeked = server.get("/v1/queues/zeros/peek").await.json();
    let id = peeked["messages"][0]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/messages/{id}")).await.status, 200);
    let mut lazy = Lazy::connect(&server).await;
    assert_eq!(lazy.get(&server, "/v1/queues/zeros/peek").await, 200);
    assert_eq!(lazy.get(&server, "/v1/queues/zeros/peek").await, 429);
}

#[tokio::test]
async fn a_receive_that_waited_takes_nothing_for_which_there_is_no_room() {
    let server = server(BUDGET, 64 << 20).await;
    let waiting = async {
        let answer = server.post("/v1/queues/small/receive", r#"{"wait_ms":20000}"#).await;
        assert_eq!(
            (answer.status, answer.code(), answer.header("retry-after")),
            (429, "overloaded".into(), "1")
        );
    };
    let others = async {
        until_receives_wait(&server, 1).await;
        let mut lazy = Lazy::connect(&server).await;
        fill(&server, &mut lazy).await;
        server.send("small", "x").await;
        lazy
    };
    let ((), lazy) = tokio::join!(waiting, others);
    assert_eq!(delivered(&server, "small").await, 0);
    drop(lazy);
}
