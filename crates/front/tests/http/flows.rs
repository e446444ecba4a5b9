//! Messages that wait for others, and groups.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn a_message_waits_for_its_parents() {
    let server = Server::start().await;
    let messages =
        r##"{"messages":[{"payload":"a"},{"payload":"b","depends_on":["#0"],"on_parent_failed":"hold"}]}"##;
    let sent = server.post("/v1/queues/q/messages", messages).await;
    assert_eq!(sent.status, 201);
    let child = sent.json()["ids"][1].as_str().unwrap().to_owned();
    let shown = server.get(&format!("/v1/messages/{child}")).await.json();
    assert_eq!((&shown["state"], &shown["blocked_by"]), (&json!("blocked"), &json!("parents")));
    let received = server.post("/v1/queues/q/receive", "{\"max\":10}").await.json();
    assert_eq!(received["messages"].as_array().unwrap().len(), 1);
    let receipt = received["messages"][0]["receipt"].as_str().unwrap();
    server.post("/v1/reject", &json!({ "receipt": receipt }).to_string()).await;
    let shown = server.get(&format!("/v1/messages/{child}")).await.json();
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("held"), &json!("parent_failed")));
    let unknown = r#"{"payload":"x","depends_on":["00000080000g0000vvvg"]}"#;
    assert_eq!(server.post("/v1/queues/q/messages", unknown).await.code(), "parent_not_found");
}

#[tokio::test]
async fn a_group_calls_back_once_with_its_counts() {
    let server = Server::start().await;
    let group = r#"{"messages":[{"queue":"mail","payload":"ann"},{"queue":"print","payload":"bob"}],
        "callback":{"queue":"reports","payload":"all out","headers":{"list":"7","sluice-done":"mine"}}}"#;
    let sent = server.post("/v1/groups", group).await;
    assert_eq!((sent.status, sent.json()["ids"].as_array().unwrap().len()), (201, 2));
    let path = format!("/v1/groups/{}", sent.json()["group"].as_str().unwrap());
    for (queue, verb) in [("mail", "ack"), ("print", "reject")] {
        assert_eq!(server.get(&path).await.json()["callback"], "blocked");
        let received = server.post(&format!("/v1/queues/{queue}/receive"), "").await.json();
        let receipt = received["messages"][0]["receipt"].as_str().unwrap();
        server.post(&format!("/v1/{verb}"), &json!({ "receipt": receipt }).to_string()).await;
    }
    let shown = server.get(&path).await.json();
    assert_eq!((&shown["pending"], &shown["done"], &shown["dead"]), (&json!(0), &json!(1), &json!(1)));
    let callback = server.post("/v1/queues/reports/receive", "").await.json();
    let headers = &callback["messages"][0]["headers"];
    assert_eq!(*headers, json!({"list": "7", "sluice-done": "1", "sluice-dead": "1"}));
    let receipt = callback["messages"][0]["receipt"].as_str().unwrap();
    server.post("/v1/ack", &json!({ "receipt": receipt }).to_string()).await;
    assert_eq!(server.get(&path).await.code(), "message_not_found");
}

#[tokio::test]
async fn a_chain_hands_each_result_on() {
    let server = Server::start().await;
    let message = r#"{"payload":"url","chain":[{"queue":"resize","headers":{"width":"80"}},{"queue":"store","payload":"own"}],
        "on_failure":{"queue":"oops"}}"#;
    let sent = server.post("/v1/queues/fetch/messages", message).await;
    assert_eq!(sent.status, 201, "{:?}", sent.json());
    let id = sent.json()["id"].as_str().unwrap().to_owned();
    let shown = server.get(&format!("/v1/flows/{id}")).await.json();
    let expected = json!({"parents": [], "id": id, "queue": "fetch", "state": "ready", "chain": ["resize", "store"],
        "on_failure": "oops", "truncated": false});
    assert_eq!(shown, expected);
    let take = async |queue: &str| {
        let received = server.post(&format!("/v1/queues/{queue}/receive"), "").await.json();
        received["messages"][0].clone()
    };
    let first = take("fetch").await;
    let ack = json!({"receipt": first["receipt"], "result": "picture", "result_content_type": "image/png"});
    assert_eq!(server.post("/v1/ack", &ack.to_string()).await.status, 200);
    let second = take("resize").await;
    assert_eq!((&second["payload"], &second["content_type"]), (&json!("picture"), &json!("image/png")));
    assert_eq!((&second["headers"], &second["correlation_id"]), (&json!({"width": "80"}), &json!(id)));
    server.post("/v1/reject", &json!({"receipt": second["receipt"]}).to_string()).await;
    let failed = take("oops").await;
    assert_eq!((&failed["payload"], &failed["from_queue"]), (&json!("picture"), &json!("resize")));
    assert_eq!(failed["reason"], "rejected");
    assert_eq!(server.get(&format!("/v1/flows/{id}")).await.code(), "message_not_found");
}

#[tokio::test]
async fn what_cannot_be_a_chain_is_refused_with_its_place() {
    let server = Server::start().await;
    for (body, code, told) in [
        (r#"{"payload":"","chain":[{"queue":"a b"}]}"#, "invalid_name", "chain[0].queue: queue name \"a b\""),
        (
            r#"{"messages":[{"payload":""},{"payload":"","chain":[{"queue":"a","tags":["t"]}]}]}"#,
            "invalid_argument",
            "messages[1].chain[0].tags: they are kept with a payload",
        ),
        (
            r#"{"payload":"","on_failure":{"queue":"a","content_type":"t"}}"#,
            "invalid_argument",
            "on_failure.content_type: it comes with the payload",
        ),
        (r#"{"payload":"","chain":[{"queue":"a","depends_on":[]}]}"#, "unknown_field", "chain[0].depends_on"),
    ] {
        let refused = server.post("/v1/queues/q/messages", body).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, code), "{body}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(told), "{body}: {message}");
    }
    let big = json!({"payload": "", "chain": [{"queue": "a", "headers": {"h": "x".repeat(16_000)}}, {"queue": "b", "headers": {"h": "x".repeat(500)}}]});
    let refused = server.post("/v1/queues/q/messages", &big.to_string()).await;
    assert!(
        refused.json()["error"]["message"].as_str().unwrap().contains("bytes beside payloads are too many")
    );
    let schedule =
        json!({"queue": "q", "every_ms": 60_000, "message": {"payload": "", "chain": [{"queue": "a"}]}});
    let refused = server.call("PUT", "/v1/schedules/s", &schedule.to_string()).await;
    assert_eq!(refused.json()["error"]["details"]["field"], "message.chain", "{:?}", refused.json());
}
