//! What the client does when the server or the network fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{Reply, client, serve};
use sluice_client::{Client, ClientError, Message, Options, TransportKind};
use tokio::sync::Notify;

#[tokio::test]
async fn a_send_is_repeated_under_one_key_through_breaks_and_refusals() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let address = serve(move |request| {
        let mut keys = seen.lock().unwrap();
        keys.push(request.idempotency_key.unwrap());
        let reply = match keys.len() {
            1 => Reply::Break,
            2 => Reply::Later(503, "outcome_unknown", 0),
            _ => Reply::Json(201, "{\"id\":\"x\",\"duplicate\":true}".to_owned()),
        };
        async { reply }
    })
    .await;
    let sent = client(address).send("q", &[Message::new(b"a")]).await.unwrap();
    assert!(sent.decode().unwrap().duplicate);
    let keys = keys.lock().unwrap();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|k| *k == keys[0]), "{keys:?}");
}

#[tokio::test]
async fn a_server_that_ends_within_the_handshake_could_not_be_reached() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            drop(connection);
        }
    });
    let options = Options { connect_retry_for: Duration::ZERO, ..Options::default() };
    let client = Client::with_options(&format!("https://{address}"), options).unwrap();
    let error = client.peek("q", 1).await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { kind: TransportKind::Connect, .. }), "{error}");
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let count = Arc::new(AtomicUsize::new(0));
    let address = serve(move |_| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if first {
                Reply::Later(429, "overloaded", 1)
            } else {
                Reply::Json(200, "{\"messages\":[]}".to_owned())
            }
        }
    })
    .await;
    let started = Instant::now();
    client(address).peek("q", 1).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_connection_closed_while_idle_goes_unnoticed_even_by_calls_that_are_not_repeated() {
    let closed = Arc::new(Notify::new());
    let closing = Arc::clone(&closed);
    let address = serve(move |_| {
        let closing = Arc::clone(&closing);
        async { Reply::JsonThenClose("{\"purged\":3}".to_owned(), closing) }
    })
    .await;
    let client = client(address);
    for _ in 0..3 {
        assert_eq!(client.queue_purge("q").await.unwrap(), 3);
        closed.notified().await;
        // The client hears of it when its runtime looks at its sockets, which it does before this is over.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_call_that_may_have_taken_effect_twice_is_not_repeated() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let address = serve(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        async { Reply::Break }
    })
    .await;
    let error = client(address).queue_purge("q").await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { kind: TransportKind::Broken, .. }), "{error}");
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_refused_connection_tells_the_address_and_how_often_it_was_tried() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = client(address).status().await.unwrap_err();
    let ClientError::Transport { kind: TransportKind::Connect, server, tried, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(server, &address.to_string());
    assert!(*tried > 1);
    assert!(error.to_string().starts_with(&format!("cannot connect to {address}: ")), "{error}");
}

#[tokio::test]
async fn settling_again_is_success_and_item_errors_are_told() {
    let address = serve(|_| async {
        let body = r#"{"results":[{"ok":true,"already_settled":true},
            {"ok":false,"error":{"code":"already_settled","message":"m"}},
            {"ok":false,"error":{"code":"lease_lost","message":"m"}}]}"#;
        Reply::Json(200, body.to_owned())
    })
    .await;
    let results = client(address).ack_many(["a", "b", "c"]).await.unwrap();
    assert!(results[0].ok && results[0].already_settled);
    assert!(results[1].ok && results[1].already_settled);
    assert_eq!(results[2].error.as_ref().unwrap().code, "lease_lost");
}

#[tokio::test]
async fn what_is_not_sluice_is_named() {
    let address = serve(|_| async { Reply::Json(404, "<html>nginx".to_owned()) }).await;
    let error = client(address).status().await.unwrap_err().to_string();
    assert!(error.contains("404") && error.contains("nginx") && error.contains("Sluice server"), "{error}");
}

#[tokio::test]
async fn a_cluster_is_asked_where_its_leader_is_under_one_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let (first, second) = (Arc::clone(&keys), Arc::clone(&keys));
    let leader = serve(move |request| {
        second.lock().unwrap().push(request.idempotency_key.unwrap());
        async { Reply::Json(201, "{\"id\":\"x\"}".to_owned()) }
    })
    .await;
    let follower = serve(move |request| {
        first.lock().unwrap().push(request.idempotency_key.unwrap());
        async { Reply::Later(503, "not_leader", 5) }
    })
    .await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::new(&format!("http://{nobody},http://{follower},http://{leader}")).unwrap();
    let started = Instant::now();
    client.send("q", &[Message::new(b"a")]).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "it waits before it asks another node");
    assert_eq!(client.server(), leader.to_string());
    client.send("q", &[Message::new(b"b")]).await.unwrap();
    let keys = keys.lock().unwrap();
    assert_eq!((keys.len(), &keys[0]), (3, &keys[1]), "the follower is asked once");
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn a_call_without_a_key_is_not_repeated_at_another_node_after_a_break_but_the_next_call_goes_there() {
    let broken = serve(|_| async { Reply::Break }).await;
    let well = serve(|_| async { Reply::Json(200, "{\"purged\":3}".to_owned()) }).await;
    let client = Client::new(&format!("http://{broken},http://{well}")).unwrap();
    let error = client.queue_purge("q").await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { kind: TransportKind::Broken, .. }), "{error}");
    assert_eq!(client.queue_purge("q").await.unwrap(), 3);
}
