//! Who may do what, over HTTP.

use serde_json::{Value, json};
use sluice_calls::access::{Access, AccessOptions, RequestRate};
use sluice_engine::NamespaceId;
use sluice_engine::query::State;

use crate::client::{Answer, request, request_http2};
use crate::support::{Server, receipt};
use crate::tls_support::{Ca, TlsClient, Valid, serial};
use crate::waits::{soon, until, until_receives_wait};

/// A server with an administrator's token.
pub(crate) struct Asking {
    pub(crate) server: Server,
    pub(crate) admin: String,
}

pub(crate) async fn asking() -> Asking {
    asking_with(AccessOptions::default()).await
}

async fn asking_with(options: AccessOptions) -> Asking {
    asking_with_access(Access::new(options).unwrap()).await
}

pub(crate) async fn asking_with_access(access: Access) -> Asking {
    let server = Server::start_with(|http, _| http.access = access).await;
    let admin = make(&server, None, json!({"name": "root", "scopes": ["sluice://ns/*?perm=admin"]})).await;
    Asking { server, admin }
}

pub(crate) async fn make(server: &Server, by: Option<&str>, body: Value) -> String {
    let answer = call(server, by, "POST", "/v1/tokens", &body.to_string()).await;
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()["token"].as_str().unwrap().to_owned()
}

pub(crate) async fn call(
    server: &Server,
    token: Option<&str>,
    method: &str,
    path: &str,
    body: &str,
) -> Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = Vec::new();
    if let Some(bearer) = &bearer {
        headers.push(("authorization", bearer.as_str()));
    }
    if !body.is_empty() {
        headers.push(("content-type", "application/json"));
    }
    server.call_with(method, path, &headers, body.as_bytes()).await
}

impl Asking {
    pub(crate) async fn token(&self, name: &str, scopes: &[&str]) -> String {
        make(&self.server, Some(&self.admin), json!({"name": name, "scopes": scopes})).await
    }

    pub(crate) async fn call(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        call(&self.server, Some(token), method, path, body).await
    }
}

