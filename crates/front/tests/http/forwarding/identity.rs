//! Callers of requests that are passed on: the leader knows them as if they had asked it.

use data_encoding::BASE64;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::SEND;
use super::support::Cluster;
use crate::tls_support::{Pair, serial};

fn der(pair: &Pair) -> String {
    BASE64.encode(&CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap())
}

#[tokio::test]
async fn a_certificate_counts_at_the_leader() {
    let cluster = Cluster::new().await;
    let mut billing = cluster.http2(&cluster.billing).await;
    assert_eq!(billing.post("/v1/queues/jobs/messages", SEND).await.status, 201);
    let refused = billing.post("/v1/queues/others/messages", SEND).await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden".to_owned()));
    let me = cluster.ask(&cluster.asked, Some(&cluster.billing), ("GET", "/v1/whoami"), &[], "").await;
    assert_eq!(me.json()["name"], "billing");
    let nobody = cluster.ask(&cluster.asked, None, ("POST", "/v1/queues/jobs/messages"), &[], SEND).await;
    assert_eq!((nobody.status, nobody.code()), (401, "unauthenticated".to_owned()));
}

#[tokio::test]
async fn a_token_counts_at_the_leader_that_made_it() {
    let cluster = Cluster::new().await;
    let scope = json!({"name": "one", "scopes": ["sluice://ns/default?perm=rw"]}).to_string();
    let made = cluster.ops("POST", "/v1/tokens", &scope).await;
    assert_eq!(made.status, 201);
    let bearer = format!("Bearer {}", made.json()["token"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str())];
    let send = ("POST", "/v1/queues/jobs/messages");
    assert_eq!(cluster.ask(&cluster.asked, None, send, &headers, SEND).await.status, 201);
    assert_eq!(cluster.sent().await[0], 0);
    assert_eq!(cluster.ops("DELETE", "/v1/tokens/one", "").await.status, 200);
    assert_eq!(cluster.ask(&cluster.asked, None, send, &headers, SEND).await.status, 401);
}

#[tokio::test]
async fn a_client_is_nobody_else_whatever_it_says() {
    let cluster = Cluster::new().await;
    let shown = der(&cluster.ops);
    let forged = [
        ("sluice-forwarded-for", "192.0.2.77"),
        ("sluice-forwarded-certificate", shown.as_str()),
        ("sluice-forwarded-other", "1"),
    ];
    for server in [&cluster.asked, &cluster.leader] {
        let me = cluster.ask(server, Some(&cluster.billing), ("GET", "/v1/whoami"), &forged, "").await;
        assert_eq!(me.json()["name"], "billing");
        let none = cluster.ask(server, None, ("GET", "/v1/queues"), &forged, "").await;
        assert_eq!(none.status, 401);
    }
}

#[tokio::test]
async fn the_leaders_audit_log_names_the_caller() {
    let cluster = Cluster::new().await;
    assert_eq!(cluster.ops("PUT", "/v1/queues/jobs", "{}").await.status, 201);
    let audit = cluster.ops_at_leader("GET", "/v1/admin/audit", "").await.json();
    let entries: Vec<&Value> = audit["entries"].as_array().unwrap().iter().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["who"], "ops");
    assert_eq!(entries[0]["proof"], format!("certificate {}", serial(&cluster.ops)));
    assert_eq!(entries[0]["address"], "127.0.0.1");
    cluster.leader_is(None);
    let audit = cluster.ops("GET", "/v1/admin/audit", "").await.json();
    assert_eq!(audit["entries"], json!([]), "the node that was asked has done nothing");
}
