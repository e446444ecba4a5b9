use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::support::{Client, start, until};

async fn client() -> Client {
    Client::connect(start(|_, _| {}).await).await
}

fn base64(text: &str) -> String {
    data_encoding::BASE64.encode(text.as_bytes())
}

#[tokio::test]
async fn a_call_without_what_it_needs_names_the_field() {
    let mut client = client().await;
    client.call("Queues/Put", json!({"queue": "q"})).await.unwrap();
    for (call, request, field) in [
        ("Messages/Send", json!({"queue": "q"}), "messages: "),
        ("Messages/Receive", json!({}), "queues: "),
        ("Messages/Settle", json!({}), "items: "),
        ("Messages/Extend", json!({}), "items: "),
        ("Messages/SendGroup", json!({}), "messages: "),
        ("Queues/Redrive", json!({"queue": "q"}), "ids: "),
        ("Queues/DeleteDead", json!({"queue": "q"}), "ids: "),
        ("Bulks/Start", json!({}), "action: "),
    ] {
        let (code, message, _) = client.call(call, request).await.unwrap_err();
        assert!(["missing_field", "invalid_argument"].contains(&&*code), "{call}: {code}");
        assert!(message.starts_with(field), "{call}: {message}");
    }
    for call in ["Queues/Purge", "Queues/Pause", "Queues/Resume", "Queues/Close", "Queues/Open"] {
        client.call(call, json!({"queue": "q"})).await.unwrap();
    }
}

#[tokio::test]
async fn an_empty_payload_is_one() {
    let mut client = client().await;
    let messages = json!([{}, {"correlation_id": "c"}]);
    client.call("Messages/Send", json!({"queue": "q", "messages": messages})).await.unwrap();
    let received =
        client.call("Messages/Receive", json!({"queues": [{"name": "q"}], "max": 2})).await.unwrap();
    assert_eq!(received["messages"].as_array().unwrap().len(), 2);
    assert_eq!(received["messages"][1]["payload_base64"], "");
}

