//! Leaders that are not reached, or are lost.

use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluice_front::nodes::Wire;
use sluice_node::shard::store::Standing;
use tokio::time::timeout;

use super::SEND;
use super::support::{ASKED, Cluster, LEADER};
use crate::waits::{soon, until_receives_wait};

/// A node that breaks off when a request has come.
pub(super) async fn one_that_breaks_off() -> io::Result<Box<dyn Wire>> {
    let (here, there) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let (came, coming) = tokio::sync::oneshot::channel::<()>();
        let came = std::sync::Mutex::new(Some(came));
        let service = service_fn(move |_: Request<Incoming>| {
            drop(came.lock().unwrap().take());
            std::future::pending::<Result<http::Response<Full<Bytes>>, Infallible>>()
        });
        let serving = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(there), service);
        tokio::select! {
            _ = serving => {}
            _ = coming => {}
        }
    });
    Ok(Box::new(here))
}

#[tokio::test]
async fn a_leader_that_is_not_reached_has_done_nothing() {
    let cluster = Cluster::new().await;
    cluster.others.reach(LEADER, || async { Err(io::Error::other("it is gone")) });
    let sent = cluster.ops("POST", "/v1/queues/jobs/messages", SEND);
    let set = cluster.ops("PUT", "/v1/queues/jobs", "{}");
    let (sent, set) = soon(async { tokio::join!(sent, set) }).await;
    for answer in [sent, set] {
        assert_eq!((answer.status, answer.code()), (503, "no_leader".to_owned()));
        assert_eq!(answer.header("retry-after"), "1");
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_tells_nothing_of_a_change() {
    let cluster = Cluster::new().await;
    cluster.others.reach(LEADER, one_that_breaks_off);
    let sent = soon(cluster.ops("POST", "/v1/queues/jobs/messages", SEND)).await;
    assert_eq!(sent.code(), "outcome_unknown");
    let looked = soon(cluster.ops("GET", "/v1/queues/jobs", "")).await;
    assert_eq!(looked.code(), "no_leader");
}

#[tokio::test]
async fn a_request_that_has_not_left_goes_to_the_next_leader() {
    let cluster = Cluster::new().await;
    cluster.others.reach(LEADER, || async { Err(io::Error::other("it is gone")) });
    let large = serde_json::json!({"payload": "x".repeat(1 << 20)}).to_string();
    let sending = cluster.ops("POST", "/v1/queues/jobs/messages", &large);
    let electing = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster.leader_is(None);
    };
    let (sent, ()) = tokio::join!(sending, electing);
    assert_eq!(sent.status, 201);
    assert_eq!(cluster.sent().await, [1, 0]);
}

#[tokio::test]
async fn trying_a_leader_and_waiting_for_one_have_one_deadline() {
    let cluster = Cluster::new().await;
    cluster.others.reach(LEADER, || async { Err(io::Error::other("it is gone")) });
    let began = Instant::now();
    let sending = soon(cluster.ops("POST", "/v1/queues/jobs/messages", SEND));
    let losing = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let none = Standing::Follower { leader: None };
        cluster.asked.node.leaders().iter().for_each(|leader| leader.set(none));
    };
    let (sent, ()) = tokio::join!(sending, losing);
    assert_eq!((sent.status, sent.code()), (503, "no_leader".to_owned()));
    let took = began.elapsed();
    assert!((Duration::from_secs(4)..Duration::from_secs(7)).contains(&took), "{took:?}");
    assert_eq!(cluster.sent().await, [0, 0]);
}

#[tokio::test]
async fn a_connection_that_has_ended_is_made_anew() {
    let cluster = Cluster::new().await;
    let through = cluster.others.clone();
    cluster.others.reach(LEADER, one_that_breaks_off);
    assert_eq!(cluster.ops("POST", "/v1/queues/jobs/messages", SEND).await.code(), "outcome_unknown");
    drop(through);
    cluster.reach(LEADER);
    assert_eq!(cluster.ops("POST", "/v1/queues/jobs/messages", SEND).await.status, 201);
}

