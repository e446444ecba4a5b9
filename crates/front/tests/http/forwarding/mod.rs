//! Requests to a node that does not lead: who leads answers them.

mod failures;
mod identity;
mod sessions;
mod stale;
mod streams;
mod support;

use http_body::Body as _;
use serde_json::json;
use sluice_proto::wire::put_bytes;

use self::support::Cluster;

const SEND: &str = r#"{"payload":"a"}"#;

#[tokio::test]
async fn requests_in_each_version_of_http_are_done_by_the_leader() {
    let cluster = Cluster::new().await;
    let sent = cluster.ops("POST", "/v1/queues/jobs/messages", SEND).await;
    assert_eq!(sent.status, 201, "{:?}", sent.json());
    let sent = cluster.http2(&cluster.ops).await.post("/v1/queues/jobs/messages", SEND).await;
    assert_eq!(sent.status, 201, "{:?}", sent.json());
    assert_eq!(cluster.sent().await, [0, 2]);
    let received = cluster.ops("POST", "/v1/queues/jobs/receive", r#"{"max":10}"#).await;
    let messages = received.json()["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 2);
    let acked = cluster.http2(&cluster.ops).await;
    let receipt = json!({"receipt": messages[0]["receipt"]}).to_string();
    assert_eq!(acked.clone().post("/v1/ack", &receipt).await.status, 200);
}

#[tokio::test]
async fn what_is_about_a_node_or_about_nothing_is_answered_by_the_node_that_is_asked() {
    let cluster = Cluster::new().await;
    cluster.others.reach(support::LEADER, || async { Err(std::io::Error::other("never asked")) });
    for (path, status) in [("/healthz", 200), ("/v1/status", 200), ("/metrics", 200), ("/nowhere", 404)] {
        assert_eq!(cluster.ops("GET", path, "").await.status, status, "{path}");
    }
}

#[tokio::test]
async fn namespaces_and_tokens_are_those_of_the_first_shards_leader() {
    let cluster = Cluster::new().await;
    assert_eq!(cluster.ops("PUT", "/v1/namespaces/shop", "{}").await.status, 201);
    assert_eq!(cluster.ops("GET", "/v1/namespaces/shop", "").await.status, 200);
    let made = cluster.ops("POST", "/v1/namespaces/shop/queues/q/messages", SEND).await;
    assert_eq!(made.status, 201);
    assert!(cluster.asked.node.namespace_id("shop").is_err());
    assert!(cluster.leader.node.namespace_id("shop").is_ok());
}

#[tokio::test]
async fn errors_and_heads_come_back_as_the_leader_gives_them() {
    let cluster = Cluster::new().await;
    let path = "/v1/queues/missing";
    let (asked, direct) = (cluster.ops("GET", path, "").await, cluster.ops_at_leader("GET", path, "").await);
    assert_eq!((asked.status, asked.code()), (404, "queue_not_found".to_owned()));
    assert_eq!(asked.json(), direct.json());
    // A document without ages, which change between the two requests.
    let path = "/v1/queue-defaults";
    let (asked, direct) =
        (cluster.ops("HEAD", path, "").await, cluster.ops_at_leader("HEAD", path, "").await);
    assert_eq!(asked.header("content-length"), direct.header("content-length"));
    assert!(asked.body.is_empty() && !asked.header("content-length").is_empty());
}

/// An answer without a message has its status in its head, which ends the stream: clients look for trailers
/// in any other (gRPC over HTTP/2, Trailers-Only).
#[tokio::test]
async fn a_refusal_over_grpc_ends_with_its_head() {
    let cluster = Cluster::new().await;
    let mut client = cluster.http2(&cluster.ops).await;
    for (call, field) in [
        ("Queues/Get", "missing"),
        ("Documents/Get", "missing"),
        ("Messages/Send", "no such name!"),
        ("Events/WatchQueue", "no such name!"),
    ] {
        let mut request = Vec::new();
        put_bytes(&mut request, 2, field.as_bytes());
        let refused = client.grpc(call, &request).await;
        assert!(refused.headers()["grpc-status"] != "0", "{call}: {:?}", refused.headers());
        assert!(refused.body().is_end_stream(), "{call}");
    }
}

#[tokio::test]
async fn a_raw_payload_and_its_fields_come_to_the_leader_as_the_client_has_sent_them() {
    let cluster = Cluster::new().await;
    let headers = [("content-type", "text/plain"), ("sluice-priority", "7"), ("sluice-header-order", "4711")];
    let send = ("POST", "/v1/queues/jobs/messages/raw");
    let sent = cluster.ask(&cluster.asked, Some(&cluster.ops), send, &headers, "a").await;
    assert_eq!(sent.status, 201, "{:?}", sent.json());
    let received = cluster.ops("POST", "/v1/queues/jobs/receive", "{}").await.json();
    let message = &received["messages"][0];
    assert_eq!((&message["payload"], &message["priority"]), (&json!("a"), &json!(7)));
    assert_eq!(message["headers"], json!({"order": "4711"}));
    // One that nobody knows is refused, and named as the client has sent it.
    let headers = [("sluice-urgency", "7")];
    let refused = cluster.ask(&cluster.asked, Some(&cluster.ops), send, &headers, "a").await;
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("sluice-urgency"));
}

#[tokio::test]
async fn an_id_of_a_request_is_that_of_both_nodes() {
    let cluster = Cluster::new().await;
    let headers = [("x-request-id", "mine")];
    let asked = ("GET", "/v1/queues/missing");
    let answer = cluster.ask(&cluster.asked, Some(&cluster.ops), asked, &headers, "").await;
    assert_eq!(answer.headers.get_all("x-request-id").iter().count(), 1);
    assert_eq!(answer.header("x-request-id"), "mine");
}
