//! Streams of events over gRPC.

use std::time::Duration;

use http::HeaderMap;
use serde_json::{Value, json};
use sluice_calls::access::{Access, AccessOptions};

use super::support::{Client, Frames, start, start_until};

#[tokio::test]
async fn events_come_as_messages_and_can_be_gone_on_with() {
    let address = start(|_, _| {}).await;
    let mut client = Client::connect(address).await;
    let mut all = client.stream("Events/Watch", json!({"types": "sent,delivered"})).await;
    let begin = all.next().await.unwrap();
    assert_eq!(begin.get("type"), None);
    let send = json!({"queue": "mail", "messages": [{"payload": "a"}, {"payload": "b"}]});
    let sent = client.call("Messages/Send", send).await.unwrap();
    for id in sent["ids"].as_array().unwrap() {
        let event = all.next().await.unwrap();
        assert_eq!((&event["type"], &event["queue"], &event["id"]), (&json!("sent"), &json!("mail"), id));
        assert!(event["at_ms"].is_u64() && event["position"] != begin["position"]);
    }
    let receive = json!({"queues": [{"name": "mail"}], "consumer": "ann"});
    let received = client.call("Messages/Receive", receive).await.unwrap();
    let event = all.next().await.unwrap();
    assert_eq!((&event["attempt"], &event["consumer"]), (&json!(1), &json!("1")));
    assert_eq!(event["lease_until_ms"], received["messages"][0]["lease_until_ms"]);

    let request = json!({"queue": "mail", "after": begin["position"]});
    let mut of_queue = client.stream("Events/WatchQueue", request).await;
    of_queue.next().await.unwrap();
    // The feed of the queue begins with its first reader.
    assert_eq!(of_queue.next().await.unwrap()["reason"], "unwatched");
    let mut again = client.stream("Events/Watch", json!({"after": begin["position"]})).await;
    again.next().await.unwrap();
    let types: Vec<Value> =
        [again.next().await.unwrap(), again.next().await.unwrap(), again.next().await.unwrap()]
            .map(|event| event["type"].clone())
            .into();
    assert_eq!(types, ["sent", "sent", "delivered"]);
}

#[tokio::test]
async fn mistakes_end_the_call_with_their_status() {
    let mut client = Client::connect(start(|_, _| {}).await).await;
    for (name, request, code) in [
        ("Events/Watch", json!({"types": "sent,none"}), "invalid_argument"),
        ("Events/Watch", json!({"after": "none"}), "invalid_argument"),
        ("Events/Watch", json!({"namespace": "none"}), "namespace_not_found"),
        ("Events/WatchQueue", json!({"queue": "none"}), "queue_not_found"),
        ("Events/WatchQueue", json!({}), "missing_field"),
    ] {
        let (found, message, _) = client.call(name, request).await.unwrap_err();
        assert_eq!(found, code, "{message}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_server_and_says_so() {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let address = start_until(|_, _| {}, async { drop(stopped.await) }).await;
    let mut client = Client::connect(address).await;
    let mut all = client.stream("Events/Watch", json!({})).await;
    all.next().await.unwrap();
    drop(stop);
    assert_eq!(all.next().await.unwrap_err()["grpc-status"], "0");
}

#[tokio::test]
async fn a_stream_that_ends_for_a_reason_tells_it() {
    let access = Access::new(AccessOptions::default()).unwrap();
    let address = start(|http, asks| {
        *asks = access;
        http.event_pause = Duration::from_millis(50);
    })
    .await;
    let mut root = Client::connect(address).await;
    root.token = root.make_token("root", "sluice://ns/*?perm=admin").await;
    root.call("Namespaces/Put", json!({"namespace": "shop"})).await.unwrap();
    let mut of_shop = root.stream("Events/Watch", json!({"namespace": "shop"})).await;
    root.call("Namespaces/Delete", json!({"namespace": "shop"})).await.unwrap();
    assert_eq!(last(&mut of_shop).await["sluice-code"], "namespace_not_found");

    let mut watcher = Client::connect(address).await;
    watcher.token = root.make_token("watcher", "sluice://ns/default?perm=observer").await;
    let mut all = watcher.stream("Events/Watch", json!({})).await;
    all.next().await.unwrap();
    root.revoke_token("watcher").await;
    let trailers = last(&mut all).await;
    assert_eq!(
        (&trailers["grpc-status"], &trailers["sluice-code"]),
        (&"16".parse().unwrap(), &"unauthenticated".parse().unwrap())
    );
}

/// The trailers at the end of a stream.
async fn last(frames: &mut Frames) -> HeaderMap {
    loop {
        if let Err(trailers) = frames.next().await {
            return trailers;
        }
    }
}
