//! Sends, receives and settles over HTTP/2 take a short way of their own: they get the same answers as over
//! HTTP/1.1, which has none.

use serde_json::Value;
use sluice_calls::access::{Access, AccessOptions, NewToken, Scope};
use sluice_engine::id::{EPOCH_SHIFT, MessageId, Receipt};

use crate::access::{asking, call};
use crate::client::{Answer, request, request_http2};
use crate::support::Server;
use crate::tls_support::Ca;

const POLICY: &str = "
[[rule]]
name = 'orders in'
identities = ['sends', 'rare']
role = 'producer'
queues = ['orders.*']
[[rule]]
name = 'orders out'
identities = ['works']
role = 'consumer'
queues = ['orders.*']
[[rate]]
identities = ['rare']
requests_per_s = 1
burst = 2
";

/// One server, and how it is called.
struct Side {
    server: Server,
    http2: bool,
    tokens: Vec<(&'static str, String)>,
    /// Receipts of all messages that were received, in order.
    receipts: Vec<String>,
}

/// Who asks, and for what. In a body `$0` stands for the first receipt, and so on.
#[derive(Clone)]
struct Step {
    by: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn step(by: &'static str, path: &'static str, body: &'static str) -> Step {
    Step { by, path, headers: JSON, body }
}

impl Side {
    async fn new(http2: bool) -> Side {
        let ca = Ca::new();
        let options = AccessOptions { policy: Some(ca.policy(POLICY)), ..AccessOptions::default() };
        let access = Access::new(options).unwrap();
        let server = Server::start_with(|http, _| http.access = access.clone()).await;
        let mut tokens = Vec::new();
        let scoped = [("admin", Some(("*", "admin"))), ("shop", Some(("shop", "rw")))];
        for (name, scope) in scoped.into_iter().chain(["sends", "works", "rare"].map(|name| (name, None))) {
            let scopes = scope.map(|(namespace, permission)| Scope::new(namespace, permission).unwrap());
            let token =
                NewToken { name: name.into(), scopes: scopes.into_iter().collect(), expires_at_ms: None };
            let (_, text) = access.token_create(&server.node, token, "test").await.unwrap();
            tokens.push((name, text.0));
        }
        tokens.push(("wrong", tokens[0].1.to_uppercase()));
        let created = call(&server, Some(&tokens[0].1), "PUT", "/v1/namespaces/shop", "").await;
        assert_eq!(created.status, 201);
        Side { server, http2, tokens, receipts: Vec::new() }
    }