#[tokio::test]
async fn a_message_is_sent_received_and_settled() {
    let mut client = client().await;
    let octets = data_encoding::BASE64.encode(&[0, 255, 7]);
    let sent = client
        .call(
            "Messages/Send",
            json!({"queue": "mail", "messages": [
                {"payload_base64": octets, "headers": {"z": "1", "a": "2"}, "tags": ["t"], "priority": 3},
                {"payload": "second", "backoff": {"kind": "fixed", "base_ms": 5}, "hold": true},
            ]}),
        )
        .await
        .unwrap();
    assert_eq!(sent["ids"].as_array().unwrap().len(), 2);
    assert_eq!(sent["duplicate"], json!(null), "false is not on the wire");
    let request = json!({"queues": [{"name": "mail"}], "max": 5, "wait_ms": 1_000, "consumer": "w"});
    let received = client.call("Messages/Receive", request).await.unwrap();
    let message = &received["messages"][0];
    assert_eq!(message["payload_base64"], octets);
    assert_eq!(serde_json::to_string(&message["headers"]).unwrap(), r#"{"a":"2","z":"1"}"#);
    assert_eq!((&message["priority"], &message["attempt"]), (&json!(3), &json!(1)));
    assert_eq!(received["messages"].as_array().unwrap().len(), 1, "the other is held");

    let extend =
        json!({"items": [{"receipt": message["receipt"], "progress": {"percent": 0}, "checkpoint": "half"}]});
    assert_eq!(client.call("Messages/Extend", extend).await.unwrap()["results"][0]["ok"], true);
    let settle = json!({"items": [
        {"receipt": message["receipt"], "outcome": "ack"},
        {"receipt": "nonsense", "outcome": "ack"},
        {"receipt": message["receipt"], "outcome": "ack"},
    ]});
    let results = client.call("Messages/Settle", settle).await.unwrap();
    assert_eq!(results["results"][0], json!({"ok": true}));
    assert_eq!(results["results"][1]["error"]["code"], "invalid_receipt");
    assert_eq!(results["results"][1]["error"]["details"]["receipt"], "nonsense");
    assert_eq!(results["results"][2], json!({"ok": true, "already_settled": true}));

    let held = json!({"id": sent["ids"][1], "by": "ann"});
    client.call("Messages/Approve", held).await.unwrap();
    let stored = client.call("Messages/Get", json!({"id": sent["ids"][1]})).await.unwrap();
    assert_eq!((&stored["state"], &stored["changes"][0]["by"]), (&json!("ready"), &json!("ann")));
    assert_eq!(stored["payload_base64"], base64("second"));
    assert_eq!(stored["backoff"]["kind"], "fixed");
}

#[tokio::test]
async fn an_idempotency_key_is_one_over_both_protocols() {
    let mut client = client().await;
    let request = json!({"queue": "mail", "messages": [{"payload": "a"}], "idempotency_key": "k"});
    let first = client.call("Messages/Send", request.clone()).await.unwrap();
    let again = client.call("Messages/Send", request).await.unwrap();
    assert_eq!((&again["ids"], &again["duplicate"]), (&first["ids"], &json!(true)));
}

#[tokio::test]
async fn queues_are_looked_after() {
    let mut client = client().await;
    let queue = json!({"queue": "q"});
    let put = json!({"queue": "q", "lease_ms": 5_000, "fair_weights": {"a": 3}, "dead_letter_queue": "dead"});
    let made = client.call("Queues/Put", put).await.unwrap();
    assert_eq!(
        (&made["settings"]["lease_ms"], &made["settings"]["fair_weights"]["a"]),
        (&json!(5_000), &json!(3))
    );
    let changed = json!({"queue": "q", "dead_letter_queue": "", "fair_weights": {}});
    let changed = client.call("Queues/Change", changed).await.unwrap();
    assert_eq!(
        (&changed["settings"]["dead_letter_queue"], &changed["settings"]["fair_weights"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(client.call("Queues/Pause", queue.clone()).await.unwrap()["settings"]["paused"], true);
    assert_eq!(client.call("Queues/Resume", queue.clone()).await.unwrap()["settings"]["paused"], false);
    assert_eq!(client.call("Queues/Close", queue.clone()).await.unwrap()["settings"]["closed"], true);
    assert_eq!(client.call("Queues/Open", queue.clone()).await.unwrap()["settings"]["closed"], false);
    let send = json!({"queue": "q", "messages": [{"payload": "a"}, {"payload": "b", "tags": ["t"]}]});
    let ids = client.call("Messages/Send", send).await.unwrap()["ids"].clone();
    let page =
        client.call("Messages/List", json!({"queue": "q", "limit": 1, "payload": true})).await.unwrap();
    assert_eq!(page["messages"][0]["payload_base64"], base64("a"));
    let rest = json!({"queue": "q", "cursor": page["next"]});
    assert_eq!(client.call("Messages/List", rest).await.unwrap()["messages"][0]["id"], ids[1]);
    let peeked = client.call("Messages/Peek", json!({"queue": "q"})).await.unwrap();
    assert_eq!(peeked["messages"].as_array().unwrap().len(), 2);
    client.call("Messages/Change", json!({"id": ids[1], "tags": [], "priority": 0})).await.unwrap();
    let stored = client.call("Messages/Get", json!({"id": ids[1]})).await.unwrap();
    assert_eq!(stored["tags"], Value::Null);
    assert_eq!(client.call("Queues/Purge", queue.clone()).await.unwrap()["purged"], 2);
    assert_eq!(client.call("Queues/List", json!({"prefix": "q"})).await.unwrap()["queues"][0]["name"], "q");
    client.call("Queues/Delete", queue.clone()).await.unwrap();
    let (code, message, trailers) = client.call("Queues/Get", queue).await.unwrap_err();
    assert_eq!((code.as_str(), message.as_str()), ("queue_not_found", "queue \"q\" does not exist"));
    assert_eq!(trailers["grpc-status"], "5");
    let details = data_encoding::BASE64_NOPAD.decode(trailers["grpc-status-details-bin"].as_bytes()).unwrap();
    let told = String::from_utf8_lossy(&details);
    assert!(told.contains("google.rpc.ErrorInfo") && told.contains("sluice"), "{told}");
}

#[tokio::test]
async fn dead_letters_defaults_limits_schedules_bulks_and_namespaces() {
    let mut client = client().await;
    client.call("Namespaces/Put", json!({"namespace": "shop", "quotas": {"queues": 9}})).await.unwrap();
    assert_eq!(
        client.call("Namespaces/Get", json!({"namespace": "shop"})).await.unwrap()["quotas"]["queues"],
        9
    );
    let queue = json!({"namespace": "shop", "queue": "q"});
    let send = json!({"namespace": "shop", "queue": "q", "messages": [{"payload": "a"}]});
    client.call("Messages/Send", send).await.unwrap();
    let receive = json!({"namespace": "shop", "queues": [{"name": "q", "weight": 2}]});
    let receipt = client.call("Messages/Receive", receive).await.unwrap()["messages"][0]["receipt"].clone();
    let reject =
        json!({"namespace": "shop", "items": [{"receipt": receipt, "outcome": "reject", "error": "no"}]});
    client.call("Messages/Settle", reject).await.unwrap();
    let dead = client.call("Queues/ListDead", queue.clone()).await.unwrap();
    assert_eq!(dead["messages"][0]["history"][0]["error"], "no");
    let redriven =
        client.call("Queues/Redrive", json!({"namespace": "shop", "queue": "q", "all": true})).await;
    assert_eq!(redriven.unwrap()["redriven"], 1);
    assert_eq!(client.call("Queues/EndRedrive", queue).await.unwrap(), json!({"left": 0}));

    client.call("Queues/PutDefaults", json!({"pattern": "x.*", "max_attempts": 7})).await.unwrap();
    let defaults = client.call("Queues/GetDefaults", json!({"pattern": "x.*"})).await.unwrap();
    assert_eq!(defaults["settings"]["max_attempts"], 7);
    client.call("Queues/DeleteDefaults", json!({"pattern": "x.*"})).await.unwrap();

    client
        .call("Limits/Put", json!({"name": "l", "in_flight": 3, "rate": {"count": 5, "period_ms": 10}}))
        .await
        .unwrap();
    let limit = client.call("Limits/Get", json!({"name": "l", "limit": 1})).await.unwrap();
    assert_eq!(
        (&limit["settings"]["in_flight"], &limit["settings"]["rate"]["burst"]),
        (&json!(3), &json!(5))
    );
    client.call("Limits/Delete", json!({"name": "l"})).await.unwrap();

    let schedule =
        json!({"schedule": "s", "every_ms": 3_600_000, "queue": "q", "message": {"payload": "tick"}});
    client.call("Schedules/Put", schedule).await.unwrap();
    let shown = client.call("Schedules/Get", json!({"schedule": "s"})).await.unwrap();
    assert_eq!(shown["message"]["payload_base64"], base64("tick"));
    let next = client.call("Schedules/Next", json!({"schedule": "s", "count": 3})).await.unwrap();
    assert_eq!(next["next_at_ms"].as_array().unwrap().len(), 3);
    let id = client.call("Schedules/Trigger", json!({"schedule": "s"})).await.unwrap()["id"].clone();
    let awaited = client.call("Messages/AwaitResult", json!({"id": id})).await.unwrap();
    assert_eq!(awaited["state"], "pending");

    let filter = json!({"queue": "q", "where": r#"{"/headers/a":"b"}"#});
    let bulk =
        json!({"action": "change", "priority": 4, "filter": filter, "dry_run": true, "per_second": 50});
    let bulk = client.call("Bulks/Start", bulk).await.unwrap();
    let shown = client.call("Bulks/Get", bulk).await.unwrap();
    assert_eq!((&shown["filter"], &shown["per_second"]), (&filter, &json!(50)));
    let search = json!({"queue": "q", "where": r#"{"/state":"ready"}"#, "limit": 1, "payload": true});
    let found = client.call("Messages/Search", search).await.unwrap();
    assert_eq!((found["messages"].as_array().map(Vec::len), &found["scanned"]), (Some(1), &found["total"]));
    let group = json!({"messages": [], "callback": {"queue": "q", "payload": "end"}});
    let group = client.call("Messages/SendGroup", group).await.unwrap()["group"].clone();
    assert_eq!(client.call("Messages/GetGroup", json!({"group": group})).await.unwrap()["callback"], "ready");
    client.call("Namespaces/Delete", json!({"namespace": "shop", "force": true})).await.unwrap();
}

#[tokio::test]
async fn mistakes_are_told() {
    let mut client = client().await;
    let send = "/sluice.v1.Messages/Send";
    let mut code_of = async |path: &str, body: &'static [u8]| {
        let (code, message, trailers) = client.post(path, Bytes::from_static(body)).await.unwrap_err();
        (code, message, trailers["grpc-status"].to_str().unwrap().to_owned())
    };
    assert_eq!(code_of("/sluice.v1.Messages/Sand", b"").await.2, "12");
    assert_eq!(code_of(send, b"").await.0, "incomplete_body");
    assert_eq!(code_of(send, b"\x00\x00\x00\x00\x05abc").await.0, "incomplete_body");
    assert_eq!(code_of(send, b"\x01\x00\x00\x00\x01a").await.0, "invalid_protobuf");
    assert_eq!(code_of(send, b"\x00\xff\xff\xff\xff").await.0, "invalid_protobuf");
    assert_eq!(code_of(send, b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00").await.0, "invalid_protobuf");
    assert_eq!(code_of(send, b"\x00\x00\x00\x00\x02\x12\x09").await.0, "invalid_protobuf");
    assert_eq!(code_of(send, b"\x00\x00\x00\x00\x03\x98\x06\x01").await.0, "unknown_field");
    assert_eq!(code_of(send, b"\x00\x00\x00\x00\x00").await.0, "missing_field");
    assert_eq!(code_of(send, b"\x00\x00\x00\x00\x03\x12\x01\xff").await.0, "invalid_argument");

    let send = json!({"queue": "q", "messages": [{"payload": "a"}, {"payload": "b", "priority": 11}]});
    let (code, message, _) = client.call("Messages/Send", send).await.unwrap_err();
    assert_eq!(code, "invalid_argument");
    assert!(message.starts_with("messages[1].priority: expected a number from 0 to 9"), "{message}");
    let ended = client.call("Queues/Get", json!({"namespace": "näh", "queue": "q"})).await;
    assert!(ended.unwrap_err().1.starts_with("namespace \"n%C3%A4h\" does not exist"));
}

#[tokio::test]
async fn callers_are_asked_who_they_are_as_over_http() {
    let mut client = client().await;
    let send = || json!({"queue": "mail", "messages": [{"payload": "a"}]});
    assert!(client.call("Messages/Send", send()).await.is_ok(), "nobody is asked yet");
    let admin = client.make_token("root", "sluice://ns/*?perm=admin").await;
    let (code, _, trailers) = client.call("Messages/Send", send()).await.unwrap_err();
    assert_eq!((code.as_str(), &trailers["grpc-status"]), ("unauthenticated", &"16".parse().unwrap()));
    client.token = admin;
    let consumer = client.make_token("worker", "sluice://ns/default?perm=r").await;
    assert!(client.call("Messages/Send", send()).await.is_ok());
    client.token = consumer;
    let (code, message, trailers) = client.call("Messages/Send", send()).await.unwrap_err();
    assert_eq!((code.as_str(), &trailers["grpc-status"]), ("forbidden", &"7".parse().unwrap()));
    assert!(message.contains("\"worker\" may not send in queue \"mail\""), "{message}");
    let receive = json!({"queues": [{"name": "mail"}]});
    assert!(client.call("Messages/Receive", receive).await.is_ok());
    let other = json!({"namespace": "$sys", "queues": [{"name": "tokens"}]});
    assert_eq!(client.call("Messages/Receive", other).await.unwrap_err().0, "forbidden");
}

#[tokio::test]
async fn who_has_one_namespace_neither_makes_nor_bounds_it() {
    let mut client = client().await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    let own = client.make_token("own", "sluice://ns/shop?perm=admin").await;
    let put = || json!({"namespace": "shop", "quotas": {"messages": 5}});
    let admin = std::mem::replace(&mut client.token, own.clone());
    assert_eq!(client.call("Namespaces/Put", put()).await.unwrap_err().0, "forbidden");
    client.token = admin;
    client.call("Namespaces/Put", put()).await.unwrap();
    client.token = own;
    for (call, request) in [
        ("Namespaces/Put", put()),
        ("Namespaces/Change", put()),
        ("Namespaces/Delete", json!({"namespace": "shop"})),
    ] {
        assert_eq!(client.call(call, request).await.unwrap_err().0, "forbidden", "{call}");
    }
    assert!(client.call("Namespaces/Get", json!({"namespace": "shop"})).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_is_in_the_audit_log_with_what_it_has_done() {
    let address = start(|_, _| {}).await;
    let mut client = Client::connect(address).await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    for at in 0..100u32 {
        // On a connection of its own: one on which many calls are cancelled is closed.
        let mut other = Client::connect(address).await;
        other.token = client.token.clone();
        let mut call = pin!(other.call("Queues/Put", json!({"queue": format!("q{at}")})));
        for _ in 0..at % 10 {
            tokio::select! {
                biased;
                _ = &mut call => break,
                () = tokio::task::yield_now() => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }
    until(async || {
        let metrics = String::from_utf8_lossy(&client.get_bytes("/metrics").await).into_owned();
        // Ours.
        ["sluice_http_connections 1\n", "sluice_http_requests_in_flight 1\n"]
            .iter()
            .all(|line| metrics.contains(line))
    })
    .await;
    let queues = client.get("/v1/queues?limit=1000").await;
    let audit = client.get("/v1/admin/audit?limit=1000").await.to_string();
    let made = queues["queues"].as_array().unwrap().iter().map(|queue| queue["name"].as_str().unwrap());
    let missing: Vec<&str> =
        made.filter(|queue| !audit.contains(&format!("/sluice.v1.Queues/Put /{queue}\""))).collect();
    assert_eq!(missing, [""; 0], "made, and not in the audit log");
}

#[tokio::test]
async fn the_audit_log_names_the_bulk_that_a_call_has_made() {
    let mut client = client().await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    client.call("Queues/Put", json!({"queue": "q"})).await.unwrap();
    let mut request = json!({"action": "cancel", "filter": {"queue": "q"}, "by": "ann", "dry_run": true});
    client.call("Bulks/Start", request.clone()).await.unwrap();
    request["dry_run"] = false.into();
    let started = client.call("Bulks/Start", request).await.unwrap();
    let audit = client.get("/v1/admin/audit").await;
    let entries = audit["entries"].as_array().unwrap();
    let bulks: Vec<&Value> = entries.iter().filter(|entry| entry["operation"] == "bulk_start").collect();
    assert_eq!(bulks.len(), 1, "one that only counts is no change: {bulks:?}");
    let expected = format!("/sluice.v1.Bulks/Start /{}", started["bulk"].as_str().unwrap());
    assert_eq!(bulks[0]["target"], expected);
    assert_eq!(bulks[0]["details"], json!({"action": "cancel", "filter": {"queue": "q"}, "by": "ann"}));
}

#[tokio::test]
async fn an_id_that_is_none_is_told_before_faults_of_the_other_fields() {
    let mut client = client().await;
    let (code, ..) = client.call("Messages/Move", json!({"id": "x"})).await.unwrap_err();
    assert_eq!(code, "invalid_message_id");
}

#[tokio::test]
async fn an_empty_text_of_a_call_that_looks_is_one_that_is_not_given() {
    let mut client = client().await;
    client.call("Queues/Put", json!({"queue": "q"})).await.unwrap();
    client.call("Messages/List", json!({"queue": "q", "state": "", "cursor": ""})).await.unwrap();
}
