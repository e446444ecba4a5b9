//! Peers that are refused, each with its reason, while the others go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustls::pki_types::ServerName;
use sluice_peers::decoder::Decoder;
use sluice_peers::frame::Frame;
use sluice_peers::hello::{Formats, Hello};
use sluice_peers::{ClusterId, Identity, PeerFiles, WAITING_BYTES_MAX};
use sluice_replica::{PROTOCOL_NEWEST, Protocols};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{
    CLUSTER, Ca, FORMER, TestNode, append, eventually, heartbeat, node, nodes, options, speaking, start,
};

/// A client with the certificate of a node, which says what the test says.
struct Raw {
    stream: TlsStream<TcpStream>,
    decoder: Decoder,
    number: u32,
    /// Version of the protocol in which it says something.
    protocol: u8,
}

impl Raw {
    async fn connect(to: &TestNode, files: &PeerFiles) -> Raw {
        let config = files.client_config(sluice_peers::ALPN).unwrap();
        let stream = TcpStream::connect(to.address).await.unwrap();
        let name = ServerName::IpAddress(to.address.ip().into());
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        Raw { stream, decoder: Decoder::default(), number: 0, protocol: PROTOCOL_NEWEST }
    }

    async fn say(&mut self, frame: &Frame) {
        let mut bytes = Vec::new();
        frame.encode(self.number, self.protocol, &mut bytes);
        self.number += 1;
        // The node may have ended it already.
        let _ = self.stream.write_all(&bytes).await;
    }

    /// The next frame; `None`: the connection is over.
    async fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            if self.stream.read_buf(self.decoder.buffer()).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Greets, and tells what comes back.
    async fn greet(to: &TestNode, files: &PeerFiles, hello: Hello) -> (Raw, Option<Frame>) {
        let mut raw = Raw::connect(to, files).await;
        raw.say(&Frame::Hello(hello)).await;
        let frame = raw.hear().await;
        (raw, frame)
    }
}

fn hello(number: u64) -> Hello {
    let identity = Identity { cluster: CLUSTER, node: node(number) };
    let formats = Formats { highest: 1, in_force: 1 };
    Hello { identity, protocols: Protocols::OWN, start: number * 100, wall_us: 0, formats }
}

/// Greets node 1 and expects to be refused with this reason.
async fn expect_refused(one: &TestNode, files: &PeerFiles, hello: Hello, reason: &str) {
    let (mut raw, frame) = Raw::greet(one, files, hello).await;
    let Some(Frame::Refused(text)) = frame else { panic!("{reason}: {frame:?}") };
    assert!(text.contains(reason), "{reason}: {text}");
    assert_eq!(raw.hear().await, None);
}

#[tokio::test]
async fn members_that_greet_wrongly_are_told_why() {
    let ca = Ca::new();
    let two = start(options(ca.member(2), 2, &[])).await;
    let third = ca.member(3);
    expect_refused(&two, &third, hello(1), "the peer says").await;
    let newer = Hello { formats: Formats { highest: 2, in_force: 2 }, ..hello(3) };
    expect_refused(&two, &third, newer, "upgrade").await;
    // Nobody of them is connected, and who is right still can be.
    assert_eq!(two.peers.connected(), []);
    let (_raw, frame) = Raw::greet(&two, &third, hello(3)).await;
    assert!(matches!(frame, Some(Frame::Hello(hello)) if hello.identity.node == node(2)), "{frame:?}");
    two.until(3, true).await;
}

#[tokio::test]
async fn a_peer_that_does_not_know_the_format_in_force_is_let_go_and_refused() {
    let ca = Ca::new();
    let two = start(options(ca.member(2), 2, &[])).await;
    let third = ca.member(3);
    let (mut raw, frame) = Raw::greet(&two, &third, hello(3)).await;
    assert!(matches!(frame, Some(Frame::Hello(_))), "{frame:?}");
    two.until(3, true).await;
    // Of which it knows the present one still.
    two.peers.put_in_force(1);
    two.peers.put_in_force(2);
    while raw.hear().await.is_some() {}
    two.peers.put_in_force(1);
    expect_refused(&two, &third, hello(3), "format version 2 is in force").await;
}

