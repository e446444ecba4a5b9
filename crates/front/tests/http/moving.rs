//! Sending, receiving, settling.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Server, receipt};
use crate::waits::{soon, until_receives_wait};

#[tokio::test]
async fn a_message_goes_through() {
    let server = Server::start().await;
    let body = r#"{"payload":"hello \u00e9\n","content_type":"text/plain","headers":{"b":"2","a":"1"},"priority":3}"#;
    let answer = server.post("/v1/queues/mail/messages", body).await;
    assert_eq!(answer.status, 201);
    let id = answer.json()["id"].clone();
    let message = server.receive("mail").await;
    assert_eq!(message["id"], id);
    assert_eq!(message["payload"], "hello é\n");
    assert_eq!(message["content_type"], "text/plain");
    assert_eq!(message["headers"], json!({"a": "1", "b": "2"}));
    assert_eq!((&message["priority"], &message["attempt"]), (&json!(3), &json!(1)));
    assert_eq!(server.post("/v1/ack", &receipt(&message)).await.json(), json!({}));
    let again = server.post("/v1/ack", &receipt(&message)).await;
    assert_eq!((again.status, again.json()), (200, json!({"already_settled": true})));
    let late = server.post("/v1/extend", &receipt(&message)).await;
    assert_eq!((late.status, late.json()), (200, json!({"already_settled": true})));
}

