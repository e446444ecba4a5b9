//! The stored policy, over HTTP.

use serde_json::json;
use sluice_calls::access::POLICY_BYTES_MAX;

use crate::access::{POLICY, asking};
use crate::client::{Bare, request};
use crate::waits::soon;

#[tokio::test]
async fn a_stored_policy_counts_at_once_and_is_recorded() {
    let asking = asking().await;
    let billing = asking.token("billing", &[]).await;
    let list = async || asking.call(&billing, "GET", "/v1/queues/invoices/messages", "").await.status;
    assert_eq!(list().await, 403);
    let none = asking.call(&asking.admin, "GET", "/v1/policy", "").await;
    assert_eq!((none.status, none.code().as_str()), (404, "policy_not_found"));

    let body = json!({"policy": POLICY, "version": ""}).to_string();
    let set = asking.call(&asking.admin, "PUT", "/v1/policy", &body).await;
    assert_eq!(set.status, 201, "{}", set.message());
    let version = set.json()["version"].as_str().unwrap().to_owned();
    assert_eq!(list().await, 404, "the queue is not there, and may be looked at");
    let shown = asking.call(&asking.admin, "GET", "/v1/policy", "").await.json();
    assert_eq!((&shown["policy"], &shown["set_by"]), (&json!(POLICY), &json!("root")));
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(asking.call(&billing, method, "/v1/policy", "").await.status, 403, "{method}");
    }

    let again = asking.call(&asking.admin, "PUT", "/v1/policy", &body).await;
    assert_eq!((again.status, again.json()["version"].as_str()), (200, Some(&*version)));
    let other = json!({"policy": "", "version": ""}).to_string();
    let refused = asking.call(&asking.admin, "PUT", "/v1/policy", &other).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "version_mismatch"));
    let refused = asking.call(&asking.admin, "DELETE", "/v1/policy?version=x", "").await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "version_mismatch"));

    // A receive that waits ends with the policy that allows it.
    let (address, bearer) = (asking.server.address, format!("Bearer {billing}"));
    let waiting = tokio::spawn(async move {
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        request(address, "POST", "/v1/queues/invoices/receive", &headers, br#"{"wait_ms":60000}"#).await
    });
    crate::waits::until_receives_wait(&asking.server, 1).await;
    let removed = asking.call(&asking.admin, "DELETE", &format!("/v1/policy?version={version}"), "").await;
    assert_eq!(removed.json()["version"], json!(version));
    assert_eq!(
        asking.call(&asking.admin, "POST", "/v1/queues/invoices/messages", r#"{"payload":"a"}"#).await.status,
        201
    );
    assert_eq!(soon(waiting).await.unwrap().status, 403);
    assert_eq!(list().await, 403);

    let audit = asking.call(&asking.admin, "GET", "/v1/admin/audit", "").await.json();
    let entries = audit["entries"].as_array().unwrap().iter();
    let of_policy = entries
        .filter(|entry| entry["who"] == "root" && entry["target"].as_str().unwrap().contains("policy"));
    let told =
        of_policy.map(|entry| (entry["operation"].as_str().unwrap(), entry["outcome"].as_str().unwrap()));
    let expected = [
        ("policy_put", "201"),
        ("policy_put", "200"),
        ("policy_put", "409"),
        ("policy_delete", "409"),
        ("policy_delete", "200"),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected, "{audit}");
}

#[tokio::test]
async fn a_policy_may_be_as_large_as_a_file_and_what_is_wrong_with_it_is_told() {
    let asking = asking().await;
    let set = async |body: String| asking.call(&asking.admin, "PUT", "/v1/policy", &body).await;
    let comment = |bytes: usize| "#".repeat(bytes);
    assert_eq!(set(json!({"policy": comment(POLICY_BYTES_MAX / 2)}).to_string()).await.status, 201);
    let large = set(json!({"policy": comment(POLICY_BYTES_MAX + 1)}).to_string()).await;
    assert_eq!((large.status, large.code().as_str()), (400, "invalid_argument"));
    assert!(large.message().contains("more than 1048576"), "{}", large.message());
    let mut bare = Bare::connect(asking.server.address).await;
    let head = format!(
        "PUT /v1/policy HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nexpect: 100-continue\r\ncontent-length: \
         {}\r\n\r\n",
        asking.admin,
        2 * POLICY_BYTES_MAX + 1
    );
    bare.write(&head).await;
    assert!(bare.read_until("body_too_large").await.starts_with("HTTP/1.1 413"));
    for (body, code) in [
        ("", "invalid_json"),
        ("{}", "missing_field"),
        (r#"{"policy":7}"#, "wrong_type"),
        (r#"{"policy":"[[rule]]"}"#, "invalid_argument"),
        (r#"{"policy":"","versoin":"a"}"#, "unknown_field"),
    ] {
        let refused = set(body.to_owned()).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, code), "{body}: {}", refused.message());
    }
    let kept = asking.call(&asking.admin, "GET", "/v1/policy", "").await.json();
    assert_eq!(kept["policy"].as_str().unwrap().len(), POLICY_BYTES_MAX / 2);
}
