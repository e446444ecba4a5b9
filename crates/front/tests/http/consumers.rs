//! Consumers over HTTP: who holds what.

use serde_json::json;
use sluice_engine::command::Attach;
use sluice_engine::id::NamespaceId;
use sluice_node::{DetachedBy, Event};

use crate::support::Server;

fn attach<'a>(queues: &'a [&'a str], credit: u32) -> Attach<'a> {
    let (namespace, name) = (NamespaceId::DEFAULT, "mailer");
    Attach { namespace, name, queues, credit, lease_ms: 60_000, grace_ms: 0 }
}

#[tokio::test]
async fn attached_consumers_have_figures_by_shard_and_by_queue() {
    let server = Server::start_with(|http, _| http.metrics_queues_max = 1).await;
    for queue in ["a", "b"] {
        assert_eq!(server.call("PUT", &format!("/v1/queues/{queue}"), "{}").await.status, 201);
    }
    let _one = server.node.attach(&attach(&["a"], 5)).await.unwrap();
    let _other = server.node.attach(&attach(&["a", "b"], 3)).await.unwrap();
    server.send("a", "x").await;
    server.post("/v1/queues/b/receive", r#"{"consumer":"by hand"}"#).await;
    let metrics = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
    for line in [
        "sluice_queue_consumers{namespace=\"default\",queue=\"a\"} 2",
        "sluice_queue_consumer_credit{namespace=\"default\",queue=\"a\"} 8",
        "sluice_queue_consumer_in_flight{namespace=\"default\",queue=\"a\"} 1",
        "sluice_consumers_omitted 0",
        "sluice_shard_consumers{shard=\"0\"} 2",
        "sluice_shard_consumer_credit{shard=\"0\"} 8",
        "sluice_shard_consumer_in_flight{shard=\"0\"} 1",
        "sluice_shard_consumers{shard=\"1\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn consumers_are_listed_shown_and_detached() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/consumers").await.json(), json!({"consumers": []}));
    let mut consumer = server.node.attach(&attach(&["mail", "later"], 2)).await.unwrap();
    let body = r#"{"messages":[{"payload":"a"},{"payload":"b"},{"payload":"c"}]}"#;
    let sent = server.post("/v1/queues/mail/messages", body).await.json();
    let pull = server.post("/v1/queues/mail/receive", r#"{"consumer":"by hand"}"#).await.json();
    assert_eq!(pull["messages"][0]["payload"], "c");

    let path = format!("/v1/consumers/{}", consumer.id().0);
    let shown = server.get(&path).await.json();
    assert_eq!(
        (&shown["name"], &shown["state"], &shown["queues"]),
        (&json!("mailer"), &json!("attached"), &json!(["mail", "later"]))
    );
    assert_eq!(
        (&shown["credit"], &shown["in_flight"], &shown["lease_ms"]),
        (&json!(2), &json!(2), &json!(60_000))
    );
    assert_eq!((&shown["holds"][0]["id"], &shown["holds"][1]["queue"]), (&sent["ids"][0], &json!("mail")));
    assert_eq!(server.get(&format!("{path}?limit=1")).await.json()["holds"].as_array().unwrap().len(), 1);

    let page = server.get("/v1/consumers?limit=1").await.json();
    let rest = server.get(&format!("/v1/consumers?after={}", page["next"].as_str().unwrap())).await.json();
    assert_eq!((&rest["consumers"][0]["name"], rest.get("next")), (&json!("by hand"), None));
    assert_eq!(
        (&rest["consumers"][0]["state"], rest["consumers"][0].get("credit")),
        (&json!("pulling"), None)
    );
    let held = format!("/v1/messages/{}", sent["ids"][0].as_str().unwrap());
    let holder = json!({"consumer": consumer.id().0.to_string(), "name": "mailer"});
    assert_eq!(server.get(&held).await.json()["holder"], holder);

    assert_eq!(server.call("DELETE", &path, "").await.json(), json!({}));
    assert!(matches!(consumer.next(9, 9).await, Ok(Event::Detached(DetachedBy::Asked))));
    assert_eq!(server.call("DELETE", &path, "").await.code(), "consumer_not_found");
    assert_eq!(server.get("/v1/consumers/one").await.code(), "consumer_not_found");
    assert_eq!(server.get("/v1/consumers?after=one").await.code(), "invalid_argument");
    assert_eq!(
        server.call("DELETE", "/v1/consumers/1?grace_ms=3600001", "").await.code(),
        "invalid_argument"
    );
}

#[tokio::test]
async fn placement_is_a_setting_of_queues() {
    let server = Server::start().await;
    let queue = server.call("PUT", "/v1/queues/a", r#"{"placement":"least_loaded"}"#).await.json();
    assert_eq!(queue["settings"]["placement"], "least_loaded");
    let queue = server.call("PATCH", "/v1/queues/a", r#"{"placement":"fair"}"#).await.json();
    assert_eq!(queue["settings"].get("placement"), None);
    assert_eq!(
        server.call("PUT", "/v1/queues/a", r#"{"placement":"random"}"#).await.code(),
        "invalid_argument"
    );
}
