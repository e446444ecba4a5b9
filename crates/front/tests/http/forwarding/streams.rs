//! What waits and what is large, passed on.

use std::time::Duration;

use http_body_util::BodyExt as _;
use sluice_proto::wire::put_bytes;
use tokio::time::timeout;

use super::SEND;
use super::support::Cluster;
use crate::waits::{soon, until, until_receives_wait};

const WAIT: &str = r#"{"wait_ms":60000}"#;

#[tokio::test]
async fn a_receive_that_waits_gets_what_comes_to_the_leader() {
    let cluster = Cluster::new().await;
    let mut client = cluster.http2(&cluster.ops).await;
    let waiting = tokio::spawn(async move { client.post("/v1/queues/jobs/receive", WAIT).await });
    until_receives_wait(&cluster.leader, 1).await;
    assert_eq!(cluster.ops_at_leader("POST", "/v1/queues/jobs/messages", SEND).await.status, 201);
    let received = soon(waiting).await.unwrap();
    assert_eq!(received.json()["messages"][0]["payload"], "a");
}

#[tokio::test]
async fn a_receive_whose_client_is_gone_takes_nothing() {
    let cluster = Cluster::new().await;
    let mut client = cluster.http2(&cluster.ops).await;
    let waiting = tokio::spawn(async move { client.post("/v1/queues/jobs/receive", WAIT).await });
    until_receives_wait(&cluster.leader, 1).await;
    waiting.abort();
    until_receives_wait(&cluster.leader, 0).await;
    assert_eq!(cluster.ops("POST", "/v1/queues/jobs/messages", SEND).await.status, 201);
    let received = cluster.ops("POST", "/v1/queues/jobs/receive", "{}").await.json();
    assert_eq!(received["messages"][0]["attempt"], 1);
}

#[tokio::test]
async fn more_receives_wait_than_one_connection_carries() {
    let cluster = Cluster::new().await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let client = cluster.http2(&cluster.ops).await;
        for _ in 0..30 {
            let mut client = client.clone();
            waiting.push(tokio::spawn(async move { client.post("/v1/queues/jobs/receive", WAIT).await }));
        }
    }
    until_receives_wait(&cluster.leader, 90).await;
    assert_eq!(cluster.ops("POST", "/v1/queues/others/messages", SEND).await.status, 201);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    until_receives_wait(&cluster.leader, 0).await;
}

#[tokio::test]
async fn a_body_is_passed_on_without_memory_for_it() {
    let cluster = Cluster::with(|http| http.bodies_bytes_max = 1 << 10).await;
    let payload = "x".repeat(1 << 20);
    let body = serde_json::json!({"payload": payload}).to_string();
    assert_eq!(cluster.ops("POST", "/v1/queues/jobs/messages", &body).await.status, 201);
    let received = cluster.ops("POST", "/v1/queues/jobs/receive", "{}").await;
    assert_eq!(received.json()["messages"][0]["payload"], payload);
    cluster.leader_is(None);
    assert_eq!(cluster.ops("POST", "/v1/queues/jobs/messages", &body).await.code(), "overloaded");
}

#[tokio::test]
async fn events_come_as_they_happen() {
    let cluster = Cluster::new().await;
    cluster.ops("PUT", "/v1/queues/jobs", "{}").await;
    let mut client = cluster.http2(&cluster.ops).await;
    let mut events = client.get("/v1/queues/jobs/events").await.into_body();
    until(async || {
        cluster.ops("POST", "/v1/queues/jobs/messages", SEND).await;
        let frame = soon(events.frame()).await.unwrap().unwrap();
        String::from_utf8_lossy(frame.data_ref().unwrap()).contains("\"sent\"")
    })
    .await;
}

#[tokio::test]
async fn changes_of_documents_come_as_they_happen_and_end_with_the_node() {
    let mut cluster = Cluster::new().await;
    let mut client = cluster.http2(&cluster.ops).await;
    let mut stream = client.get("/v1/document-changes/stream").await.into_body();
    for told in ["event: current", "event: written"] {
        let frame = soon(stream.frame()).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(frame.data_ref().unwrap()).into_owned();
        assert!(text.contains(told), "{text}");
        cluster.ops("PUT", "/v1/documents/a", r#"{"content":"x"}"#).await;
    }
    cluster.asked.begin_stop();
    timeout(Duration::from_secs(3), stream.collect()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_lock_is_watched_over_both_protocols() {
    let mut cluster = Cluster::new().await;
    let mut client = cluster.http2(&cluster.ops).await;
    let mut key = Vec::new();
    put_bytes(&mut key, 2, b"k");
    let mut stream = client.get("/v1/locks/k/stream").await.into_body();
    let mut watched = client.grpc("Locks/Watch", &key).await.into_body();
    for owner in ["", "ann"] {
        let frame = soon(stream.frame()).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(frame.data_ref().unwrap()).into_owned();
        assert!(text.starts_with("event: lock\ndata: {\"key\":\"k\"") && text.contains(owner), "{text}");
        let frame = soon(watched.frame()).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(frame.data_ref().unwrap()).into_owned();
        assert!(text.contains('k') && text.contains(owner), "{text:?}");
        if owner.is_empty() {
            cluster.ops("POST", "/v1/locks", r#"{"key":"k","owner":"ann"}"#).await;
        }
    }
    cluster.asked.begin_stop();
    timeout(Duration::from_secs(3), stream.collect()).await.unwrap().unwrap();
}

#[tokio::test]
async fn events_end_when_the_node_stops_that_has_passed_them_on() {
    let mut cluster = Cluster::new().await;
    cluster.ops("PUT", "/v1/queues/jobs", "{}").await;
    let mut client = cluster.http2(&cluster.ops).await;
    let mut queue = Vec::new();
    put_bytes(&mut queue, 2, b"jobs");
    let events = client.get("/v1/queues/jobs/events").await.into_body();
    let watched = client.grpc("Events/WatchQueue", &queue).await.into_body();
    let mut streams = [events, watched];
    for events in &mut streams {
        soon(events.frame()).await.unwrap().unwrap();
    }
    cluster.asked.begin_stop();
    let [events, watched] = streams.map(|events| timeout(Duration::from_secs(3), events.collect()));
    assert!(events.await.unwrap().unwrap().trailers().is_none());
    assert_eq!(watched.await.unwrap().unwrap().trailers().unwrap()["grpc-status"], "0");
}
