//! Streams of events, as browsers and curl read them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use sluice_calls::access::{Access, AccessOptions, NewToken, Scope};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::client::{Bare, build, collect, request};
use crate::schema;
use crate::support::{Server, receipt};
use crate::tls_support::Ca;
use crate::waits::until;

/// A stream that is being read. Its connection ends with it.
struct Watching {
    body: Incoming,
    text: String,
    connection: tokio::task::JoinHandle<()>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// One block: its fields.
#[derive(Debug, Default)]
struct Block {
    id: String,
    event: String,
    data: Value,
    comment: String,
}

async fn watch_over(http2: bool, address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Watching {
    let mut request = build(format!("http://{address}{path}"), "GET", headers, b"");
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (response, connection) = if http2 {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
                .await
                .unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        (sender.send_request(request).await.unwrap(), connection)
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        request.headers_mut().insert("host", address.to_string().parse().unwrap());
        (sender.send_request(request).await.unwrap(), connection)
    };
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    Watching { body: response.into_body(), text: String::new(), connection }
}

async fn watch(server: &Server, path: &str) -> Watching {
    let mut watching = watch_over(false, server.address, path, &[]).await;
    watching.block().await;
    watching
}

impl Watching {
    /// The next block; `None` at the end of the stream.
    async fn try_block(&mut self) -> Option<Block> {
        while !self.text.contains("\n\n") {
            let frame =
                tokio::time::timeout(Duration::from_secs(10), self.body.frame()).await.expect("in time");
            self.text.push_str(std::str::from_utf8(frame?.unwrap().data_ref().unwrap()).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").unwrap();
        let mut read = Block::default();
        for line in block.lines() {
            match line.split_once(": ").unwrap() {
                ("", comment) => read.comment = comment.to_owned(),
                ("id", id) => read.id = id.to_owned(),
                ("event", event) => read.event = event.to_owned(),
                ("data", data) => read.data = serde_json::from_str(data).unwrap(),
                ("retry", "2000") => {}
                _ => panic!("{line:?}"),
            }
        }
        self.text = rest.to_owned();
        Some(read)
    }

    async fn block(&mut self) -> Block {
        self.try_block().await.expect("the stream goes on")
    }

    /// The next event.
    async fn event(&mut self) -> Block {
        loop {
            let block = self.block().await;
            if !block.event.is_empty() {
                assert_eq!(block.data["type"], block.event.as_str());
                return block;
            }
        }
    }

    async fn events(&mut self, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        for _ in 0..count {
            let data = self.event().await.data;
            found.push(format!("{} {}", data["type"].as_str().unwrap(), data["queue"].as_str().unwrap()));
        }
        found
    }
}

#[tokio::test]
async fn a_life_is_told_over_both_versions() {
    let server = Server::start().await;
    server.post("/v1/queues/mail/messages", r#"{"payload":"before"}"#).await;
    for http2 in [false, true] {
        let mut all = watch_over(http2, server.address, "/v1/events", &[]).await;
        let mut mail =
            watch_over(http2, server.address, "/v1/queues/mail/events?types=acked,died", &[]).await;
        let id = server.send("other", "hello").await;
        let message = server.receive("mail").await;
        server.post("/v1/ack", &receipt(&message)).await;
        let began = all.block().await;
        assert!(began.event.is_empty() && !began.id.is_empty());
        let sent = all.event().await;
        assert_eq!((&sent.data["queue"], &sent.data["id"]), (&json!("other"), &json!(id)));
        assert!(sent.data["at_ms"].as_u64().unwrap() > 1_700_000_000_000);
        let delivered = all.event().await;
        assert_eq!(delivered.data["lease_until_ms"], message["lease_until_ms"]);
        assert_eq!((&delivered.data["type"], &delivered.data["attempt"]), (&json!("delivered"), &json!(1)));
        assert_eq!(all.events(1).await, ["acked mail"]);
        let acked = mail.event().await;
        assert_eq!((&acked.data["type"], &acked.data["id"]), (&json!("acked"), &message["id"]));
        server.send("mail", "for the next").await;
        assert_eq!(all.events(1).await, ["sent mail"]);
    }
}

#[tokio::test]
async fn every_event_is_as_described() {
    let server = Server::start().await;
    let api = sluice_front::http::openapi("test");
    let described = schema::reference("Event");
    let mut all = watch(&server, "/v1/events").await;
    server.post("/v1/queues/a/messages", r#"{"payload":"x","delay_ms":60000}"#).await;
    let id = server.send("a", "y").await;
    server.post(&format!("/v1/messages/{id}/hold"), "").await;
    server.call("PUT", "/v1/queues/b", "").await;
    server.post(&format!("/v1/messages/{id}/move"), r#"{"to":"b"}"#).await;
    server.post(&format!("/v1/messages/{id}/approve"), "").await;
    server.post("/v1/queues/b/receive", r#"{"consumer":"ann"}"#).await;
    server.post("/v1/queues/a/purge", "").await;
    let mut types = Vec::new();
    while types.last() != Some(&"dropped".to_owned()) {
        let event = all.event().await;
        schema::validate(&api, &described, &event.data, "").unwrap();
        types.push(event.event);
        match types.last().unwrap().as_str() {
            "delayed" => assert!(event.data["ready_at_ms"].is_u64()),
            "held" => assert_eq!(event.data["reason"], "hold"),
            "moved" => {
                assert_eq!((&event.data["queue"], &event.data["from_queue"]), (&json!("b"), &json!("a")))
            }
            "delivered" => assert_eq!(event.data["consumer"], "1"),
            "dropped" => assert_eq!(
                (&event.data["reason"], &event.data["messages"], event.data.get("id")),
                (&json!("purged"), &json!(1), None)
            ),
            _ => {}
        }
    }
    assert_eq!(types, ["sent", "delayed", "sent", "held", "moved", "approved", "delivered", "dropped"]);
}

#[tokio::test]
async fn queues_are_chosen_by_pattern() {
    let server = Server::start().await;
    let mut chosen = watch(&server, "/v1/events?queue=mail.*").await;
    for queue in ["mail.eu", "other", "mail.us"] {
        server.send(queue, "x").await;
    }
    assert_eq!(chosen.events(2).await, ["sent mail.eu", "sent mail.us"]);
}

#[tokio::test]
async fn who_comes_back_misses_nothing_or_is_told() {
    let server = Server::start_with(|_, node| node.events.window = 5).await;
    let mut first = watch_over(false, server.address, "/v1/events", &[]).await;
    let begin = first.block().await.id;
    for _ in 0..3 {
        server.send("q", "x").await;
    }
    let one = first.event().await.id;
    drop(first);
    server.send("q", "y").await;
    for (header, path) in [
        (Some(one.as_str()), "/v1/events".to_owned()),
        (None, format!("/v1/events?after={one}")),
        // What the browser sends is newer than the address that it was given.
        (Some(one.as_str()), format!("/v1/events?after={begin}")),
    ] {
        let headers: Vec<_> = header.map(|id| ("last-event-id", id)).into_iter().collect();
        let mut again = watch_over(false, server.address, &path, &headers).await;
        assert_eq!(again.events(3).await, ["sent q", "sent q", "sent q"]);
    }
    for _ in 0..4 {
        server.send("q", "z").await;
    }
    let mut late = watch(&server, &format!("/v1/events?types=died&after={begin}")).await;
    let gap = late.event().await;
    assert_eq!(gap.data, json!({"type": "gap", "reason": "window", "lost": 3}));
    // Who loses the connection before it hears of the gap hears of it the next time.
    let mut cut = watch_over(false, server.address, &format!("/v1/events?after={begin}"), &[]).await;
    assert_eq!(cut.block().await.id, begin);
    let mut again = watch(&server, &format!("/v1/events?after={}", gap.id)).await;
    assert_eq!(again.events(5).await, ["sent q"; 5]);
    let mut elsewhere = watch(&server, "/v1/events?after=1-2-3-4").await;
    assert_eq!(elsewhere.event().await.data, json!({"type": "gap", "reason": "restarted"}));
}

#[tokio::test]
async fn mistakes_are_named() {
    let server = Server::start().await;
    server.send("q", "x").await;
    for (path, status, says) in [
        ("/v1/events?types=sent,ackd", 400, "types: expected one of sent, delayed, due, delivered, acked,"),
        ("/v1/events?types=,", 400, "types: expected one of"),
        ("/v1/events?after=yesterday", 400, "after: \"yesterday\" is not the id of an event"),
        ("/v1/events?queue=a%20b", 400, "queue: \"a b\" has the character ' '"),
        ("/v1/queues/q/events?queue=q", 400, "queue: unknown query parameter"),
        ("/v1/queues/none/events", 404, "queue \"none\" does not exist"),
        ("/v1/namespaces/none/events", 404, "namespace \"none\" does not exist"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.message().contains(says), "{path}: {}", answer.message());
    }
    let answer = server.call_with("GET", "/v1/events", &[("last-event-id", "17")], b"").await;
    assert!(answer.message().starts_with("Last-Event-ID: \"17\" is not the id"), "{}", answer.message());
    assert_eq!(server.post("/v1/events", "").await.status, 405);
    // None is no mistake.
    let mut none = watch_over(false, server.address, "/v1/events", &[("last-event-id", "")]).await;
    assert!(none.block().await.event.is_empty());
    let head = request(server.address, "HEAD", "/v1/events", &[], b"").await;
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"));
}

#[tokio::test]
async fn silence_is_filled_and_an_idle_reader_is_kept() {
    let server = Server::start_with(|http, _| {
        http.event_pause = Duration::from_millis(60);
        http.idle_timeout = Duration::from_millis(100);
        http.write_timeout = Duration::from_millis(150);
        http.head_timeout = Duration::from_millis(100);
    })
    .await;
    for http2 in [false, true] {
        let mut quiet = watch_over(http2, server.address, "/v1/events", &[]).await;
        let begin = quiet.block().await.id;
        for _ in 0..6 {
            let beat = quiet.block().await;
            assert_eq!((beat.comment.as_str(), &beat.id), ("still here", &begin));
        }
        server.send("q", "x").await;
        assert_eq!(quiet.events(1).await, ["sent q"]);
    }
}

#[tokio::test]
async fn who_wants_little_is_told_where_it_stands() {
    let server = Server::start().await;
    let mut picky = watch(&server, "/v1/events?types=died").await;
    let messages: Vec<Value> = (0..2_500).map(|_| json!({"payload": ""})).collect();
    server.post("/v1/queues/q/messages", &json!({"messages": messages}).to_string()).await;
    let at = picky.block().await;
    assert!(at.event.is_empty() && !at.id.is_empty());
    let mut again = watch(&server, &format!("/v1/events?after={}", at.id)).await;
    assert_eq!(again.events(1).await, ["sent q"]);
}

async fn readers(server: &Server) -> u64 {
    let metrics = request(server.address, "GET", "/metrics", &[], b"").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    let line = metrics.lines().find_map(|line| line.strip_prefix("sluice_shard_event_readers{shard=\"0\"} "));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_and_one_that_leaves_is_forgotten() {
    let server = Server::start_with(|http, node| {
        http.write_timeout = Duration::from_secs(3);
        http.head_timeout = Duration::from_millis(100);
        node.events.window = 1_000;
        node.events.readers = 2;
    })
    .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut deaf = Bare(socket.connect(server.address).await.unwrap());
    deaf.write("GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut other = watch(&server, "/v1/events").await;
    let other = tokio::spawn(async move { while other.body.frame().await.is_some() {} });
    let full = server.get("/v1/events").await;
    assert_eq!((full.status, full.code().as_str()), (429, "overloaded"));
    let messages: Vec<Value> = (0..1_000).map(|_| json!({"payload": ""})).collect();
    let body = json!({"messages": messages}).to_string();
    let begin = Instant::now();
    while readers(&server).await != 1 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the deaf reader is still there");
        // The shard does not wait for it.
        assert_eq!(server.post("/v1/queues/q/messages", &body).await.status, 201);
    }
    let mut rest = Vec::new();
    assert!(!other.is_finished(), "who reads goes on");
    let ended = deaf.0.read_to_end(&mut rest);
    let _ = tokio::time::timeout(Duration::from_secs(10), ended).await.expect("its connection has ended");
    other.abort();
    until(async || readers(&server).await == 0).await;
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let mut server = Server::start().await;
    let mut over_one = watch_over(false, server.address, "/v1/events", &[]).await;
    let mut over_two = watch_over(true, server.address, "/v1/events", &[]).await;
    over_one.block().await;
    over_two.block().await;
    server.begin_stop();
    assert!(over_one.try_block().await.is_none());
    assert!(over_two.try_block().await.is_none());
    drop((over_one, over_two));
    assert_eq!(server.stopped().await.connections_cut, 0);
}

#[tokio::test]
async fn a_reader_needs_the_right_to_look_for_as_long_as_it_reads() {
    let access = Access::new(AccessOptions::default()).unwrap();
    let server = Server::start_with(|http, _| {
        http.access = access;
        http.event_pause = Duration::from_millis(50);
    })
    .await;
    let scope = |name: &str, scope: &str| json!({"name": name, "scopes": [scope]}).to_string();
    let root = server.post("/v1/tokens", &scope("root", "sluice://ns/*?perm=admin")).await.json();
    let root = format!("Bearer {}", root["token"].as_str().unwrap());
    let as_root = [("authorization", root.as_str()), ("content-type", "application/json")];
    let make = async |name: &str, perm: &str| {
        let body = scope(name, &format!("sluice://ns/default?perm={perm}"));
        let made = server.call_with("POST", "/v1/tokens", &as_root, body.as_bytes()).await.json();
        format!("Bearer {}", made["token"].as_str().unwrap())
    };
    let (watcher, producer) = (make("watcher", "observer").await, make("producer", "w").await);
    assert_eq!(server.get("/v1/events").await.status, 401);
    let refused = server.call_with("GET", "/v1/events", &[("authorization", &producer)], b"").await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));
    let kept =
        server.call_with("GET", "/v1/namespaces/$sys/events", &[("authorization", &watcher)], b"").await;
    assert_eq!(kept.status, 403);

    let mut reading = watch_over(false, server.address, "/v1/events", &[("authorization", &watcher)]).await;
    reading.block().await;
    let body = br#"{"payload":"x"}"#;
    let as_producer = [("authorization", producer.as_str()), ("content-type", "application/json")];
    server.call_with("POST", "/v1/queues/q/messages", &as_producer, body).await;
    assert_eq!(reading.events(1).await, ["sent q"]);
    server.call_with("DELETE", "/v1/tokens/watcher", &as_root, b"").await;
    while let Some(block) = reading.try_block().await {
        assert_eq!(block.comment, "still here");
    }
}

#[tokio::test]
async fn a_stream_ends_as_soon_as_its_token_is_revoked() {
    let access = Access::new(AccessOptions::default()).unwrap();
    let server = Server::start_with(|http, _| {
        http.access = access.clone();
        http.event_pause = Duration::from_secs(600);
    })
    .await;
    let scopes = |text: &str| vec![Scope::from_uri(text).unwrap().unwrap()];
    let root = scopes("sluice://ns/*?perm=admin");
    let new = NewToken { name: "root".to_owned(), scopes: root, expires_at_ms: None };
    access.token_create(&server.node, new, "test").await.unwrap();
    let watcher = scopes("sluice://ns/default?perm=observer");
    let new = NewToken { name: "watcher".to_owned(), scopes: watcher, expires_at_ms: None };
    let (_, token) = access.token_create(&server.node, new, "test").await.unwrap();
    let bearer = format!("Bearer {}", token.0);
    let mut reading =
        watch_over(true, server.address, "/v1/events", &[("authorization", bearer.as_str())]).await;
    reading.block().await;
    access.token_revoke(&server.node, "watcher").await.unwrap();
    assert!(reading.try_block().await.is_none());
}

#[tokio::test]
async fn a_reader_who_asks_too_often_reads_no_longer_than_it_has_the_right_to() {
    let rate = "[[rate]]\nidentities = ['watcher']\nrequests_per_s = 1\n";
    let rule = "[[rule]]\nname = 'look'\nidentities = ['watcher']\nrole = 'observer'\n";
    let ca = Ca::new();
    let policy = ca.policy(&[rate, rule].concat());
    let access = Access::new(AccessOptions { policy: Some(policy), ..AccessOptions::default() }).unwrap();
    let server = Server::start_with(|http, _| {
        http.access = access.clone();
        http.event_pause = Duration::from_millis(50);
    })
    .await;
    let new = NewToken { name: "watcher".to_owned(), scopes: Vec::new(), expires_at_ms: None };
    let (_, token) = access.token_create(&server.node, new, "test").await.unwrap();
    let bearer = format!("Bearer {}", token.0);
    let as_watcher = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let mut reading = watch_over(false, server.address, "/v1/events", &as_watcher).await;
    reading.block().await;
    let ask = async || server.call_with("POST", "/v1/ack", &as_watcher, br#"{"receipt":"x"}"#).await.status;
    while ask().await != 429 {}
    for _ in 0..5 {
        assert_eq!(reading.block().await.comment, "still here");
    }
    ca.policy(rate);
    assert!(access.reload().unwrap());
    let begin = Instant::now();
    while reading.try_block().await.is_some() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it still reads");
        ask().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_not_a_stream_is_checked_like_any() {
    let server = Server::start().await;
    let stream = TokioIo::new(TcpStream::connect(server.address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = build("/v1/events".into(), "GET", &[("host", "x"), ("origin", "http://evil.example")], b"");
    let answer = collect(sender.send_request(request).await.unwrap()).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden_origin"));
}