#[tokio::test]
async fn of_nodes_without_a_common_version_both_know_which_to_upgrade() {
    let ca = Ca::new();
    let two = start(speaking(options(ca.member(2), 2, &[]), 2, 3)).await;
    let three = start(speaking(options(ca.member(3), 3, &[(2, two.address)]), 1, 1)).await;
    let told = "node 3 speaks version 1 of the protocol between nodes, and node 2 the versions 2 to 3: \
                upgrade node 3";
    for (at, other) in [(&two, 3), (&three, 2)] {
        let reason = || at.peers.silent_because(node(other)).unwrap_or_default();
        eventually(|| reason().ends_with(told)).await;
        assert_eq!(at.peers.connected(), []);
    }
}

#[tokio::test]
async fn what_is_not_said_in_the_newest_common_version_ends_the_connection() {
    let ca = Ca::new();
    let one = start(speaking(options(ca.member(1), 1, &[]), 1, 3)).await;
    let files = ca.member(2);
    let hello = Hello { protocols: Protocols::new(1, 2).unwrap(), ..hello(2) };
    let theirs = Frame::Envelope { shard: 0, envelope: heartbeat(2, 1, 1) };
    for protocol in [1, 3, u8::MAX] {
        let (mut raw, _) = Raw::greet(&one, &files, hello).await;
        raw.protocol = protocol;
        raw.say(&theirs).await;
        while raw.hear().await.is_some() {}
        one.until(2, false).await;
    }
    assert!(one.came.envelopes.lock().unwrap().is_empty());
    let (mut raw, _) = Raw::greet(&one, &files, hello).await;
    raw.protocol = 2;
    raw.say(&theirs).await;
    eventually(|| one.came.envelopes.lock().unwrap().len() == 1).await;
    raw.decoder.agree(2);
    one.peers.send(0, heartbeat(1, 2, 1));
    let ours = Some(Frame::Envelope { shard: 0, envelope: heartbeat(1, 2, 1) });
    let mut heard = raw.hear().await;
    while heard == Some(Frame::Alive) {
        heard = raw.hear().await;
    }
    assert_eq!(heard, ours);
}

#[tokio::test]
async fn strangers_and_nodes_that_were_removed_are_not_listened_to() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let named =
        |name: &str, cluster, number| ca.files(name, &[Identity { cluster, node: node(number) }.to_string()]);
    let strangers = [
        (ca.files("client", &["sluice://client/billing".to_owned()]), None),
        (ca.files("both", &[hello(2).identity.to_string(), hello(3).identity.to_string()]), None),
        (ca.files("itself", &[hello(1).identity.to_string()]), Some("a copy of this node's files")),
        (named("elsewhere", ClusterId(5), 2), Some("belongs to the cluster 0000000000000005")),
        (named("former", FORMER, 2), Some("was recovered without node 2")),
    ];
    for (files, reason) in strangers {
        let (mut raw, frame) = Raw::greet(&one, &files, hello(2)).await;
        let told = match &frame {
            Some(Frame::Refused(text)) => Some(text.as_str()),
            _ => None,
        };
        assert_eq!(told.is_some(), reason.is_some(), "{frame:?}");
        assert!(reason.is_none_or(|reason| told.unwrap_or_default().contains(reason)), "{frame:?}");
        assert_eq!(raw.hear().await, None);
    }
    let (_, frame) = Raw::greet(&one, &ca.member(4), hello(4)).await;
    assert_eq!(frame, Some(Frame::Removed));
    assert_eq!(one.peers.connected(), []);
}

#[tokio::test]
async fn a_ca_of_somebody_else_is_worth_nothing() {
    let (ca, other) = (Ca::new(), Ca::new());
    let one = start(options(ca.member(1), 1, &[])).await;
    // Each checks the other: the listener takes no such client, and the client no such listener.
    let two = start(options(other.member(2), 2, &[(1, one.address)])).await;
    let forged = PeerFiles { ca: ca.member(2).ca, ..other.member(2) };
    let three = start(options(forged, 2, &[(1, one.address)])).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for at in [&one, &two, &three] {
        assert_eq!(at.peers.connected(), []);
    }
}