    async fn ask(&mut self, step: &Step) -> Answer {
        let mut body = step.body.to_owned();
        for (at, receipt) in self.receipts.iter().enumerate() {
            body = body.replace(&format!("\"${at}\""), &format!("\"{receipt}\""));
        }
        let token = self.tokens.iter().find(|(name, _)| *name == step.by);
        let bearer = token.map(|(_, token)| format!("Bearer {token}"));
        let mut headers = step.headers.to_vec();
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let address = self.server.address;
        let answer = match self.http2 {
            true => request_http2(address, "POST", step.path, &headers, body.as_bytes()).await,
            false => request(address, "POST", step.path, &headers, body.as_bytes()).await,
        };
        if answer.status == 200 && step.path.ends_with("receive") {
            let messages = answer.json()["messages"].as_array().unwrap().clone();
            self.receipts.extend(messages.iter().map(|m| m["receipt"].as_str().unwrap().to_owned()));
        }
        answer
    }
}

/// What must be the same: all but times, and what names a request, a connection or the server.
fn comparable(side: &Side, answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let passing = ["date", "x-request-id", "connection", "content-length", "transfer-encoding"];
    let headers = answer.headers.iter().filter(|(name, _)| !passing.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let mut headers: Vec<_> = headers.collect();
    headers.sort();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let text = text.replace(&side.server.address.to_string(), "here");
    let mut body = serde_json::from_str(&without_starts(&text)).unwrap_or(Value::Null);
    forget_times(&mut body);
    if answer.status == 429 {
        // It tells a time.
        body["error"]["message"] = Value::Null;
    }
    (answer.status, headers, body)
}

/// The text with ids and receipts as what they count: two servers begin them elsewhere.
fn without_starts(text: &str) -> String {
    let count = |sequence: u64| sequence & ((1 << EPOCH_SHIFT) - 1);
    let word = |word: &str| match (word.parse::<MessageId>(), word.parse::<Receipt>()) {
        (Ok(id), _) => format!("id {}", count(id.sequence)),
        (_, Ok(receipt)) => format!("receipt {} {}", count(receipt.id.sequence), count(receipt.token)),
        _ => word.to_owned(),
    };
    let pieces = text.split_inclusive(|char: char| !char.is_ascii_alphanumeric());
    let piece = |piece: &str| {
        let words = piece.trim_end_matches(|char: char| !char.is_ascii_alphanumeric());
        word(words) + &piece[words.len()..]
    };
    pieces.map(piece).collect()
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| match name.ends_with("_ms") {
            true => *value = Value::Null,
            false => forget_times(value),
        }),
        _ => {}
    }
}

const KEYED: &[(&str, &str)] = &[("content-type", "application/json"), ("idempotency-key", "k-1")];

/// A send by the administrator.
fn send(headers: &'static [(&'static str, &'static str)], body: &'static str) -> Step {
    Step { by: "admin", path: "/v1/queues/a/messages", headers, body }
}

/// Calls in the order in which they are made: each part relies on the messages and receipts of those before.
fn script() -> Vec<Step> {
    [good_calls(), calls_that_the_node_refuses(), malformed_calls(), calls_by_rights()].concat()
}

/// Calls that go well.
fn good_calls() -> Vec<Step> {
    vec![
        send(&[], r#"{"payload":"p"}"#),
        step(
            "admin",
            "/v1/queues/a/messages",
            r#"{"messages":[{"payload":"x","headers":{"h":"1"}},{"payload":"y"}]}"#,
        ),
        step(
            "admin",
            "/v1/queues/a/messages",
            r#"{"payload":"\u00e9","priority":9,"tags":["t"],"delay_ms":1}"#,
        ),
        send(KEYED, r#"{"payload":"once"}"#),
        send(KEYED, r#"{"payload":"once"}"#),
        step("admin", "/v1/queues/a/receive", r#"{"max":2,"wait_ms":2000,"consumer":"c"}"#),
        step("admin", "/v1/queues/a/receive", ""),
        step("admin", "/v1/queues/a/receive", r#"{"max":1,"lease_ms":60000}"#),
        step("admin", "/v1/ack", r#"{"receipt":"$0","result":"done"}"#),
        step("admin", "/v1/ack", r#"{"receipt":"$0"}"#),
        step("admin", "/v1/nack", r#"{"receipts":["$1","nonsense"],"error":"e","delay_ms":0}"#),
        step("admin", "/v1/release", r#"{"receipt":"$2"}"#),
        step("admin", "/v1/queues/a/receive", r#"{"max":2}"#),
        step(
            "admin",
            "/v1/settle",
            r#"{"items":[{"receipt":"$3","outcome":"ack"},{"receipt":"$4","outcome":"reject","error":"r"},{"receipt":"?","outcome":"ack"}]}"#,
        ),
        step("admin", "/v1/reject", r#"{"receipt":"$5"}"#),
        step("shop", "/v1/namespaces/shop/queues/b/messages", r#"{"payload":"s"}"#),
        step("shop", "/v1/namespaces/shop/queues/b/receive", r#"{"wait_ms":10}"#),
        step("admin", "/v1/queues/none/receive", r#"{"wait_ms":5}"#),
    ]
}

/// Calls that the node refuses, and some that it does not.
fn calls_that_the_node_refuses() -> Vec<Step> {
    vec![
        step("admin", "/v1/queues/a/messages", r#"{"payload":"other","unique_key":"u"}"#),
        send(KEYED, r#"{"payload":"not the same"}"#),
        step("admin", "/v1/queues/$sys/messages", r#"{"payload":""}"#),
        step("admin", "/v1/queues/a%20b/messages", r#"{"payload":""}"#),
        step("admin", "/v1/queues/a/messages?x=1", r#"{"payload":"q"}"#),
        step("admin", "/v1/namespaces/nowhere/queues/a/messages", r#"{"payload":""}"#),
        step("admin", "/v1/namespaces/$sys/queues/a/messages", r#"{"payload":""}"#),
        step("admin", "/v1/settle", r#"{"items":[]}"#),
        step("admin", "/v1/ack", r#"{"receipt":"nonsense"}"#),
        step("admin", "/v1/namespaces/shop/ack", r#"{"receipt":"$1"}"#),
    ]
}

/// Calls that are no requests of this API.
fn malformed_calls() -> Vec<Step> {
    vec![
        send(JSON, "{"),
        send(JSON, r#"{"payload":1}"#),
        send(JSON, ""),
        send(&[("content-type", "text/plain")], r#"{"payload":"p"}"#),
        send(&[("content-type", "application/json"), ("content-encoding", "gzip")], r#"{"payload":"p"}"#),
        send(&[("content-type", "application/json"), ("idempotency-key", "")], r#"{"payload":"p"}"#),
        send(&[("idempotency-key", "a"), ("idempotency-key", "b")], r#"{"payload":"p"}"#),
        send(&[("origin", "https://elsewhere.example")], r#"{"payload":"p"}"#),
        step("admin", "/v1/queues/a/receive", r#"{"max":0}"#),
    ]
}

/// Calls of those who may not call, or only so often.
fn calls_by_rights() -> Vec<Step> {
    vec![
        step("nobody", "/v1/queues/a/messages", r#"{"payload":"p"}"#),
        step("wrong", "/v1/queues/a/messages", r#"{"payload":"p"}"#),
        step("shop", "/v1/queues/a/messages", r#"{"payload":"p"}"#),
        step("sends", "/v1/queues/orders.new/messages", r#"{"payload":"o"}"#),
        step("sends", "/v1/queues/orders.new/messages", r#"{"payload":"o","reply_to":"orders.done"}"#),
        step("sends", "/v1/queues/orders.new/messages", r#"{"payload":"o","reply_to":"a"}"#),
        step("sends", "/v1/queues/a/messages", r#"{"payload":"o"}"#),
        step("sends", "/v1/queues/orders.new/receive", ""),
        step("works", "/v1/queues/orders.new/receive", r#"{"max":2}"#),
        step("works", "/v1/ack", r#"{"receipt":"$6"}"#),
        step("works", "/v1/ack", r#"{"receipts":["$1","$7"]}"#),
        // Two go, the third comes too soon: each counts once, whichever way it takes.
        step("rare", "/v1/queues/orders.new/messages", r#"{"payload":"1"}"#),
        step("rare", "/v1/queues/orders.new/messages", r#"{"payload":"2","reply_to":"orders.done"}"#),
        step("rare", "/v1/queues/orders.new/messages", r#"{"payload":"3"}"#),
    ]
}

#[tokio::test]
async fn they_are_answered_as_over_http1() {
    let (mut short, mut long) = (Side::new(true).await, Side::new(false).await);
    let mut answered = 0;
    for step in script() {
        let answers = (short.ask(&step).await, long.ask(&step).await);
        let (got, expected) = (comparable(&short, &answers.0), comparable(&long, &answers.1));
        assert_eq!(got, expected, "{} by {}: {}", step.path, step.by, step.body);
        answered += usize::from(got.0 < 300);
    }
    assert!(answered > 20, "{answered} went well");
}

#[tokio::test]
async fn request_ids_come_back_and_requests_are_counted() {
    let asking = asking().await;
    let bearer = format!("Bearer {}", asking.admin);
    let headers = [("authorization", bearer.as_str()), ("x-request-id", "mine-7")];
    let address = asking.server.address;
    for _ in 0..3 {
        let body = br#"{"payload":"p"}"#;
        let answer = request_http2(address, "POST", "/v1/queues/q/messages", &headers, body).await;
        assert_eq!((answer.status, answer.header("x-request-id")), (201, "mine-7"));
    }
    let own = request_http2(address, "POST", "/v1/queues/q/receive", &headers[..1], b"").await;
    assert_eq!((own.status, own.header("x-request-id").len()), (200, 16));
    let metrics = asking.call(&asking.admin, "GET", "/metrics", "").await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    for (route, status, count) in [("send", 201, 3), ("receive", 200, 1)] {
        let line = metrics.lines().find(|line| {
            line.contains(&format!("route=\"{route}\"")) && line.contains(&format!("status=\"{status}\""))
        });
        assert!(line.is_some_and(|line| line.ends_with(&format!(" {count}"))), "{route}: {line:?}");
    }
}
