//! Frames that come together: each takes effect in its turn, and none answers for another.

use std::fs;
use std::net::SocketAddr;

use bytes::Bytes;
use serde_json::json;
use sluice_calls::access::{Access, AccessOptions};
use sluice_proto::v1::client_frame::Frame;
use sluice_proto::v1::server_frame::Frame as Told;
use sluice_proto::v1::*;
use tempfile::tempdir;

use super::session::{Session, ack, attach};
use super::support::{Client, start};

fn credit(credit: u32) -> Frame {
    Frame::Credit(SetCredit { consumer: 7, credit })
}

fn detach() -> Frame {
    Frame::Detach(Detach { consumer: 7, grace_ms: None })
}

impl Session {
    /// The codes of so many answers, in the order of their frames; empty: it went well.
    async fn codes(&mut self, count: usize) -> Vec<String> {
        let mut results = Vec::new();
        while results.len() < count {
            if let Told::Result(result) = self.next().await.unwrap() {
                let code = result.error.map(|error| String::from_utf8(error.code.to_vec()).unwrap());
                results.push((result.number, code.unwrap_or_default()));
            }
        }
        results.sort();
        results.into_iter().map(|(_, code)| code).collect()
    }
}

#[tokio::test]
async fn frames_for_a_consumer_wait_for_the_attach_before_them() {
    let address = start(|_, _| {}).await;
    let mut session = Session::open(address).await;
    let attached = || Frame::Attach(attach("q", 0));
    session.send_together([attached(), credit(3), detach()]).await;
    assert_eq!(session.codes(3).await, ["", "", ""]);
    let mut client = Client::connect(address).await;
    let consumers = client.call("Consumers/List", json!({})).await.unwrap();
    assert_eq!(consumers, json!({}), "it was detached");

    // The same number again, while its Detach is on its way; and frames that come too late, or twice.
    session.send_together([attached(), attached(), detach(), credit(1), attached(), credit(2)]).await;
    let expected = ["", "invalid_argument", "", "consumer_not_found", "", ""];
    assert_eq!(session.codes(6).await, expected);
    let consumers = client.call("Consumers/List", json!({})).await.unwrap();
    assert_eq!(consumers["consumers"][0]["credit"], 2);

    // What is refused has done nothing: it is attached still, and was not attached.
    let too_long = Frame::Detach(Detach { consumer: 7, grace_ms: Some(3_600_001) });
    session.send_together([too_long, credit(1)]).await;
    assert_eq!(session.codes(2).await, ["invalid_argument", ""]);
    let bad = Frame::Attach(Attach { consumer: 8, ..attach("no such name", 1) });
    let late = Frame::Credit(SetCredit { consumer: 8, credit: 1 });
    session.send_together([bad, late]).await;
    assert_eq!(session.codes(2).await, ["invalid_name", "consumer_not_found"]);
}

/// A server on which `worker` has a token and may work in queue `own`, and nothing else. With the tokens of
/// an administrator and of the worker.
async fn one_may_work_in_one_queue() -> (SocketAddr, String, String) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    fs::write(&path, "").unwrap();
    let access =
        Access::new(AccessOptions { policy: Some(path.clone()), ..AccessOptions::default() }).unwrap();
    let shared = access.clone();
    let address = start(|_, access| *access = shared).await;
    let mut client = Client::connect(address).await;
    client.token = client.make_token("root", "sluice://ns/*?perm=admin").await;
    let worker = client.make_token("worker", "sluice://ns/elsewhere?perm=r").await;
    let rule = "[[rule]]\nname = 'own'\nidentities = ['worker']\nrole = 'consumer'\nnamespaces = ['default']\nqueues = ['own']\n";
    fs::write(&path, rule).unwrap();
    assert!(access.reload().unwrap());
    (address, client.token, worker)
}

impl Session {
    async fn open_as(address: SocketAddr, token: String) -> Session {
        let mut session = Session::start(address).await;
        session.token = token;
        session.restart().await;
        session.ok(Frame::Open(Open::default())).await;
        session
    }
}

#[tokio::test]
async fn what_comes_before_a_detach_is_not_overtaken_by_it() {
    let (address, root, worker) = one_may_work_in_one_queue().await;
    let mut root = Session::open_as(address, root).await;
    let mut session = Session::open_as(address, worker).await;
    let settle = |outcome: &str, receipt: Bytes| {
        let item = Settlement { receipt, outcome: outcome.to_owned().into(), ..Settlement::default() };
        Frame::Settle(SettleMany { items: vec![item], acks: vec![] })
    };
    let extend = |receipt: Bytes| {
        let item = Extension { receipt, lease_ms: Some(60_000), ..Extension::default() };
        Frame::Extend(ExtendMany { items: vec![item] })
    };
    for round in 0..12 {
        root.fill("own", 1).await;
        session.ok(Frame::Attach(attach("own", 1))).await;
        let receipt = session.deliveries().await[0].receipt.clone();
        let before = match round % 4 {
            0 => settle("ack", receipt),
            1 => settle("nack", receipt),
            2 => extend(receipt),
            _ => Frame::Settle(SettleMany { items: vec![], acks: vec![receipt] }),
        };
        session.send_together([before, detach()]).await;
        let mut results = 0;
        while results < 2 {
            if let Told::Result(result) = session.next().await.unwrap() {
                assert!(result.error.is_none() && result.failures.is_empty(), "round {round}: {result:?}");
                results += 1;
            }
        }
    }
}

#[tokio::test]
async fn acks_are_not_refused_because_of_those_of_another_frame() {
    let (address, root, worker) = one_may_work_in_one_queue().await;
    let mut root = Session::open_as(address, root).await;
    root.fill("own", 2).await;
    root.fill("foreign", 1).await;
    root.ok(Frame::Attach(attach("foreign", 1))).await;
    let foreign = root.deliveries().await;

    let mut session = Session::open_as(address, worker).await;
    session.ok(Frame::Attach(attach("own", 2))).await;
    let mut own = session.deliveries().await;
    while own.len() < 2 {
        own.extend(session.deliveries().await);
    }
    let both = Frame::Settle(SettleMany {
        items: vec![],
        acks: vec![own[1].receipt.clone(), foreign[0].receipt.clone()],
    });
    session.send_together([ack(&[&own[0]]), ack(&[&foreign[0]]), both]).await;
    assert_eq!(session.codes(3).await, ["", "forbidden", "forbidden"]);
    session.ok(ack(&[&own[1]])).await;
    root.ok(ack(&[&foreign[0]])).await;
}
