//! The audit log: what is in it, whatever callers do.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use crate::access::{Asking, asking};
use crate::client::Bare;

/// Hangs up so that the server hears of it at once.
async fn hang_up_on(asking: &Asking, token: &str, method: &str, path: &str, after: Duration) {
    let mut bare = Bare::connect(asking.server.address).await;
    bare.write(&format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"))
        .await;
    tokio::time::sleep(after).await;
    bare.0.set_zero_linger().unwrap();
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
    tokio::time::sleep(Duration::from_millis(300)).await;
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
        tokio::time::sleep(Duration::from_millis(20)).await;
        let status = asking.call(&token, "GET", "/v1/whoami", "").await.status;
        let stored = sluice_front::access::Access::default();
        stored.load_tokens(&asking.server.node).await.unwrap();
        let is_stored = stored.tokens().iter().any(|token| *token.name == *name);
        assert_eq!(status == 200, is_stored, "{name}: {status}");
    }
}
