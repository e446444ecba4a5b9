//! Results, progress, checkpoints, replies, and finished messages that stay.

use serde_json::json;

use crate::support::{Server, receipt};
use crate::waits::until_in_flight;

async fn send(server: &Server, fields: serde_json::Value) -> String {
    let answer = server.post("/v1/queues/work/messages", &fields.to_string()).await;
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_result_is_waited_for() {
    let server = Server::start().await;
    let id = send(&server, json!({"payload": "6*7", "result_ttl_ms": 60_000})).await;
    let path = format!("/v1/messages/{id}/result");
    assert_eq!(server.get(&path).await.json(), json!({"state": "pending"}));
    let message = server.receive("work").await;
    let report = json!({"receipt": message["receipt"], "progress": {"percent": 40, "note": "two of five"}});
    assert_eq!(server.post("/v1/extend", &report.to_string()).await.json(), json!({}));
    let pending = server.get(&path).await.json();
    assert_eq!(
        (&pending["progress"]["percent"], &pending["progress"]["note"]),
        (&json!(40), &json!("two of five"))
    );

    let ack = json!({"receipt": message["receipt"], "result": "42", "result_content_type": "text/plain"})
        .to_string();
    let waiting = format!("{path}?wait_ms=30000");
    let (awaited, acked) = tokio::join!(server.get(&waiting), async {
        until_in_flight(&server, 1).await;
        server.post("/v1/ack", &ack).await
    });
    assert_eq!(acked.json(), json!({}));
    let awaited = awaited.json();
    assert_eq!((&awaited["state"], &awaited["result"]), (&json!("done"), &json!("42")));
    assert_eq!(awaited["result_content_type"], "text/plain");
    let again = json!({"receipt": message["receipt"], "result_base64": "/wA="}).to_string();
    assert_eq!(server.post("/v1/ack", &again).await.json(), json!({"already_settled": true}));

    let raw = server.get(&format!("{path}/raw")).await;
    assert_eq!((raw.status, &raw.body[..], raw.header("content-type")), (200, &b"42"[..], "text/plain"));
    assert_eq!(raw.header("sluice-state"), "done");
    // A browser that is led here must not run what somebody else calls a page.
    assert_eq!(raw.header("x-content-type-options"), "nosniff");
    assert_eq!(raw.header("content-security-policy"), "sandbox; default-src 'none'");
    let stored = server.get(&format!("/v1/messages/{id}")).await.json();
    assert_eq!(
        (&stored["state"], &stored["payload"], &stored["result"]),
        (&json!("done"), &json!("6*7"), &json!("42"))
    );
    assert_eq!(
        server.get("/v1/queues/work/messages?state=done").await.json()["messages"][0]["id"],
        json!(id)
    );
}

#[tokio::test]
async fn what_has_no_result_says_so() {
    let server = Server::start().await;
    let id = send(&server, json!({"payload": "x", "result_ttl_ms": 60_000})).await;
    let path = format!("/v1/messages/{id}/result");
    let raw = server.get(&format!("{path}/raw")).await;
    assert_eq!((raw.status, raw.header("sluice-state")), (204, "pending"));
    let message = server.receive("work").await;
    server.post("/v1/reject", &receipt(&message)).await;
    let dead = server.get(&format!("{path}?wait_ms=60000")).await.json();
    assert_eq!((&dead["state"], &dead["reason"]), (&json!("dead"), &json!("rejected")));

    let plain = send(&server, json!({"payload": "x"})).await;
    let message = server.receive("work").await;
    server.post("/v1/ack", &receipt(&message)).await;
    let gone = server.get(&format!("/v1/messages/{plain}/result?wait_ms=1000")).await;
    assert_eq!((gone.status, gone.json()["error"]["code"].clone()), (404, json!("message_not_found")));
    for (path, code) in [
        (format!("{path}?wait_ms=60001"), "invalid_argument"),
        ("/v1/messages/nonsense/result".to_owned(), "invalid_message_id"),
        (format!("/v1/namespaces/nowhere/messages/{id}/result"), "namespace_not_found"),
    ] {
        assert_eq!(server.get(&path).await.json()["error"]["code"], code, "{path}");
    }
    let large = json!({"receipt": message["receipt"], "result": "r".repeat((256 << 10) + 1)}).to_string();
    let refused = server.post("/v1/ack", &large).await;
    assert_eq!((refused.status, refused.json()["error"]["code"].clone()), (400, json!("invalid_argument")));
}

#[tokio::test]
async fn a_checkpoint_reaches_the_next_attempt_and_a_reply_its_queue() {
    let server = Server::start().await;
    let request = json!({"payload": "x", "reply_to": "answers", "correlation_id": "q-1"});
    let id = send(&server, request).await;
    let message = server.receive("work").await;
    assert_eq!((&message["reply_to"], &message["correlation_id"]), (&json!("answers"), &json!("q-1")));
    let items =
        json!({"items": [{"receipt": message["receipt"], "checkpoint_base64": "/wA="}, {"receipt": "x"}]});
    let results = server.post("/v1/extend", &items.to_string()).await.json();
    assert_eq!((&results["results"][0]["ok"], &results["results"][1]["ok"]), (&json!(true), &json!(false)));
    let stored = server.get(&format!("/v1/messages/{id}")).await.json();
    assert_eq!(stored["checkpoint_base64"], "/wA=");
    server.post("/v1/release", &receipt(&message)).await;
    let message = server.receive("work").await;
    assert_eq!(message["checkpoint_base64"], "/wA=");

    let item = json!({"receipt": message["receipt"], "outcome": "ack", "result": "{}", "result_content_type": "application/json"});
    let settled = server.post("/v1/settle", &json!({"items": [item]}).to_string()).await.json();
    assert_eq!(settled["results"][0]["ok"], true);
    let reply = server.call("POST", "/v1/queues/answers/receive/raw", "").await;
    assert_eq!(
        (reply.status, &reply.body[..], reply.header("content-type")),
        (200, &b"{}"[..], "application/json")
    );
    assert_eq!(reply.header("sluice-correlation-id"), "q-1");
}

#[tokio::test]
async fn a_raw_receive_carries_the_checkpoint() {
    let server = Server::start().await;
    let id = send(&server, json!({"payload": "long work"})).await;
    for (length, carried) in [(8 << 10, true), ((8 << 10) + 1, false)] {
        let raw = server.call("POST", "/v1/queues/work/receive/raw", "").await;
        let receipt = raw.header("sluice-receipt").to_owned();
        let report = json!({"receipt": receipt, "checkpoint": "x".repeat(length)}).to_string();
        assert_eq!(server.post("/v1/extend", &report).await.status, 200);
        assert_eq!(server.post("/v1/release", &json!({"receipt": receipt}).to_string()).await.status, 200);
        let again = server.call("POST", "/v1/queues/work/receive/raw", "").await;
        assert_eq!(again.header("sluice-checkpoint-bytes"), length.to_string());
        assert_eq!(!again.header("sluice-checkpoint-base64").is_empty(), carried);
        let receipt = again.header("sluice-receipt").to_owned();
        server.post("/v1/release", &json!({"receipt": receipt}).to_string()).await;
    }
    let shown = server.get(&format!("/v1/messages/{id}")).await.json();
    assert_eq!(shown["checkpoint"].as_str().map(str::len), Some((8 << 10) + 1));
}

#[tokio::test]
async fn queues_keep_finished_messages() {
    let server = Server::start().await;
    let settings = json!({"retain_done_ms": 60_000, "retain_done_count": 1}).to_string();
    let queue = server.call("PUT", "/v1/queues/work", &settings).await.json();
    assert_eq!(queue["settings"]["retain_done_count"], 1);
    for payload in ["a", "b"] {
        send(&server, json!({"payload": payload})).await;
        let message = server.receive("work").await;
        server.post("/v1/ack", &receipt(&message)).await;
    }
    let done = server.get("/v1/queues/work/messages?state=done&payload=true").await.json();
    let payloads: Vec<_> =
        done["messages"].as_array().unwrap().iter().map(|m| m["payload"].clone()).collect();
    assert_eq!(payloads, [json!("b")]);
    assert_eq!(server.get("/v1/queues/work").await.json()["counts"]["done"], 1);
}
