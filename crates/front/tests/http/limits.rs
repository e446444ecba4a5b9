//! Limits, and settings of queues for messages with keys.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn limits_are_set_followed_shown_and_deleted() {
    let server = Server::start().await;
    let rules = r#"{"in_flight":3,"in_flight_per_key":1,"rate_per_key":{"count":1,"period_ms":60000}}"#;
    let made = server.call("PUT", "/v1/limits/shop", rules).await;
    assert_eq!((made.status, &made.json()["queues"]), (201, &json!([])));
    assert_eq!(made.json()["settings"]["rate_per_key"]["burst"], 1);
    let queue = r#"{"limit":"shop","fair_weights":{"big":3},"ordering_retry":"step_aside"}"#;
    let queue = server.call("PUT", "/v1/queues/a", queue).await.json();
    assert_eq!(queue["settings"]["limit"], "shop");
    assert_eq!(queue["settings"]["fair_weights"], json!({"big": 3}));

    let messages =
        r#"{"messages":[{"payload":"1","limit_key":"k"},{"payload":"2","limit_key":"k"},{"payload":"3"}]}"#;
    assert_eq!(server.post("/v1/queues/a/messages", messages).await.status, 201);
    assert_eq!(
        server.get("/v1/queues/a").await.json()["blocked_by"],
        json!({"ordering_key": 0, "limit": 1, "parents": 0, "consumer": 0})
    );
    let received = server.post("/v1/queues/a/receive", r#"{"max":10}"#).await.json();
    assert_eq!(received["messages"].as_array().unwrap().len(), 2);
    let shown = server.get("/v1/limits/shop?waiting=true").await.json();
    assert_eq!((&shown["in_flight"], &shown["waiting"]), (&json!(2), &json!(1)));
    assert_eq!(shown["keys"][0]["key"], "k");
    assert!(shown["keys"][0]["next_at_ms"].as_u64().is_some());
    assert_eq!(server.get("/v1/limits/shop?key=none").await.json()["keys"], json!([]));
    let blocked = server.get("/v1/queues/a/messages?state=blocked").await.json();
    assert_eq!(blocked["messages"][0]["blocked_by"], "limit");

    assert_eq!(server.call("DELETE", "/v1/limits/shop", "").await.code(), "limit_in_use");
    assert_eq!(server.call("PUT", "/v1/queues/b", r#"{"limit":"none"}"#).await.code(), "limit_not_found");
    assert_eq!(server.call("PUT", "/v1/limits/zero", r#"{"in_flight":0}"#).await.code(), "invalid_argument");
    server.call("PATCH", "/v1/queues/a", r#"{"limit":""}"#).await;
    assert_eq!(server.call("DELETE", "/v1/limits/shop", "").await.json(), json!({}));
    assert_eq!(server.get("/v1/limits/shop").await.code(), "limit_not_found");
}

#[tokio::test]
async fn queues_that_are_full_refuse_or_make_room() {
    let server = Server::start().await;
    let bounds = r#"{"max_messages":2,"overflow":"dead_letter_oldest","max_age_ms":3600000}"#;
    let queue = server.call("PUT", "/v1/queues/latest", bounds).await.json();
    assert_eq!(queue["settings"]["overflow"], "dead_letter_oldest");
    let send = async |body: &str| server.post("/v1/queues/latest/messages", body).await;
    for payload in ["a", "b", "c"] {
        assert_eq!(send(&json!({"payload": payload}).to_string()).await.status, 201);
    }
    let dead = server.get("/v1/queues/latest/dead").await.json();
    assert_eq!(
        (&dead["messages"][0]["payload"], &dead["messages"][0]["reason"]),
        (&json!("a"), &json!("overflow"))
    );
    let full = send(r#"{"messages":[{"payload":"d"},{"payload":"e"},{"payload":"f"}]}"#).await;
    assert_eq!((full.status, full.code().as_str()), (429, "queue_full"));
    assert_eq!(
        full.json()["error"]["details"],
        json!({"queue": "latest", "what": "messages", "limit": 2, "held": 0, "how": "are leased, which make no room", "more": 3})
    );
    assert_eq!(send(r#"{"payload":"d","delay_ms":3600000}"#).await.code(), "invalid_argument");
    let ids = json!({"ids": [dead["messages"][0]["id"]]}).to_string();
    let redriven = server.post("/v1/queues/latest/dead/redrive", &ids).await;
    assert_eq!(redriven.code(), "queue_full");
    let waiting = server.get("/v1/queues/latest/messages?state=ready").await.json();
    assert!(waiting["messages"][0]["expires_at_ms"].as_u64().is_some());
    let refused = server.call("PUT", "/v1/queues/latest", r#"{"overflow":"drop"}"#).await;
    assert_eq!(refused.code(), "invalid_argument");
}

#[tokio::test]
async fn a_time_that_has_come_is_not_told_though_nothing_has_happened_since() {
    let server = Server::start().await;
    server.call("PUT", "/v1/limits/slow", r#"{"rate":{"count":1,"period_ms":2000}}"#).await;
    server.call("PUT", "/v1/queues/q", r#"{"limit":"slow"}"#).await;
    server.post("/v1/queues/q/messages", r#"{"payload":"1"}"#).await;
    server.post("/v1/queues/q/receive", "{}").await;
    let shown = server.get("/v1/limits/slow").await.json();
    assert!(shown["next_at_ms"].as_u64().is_some(), "{shown}");
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    let shown = server.get("/v1/limits/slow").await.json();
    assert_eq!(shown.get("next_at_ms"), None);
}

#[tokio::test]
async fn costs_and_reports_of_costs_count_in_rates_and_are_shown() {
    let server = Server::start().await;
    let rules = r#"{"rate_per_key":{"count":100,"period_ms":3600000}}"#;
    server.call("PUT", "/v1/limits/tokens", rules).await;
    server.call("PUT", "/v1/queues/q", r#"{"limit":"tokens"}"#).await;
    let send = async |body: &str| server.post("/v1/queues/q/messages", body).await;
    let sent = send(
        r#"{"messages":[{"payload":"a","limit_key":"k","cost":20},{"payload":"b","limit_key":"k"},
        {"payload":"c","limit_key":"k","cost":0}]}"#,
    );
    let sent = sent.await.json();
    let stored = server.get(&format!("/v1/messages/{}", sent["ids"][0].as_str().unwrap())).await.json();
    assert_eq!(stored["cost"], 20);
    let stored = server.get(&format!("/v1/messages/{}", sent["ids"][1].as_str().unwrap())).await.json();
    assert_eq!(stored.get("cost"), None);
    let receive = async || server.post("/v1/queues/q/receive", "{}").await.json()["messages"].clone();
    let spent = async || server.get("/v1/limits/tokens?key=k").await.json()["keys"][0]["spent"].clone();

    let receipt = receive().await[0]["receipt"].as_str().unwrap().to_owned();
    assert_eq!(spent().await, 20);
    let report = json!({"receipt": receipt, "add_cost": 30}).to_string();
    assert_eq!(server.post("/v1/extend", &report).await.json(), json!({}));
    assert_eq!(spent().await, 50);
    let report = json!({"items": [{"receipt": receipt, "outcome": "ack", "add_cost": 100}]}).to_string();
    for _ in 0..2 {
        assert_eq!(server.post("/v1/settle", &report).await.status, 200);
        assert_eq!(spent().await, 150, "a repeat adds nothing");
    }
    assert_eq!(receive().await, json!([]), "what is over budget is debt");
    let shown = server.get("/v1/limits/tokens?waiting=true").await.json();
    assert_eq!((&shown["keys"][0]["waiting"], shown.get("spent")), (&json!(2), None));
    assert!(shown["keys"][0]["next_at_ms"].as_u64().is_some());

    let change = r#"{"cost":7}"#;
    let id = sent["ids"][1].as_str().unwrap();
    assert_eq!(server.post(&format!("/v1/messages/{id}/change"), change).await.status, 200);
    assert_eq!(server.get(&format!("/v1/messages/{id}")).await.json()["cost"], 7);
    server.call("PUT", "/v1/limits/tokens", r#"{"rate_per_key":{"count":1000,"period_ms":3600000}}"#).await;
    assert_eq!(receive().await[0]["payload"], "b", "of a higher rate the rest may be spent");
    assert_eq!(spent().await, 157, "what was spent stays");

    for (body, field) in
        [(r#"{"payload":"","cost":10000001}"#, "cost"), (r#"{"payload":"","cost":-1}"#, "cost")]
    {
        let refused = send(body).await;
        assert_eq!(
            (refused.status, refused.json()["error"]["details"]["field"].as_str()),
            (400, Some(field))
        );
    }
    let refused = server.post("/v1/ack", &json!({"receipt": receipt, "add_cost": "1"}).to_string()).await;
    assert_eq!(refused.status, 400);
}