#[tokio::test]
async fn what_was_passed_on_is_passed_on_once_more_and_then_never_again() {
    let cluster = Cluster::new().await;
    cluster.reach(ASKED);
    let standing = Standing::Follower { leader: Some(ASKED) };
    cluster.leader.node.leaders().iter().for_each(|leader| leader.set(standing));
    let sent = soon(cluster.ops("POST", "/v1/queues/jobs/messages", SEND)).await;
    assert_eq!(sent.status, 201, "the shard of a node alone serves it");
    assert_eq!(cluster.sent().await, [1, 0]);
    let forbidden = ("POST", "/v1/queues/others/messages");
    let refused = cluster.ask(&cluster.asked, Some(&cluster.billing), forbidden, &[], SEND).await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn requests_wait_while_no_leader_is_known_and_while_a_leadership_is_handed_over() {
    let cluster = Cluster::new().await;
    let leaders = cluster.asked.node.leaders();
    let lose = || leaders.iter().for_each(|leader| leader.set(Standing::Follower { leader: None }));
    let hand_over = || {
        cluster.leader_is(None);
        leaders.iter().for_each(|leader| leader.hands_over(true));
    };
    for (count, unsettle) in (1..).zip([&lose as &dyn Fn(), &hand_over]) {
        unsettle();
        let settling = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert_eq!(cluster.sent().await, [0, count - 1]);
            cluster.leader_is(Some(LEADER));
        };
        let sending = soon(cluster.ops("POST", "/v1/queues/jobs/messages", SEND));
        let (sent, ()) = tokio::join!(sending, settling);
        assert_eq!(sent.status, 201);
        assert_eq!(cluster.sent().await, [0, count]);
    }
    lose();
    let sent = soon(cluster.ops("POST", "/v1/queues/jobs/messages", SEND)).await;
    assert_eq!((sent.status, sent.code()), (503, "no_leader".to_owned()));
}

#[tokio::test]
async fn what_waits_at_another_node_ends_as_at_the_end_of_its_wait_when_this_one_stops() {
    let mut cluster = Cluster::new().await;
    let delayed = r#"{"payload":"x","delay_ms":60000}"#;
    let id = cluster.ops("POST", "/v1/queues/jobs/messages", delayed).await.json()["id"].clone();
    let client = cluster.http2(&cluster.ops).await;
    let ask = |method: &'static str, path: String, body: &'static str| {
        let mut client = client.clone();
        tokio::spawn(async move { client.call(method, &path, body).await })
    };
    let result = ask("GET", format!("/v1/messages/{}/result?wait_ms=60000", id.as_str().unwrap()), "");
    let received = ask("POST", "/v1/queues/jobs/receive".to_owned(), r#"{"wait_ms":60000,"max":2}"#);
    let raw = ask("POST", "/v1/queues/jobs/receive/raw?wait_ms=60000".to_owned(), "");
    until_receives_wait(&cluster.leader, 2).await;
    cluster.asked.begin_stop();
    let ended = timeout(Duration::from_secs(3), async { tokio::join!(received, raw, result) }).await.unwrap();
    let (received, raw, result) = (ended.0.unwrap(), ended.1.unwrap(), ended.2.unwrap());
    assert_eq!((received.status, received.json()), (200, serde_json::json!({"messages": []})));
    assert_eq!(raw.status, 204);
    assert_eq!((result.status, &result.json()["state"]), (200, &"pending".into()));
    until_receives_wait(&cluster.leader, 0).await;
}

#[tokio::test]
async fn a_receive_that_was_to_be_passed_on_is_answered_here_by_a_node_that_leads_meanwhile() {
    let cluster = Cluster::new().await;
    cluster.leader_is(None);
    for _ in 0..2 {
        assert_eq!(cluster.ops("POST", "/v1/queues/jobs/messages", SEND).await.status, 201);
    }
    let none = Standing::Follower { leader: None };
    cluster.asked.node.leaders().iter().for_each(|leader| leader.set(none));
    let electing = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster.leader_is(None);
    };
    let (received, ()) =
        tokio::join!(soon(cluster.ops("POST", "/v1/queues/jobs/receive", r#"{"max":2}"#)), electing);
    assert_eq!(received.json()["messages"].as_array().unwrap().len(), 2);
}
