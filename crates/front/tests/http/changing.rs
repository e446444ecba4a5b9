//! Changing messages, one or many.

use serde_json::{Value, json};

use crate::support::Server;

async fn send(server: &Server, body: Value) -> String {
    let answer = server.post("/v1/queues/a/messages", &body.to_string()).await;
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()["id"].as_str().unwrap().to_owned()
}

async fn change(server: &Server, id: &str, verb: &str, body: Value) -> (u16, String) {
    let answer = server.post(&format!("/v1/messages/{id}/{verb}"), &body.to_string()).await;
    let code = if answer.status == 200 { String::new() } else { answer.code() };
    (answer.status, code)
}

async fn show(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/messages/{id}")).await.json()
}

const OK: (u16, String) = (200, String::new());

#[tokio::test]
async fn what_is_approved_by_its_version_has_the_time_that_was_looked_at() {
    let server = Server::start().await;
    let id = send(&server, json!({"payload": "x", "hold": true})).await;
    let held = show(&server, &id).await;
    assert_eq!(held.get("deadline_ms"), None);
    assert_eq!(change(&server, &id, "change", json!({"delay_ms": 86_400_000})).await, OK);
    let old = json!({"version": held["version"]});
    assert_eq!(change(&server, &id, "approve", old).await, (409, "version_mismatch".to_owned()));
    let later = show(&server, &id).await;
    assert!(later["deadline_ms"].as_u64() > held["sent_at_ms"].as_u64(), "{later}");
    assert_eq!(change(&server, &id, "approve", json!({"version": later["version"]})).await, OK);
    assert_eq!(show(&server, &id).await["state"], "delayed");
}

#[tokio::test]
async fn tags_are_shown_with_payloads_and_only_then() {
    let server = Server::start().await;
    send(&server, json!({"payload": "x", "tags": ["red"]})).await;
    let other = send(&server, json!({"payload": "x", "tags": ["red"]})).await;
    assert_eq!(change(&server, &other, "change", json!({"tags": ["red", "blue"]})).await, OK);
    for (query, expected) in [("", [None, None]), ("?payload=true", [Some(1), Some(2)])] {
        let page = server.get(&format!("/v1/queues/a/messages{query}")).await.json();
        let tags = |at: usize| page["messages"][at]["tags"].as_array().map(Vec::len);
        assert_eq!([tags(0), tags(1)], expected, "{query}");
    }
}

