//! The choice between direct calls and the service behind them, which here only notes that it was called.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context as Waker, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_calls::Calls;
use sluice_calls::access::Access;
use sluice_calls::server::About;
use sluice_calls::testing::node;
use sluice_http2::Connection;
use sluice_http2::adapter::{Adapter, RequestBody};
use sluice_http2::drive::{Driver, Plain};
use sluice_http2::emit::EmitMode;
use tower_service::Service;

use super::*;
use crate::net::options::HttpOptions;

const PASSED_ON: StatusCode = StatusCode::IM_A_TEAPOT;

/// Says that it was asked.
struct PassedOn;

impl Service<Request<RequestBody>> for PassedOn {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Waker<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        let mut response = Response::new(Full::default());
        *response.status_mut() = PASSED_ON;
        ready(Ok(response))
    }
}

async fn connect() -> SendRequest<Full<Bytes>> {
    let options = HttpOptions::default();
    let slot = options.guard.enter([127, 0, 0, 1].into()).unwrap();
    let calls = Calls::new(node(), Access::default(), About::default());
    let peer = Arc::new(Peer::new(calls.access(), slot, None));
    let context = Arc::new(Context::new(calls, options));
    let limits = Arc::clone(&context.http2_limits);
    let hot = HotCalls { context, activity: Arc::new(Activity::new(1 << 20)), peer };
    let adapter = Adapter::with_direct(PassedOn, hot, &limits);
    let (near, far) = tokio::io::duplex(64 << 10);
    let connection = |now_us| Connection::new(limits, EmitMode::Auto, now_us);
    tokio::spawn(Driver::new(Plain::new(far), adapter, connection));
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Asks, and gives status and body.
async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    method: &str,
    path: &str,
    field: Option<(&str, &str)>,
    body: impl Into<Bytes>,
) -> (StatusCode, Bytes) {
    let mut request = Request::builder().method(method).uri(format!("http://localhost{path}"));
    if let Some((name, value)) = field {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(body.into())).unwrap();
    let response = sender.send_request(request).await.unwrap();
    (response.status(), response.into_body().collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn sends_receives_and_settles_take_the_short_way() {
    let mut sender = connect().await;
    let sent = ask(&mut sender, "POST", "/v1/queues/q/messages", None, r#"{"payload":"p"}"#).await;
    assert_eq!(sent.0, StatusCode::CREATED);
    let list = r#"{"messages":[{"payload":"a"},{"payload":"b"},{"payload":"c"}]}"#;
    let path = "/v1/namespaces/default/queues/q/messages";
    assert_eq!(ask(&mut sender, "POST", path, Some(("idempotency-key", "k")), list).await.0, 201);
    let terms = r#"{"max":4,"wait_ms":1000}"#;
    let json = Some(("content-type", "application/json"));
    let (status, taken) = ask(&mut sender, "POST", "/v1/queues/q/receive", json, terms).await;
    assert_eq!(status, StatusCode::OK);
    let taken: serde_json::Value = serde_json::from_slice(&taken).unwrap();
    for (at, outcome) in ["ack", "nack", "release", "reject"].into_iter().enumerate() {
        let body = serde_json::json!({"receipt": taken["messages"][at]["receipt"]}).to_string();
        let path = format!("/v1/{outcome}");
        assert_eq!(
            ask(&mut sender, "POST", &path, None, body).await,
            (StatusCode::OK, "{}".into()),
            "{outcome}"
        );
    }
    let receipt = &taken["messages"][0]["receipt"];
    let items = serde_json::json!({"items": [{"receipt": receipt, "outcome": "ack"}]}).to_string();
    let (status, results) = ask(&mut sender, "POST", "/v1/settle", None, items).await;
    assert_eq!(
        (status, &results[..]),
        (StatusCode::OK, &br#"{"results":[{"ok":true,"already_settled":true}]}"#[..])
    );
    assert_eq!(ask(&mut sender, "POST", "/v1/queues/none/receive", None, "").await.0, StatusCode::OK);
}

#[tokio::test]
async fn all_else_is_passed_on() {
    let mut sender = connect().await;
    let send = "/v1/queues/q/messages";
    let good = r#"{"payload":"p"}"#;
    let large = format!(r#"{{"payload":"{}"}}"#, "p".repeat(BODY_BYTES_MAX));
    for (method, path, field, body) in [
        ("GET", send, None, ""),
        ("PUT", send, None, good),
        ("POST", "/v1/queues/q/messages/raw", None, "p"),
        ("POST", "/v1/queues/q/purge", None, ""),
        ("POST", "/v1/queues/a%20b/messages", None, good),
        ("POST", "/v1/queues/q/messages?x=1", None, good),
        ("POST", "/v1/namespaces/none/queues/q/messages", None, good),
        ("POST", send, Some(("content-type", "text/plain")), good),
        ("POST", send, Some(("content-encoding", "gzip")), good),
        ("POST", send, Some(("origin", "http://localhost")), good),
        ("POST", send, Some(("idempotency-key", "")), good),
        ("POST", send, None, "{"),
        ("POST", send, None, &large),
        ("POST", "/v1/queues/q/receive", None, r#"{"max":0}"#),
        ("POST", "/v1/settle", None, r#"{"items":[]}"#),
        ("POST", "/v1/ack", None, r#"{"receipt":"nonsense"}"#),
    ] {
        let answer = ask(&mut sender, method, path, field, body.to_owned()).await;
        assert_eq!(answer.0, PASSED_ON, "{method} {path} {field:?} {}", body.len());
    }
}
