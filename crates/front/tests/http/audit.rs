//! The audit log: what is in it, whatever callers do.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use sluice_calls::access::Access;
use sluice_engine::NamespaceId;
use sluice_engine::settings::QueuePatch;

use crate::access::{Asking, asking, asking_with_access, call};
use crate::client::Bare;
use crate::waits::until;

/// Hangs up so that the server hears of it at once.
async fn hang_up_on(asking: &Asking, token: &str, method: &str, path: &str, after: Duration) {
    let mut bare = Bare::connect(asking.server.address).await;
    bare.write(&format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"))
        .await;
    tokio::time::sleep(after).await;
    bare.0.set_zero_linger().unwrap();
}

/// Returns when the server has nothing to do for anybody else, nor goes on with what somebody asked for who
/// is gone.
async fn until_all_is_done(asking: &Asking) {
    until(async || {
        let metrics = asking.call(&asking.admin, "GET", "/metrics", "").await;
        let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
        ["sluice_http_connections 1", "sluice_http_requests_in_flight 1"]
            .iter()
            .all(|wanted| metrics.lines().any(|line| line == *wanted))
    })
    .await;
}

async fn entries(asking: &Asking) -> Vec<Value> {
    let page = asking.call(&asking.admin, "GET", "/v1/admin/audit?limit=1000", "").await.json();
    page["entries"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_is_in_the_audit_log_with_what_was_done() {
    let asking = asking().await;
    let operator = asking.token("ops", &["sluice://ns/default?perm=operator"]).await;
    for at in 0..150u64 {
        let path = format!("/v1/queues/q{at}");
        hang_up_on(&asking, &operator, "PUT", &path, Duration::from_micros(at % 15 * 30)).await;
    }
    until_all_is_done(&asking).await;
    let listed = asking.call(&asking.admin, "GET", "/v1/queues?limit=1000", "").await.json();
    let made = listed["queues"].as_array().unwrap().iter().map(|queue| queue["name"].as_str().unwrap());
    let known = entries(&asking).await;
    let known: HashSet<&str> =
        known.iter().filter_map(|entry| entry["target"].as_str()?.strip_prefix("/v1/queues/")).collect();
    let missing: Vec<&str> = made.filter(|queue| !known.contains(queue)).collect();
    assert_eq!(missing, [""; 0], "made, and not in the audit log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_revoked_or_not_when_its_revoker_hangs_up() {
    let asking = asking().await;
    for at in 0..40u64 {
        let name = format!("t{at}");
        let token = asking.token(&name, &["sluice://ns/default?perm=r"]).await;
        let path = format!("/v1/tokens/{name}");
        hang_up_on(&asking, &asking.admin, "DELETE", &path, Duration::from_micros(at * 25)).await;
        until_all_is_done(&asking).await;
        let status = asking.call(&token, "GET", "/v1/whoami", "").await.status;
        let stored = Access::default();
        stored.load_tokens(&asking.server.node).await.unwrap();
        let is_stored = stored.tokens().iter().any(|token| *token.name == *name);
        assert_eq!(status == 200, is_stored, "{name}: {status}");
    }
}

#[tokio::test]
async fn who_has_shown_nothing_is_summed_up_and_fills_nothing() {
    let access = Access::default();
    let asking = asking_with_access(access.clone()).await;
    for at in 0..50 {
        let answer = call(&asking.server, None, "POST", &format!("/v1/queues/q{at}/purge"), "").await;
        assert_eq!(answer.status, 401);
    }
    assert_eq!(entries(&asking).await.len(), 1, "the token");
    access.sum_up_refusals(&asking.server.node, false).await;
    assert_eq!(entries(&asking).await.len(), 1, "their time is not over");
    access.sum_up_refusals(&asking.server.node, true).await;
    let known = entries(&asking).await;
    assert_eq!(known.len(), 2);
    let told = ["who", "operation", "target", "outcome", "count"].map(|field| known[1][field].to_string());
    assert_eq!(told, ["\"nobody\"", "\"queue_purge\"", "\"/v1/queues/q0/purge\"", "\"401\"", "50"]);
    access.sum_up_refusals(&asking.server.node, true).await;
    assert_eq!(entries(&asking).await.len(), 2, "once");
}

#[tokio::test]
async fn what_an_identity_is_refused_is_taken_down_and_then_summed_up() {
    let access = Access::default();
    let asking = asking_with_access(access.clone()).await;
    let worker = asking.token("worker", &["sluice://ns/default?perm=r"]).await;
    for _ in 0..50 {
        assert_eq!(asking.call(&worker, "DELETE", "/v1/queues/q", "").await.status, 403);
    }
    access.sum_up_refusals(&asking.server.node, true).await;
    let known = entries(&asking).await;
    let of_worker: Vec<&Value> = known.iter().filter(|entry| entry["who"] == "worker").collect();
    assert_eq!(of_worker.len(), 21);
    assert_eq!((&of_worker[19]["count"], &of_worker[20]["count"]), (&Value::Null, &Value::from(30)));
}

#[tokio::test]
async fn the_newest_entries_are_there_though_the_log_is_full() {
    let asking = asking().await;
    let short = QueuePatch { max_messages: Some(5), ..QueuePatch::default() };
    asking.server.node.queue_set(NamespaceId::SYS, "audit", short, true).await.unwrap();
    for at in 0..20 {
        assert_eq!(asking.call(&asking.admin, "PUT", &format!("/v1/queues/q{at}"), "").await.status, 201);
    }
    let known = entries(&asking).await;
    let targets: Vec<&str> = known.iter().map(|entry| entry["target"].as_str().unwrap()).collect();
    assert_eq!(targets, [15, 16, 17, 18, 19].map(|at| format!("/v1/queues/q{at}")));
}