#[tokio::test]
async fn of_two_processes_with_one_identity_the_first_stays_and_its_own_return_is_taken() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let files = ca.member(2);
    let (mut first, _) = Raw::greet(&one, &files, hello(2)).await;
    one.until(2, true).await;
    expect_refused(&one, &files, Hello { start: 9, ..hello(2) }, "connected already").await;
    let (mut again, frame) = Raw::greet(&one, &files, hello(2)).await;
    assert!(matches!(frame, Some(Frame::Hello(_))));
    assert_eq!(first.hear().await, None);
    again.say(&Frame::Envelope { shard: 0, envelope: heartbeat(2, 1, 1) }).await;
    eventually(|| one.came.envelopes.lock().unwrap().len() == 1).await;
}

#[tokio::test]
async fn a_copy_of_a_node_is_known_for_one_by_those_who_connect_to_the_node() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let two = start(options(ca.member(2), 2, &[(1, one.address)])).await;
    two.until(1, true).await;
    let copy = Hello { start: 9, ..hello(1) };
    expect_refused(&two, &ca.member(1), copy, "two processes use the same identity").await;
    // It could be the node itself, come back before the end of its connection was noticed.
    assert_eq!(two.peers.twin_of(node(1)), None);
    eventually(|| two.peers.twin_of(node(1)).is_some_and(|address| address == "127.0.0.1")).await;
    two.until(1, true).await;
}

#[tokio::test]
async fn a_message_in_the_name_of_another_ends_the_connection() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let files = ca.member(2);
    for (from, to) in [(3, 1), (2, 3), (1, 2)] {
        let (mut raw, _) = Raw::greet(&one, &files, hello(2)).await;
        raw.say(&Frame::Envelope { shard: 0, envelope: heartbeat(from, to, 1) }).await;
        while raw.hear().await.is_some() {}
        one.until(2, false).await;
    }
    assert!(one.came.envelopes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn who_says_nothing_or_something_else_first_is_cut() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let files = ca.member(2);
    let mut raw = Raw::connect(&one, &files).await;
    raw.say(&Frame::Alive).await;
    assert_eq!(raw.hear().await, None);
    let mut silent = Raw::connect(&one, &files).await;
    let cut = tokio::time::timeout(Duration::from_secs(5), silent.hear()).await;
    assert_eq!(cut, Ok(None));
}

#[tokio::test]
async fn a_receiver_is_told_of_silence_before_the_connection_is_over() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let (_raw, _) = Raw::greet(&one, &ca.member(2), hello(2)).await;
    one.until(2, true).await;
    let doubts = || one.came.doubts.lock().unwrap().clone();
    assert_eq!(doubts(), [node(2)], "a connection has begun");
    eventually(|| doubts() == [node(2); 2]).await;
    assert!(one.came.lost.lock().unwrap().is_empty());
    eventually(|| *one.came.lost.lock().unwrap() == [node(2)]).await;
}

#[tokio::test]
async fn an_address_that_leads_to_another_node_is_not_used() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let three = start(options(ca.member(3), 3, &[(2, one.address)])).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(three.peers.connected(), []);
    one.until(3, false).await;
    assert!(one.came.doubts.lock().unwrap().is_empty(), "nobody was greeted");
}

/// As by a node that has joined meanwhile, or with which another has started again under a new number.
#[tokio::test]
async fn an_answer_for_another_node_removes_nobody() {
    let ca = Ca::new();
    let mut first = options(ca.member(1), 1, &[]);
    first.nodes = nodes(&[1, 2], &[]);
    let one = start(first).await;
    let three = start(options(ca.member(3), 3, &[(2, one.address)])).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!three.came.is_removed.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_peer_that_reads_nothing_loses_messages_and_then_its_connection() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let (_raw, _) = Raw::greet(&one, &ca.member(2), hello(2)).await;
    one.until(2, true).await;
    let (batch, count) = (append(1, 2, 1, &[1 << 20]), 2 * (WAITING_BYTES_MAX >> 20));
    for _ in 0..count {
        one.peers.send(0, batch.clone());
    }
    let dropped = one.peers.connected()[0].dropped;
    assert!((count as u64 / 3..count as u64).contains(&dropped), "{dropped}");
    one.until(2, false).await;
}
