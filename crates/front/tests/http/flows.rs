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
