//! Answers that may be behind: the node that is asked gives them from what it has.

use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use sluice_node::shard::store::Standing;
use sluice_proto::framing::frame_with;
use sluice_proto::wire::{put_bytes, put_number};

use super::support::{Cluster, LEADER};
use crate::support::Server;
use crate::tls_support::TlsClient;
use crate::waits::soon;

/// A cluster whose leader is not reached by the node that is asked, which has a queue of its own.
async fn cut_off() -> Cluster {
    let cluster = Cluster::new().await;
    cluster.leader_is(None);
    assert_eq!(cluster.ops("PUT", "/v1/queues/jobs", r#"{"max_attempts":7}"#).await.status, 201);
    cluster.leader_is(Some(LEADER));
    cluster.others.reach(LEADER, || async { Err(io::Error::other("it is gone")) });
    cluster
}

/// The answer of a call over gRPC to the node that is asked, and its status.
async fn call(cluster: &Cluster, name: &str, message: &[u8]) -> (Bytes, String) {
    let stream = TlsClient::new(&cluster.ca, Some(&cluster.ops), "h2").connect(cluster.asked.address).await;
    let stream = TokioIo::new(stream.unwrap());
    let (mut connection, driver) = handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(driver);
    let mut body = Vec::new();
    frame_with(&mut body, |out| out.extend_from_slice(message));
    let request = http::Request::post(format!("https://{}/sluice.v1.{name}", cluster.asked.address))
        .header("content-type", "application/grpc")
        .body(Full::new(Bytes::from(body)));
    let (head, body) = connection.send_request(request.unwrap()).await.unwrap().into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or(head.headers);
    let code = trailers.get("sluice-code").map_or("", |code| code.to_str().unwrap()).to_owned();
    (body.to_bytes(), code)
}

#[tokio::test]
async fn a_node_that_is_cut_off_answers_what_may_be_behind_and_refuses_all_else() {
    let cluster = cut_off().await;
    let path = "/v1/queues/jobs";
    let shown = cluster.ops("GET", &format!("{path}?stale=true"), "").await;
    assert_eq!((shown.status, &shown.json()["settings"]["max_attempts"]), (200, &json!(7)));
    let (refused, false_is_not) = soon(async {
        tokio::join!(cluster.ops("GET", path, ""), cluster.ops("GET", "/v1/queues?stale=false", ""))
    })
    .await;
    assert_eq!((refused.status, refused.code()), (503, "no_leader".to_owned()));
    assert_eq!(false_is_not.code(), "no_leader");
    // Nor does it need a leader that is known.
    for leader in cluster.asked.node.leaders() {
        leader.set(Standing::Follower { leader: None });
    }
    for path in ["/v1/queues", "/v1/queues/jobs/messages", "/v1/queues/jobs/peek", "/v1/namespaces"] {
        let shown = cluster.ops("GET", &format!("{path}?stale=true"), "").await;
        assert_eq!(shown.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_field_says_so_over_grpc() {
    let cluster = cut_off().await;
    let get = |stale| {
        let mut message = Vec::new();
        put_bytes(&mut message, 2, b"jobs");
        put_number(&mut message, 3, stale);
        message
    };
    let (shown, code) = call(&cluster, "Queues/Get", &get(1)).await;
    assert_eq!(code, "");
    assert!(shown.windows(4).any(|part| part == b"jobs"));
    assert_eq!(call(&cluster, "Queues/Get", &get(0)).await.1, "no_leader");
    let mut list = Vec::new();
    put_number(&mut list, 5, 1);
    assert_eq!(call(&cluster, "Queues/List", &list).await.1, "");
    // A purge does not know the field.
    assert_eq!(call(&cluster, "Queues/Purge", &get(1)).await.1, "unknown_field");
}

#[tokio::test]
async fn who_may_not_look_may_not_look_at_what_is_behind() {
    let cluster = cut_off().await;
    let get = ("GET", "/v1/queues/jobs?stale=true");
    let refused = cluster.ask(&cluster.asked, None, get, &[], "").await;
    assert_eq!((refused.status, refused.code()), (401, "unauthenticated".to_owned()));
    let get = ("GET", "/v1/queues/others?stale=true");
    let refused = cluster.ask(&cluster.asked, Some(&cluster.billing), get, &[], "").await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn a_server_alone_takes_it_and_answers_as_ever() {
    let server = Server::start().await;
    let id = server.send("q", "a").await;
    for path in ["/v1/queues/q/messages", "/v1/queues/q/peek", &format!("/v1/messages/{id}"), "/v1/limits"] {
        let (asked, usual) = (server.get(&format!("{path}?stale=true")).await, server.get(path).await);
        assert_eq!((asked.status, asked.json()), (200, usual.json()), "{path}");
    }
    for (query, code) in [("stale=maybe", "wrong_type"), ("stale=true&stale=true", "duplicate_field")] {
        let refused = server.get(&format!("/v1/queues/q?{query}")).await;
        assert_eq!((refused.status, refused.code()), (400, code.to_owned()), "{query}");
        assert_eq!(refused.json()["error"]["details"]["field"], "stale");
    }
    let refused = server.get("/v1/queues?nothing=1").await;
    assert!(refused.json()["error"]["details"]["allowed"].as_array().unwrap().contains(&json!("stale")));
    // What waits, changes, or is not part of the state of a shard.
    for (method, path) in [
        ("GET", format!("/v1/messages/{id}/result")),
        ("GET", "/v1/bulk".into()),
        ("DELETE", "/v1/queues/q".into()),
    ] {
        let refused = server.call(method, &format!("{path}?stale=true"), "").await;
        assert_eq!((refused.status, refused.code()), (400, "unknown_field".to_owned()), "{method} {path}");
    }
}