#[tokio::test]
async fn nobody_is_asked_until_there_is_an_identity_and_then_everybody() {
    let server = Server::start().await;
    assert_eq!(server.get("/v1/whoami").await.json()["name"], "anybody");
    assert_eq!(server.get("/v1/queues").await.status, 200);
    let first = server.post("/v1/tokens", r#"{"name":"a","scopes":["sluice://ns/shop?perm=rw"]}"#).await;
    assert_eq!((first.status, first.code().as_str()), (409, "admin_needed"));
    let admin = make(&server, None, json!({"name": "root", "scopes": ["sluice://ns/*?perm=admin"]})).await;
    let answer = server.get("/v1/queues").await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    for path in ["/metrics", "/v1/status", "/v1/namespaces", "/v1/whoami", "/v1/tokens"] {
        assert_eq!(server.get(path).await.status, 401, "{path}");
        assert_eq!(call(&server, Some(&admin), "GET", path, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn scopes_allow_what_they_say_and_nothing_else() {
    let asking = asking().await;
    assert_eq!(asking.call(&asking.admin, "PUT", "/v1/namespaces/shop", "").await.status, 201);
    let producer = asking.token("producer", &["sluice://ns/shop?perm=w"]).await;
    let consumer = asking.token("consumer", &["sluice://ns/shop?perm=r"]).await;
    let queue = "/v1/namespaces/shop/queues/q";
    let send = asking.call(&producer, "POST", &format!("{queue}/messages"), r#"{"payload":"a"}"#).await;
    assert_eq!(send.status, 201);
    let denied = asking.call(&producer, "POST", &format!("{queue}/receive"), "").await;
    assert_eq!((denied.status, denied.code().as_str()), (403, "forbidden"));
    for part in ["\"producer\"", "receive", "\"q\"", "\"shop\"", "sluice://ns/shop?perm=w"] {
        assert!(denied.message().contains(part), "{}", denied.message());
    }
    let taken = asking.call(&consumer, "POST", &format!("{queue}/receive"), "").await;
    let receipt = receipt(&taken.json()["messages"][0]);
    assert_eq!(asking.call(&producer, "POST", "/v1/namespaces/shop/ack", &receipt).await.status, 403);
    assert_eq!(asking.call(&consumer, "POST", "/v1/namespaces/shop/ack", &receipt).await.status, 200);
    for (method, path) in [
        ("POST", "/v1/queues/q/messages"),
        ("DELETE", queue),
        ("GET", "/v1/status"),
        ("GET", "/v1/admin/backup"),
        ("PUT", "/v1/namespaces/other"),
        ("GET", "/v1/tokens"),
    ] {
        let body = if path.ends_with("messages") { r#"{"payload":"a"}"# } else { "" };
        assert_eq!(asking.call(&producer, method, path, body).await.status, 403, "{method} {path}");
    }
    let seen = asking.call(&producer, "GET", "/v1/whoami", "").await.json();
    assert_eq!((&seen["name"], &seen["grants"][0]), (&json!("producer"), &json!("sluice://ns/shop?perm=w")));
    let rights = json!([{"may": ["send", "result"], "namespaces": ["shop"], "queues": ["*"], "keys": ["*"]}]);
    assert_eq!(seen["rights"], rights);
}

/// An identity that may do everything in one queue.
pub(crate) const POLICY: &str = "
[[rule]]
name = 'invoices'
identities = ['billing']
role = 'consumer'
queues = ['invoices']

[[rule]]
name = 'look at invoices'
identities = ['billing']
role = 'operator'
queues = ['invoices']

[[rule]]
name = 'send invoices'
identities = ['billing']
role = 'producer'
queues = ['invoices']
";

#[tokio::test]
async fn a_policy_that_loses_its_last_rule_lets_nobody_in() {
    let ca = Ca::new();
    let options = AccessOptions { policy: Some(ca.policy(POLICY)), ..AccessOptions::default() };
    let access = Access::new(options).unwrap();
    let server = Server::start_with(|http, _| http.access = access.clone()).await;
    for policy in ["", "[[rate]]\nidentities = ['*']\nrequests_per_s = 5\n"] {
        ca.policy(policy);
        assert_eq!(access.reload(), Ok(true));
        for (method, path) in [("GET", "/v1/queues"), ("PUT", "/v1/queues/q"), ("POST", "/v1/tokens")] {
            assert_eq!(
                call(&server, None, method, path, "").await.status,
                401,
                "{method} {path} with {policy:?}"
            );
        }
    }
}

#[tokio::test]
async fn wrong_tokens_are_told_what_is_wrong() {
    let asking = asking().await;
    let good = asking.token("ci", &["sluice://ns/default?perm=rw"]).await;
    let mut flipped = good.clone().into_bytes();
    let last = flipped.len() - 5;
    flipped[last] ^= 1;
    let flipped = String::from_utf8(flipped).unwrap();
    for (token, told) in [
        (flipped.as_str(), "not one of this server's"),
        ("sluice_", "no token"),
        ("", "expected `Bearer TOKEN`"),
        (&good[..good.len() - 1], "no token"),
    ] {
        let answer = asking.call(token, "GET", "/v1/whoami", "").await;
        assert_eq!(answer.status, 401);
        assert!(answer.message().contains(told), "{token}: {}", answer.message());
    }
    let headers = [("authorization", "Basic dTpw")];
    let basic = asking.server.call_with("GET", "/v1/whoami", &headers, b"").await;
    assert!(basic.message().contains("expected `Bearer TOKEN`"), "{}", basic.message());
    assert_eq!(asking.call(&good, "GET", "/v1/whoami", "").await.status, 200);
}

#[tokio::test]
async fn a_revoked_or_expired_token_counts_no_more() {
    let asking = asking().await;
    let token = asking.token("ci", &["sluice://ns/default?perm=rw"]).await;
    assert_eq!(asking.call(&token, "GET", "/v1/whoami", "").await.status, 200);
    assert_eq!(asking.call(&asking.admin, "DELETE", "/v1/tokens/ci", "").await.json()["name"], "ci");
    assert_eq!(asking.call(&token, "GET", "/v1/whoami", "").await.status, 401);
    assert_eq!(asking.call(&asking.admin, "DELETE", "/v1/tokens/ci", "").await.code(), "token_not_found");
    let last = asking.call(&asking.admin, "DELETE", "/v1/tokens/root", "").await;
    assert_eq!(last.code(), "admin_needed", "nobody locks themselves out");
    let body = json!({"name": "short", "scopes": ["sluice://ns/default?perm=r"], "ttl_ms": 2_000});
    let short = make(&asking.server, Some(&asking.admin), body).await;
    assert_eq!(asking.call(&short, "GET", "/v1/whoami", "").await.status, 200);
    until(async || asking.call(&short, "GET", "/v1/whoami", "").await.status == 401).await;
    let expired = asking.call(&short, "GET", "/v1/whoami", "").await;
    assert!(expired.status == 401 && expired.message().contains("expired"));
    let again = asking.call(&asking.admin, "POST", "/v1/tokens", r#"{"name":"root"}"#).await;
    assert_eq!(again.code(), "token_exists");
}

#[tokio::test]
async fn receives_that_wait_end_with_their_token_and_take_nothing() {
    let asking = asking().await;
    let token = asking.token("ci", &["sluice://ns/default?perm=r"]).await;
    let (address, bearer) = (asking.server.address, format!("Bearer {token}"));
    let mut waiting = Vec::new();
    for (http2, path, body) in [
        (false, "/v1/queues/q/receive", r#"{"wait_ms":60000}"#),
        (true, "/v1/queues/q/receive", r#"{"wait_ms":60000}"#),
        (true, "/v1/receive", r#"{"queues":["q"],"wait_ms":60000}"#),
        (false, "/v1/queues/q/receive/raw?wait_ms=60000", ""),
    ] {
        let bearer = bearer.clone();
        waiting.push(tokio::spawn(async move {
            let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
            match http2 {
                false => request(address, "POST", path, &headers, body.as_bytes()).await,
                true => request_http2(address, "POST", path, &headers, body.as_bytes()).await,
            }
        }));
    }
    until_receives_wait(&asking.server, 4).await;
    asking.call(&asking.admin, "DELETE", "/v1/tokens/ci", "").await;
    let body = r#"{"payload":"for others"}"#;
    assert_eq!(asking.call(&asking.admin, "POST", "/v1/queues/q/messages", body).await.status, 201);
    for answer in waiting {
        let answer = soon(answer).await.unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
    }
    let queue = asking.call(&asking.admin, "GET", "/v1/queues/q", "").await.json();
    assert_eq!(queue["counts"]["ready"], 1, "{queue}");
}

#[tokio::test]
async fn waits_for_results_end_with_their_token() {
    let asking = asking().await;
    let token = asking.token("ci", &["sluice://ns/default?perm=rw"]).await;
    let body = r#"{"payload":"6*7","result_ttl_ms":60000}"#;
    let sent = asking.call(&token, "POST", "/v1/queues/q/messages", body).await.json();
    let path = format!("/v1/messages/{}/result?wait_ms=60000", sent["id"].as_str().unwrap());
    let waiting = tokio::spawn({
        let (address, bearer) = (asking.server.address, format!("Bearer {token}"));
        async move { request(address, "GET", &path, &[("authorization", &bearer)], b"").await }
    });
    until(async || {
        let metrics = asking.call(&asking.admin, "GET", "/metrics", "").await;
        // Beside the one for the metrics.
        String::from_utf8_lossy(&metrics.body).contains("sluice_http_requests_in_flight 2\n")
    })
    .await;
    asking.call(&asking.admin, "DELETE", "/v1/tokens/ci", "").await;
    let answer = soon(waiting).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"));
}

#[tokio::test]
async fn tokens_lie_in_the_journal_as_hashes_and_are_found_again() {
    let asking = asking().await;
    let token = asking.token("ci", &["sluice://ns/default?perm=rw"]).await;
    asking.call(&token, "GET", "/v1/whoami", "").await;
    let node = &asking.server.node;
    let stored = node.messages(NamespaceId::SYS, "tokens", Some(State::Held), None, 10, true).await.unwrap();
    assert_eq!(stored.items.len(), 2);
    for stored in &stored.items {
        let bytes = String::from_utf8_lossy(stored.blob.as_ref().unwrap()).into_owned();
        assert!(!bytes.contains(&token[24..]) && bytes.contains("sha256"), "{bytes}");
    }
    let again = Access::default();
    again.load_tokens(node).await.unwrap();
    assert!(again.asks());
    assert_eq!(again.tokens().iter().map(|token| token.name.to_string()).collect::<Vec<_>>(), ["ci", "root"]);
    assert_eq!(again.tokens()[0].last_used_ms(), 0);
    // The server's own, whose uses are written down.
    let own = asking.call(&asking.admin, "GET", "/v1/tokens", "").await.json();
    assert!(own["tokens"][0]["last_used_at_ms"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn last_uses_are_written_down() {
    let access = Access::default();
    let server = Server::start_with(|http, _| http.access = access.clone()).await;
    let admin = make(&server, None, json!({"name": "root", "scopes": ["sluice://ns/*?perm=admin"]})).await;
    call(&server, Some(&admin), "GET", "/v1/whoami", "").await;
    access.note_uses(&server.node).await.unwrap();
    let again = Access::default();
    again.load_tokens(&server.node).await.unwrap();
    assert!(again.tokens()[0].last_used_ms() > 0);
}

#[tokio::test]
async fn what_the_server_keeps_for_itself_nobody_changes() {
    let asking = asking().await;
    let list = "/v1/namespaces/$sys/queues/tokens/messages";
    for path in [list, "/v1/namespaces/$sys/documents"] {
        assert_eq!(asking.call(&asking.admin, "GET", path, "").await.status, 200, "{path}");
    }
    for (method, path) in [
        ("POST", "/v1/namespaces/$sys/queues/tokens/purge"),
        ("DELETE", "/v1/namespaces/$sys/queues/tokens"),
        ("POST", "/v1/namespaces/$sys/queues/audit/receive"),
        ("PUT", "/v1/namespaces/$sys/documents/a"),
    ] {
        let answer = asking.call(&asking.admin, method, path, "").await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{path}");
    }
    let observer = asking.token("watch", &["sluice://ns/*?perm=observer"]).await;
    assert_eq!(asking.call(&observer, "GET", list, "").await.status, 403);
    assert_eq!(asking.call(&observer, "GET", "/metrics", "").await.status, 200);
}

#[tokio::test]
async fn namespaces_are_for_those_who_administrate_all_of_them() {
    let asking = asking().await;
    let own = asking.token("own", &["sluice://ns/shop?perm=admin"]).await;
    let quotas = r#"{"quotas":{"messages":5}}"#;
    let path = "/v1/namespaces/shop";
    for (method, body) in [("PUT", ""), ("PUT", quotas), ("PATCH", quotas), ("DELETE", "")] {
        for made in [false, true] {
            if made {
                asking.call(&asking.admin, "PUT", path, "").await;
            }
            let denied = asking.call(&own, method, path, body).await;
            assert_eq!((denied.status, denied.code().as_str()), (403, "forbidden"), "{method} {body} {made}");
            assert!(denied.message().contains("on this server as a whole"), "{}", denied.message());
            if made {
                assert_eq!(asking.call(&asking.admin, "DELETE", path, "").await.status, 200);
            }
        }
    }
    assert_eq!(asking.call(&asking.admin, "PUT", path, quotas).await.status, 201);
    assert_eq!(asking.call(&own, "GET", path, "").await.json()["quotas"]["messages"], 5);
    assert_eq!(asking.call(&own, "PUT", &format!("{path}/queues/q"), "").await.status, 201);
    let kept = asking.call(&asking.admin, "PATCH", "/v1/namespaces/$sys", quotas).await;
    assert_eq!(kept.code(), "forbidden", "not even by them");
}

#[tokio::test]
async fn a_receipt_is_shown_to_those_who_may_settle_with_it() {
    let asking = asking().await;
    let observer = asking.token("watch", &["sluice://ns/default?perm=observer"]).await;
    let both =
        asking.token("both", &["sluice://ns/default?perm=observer", "sluice://ns/default?perm=r"]).await;
    asking.call(&asking.admin, "POST", "/v1/queues/q/messages", r#"{"payload":"a"}"#).await;
    let taken = asking.call(&both, "POST", "/v1/queues/q/receive", "{}").await.json()["messages"][0].clone();
    let id = taken["id"].as_str().unwrap();
    for (token, receipt) in [(&observer, None), (&both, Some(&taken["receipt"]))] {
        let shown = asking.call(token, "GET", &format!("/v1/messages/{id}"), "").await.json();
        assert_eq!(shown.get("receipt"), receipt);
        let listed = asking.call(token, "GET", "/v1/queues/q/messages", "").await.json();
        assert_eq!(listed["messages"][0].get("receipt"), receipt);
    }
}

#[tokio::test]
async fn who_may_not_send_makes_no_message_by_another_way() {
    let asking = asking().await;
    let operator = asking.token("ops", &["sluice://ns/default?perm=operator"]).await;
    let both =
        asking.token("both", &["sluice://ns/default?perm=operator", "sluice://ns/default?perm=w"]).await;
    let id =
        asking.call(&asking.admin, "POST", "/v1/queues/q/messages", r#"{"payload":"a"}"#).await.json()["id"]
            .as_str()
            .unwrap()
            .to_owned();
    let schedule = r#"{"every_ms":3600000,"queue":"q","message":{"payload":"a","reply_to":"r"}}"#;
    assert_eq!(asking.call(&asking.admin, "PUT", "/v1/schedules/made", schedule).await.status, 201);
    let moved = format!("/v1/messages/{id}/move");
    let retried = format!("/v1/messages/{id}/retry");
    let bulk = |action: &str| format!(r#"{{{action},"filter":{{"queue":"q"}},"dry_run":true}}"#);
    let calls = [
        ("PUT", "/v1/schedules/new", schedule.to_owned()),
        ("PUT", "/v1/schedules/made", schedule.to_owned()),
        ("POST", "/v1/schedules/made/trigger", String::new()),
        ("POST", "/v1/queues/q/dead/redrive", r#"{"all":true}"#.to_owned()),
        ("POST", "/v1/queues/q/dead/redrive", r#"{"all":true,"per_second":1}"#.to_owned()),
        ("POST", &moved, r#"{"to":"r"}"#.to_owned()),
        ("POST", &retried, "{}".to_owned()),
        ("POST", "/v1/bulk", bulk(r#""action":"move","to":"r""#)),
        ("POST", "/v1/bulk", bulk(r#""action":"retry""#)),
        ("PATCH", "/v1/queues/q", r#"{"dead_letter_queue":"r"}"#.to_owned()),
        ("PUT", "/v1/queue-defaults/new.*", r#"{"dead_letter_queue":"r"}"#.to_owned()),
    ];
    for (method, path, body) in &calls {
        let denied = asking.call(&operator, method, path, body).await;
        assert_eq!((denied.status, denied.code().as_str()), (403, "forbidden"), "{method} {path} {body}");
        let allowed = asking.call(&both, method, path, body).await.status;
        assert!(allowed != 403, "{method} {path} {body}: {allowed}");
    }
    // What is denied goes nowhere, and what waits in its queue already, is theirs to decide about.
    let buried = r#"{"dead_letter_queue":"buried"}"#;
    asking.call(&asking.admin, "PUT", "/v1/queues/alone", buried).await;
    let held = r#"{"payload":"a","hold":true,"delay_ms":60000}"#;
    let held = asking.call(&asking.admin, "POST", "/v1/queues/alone/messages", held).await.json();
    let held = held["id"].as_str().unwrap();
    for (verb, body) in [("change", r#"{"delay_ms":0}"#), ("approve", "{}"), ("hold", "{}"), ("deny", "{}")] {
        let answer = asking.call(&operator, "POST", &format!("/v1/messages/{held}/{verb}"), body).await;
        assert_eq!(answer.status, 200, "{verb}");
    }
    for (method, path) in [("POST", "/v1/schedules/made/pause"), ("DELETE", "/v1/schedules/made")] {
        assert_eq!(asking.call(&operator, method, path, "").await.status, 200, "{method} {path}");
    }
}

#[tokio::test]
async fn acts_are_taken_down_with_who_and_what_came_of_it() {
    let asking = asking().await;
    let operator = asking.token("ops", &["sluice://ns/default?perm=operator"]).await;
    asking.call(&operator, "PUT", "/v1/queues/q", "{}").await;
    asking.call(&operator, "PUT", "/v1/namespaces/n", "{}").await;
    asking.call(&operator, "GET", "/v1/queues", "").await;
    let page = asking.call(&asking.admin, "GET", "/v1/admin/audit?limit=100", "").await.json();
    let entries: Vec<String> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| format!("{} {} {} {}", e["who"], e["operation"], e["target"], e["outcome"]).replace('"', ""))
        .collect();
    assert_eq!(
        entries,
        [
            "anybody token_create /v1/tokens/root 201",
            "root token_create /v1/tokens/ops 201",
            "ops queue_put /v1/queues/q 201",
            "ops namespace_put /v1/namespaces/n 403",
        ]
    );
    assert!(page["entries"][2]["proof"].as_str().unwrap().starts_with("token "));
    assert_eq!(asking.call(&operator, "GET", "/v1/admin/audit", "").await.status, 403);
}

#[tokio::test]
async fn what_the_server_keeps_for_itself_is_in_no_figure_of_messages() {
    let asking = asking().await;
    asking.call(&asking.admin, "PUT", "/v1/queues/q", "{}").await;
    asking.call(&asking.admin, "POST", "/v1/queues/q/messages", r#"{"payload":"a"}"#).await;
    let status = asking.call(&asking.admin, "GET", "/v1/status", "").await.json();
    let sum = |name: &str| -> u64 {
        let shards = status["shards"].as_array().unwrap().iter();
        shards.map(|shard| shard["counts"].get(name).unwrap_or(&shard[name]).as_u64().unwrap()).sum()
    };
    assert_eq!((sum("ready"), sum("held"), sum("queues")), (1, 0, 1), "{status}");
    let metrics = asking.call(&asking.admin, "GET", "/metrics", "").await;
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(text.contains("sluice_queue_messages{namespace=\"default\",queue=\"q\",state=\"ready\"} 1"));
    assert!(!text.contains("$sys"), "{text}");
}

#[tokio::test]
async fn a_rate_is_kept_and_settling_goes_on() {
    let rate = RequestRate { per_s: 1, burst: 3 };
    let asking = asking_with(AccessOptions { rate: Some(rate), ..AccessOptions::default() }).await;
    let mut last = asking.call(&asking.admin, "GET", "/v1/queues", "").await;
    for _ in 0..5 {
        last = asking.call(&asking.admin, "GET", "/v1/queues", "").await;
    }
    assert_eq!((last.status, last.code().as_str()), (429, "rate_limited"));
    assert!(last.header("retry-after").parse::<u64>().unwrap() >= 1);
    let body = r#"{"receipt":"00000040000000g000g00000800000100g2s3k4q5m6n8"}"#;
    let settle = asking.call(&asking.admin, "POST", "/v1/ack", body).await;
    assert_ne!(settle.status, 429, "{}", settle.code());
}

#[tokio::test]
async fn certificates_have_their_scopes_and_are_revoked_live() {
    let ca = Ca::new();
    let policy = ca.policy("");
    let options = AccessOptions { policy: Some(policy), certificates: true, rate: None };
    let access = Access::new(options).unwrap();
    let (tls, shared) = (ca.tls(), access.clone());
    let server = Server::start_with(|http, _| {
        http.tls = Some(tls);
        http.access = shared;
    })
    .await;
    let pair = ca.client(&["sluice://client/billing", "sluice://ns/default?perm=w"], Valid::Now);
    let client = TlsClient::new(&ca, Some(&pair), "http/1.1");
    let send =
        || client.call_with(server.address, "POST", "/v1/queues/q/messages", &[], r#"{"payload":"a"}"#);
    let who = client.call(server.address, "GET", "/v1/whoami").await.unwrap().json();
    assert_eq!((&who["name"], &who["proof"]), (&json!("billing"), &json!("certificate")));
    assert_eq!(send().await.unwrap().status, 201);
    assert_eq!(client.call(server.address, "GET", "/v1/queues").await.unwrap().status, 403);
    let nobody = TlsClient::new(&ca, None, "http/1.1");
    assert_eq!(nobody.call(server.address, "GET", "/v1/queues").await.unwrap().status, 401);
    ca.policy(&format!("[revoked]\nserials = ['{}']\n", serial(&pair)));
    assert_eq!(access.reload(), Ok(true));
    let revoked = send().await.unwrap();
    assert_eq!(revoked.status, 401);
    assert!(revoked.message().contains("is revoked"), "{}", revoked.message());
    ca.policy("[revoked]\nserial = []\n");
    let mistake = access.reload().unwrap_err();
    assert!(mistake.contains("policy.toml") && mistake.contains("line 2"), "{mistake}");
    assert_eq!(send().await.unwrap().status, 401, "what was in force stays in force");
    for half_written in ["", "[revoked]\n"] {
        ca.policy(half_written);
        let mistake = access.reload().unwrap_err();
        assert!(mistake.contains("revoked") && mistake.contains("serials"), "{mistake}");
        assert_eq!(send().await.unwrap().status, 401, "a file that is half written takes nothing back");
    }
    ca.policy("[revoked]\nserials = []\n");
    assert_eq!(access.reload(), Ok(true));
    assert_eq!(send().await.unwrap().status, 201);
}