#[tokio::test]
async fn batches_keep_their_order_and_octets() {
    let server = Server::start().await;
    let body = r#"{"messages":[{"payload":"a"},{"payload_base64":"/wA="},{"payload":""}]}"#;
    let answer = server.post("/v1/queues/q/messages", body).await;
    let ids = answer.json()["ids"].as_array().unwrap().clone();
    let taken =
        server.post("/v1/queues/q/receive", r#"{"max":10,"lease_ms":60000,"consumer":"c"}"#).await.json();
    let taken = taken["messages"].as_array().unwrap();
    let of = |field: &str| taken.iter().map(|message| message[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("id"), ids);
    assert_eq!(of("payload"), [json!("a"), Value::Null, json!("")]);
    assert_eq!(taken[1]["payload_base64"], "/wA=");
    let receipts = of("receipt");
    let answer = server.post("/v1/ack", &json!({"receipts": receipts}).to_string()).await;
    assert_eq!(answer.json(), json!({"results": [{"ok": true}, {"ok": true}, {"ok": true}]}));
}

#[tokio::test]
async fn each_outcome_does_its_own() {
    let server = Server::start().await;
    for text in ["ack", "nack", "release", "reject"] {
        server.send("q", text).await;
    }
    let taken = server.post("/v1/queues/q/receive", r#"{"max":4}"#).await.json();
    let items: Vec<Value> = taken["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let mut item = json!({"receipt": message["receipt"], "outcome": message["payload"]});
            match message["payload"].as_str().unwrap() {
                "nack" => {
                    item["error"] = json!("smtp: 451");
                    item["delay_ms"] = json!(60_000);
                }
                "reject" => item["error"] = json!("no such user"),
                _ => {}
            }
            item
        })
        .collect();
    let mut items = items;
    items.insert(2, json!({"receipt": "nonsense", "outcome": "ack"}));
    let results = server.post("/v1/settle", &json!({"items": items}).to_string()).await.json();
    assert_eq!(results["results"][2]["error"]["code"], "invalid_receipt");
    assert_eq!(
        results["results"].as_array().unwrap().iter().filter(|result| result["ok"] == true).count(),
        4
    );
    let counts = server.get("/v1/queues/q").await.json()["counts"].clone();
    assert_eq!(
        counts,
        json!({"delayed": 1, "ready": 1, "leased": 0, "held": 0, "dead": 1, "blocked": 0, "done": 0})
    );
    let dead = server.get("/v1/queues/q/dead").await.json();
    assert_eq!(dead["messages"][0]["payload"], "reject");
    assert_eq!(dead["messages"][0]["history"][0]["error"], "no such user");
}

#[tokio::test]
async fn single_outcomes_take_their_options() {
    let server = Server::start().await;
    for (outcome, options) in [
        ("nack", json!({"error": "e", "delay_ms": 1})),
        ("release", json!({"delay_ms": 1})),
        ("reject", json!({"error": "e"})),
    ] {
        server.send(outcome, "x").await;
        let mut body = options;
        body["receipt"] = server.receive(outcome).await["receipt"].clone();
        let answer = server.post(&format!("/v1/{outcome}"), &body.to_string()).await;
        assert_eq!((answer.status, answer.json()), (200, json!({})), "{outcome}");
    }
}

#[tokio::test]
async fn a_lease_is_extended_and_a_late_receipt_is_refused() {
    let server = Server::start().await;
    server.send("q", "x").await;
    let taken = server.post("/v1/queues/q/receive", r#"{"lease_ms":30000}"#).await.json();
    let first = &taken["messages"][0];
    let mut body = json!({"receipt": first["receipt"], "lease_ms": 20_000});
    assert_eq!(server.post("/v1/extend", &body.to_string()).await.status, 200);
    body = json!({"items": [{"receipt": first["receipt"], "lease_ms": 100}, {"receipt": "x"}]});
    let results = server.post("/v1/extend", &body.to_string()).await.json();
    assert_eq!(results["results"][0], json!({"ok": true}));
    assert_eq!(results["results"][1]["error"]["code"], "invalid_receipt");
    let second = server.receive("q").await;
    assert_eq!(second["attempt"], 2);
    let answer = server.post("/v1/ack", &receipt(first)).await;
    assert_eq!((answer.status, answer.code()), (409, "lease_lost".to_owned()));
}

#[tokio::test]
async fn a_receive_waits_for_a_message_and_no_longer() {
    let server = Server::start().await;
    let begin = Instant::now();
    let nothing = server.post("/v1/queues/q/receive", r#"{"wait_ms":150}"#).await.json();
    assert_eq!(nothing, json!({"messages": []}));
    assert!(begin.elapsed() >= Duration::from_millis(140), "{:?}", begin.elapsed());
    let waiting = soon(server.post("/v1/queues/q/receive", r#"{"wait_ms":60000}"#));
    let (answer, _) = tokio::join!(waiting, async {
        until_receives_wait(&server, 1).await;
        server.send("q", "late").await
    });
    assert_eq!(answer.json()["messages"][0]["payload"], "late");
}

#[tokio::test]
async fn several_queues_come_in_order() {
    let server = Server::start().await;
    server.send("b", "from b").await;
    server.send("a", "from a").await;
    let taken = server.post("/v1/receive", r#"{"queues":["a","b"],"max":2}"#).await.json();
    assert_eq!(taken["messages"][0]["queue"], "a");
    assert_eq!(taken["messages"][1]["queue"], "b");
    let body = r#"{"queues":[{"name":"a","weight":3},{"name":"b","weight":1}],"wait_ms":0}"#;
    assert_eq!(server.post("/v1/receive", body).await.json(), json!({"messages": []}));
}

#[tokio::test]
async fn idempotency_keys_repeat_the_first_answer() {
    let server = Server::start().await;
    let send = async |key: &str, body: &str| {
        let headers = [("idempotency-key", key), ("content-type", "application/json")];
        server.call_with("POST", "/v1/queues/q/messages", &headers, body.as_bytes()).await
    };
    let first = send("k", r#"{"payload":"a","priority":1}"#).await.json();
    // The same request in another layout.
    let second = send("k", "{ \"priority\": 1, \"payload\": \"\\u0061\" }").await;
    assert_eq!((second.status, &second.json()["duplicate"]), (201, &json!(true)));
    assert_eq!(second.json()["id"], first["id"]);
    let other = send("k", r#"{"payload":"b","priority":1}"#).await;
    assert_eq!((other.status, other.code()), (409, "idempotency_mismatch".to_owned()));
    assert_eq!(send("", r#"{"payload":"a"}"#).await.code(), "invalid_argument");
    assert_eq!(send(&"x".repeat(257), r#"{"payload":"a"}"#).await.code(), "invalid_argument");
    assert_eq!(server.get("/v1/queues/q").await.json()["counts"]["ready"], 1);
}

#[tokio::test]
async fn a_raw_receive_loses_no_field_that_http_cannot_carry() {
    let server = Server::start().await;
    let message = serde_json::json!({
        "payload": "a", "content_type": "text/\r\nx", "correlation_id": "one\r\ntwo", "tags": ["plain", "zwölf"],
    });
    server.post("/v1/queues/q/messages", &message.to_string()).await;
    let answer = server.post("/v1/queues/q/receive/raw", "").await;
    assert_eq!((answer.status, answer.header("sluice-tag")), (200, "plain"));
    let fields = data_encoding::BASE64.decode(answer.header("sluice-fields-base64").as_bytes()).unwrap();
    let fields: serde_json::Value = serde_json::from_slice(&fields).unwrap();
    let lost = serde_json::json!({
        "content_type": "text/\r\nx", "correlation_id": "one\r\ntwo", "tags": ["zwölf"],
    });
    assert_eq!(fields, lost);
    server.post("/v1/queues/q/messages", r#"{"payload":"a","correlation_id":"one","tags":["plain"]}"#).await;
    let answer = server.post("/v1/queues/q/receive/raw", "").await;
    assert_eq!((answer.header("sluice-correlation-id"), answer.header("sluice-fields-base64")), ("one", ""));
}

#[tokio::test]
async fn raw_payloads_go_through_untouched() {
    let server = Server::start().await;
    let octets: Vec<u8> = (0..=255).collect();
    let headers = [
        ("content-type", "application/pdf"),
        ("sluice-priority", "7"),
        ("sluice-max-attempts", "2"),
        ("sluice-header-customer", "12"),
        ("traceparent", "00-1-2-00"),
    ];
    let sent = server.call_with("POST", "/v1/queues/q/messages/raw", &headers, &octets).await;
    assert_eq!(sent.status, 201, "{}", String::from_utf8_lossy(&sent.body));
    let answer =
        server.call("POST", "/v1/queues/q/receive/raw?wait_ms=1000&lease_ms=5000&consumer=c", "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(&answer.body[..], octets);
    assert_eq!(answer.header("content-type"), "application/pdf");
    assert_eq!(answer.header("sluice-message-id"), sent.json()["id"].as_str().unwrap());
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("sluice-queue", "q"),
        ("sluice-priority", "7"),
        ("sluice-attempt", "1"),
        ("sluice-max-attempts", "2"),
        ("sluice-deliveries", "1"),
        ("sluice-header-customer", "12"),
        ("sluice-header-traceparent", "00-1-2-00"),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let body = json!({"receipt": answer.header("sluice-receipt")}).to_string();
    assert_eq!(server.post("/v1/ack", &body).await.status, 200);
    let nothing = server.call("POST", "/v1/queues/q/receive/raw", "").await;
    assert_eq!((nothing.status, nothing.body.len()), (204, 0));
}

#[tokio::test]
async fn a_client_that_vanishes_while_it_waits_loses_no_message() {
    let server = Server::start().await;
    for _ in 0..5 {
        let waiting = server.post("/v1/queues/q/receive", r#"{"wait_ms":20000}"#);
        tokio::select! {
            answer = waiting => panic!("{answer:?}"),
            () = until_receives_wait(&server, 1) => {}
        }
        until_receives_wait(&server, 0).await;
    }
    server.send("q", "x").await;
    let message = server.receive("q").await;
    assert_eq!(message["payload"], "x");
}

#[tokio::test]
async fn namespaces_are_apart() {
    let server = Server::start().await;
    assert_eq!(server.call("PUT", "/v1/namespaces/shop", "").await.status, 201);
    assert_eq!(server.post("/v1/namespaces/shop/queues/q/messages", r#"{"payload":"x"}"#).await.status, 201);
    assert_eq!(server.post("/v1/queues/q/receive", "").await.json(), json!({"messages": []}));
    let taken = server.post("/v1/namespaces/shop/queues/q/receive", "").await.json();
    let message = &taken["messages"][0];
    let id = message["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/messages/{id}")).await.code(), "message_not_found");
    assert_eq!(server.get(&format!("/v1/namespaces/shop/messages/{id}")).await.status, 200);
    assert_ne!(server.post("/v1/ack", &receipt(message)).await.status, 200);
    assert_eq!(server.post("/v1/namespaces/shop/ack", &receipt(message)).await.status, 200);
}