#[tokio::test]
async fn a_message_is_held_approved_changed_moved_and_cancelled() {
    let server = Server::start().await;
    server.post("/v1/queues/b/messages", r#"{"payload":"there"}"#).await;
    let id = send(&server, json!({"payload": "x", "tags": ["red", "größe"], "hold": true})).await;
    let held = show(&server, &id).await;
    assert_eq!((&held["state"], &held["reason"]), (&json!("held"), &json!("hold")));
    assert_eq!(held["tags"], json!(["red", "größe"]));
    assert_eq!(change(&server, &id, "approve", json!({"by": "ann", "why": "fine"})).await, OK);
    let ready = show(&server, &id).await;
    assert_eq!(ready["state"], "ready");
    let entry = &ready["changes"][0];
    assert_eq!([&entry["change"], &entry["by"], &entry["why"]], ["approve", "ann", "fine"]);
    let again = change(&server, &id, "approve", json!({})).await;
    assert_eq!(again, (409, "wrong_state".to_owned()));

    let old = json!({"version": held["version"], "priority": 5});
    assert_eq!(change(&server, &id, "change", old).await, (409, "version_mismatch".to_owned()));
    let new = json!({"version": ready["version"], "priority": 5, "tags": ["blue"], "max_attempts": 2});
    assert_eq!(change(&server, &id, "change", new).await, OK);
    assert_eq!(change(&server, &id, "move", json!({"to": "b"})).await, OK);
    let moved = show(&server, &id).await;
    assert_eq!([&moved["queue"], &moved["state"]], ["b", "ready"]);
    assert_eq!((&moved["priority"], &moved["tags"]), (&json!(5), &json!(["blue"])));

    let received = server.post("/v1/queues/b/receive", "").await.json();
    let delivered = &received["messages"][0];
    assert_eq!((&delivered["id"], &delivered["tags"]), (&json!(id), &json!(["blue"])));
    assert_eq!(change(&server, &id, "cancel", json!({"by": "ann"})).await, OK);
    assert_eq!(show(&server, &id).await["cancelled"], true);
    let receipt = json!({"receipt": delivered["receipt"]}).to_string();
    let extended = server.post("/v1/extend", &receipt).await;
    assert_eq!((extended.status, extended.code()), (409, "cancelled".to_owned()));
    assert_eq!(server.post("/v1/nack", &receipt).await.status, 200);
    assert_eq!(change(&server, &id, "cancel", json!({})).await, (404, "message_not_found".to_owned()));
}

#[tokio::test]
async fn mistakes_are_refused() {
    let server = Server::start().await;
    let id = send(&server, json!({"payload": "x"})).await;
    for (verb, body, expected) in [
        ("move", json!({}), "missing_field"),
        ("move", json!({"to": "a"}), "invalid_argument"),
        ("move", json!({"to": "nowhere"}), "queue_not_found"),
        ("move", json!({"to": "no good"}), "invalid_name"),
        ("change", json!({}), "invalid_argument"),
        ("change", json!({"tags": ["a", "a"]}), "invalid_argument"),
        ("cancel", json!({"priority": 1}), "unknown_field"),
        ("hold", json!({"by": "b".repeat(300)}), "invalid_argument"),
        ("deny", json!({}), "wrong_state"),
        ("retry", json!({}), "wrong_state"),
    ] {
        let (status, code) = change(&server, &id, verb, body.clone()).await;
        assert!(status >= 400 && code == expected, "{verb} {body}: {code}");
    }
    let many: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    let body = json!({"payload": "x", "tags": many}).to_string();
    assert_eq!(server.post("/v1/queues/a/messages", &body).await.status, 400);
    assert_eq!(show(&server, &id).await["state"], "ready");
}

#[tokio::test]
async fn a_bulk_runs_to_its_end_and_tells_what_it_did() {
    let server = Server::start().await;
    server.post("/v1/queues/b/messages", r#"{"payload":"there"}"#).await;
    for n in 0..20 {
        let tags = if n % 2 == 0 { json!(["even"]) } else { json!([]) };
        send(&server, json!({"payload": "x", "tags": tags, "headers": {"n": n.to_string()}})).await;
    }
    let start = async |body: Value| server.post("/v1/bulk", &body.to_string()).await;
    let ended = async |body: Value| {
        let begun = start(body).await;
        assert_eq!(begun.status, 202);
        let path = format!("/v1/bulk/{}", begun.json()["bulk"].as_str().unwrap());
        loop {
            let bulk = server.get(&path).await.json();
            if bulk["state"] != "running" {
                return bulk;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let even = json!({"queue": "a", "where": {"/tags": {"contains": "even"}}});
    let dry = ended(json!({"action": "move", "to": "b", "filter": even, "dry_run": true}));
    let dry = dry.await;
    assert_eq!((&dry["changed"], &dry["scanned"]), (&json!(10), &json!(20)));
    assert_eq!(dry["filter"], even);
    let real = ended(json!({"action": "move", "to": "b", "filter": even})).await;
    assert_eq!((&real["state"], &real["changed"]), (&json!("done"), &json!(10)));
    assert_eq!(server.get("/v1/queues/b").await.json()["totals"]["moved_in"], 10);
    let one = json!({"action": "cancel", "filter": {"queue": "a", "where": {"/headers/n": "3"}}});
    assert_eq!(ended(one).await["changed"], 1);
    assert_eq!(real.get("per_second"), None);
    let slow = ended(json!({"action": "hold", "filter": {"queue": "b"}, "per_second": 100})).await;
    assert_eq!((&slow["per_second"], &slow["changed"]), (&json!(100), &json!(11)));
    assert!(slow["ended_at_ms"].as_u64().unwrap() >= slow["started_at_ms"].as_u64().unwrap());
    assert_eq!(server.get("/v1/bulk").await.json()["bulks"].as_array().unwrap().len(), 4);

    for (body, expected) in [
        (json!({"action": "hold", "filter": {}}), "missing_field"),
        (json!({"action": "hold", "filter": {"queue": "a"}, "per_second": 0}), "invalid_argument"),
        (
            json!({"action": "retry", "filter": {"queue": "a", "where": {"/state": "leased"}}}),
            "invalid_argument",
        ),
        (json!({"action": "move", "to": "nowhere", "filter": {"queue": "a"}}), "queue_not_found"),
        (json!({"action": "hold", "filter": {"queue": "a", "where": {"/tag": "even"}}}), "invalid_argument"),
    ] {
        assert_eq!(start(body.clone()).await.code(), expected, "{body}");
    }
    assert_eq!(server.get("/v1/bulk/0000000000000001").await.code(), "bulk_not_found");
    assert_eq!(server.call("DELETE", "/v1/bulk/x", "").await.code(), "bulk_not_found");
}

#[tokio::test]
async fn tags_go_over_the_raw_routes() {
    let server = Server::start().await;
    let id = send(&server, json!({"payload": "x", "tags": ["one", "two"]})).await;
    let received = server.call("POST", "/v1/queues/a/receive/raw", "").await;
    assert_eq!(received.header("sluice-message-id"), id);
    assert_eq!(received.header("sluice-tag"), "one");
}
