//! Queues, messages, dead letters, namespaces, and the server itself.

use serde_json::{Value, json};

use crate::support::{Server, receipt};
use crate::waits::{until, until_receives_wait};

#[tokio::test]
async fn queues_are_made_changed_listed_and_deleted() {
    let server = Server::start().await;
    let made = server.call("PUT", "/v1/queues/a", r#"{"lease_ms":5000}"#).await;
    assert_eq!((made.status, &made.json()["settings"]["lease_ms"]), (201, &json!(5_000)));
    let body = r#"{"max_attempts":2,"backoff":{"kind":"linear","base_ms":5}}"#;
    let changed = server.call("PUT", "/v1/queues/a", body).await;
    assert_eq!(changed.status, 200);
    assert_eq!(
        changed.json()["settings"],
        json!({"lease_ms": 5_000, "max_attempts": 2, "max_deliveries": 100,
        "backoff": {"kind": "linear", "base_ms": 5, "cap_ms": 600_000, "jitter_percent": 10},
        "retain_done_ms": 0, "retain_done_count": 0, "ordering_retry": "block", "max_messages": 0, "max_bytes": 0, "max_age_ms": 0, "paused": false, "closed": false})
    );
    let patched = server.call("PATCH", "/v1/queues/a", r#"{"max_deliveries":7}"#).await;
    assert_eq!(patched.json()["settings"]["max_deliveries"], 7);
    assert_eq!(server.call("PATCH", "/v1/queues/none", "{}").await.code(), "queue_not_found");
    for name in ["b", "c", "ab"] {
        server.call("PUT", &format!("/v1/queues/{name}"), "").await;
    }
    let names = |list: Value| {
        let queues = list["queues"].as_array().unwrap();
        queues.iter().map(|queue| queue["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(server.get("/v1/queues?prefix=a").await.json()), ["a", "ab"]);
    let page = server.get("/v1/queues?limit=2").await.json();
    assert_eq!(page["next"], "ab");
    let rest = server.get("/v1/queues?after=ab&limit=2").await.json();
    assert_eq!(rest.get("next"), None);
    assert_eq!(names(rest), ["b", "c"]);
    server.send("a", "x").await;
    let queue = server.get("/v1/queues/a").await.json();
    assert_eq!((&queue["counts"]["ready"], &queue["totals"]["sent"]), (&json!(1), &json!(1)));
    assert!(queue["oldest_ready_age_ms"].as_u64().unwrap() < 60_000);
    assert_eq!(server.post("/v1/queues/a/purge", "").await.json(), json!({"purged": 1}));
    server.send("a", "y").await;
    assert_eq!(server.call("DELETE", "/v1/queues/a", "").await.json(), json!({"deleted": 1}));
    assert_eq!(server.get("/v1/queues/a").await.code(), "queue_not_found");
}

#[tokio::test]
async fn messages_are_found_by_what_is_in_them() {
    let server = Server::start().await;
    for (n, tag) in [(1, "a"), (2, "b"), (3, "a")] {
        let message = json!({"payload": format!("{{\"n\":{n}}}"), "tags": [tag], "headers": {"x~y": tag}});
        server.post("/v1/queues/q/messages", &message.to_string()).await;
    }
    let search = async |body: Value| server.post("/v1/queues/q/search", &body.to_string()).await;
    let payloads = |found: &Value| -> Vec<String> {
        let messages = found["messages"].as_array().unwrap();
        messages.iter().map(|message| message["payload"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let filter = json!({"/tags": {"contains": "a"}, "/payload/n": {"gt": 1}, "/headers/x~0y": "a"});
    let found = search(json!({"where": filter, "payload": true})).await.json();
    assert_eq!(payloads(&found), [r#"{"n":3}"#]);
    assert_eq!((&found["scanned"], &found["total"], found.get("next")), (&json!(3), &json!(3), None));
    let first = search(json!({"limit": 2})).await.json();
    assert_eq!((payloads(&first), &first["scanned"]), (vec![String::new(); 2], &json!(2)));
    let rest = search(json!({"limit": 2, "cursor": first["next"]})).await.json();
    assert_eq!((rest["messages"].as_array().unwrap().len(), rest.get("next")), (1, None));
    assert_eq!(server.post("/v1/queues/q/search", "").await.json()["total"], 3, "no body finds all");
    assert_eq!(server.get("/v1/queues/q").await.json()["counts"]["ready"], 3, "nothing is taken");
    for (body, field) in [
        (json!({"where": {"/sate": "dead"}}), "where./sate"),
        (json!({"where": {"/payload/n": {"above": 1}}}), "where./payload/n.above"),
        (json!({"where": "dead"}), "where"),
        (json!({"cursor": "x"}), "cursor"),
        (json!({"limit": 0}), "limit"),
    ] {
        let refused = search(body.clone()).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]["details"]["field"]),
            (400, &json!(field)),
            "{body}"
        );
    }
    assert_eq!(server.post("/v1/queues/none/search", "{}").await.code(), "queue_not_found");
}

#[tokio::test]
async fn messages_are_looked_at_without_being_taken() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        ids.push(server.send("q", text).await);
    }
    let peek = server.get("/v1/queues/q/peek?limit=2").await.json();
    assert_eq!(peek["messages"][1]["payload"], "b");
    let mut found = Vec::new();
    let mut path = "/v1/queues/q/messages?limit=2&payload=true&state=ready".to_owned();
    loop {
        let page = server.get(&path).await.json();
        for message in page["messages"].as_array().unwrap() {
            found.push(message["id"].as_str().unwrap().to_owned());
            assert!(message["payload"].is_string());
        }
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/queues/q/messages?limit=2&payload=true&state=ready&cursor={next}");
    }
    assert_eq!(found, ids);
    let without = server.get("/v1/queues/q/messages").await.json();
    assert_eq!(without["messages"][0].get("payload"), None);
    let one = server.get(&format!("/v1/messages/{}", ids[0])).await.json();
    assert_eq!((&one["payload"], &one["state"], &one["queue"]), (&json!("a"), &json!("ready"), &json!("q")));
    let bare = server.get(&format!("/v1/messages/{}?payload=false", ids[0])).await.json();
    assert_eq!(bare.get("payload"), None);
    let taken = server.receive("q").await;
    let leased = server.get(&format!("/v1/messages/{}", ids[0])).await.json();
    assert_eq!(leased["receipt"], taken["receipt"]);
}

#[tokio::test]
async fn paused_queues_deliver_nothing_and_closed_ones_take_nothing() {
    let server = Server::start().await;
    let created = server.call("PUT", "/v1/queues/q", r#"{"paused":true}"#).await;
    assert_eq!((created.status, &created.json()["settings"]["paused"]), (201, &json!(true)));
    server.send("q", "a").await;
    assert_eq!(server.post("/v1/queues/q/receive", "{}").await.json(), json!({"messages": []}));
    let waiting = server.post("/v1/queues/q/receive", r#"{"wait_ms":20000}"#);
    let resumed = async {
        until_receives_wait(&server, 1).await;
        server.post("/v1/queues/q/resume", "").await
    };
    let (waited, resumed) = tokio::join!(waiting, resumed);
    assert_eq!(waited.json()["messages"][0]["payload"], "a");
    assert_eq!(resumed.json()["settings"]["paused"], false);

    assert_eq!(server.post("/v1/queues/q/close", "").await.json()["settings"]["closed"], true);
    let refused = server.post("/v1/queues/q/messages", r#"{"payload":"b"}"#).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("queue_closed")));
    server.post("/v1/queues/q/open", "").await;
    server.send("q", "b").await;
    assert_eq!(server.post("/v1/queues/none/pause", "").await.status, 404);
}

#[tokio::test]
async fn dead_letters_move_to_the_queue_for_them() {
    let server = Server::start().await;
    server.call("PUT", "/v1/queues/q", r#"{"dead_letter_queue":"buried"}"#).await;
    let circle = server.call("PUT", "/v1/queues/buried", r#"{"dead_letter_queue":"q"}"#).await;
    assert_eq!(circle.status, 400);
    assert!(circle.message().contains("buried -> q -> buried"), "{}", circle.message());
    server.send("q", "a").await;
    let receipt = server.receive("q").await["receipt"].clone();
    server.post("/v1/reject", &json!({"receipt": receipt, "error": "no such host"}).to_string()).await;
    let list = server.get("/v1/queues/buried/messages").await.json();
    let buried = &list["messages"][0];
    assert_eq!(
        (&buried["state"], &buried["from_queue"], &buried["reason"], &buried["attempts"]),
        (&json!("ready"), &json!("q"), &json!("rejected"), &json!(0))
    );
    assert_eq!(server.get("/v1/queues/q").await.json()["totals"]["moved_out"], 1);
    let delivered = server.receive("buried").await;
    assert_eq!((&delivered["from_queue"], &delivered["reason"]), (&json!("q"), &json!("rejected")));
}

#[tokio::test]
async fn new_queues_begin_with_the_settings_of_the_longest_pattern() {
    let server = Server::start().await;
    let put = server.call("PUT", "/v1/queue-defaults/mail.*", r#"{"lease_ms":7000,"limit":""}"#).await;
    assert_eq!(
        (put.status, put.json()),
        (201, json!({"pattern": "mail.*", "settings": {"lease_ms": 7000, "limit": ""}}))
    );
    server.call("PUT", "/v1/queue-defaults/*", r#"{"paused":true}"#).await;
    server.send("mail.eu", "a").await;
    server.send("sms", "a").await;
    let settings =
        async |queue: &str| server.get(&format!("/v1/queues/{queue}")).await.json()["settings"].clone();
    assert_eq!(
        (&settings("mail.eu").await["lease_ms"], &settings("mail.eu").await["paused"]),
        (&json!(7000), &json!(false))
    );
    assert_eq!(settings("sms").await["paused"], true);
    let first = server.get("/v1/queue-defaults?limit=1").await.json();
    assert_eq!((&first["defaults"][0]["pattern"], &first["next"]), (&json!("*"), &json!("*")));
    let rest = server.get("/v1/queue-defaults?after=*").await.json();
    assert_eq!((rest["defaults"].as_array().unwrap().len(), rest.get("next")), (1, None));
    assert_eq!(server.call("DELETE", "/v1/queue-defaults/*", "").await.status, 200);
    assert_eq!(server.get("/v1/queue-defaults/*").await.code(), "defaults_not_found");
    assert_eq!(server.call("PUT", "/v1/queue-defaults/a%20b", "{}").await.code(), "invalid_argument");
}

#[tokio::test]
async fn a_redrive_at_a_rate_shows_how_far_it_is_and_ends() {
    let server = Server::start().await;
    for payload in ["a", "b", "c"] {
        server.send("q", payload).await;
        let receipt = server.receive("q").await["receipt"].clone();
        server.post("/v1/reject", &json!({"receipt": receipt}).to_string()).await;
    }
    let path = "/v1/queues/q/dead/redrive";
    assert_eq!(server.post(path, r#"{"all":true,"per_second":1}"#).await.json(), json!({"redriven": 3}));
    let shown = server.get("/v1/queues/q").await.json();
    assert_eq!(shown["redriving"], json!({"left": 2, "per_second": 1}));
    assert_eq!(server.call("DELETE", path, "").await.json(), json!({"left": 2}));
    let shown = server.get("/v1/queues/q").await.json();
    assert_eq!((shown.get("redriving"), &shown["counts"]["dead"]), (None, &json!(2)));
}

#[tokio::test]
async fn large_pages_are_cut_by_size() {
    let server = Server::start().await;
    let payload = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        server.call_with("POST", "/v1/queues/q/messages/raw", &[], &payload).await;
    }
    let page = server.get("/v1/queues/q/messages?payload=true").await;
    let count = page.json()["messages"].as_array().unwrap().len();
    assert!((10..=16).contains(&count), "{count}");
    let next = page.json()["next"].as_str().unwrap().to_owned();
    let rest = server.get(&format!("/v1/queues/q/messages?payload=true&cursor={next}")).await.json();
    assert_eq!(rest["messages"].as_array().unwrap().len() + count, 20);
    assert_eq!(rest.get("next"), None);
}

#[tokio::test]
async fn a_peek_at_large_messages_is_cut_short_and_says_so() {
    let server = Server::start().await;
    for _ in 0..20 {
        server.call_with("POST", "/v1/queues/q/messages/raw", &[], &vec![b'x'; 1 << 20]).await;
    }
    let page = server.get("/v1/queues/q/peek?limit=100").await.json();
    let count = page["messages"].as_array().unwrap().len();
    assert!((10..=16).contains(&count), "{count}");
    assert_eq!(page["truncated"], true);
    let page = server.get("/v1/queues/q/peek?limit=3").await.json();
    assert_eq!((page["messages"].as_array().unwrap().len(), page.get("truncated")), (3, None));
}

#[tokio::test]
async fn pages_of_payloads_that_json_escapes_are_cut_by_what_is_written() {
    let server = Server::start().await;
    let expired: &[(&str, &str)] = &[("sluice-expires-at-ms", "1")];
    for (queue, headers) in [("q", &[][..]), ("dead", expired)] {
        for _ in 0..12 {
            let path = format!("/v1/queues/{queue}/messages/raw");
            assert_eq!(server.call_with("POST", &path, headers, &vec![0; 1 << 20]).await.status, 201);
        }
    }
    until(async || server.get("/v1/queues/dead").await.json()["counts"]["dead"] == 12).await;
    let peeked = server.get("/v1/queues/q/peek?limit=100").await.json();
    assert_eq!((peeked["messages"].as_array().unwrap().len(), &peeked["truncated"]), (2, &json!(true)));
    for path in ["/v1/queues/q/messages?payload=true", "/v1/queues/dead/dead?limit=100"] {
        let (mut count, mut next) = (0, String::new());
        loop {
            let page = server.get(&format!("{path}{next}")).await.json();
            let shown = page["messages"].as_array().unwrap().len();
            assert!((1..=2).contains(&shown), "{path}{next}: {shown}");
            count += shown;
            let Some(cursor) = page["next"].as_str() else { break };
            next = format!("&cursor={cursor}");
        }
        assert_eq!(count, 12, "{path}");
    }
}

#[tokio::test]
async fn dead_letters_are_listed_redriven_and_deleted() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        ids.push(server.send("q", text).await);
        let message = server.receive("q").await;
        server.post("/v1/reject", &receipt(&message)).await;
    }
    let list = server.get("/v1/queues/q/dead?limit=10").await.json();
    assert_eq!(list["messages"].as_array().unwrap().len(), 3);
    assert_eq!(list["messages"][0]["reason"], "rejected");
    let some = json!({"ids": [ids[0]]}).to_string();
    assert_eq!(server.post("/v1/queues/q/dead/redrive", &some).await.json(), json!({"redriven": 1}));
    let some = json!({"ids": [ids[1]]}).to_string();
    assert_eq!(server.post("/v1/queues/q/dead/delete", &some).await.json(), json!({"deleted": 1}));
    assert_eq!(
        server.post("/v1/queues/q/dead/delete", r#"{"all":true}"#).await.json(),
        json!({"deleted": 1})
    );
    assert_eq!(server.receive("q").await["payload"], "a");
}

#[tokio::test]
async fn namespaces_are_made_changed_and_deleted() {
    let server = Server::start().await;
    let made = server.call("PUT", "/v1/namespaces/shop", r#"{"quotas":{"queues":1},"shard":1}"#).await;
    assert_eq!((made.status, &made.json()["shard"]), (201, &json!(1)));
    let again = server.call("PUT", "/v1/namespaces/shop", r#"{"quotas":{"messages":5}}"#).await;
    assert_eq!(
        (again.status, &again.json()["quotas"]),
        (200, &json!({"queues": 1, "messages": 5, "bytes": 0}))
    );
    let moved = server.call("PUT", "/v1/namespaces/shop", r#"{"shard":0}"#).await;
    assert_eq!((moved.status, moved.code()), (400, "invalid_argument".to_owned()));
    let patched = server.call("PATCH", "/v1/namespaces/shop", r#"{"quotas":{"queues":2}}"#).await;
    assert_eq!(patched.json()["quotas"]["queues"], 2);
    server.post("/v1/namespaces/shop/queues/a/messages", r#"{"payload":"x"}"#).await;
    let shown = server.get("/v1/namespaces/shop").await.json();
    assert_eq!((&shown["queues"], &shown["messages"]), (&json!(1), &json!(1)));
    let names: Vec<Value> = server.get("/v1/namespaces").await.json()["namespaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|namespace| namespace["name"].clone())
        .collect();
    assert_eq!(names, [json!("default"), json!("shop")]);
    let all = server.get("/v1/namespaces?all=true").await.json();
    assert_eq!(all["namespaces"][0]["name"], "$sys");
    assert_eq!(server.call("DELETE", "/v1/namespaces/shop", "").await.code(), "namespace_not_empty");
    assert_eq!(server.call("DELETE", "/v1/namespaces/shop?force=true", "").await.json(), json!({}));
    assert_eq!(server.get("/v1/namespaces/shop").await.code(), "namespace_not_found");
}

#[tokio::test]
async fn quotas_push_back() {
    let server = Server::start().await;
    server.call("PUT", "/v1/namespaces/shop", r#"{"quotas":{"messages":1}}"#).await;
    let send = async || server.post("/v1/namespaces/shop/queues/a/messages", r#"{"payload":"x"}"#).await;
    assert_eq!(send().await.status, 201);
    let full = send().await;
    assert_eq!((full.status, full.code()), (429, "quota_exceeded".to_owned()));
}

#[tokio::test]
async fn the_server_tells_about_itself() {
    let server = Server::start_with(|http, _| http.metrics_queues_max = 1).await;
    server.send("a", "x").await;
    server.send("b", "x").await;
    let status = server.get("/v1/status").await.json();
    assert_eq!(status["ready"], true);
    assert_eq!(status["shards"].as_array().unwrap().len(), 2);
    assert_eq!(&server.get("/healthz").await.body[..], b"ok\n");
    assert_eq!(&server.get("/readyz").await.body[..], b"ready\n");
    let metrics = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
    for line in [
        "sluice_http_requests_total{route=\"send\",status=\"201\"} 2",
        "sluice_queue_messages{namespace=\"default\",queue=\"a\",state=\"ready\"} 1",
        "sluice_queues_omitted 1",
        "sluice_http_requests_in_flight 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("queue=\"b\""));
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn a_server_without_a_disk_says_that_it_has_no_backup_or_streams_one() {
    let server = Server::start().await;
    let answer = server.get("/v1/admin/backup").await;
    match answer.status {
        200 => assert_eq!(answer.header("content-type"), "application/octet-stream"),
        _ => assert!(!answer.message().is_empty()),
    }
}
