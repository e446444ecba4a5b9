//! Members of a cluster over real connections.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_peers::{CONTENT_BYTES_MAX, NodeTable, REQUESTS_MAX, RequestError, WAITING_BYTES_MAX};
use sluice_replica::{PROTOCOL_NEWEST, PROTOCOL_OLDEST};
use tokio::net::TcpListener;

use crate::support::{
    Ca, append, eventually, heartbeat, node, nodes, options, part, speaking, start, start_on,
};

/// Three members that speak these versions of the protocol, the oldest and the newest of each, send to each
/// other.
async fn all_send_to_all(protocols: [(u8, u8); 3]) {
    let ca = Ca::new();
    let member = |number: u64, reached: &[(u64, SocketAddr)]| {
        let (oldest, newest) = protocols[number as usize - 1];
        start(speaking(options(ca.member(number), number, reached), oldest, newest))
    };
    let one = member(1, &[]).await;
    let two = member(2, &[(1, one.address)]).await;
    let three = member(3, &[(1, one.address), (2, two.address)]).await;
    let nodes = [(1, &one), (2, &two), (3, &three)];
    for (number, at) in nodes {
        for (peer, _) in nodes.iter().filter(|(peer, _)| *peer != number) {
            at.until(*peer, true).await;
            at.peers.send(number as u16, heartbeat(number, *peer, 1));
            at.peers.send(number as u16, append(number, *peer, 1, &[100, 0, 5_000, 300_000, 1]));
            at.peers.send_state(number as u16, part(number, *peer, 200_000));
        }
    }
    for (number, at) in nodes {
        eventually(|| at.came.envelopes.lock().unwrap().len() == 4).await;
        for (shard, envelope) in at.came.envelopes.lock().unwrap().iter() {
            let from = u64::from(*shard);
            let sent = [heartbeat(from, number, 1), append(from, number, 1, &[100, 0, 5_000, 300_000, 1])];
            assert!(sent.contains(envelope));
        }
        eventually(|| at.came.states.lock().unwrap().len() == 2).await;
        for (shard, message) in at.came.states.lock().unwrap().iter() {
            assert_eq!(*message, part(u64::from(*shard), number, 200_000));
        }
        assert_eq!(at.peers.unsent(), 0);
        let ahead = at.peers.connected().iter().map(|state| state.clock_ahead_us.abs()).max();
        assert!(ahead < Some(5_000_000), "{ahead:?}");
    }
}

#[tokio::test]
async fn three_members_send_to_each_other_over_one_connection_a_pair() {
    all_send_to_all([(PROTOCOL_OLDEST, PROTOCOL_NEWEST); 3]).await;
}

#[tokio::test]
async fn each_pair_of_members_with_programs_of_different_age_speaks_what_both_know() {
    all_send_to_all([(1, 2), (2, 4), (1, 3)]).await;
}

#[tokio::test]
async fn much_comes_as_it_was_sent_and_in_order() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let two = start(options(ca.member(2), 2, &[(1, one.address)])).await;
    two.until(1, true).await;
    one.until(2, true).await;
    let lengths = |term: u64| [term as usize % 7_000, 1 << 20 >> (term % 20), 3];
    for term in 1..=2_000 {
        // Below what would be dropped.
        eventually(|| one.came.envelopes.lock().unwrap().len() as u64 + 20 > term).await;
        two.peers.send(3, append(2, 1, term, &lengths(term)));
    }
    eventually(|| one.came.envelopes.lock().unwrap().len() == 2_000).await;
    for (term, (shard, envelope)) in (1..).zip(one.came.envelopes.lock().unwrap().iter()) {
        assert_eq!((*shard, envelope), (3, &append(2, 1, term, &lengths(term))));
    }
}

#[tokio::test]
async fn requests_are_answered_or_end_in_time() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let two = start(options(ca.member(2), 2, &[(1, one.address)])).await;
    two.until(1, true).await;
    one.until(2, true).await;
    let second = Duration::from_secs(5);
    let ask = |content: &'static str, within| two.peers.request(node(1), Bytes::from(content), within);
    assert_eq!(ask("abc", second).await.unwrap(), "cba\u{2}");
    let other = one.peers.request(node(2), Bytes::from("x"), second).await;
    assert_eq!(other.unwrap(), "x\u{1}");
    // The content of an answer may be as long as that of a request, but for its last byte here.
    let long = Bytes::from(vec![7; CONTENT_BYTES_MAX - 1]);
    assert_eq!(two.peers.request(node(1), long, second).await.unwrap().len(), CONTENT_BYTES_MAX);
    let longer = Bytes::from(vec![7; CONTENT_BYTES_MAX + 1]);
    assert_eq!(two.peers.request(node(1), longer, second).await, Err(RequestError::Long));
    assert_eq!(ask("later", Duration::from_millis(50)).await, Err(RequestError::Late));
    assert_eq!(two.peers.request(node(3), Bytes::new(), second).await, Err(RequestError::NotConnected));
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_and_end_with_the_connection() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let two = start(options(ca.member(2), 2, &[(1, one.address)])).await;
    two.until(1, true).await;
    let ask = || {
        let peers = two.peers.clone();
        tokio::spawn(
            async move { peers.request(node(1), Bytes::from("later"), Duration::from_secs(9)).await },
        )
    };
    let asked: Vec<_> = (0..REQUESTS_MAX).map(|_| ask()).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(ask().await.unwrap(), Err(RequestError::TooMany));
    drop(one);
    for asked in asked {
        assert_eq!(asked.await.unwrap(), Err(RequestError::Ended));
    }
}

#[tokio::test]
async fn a_peer_that_is_gone_is_connected_again_when_it_is_back() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let two = start(options(ca.member(2), 2, &[(1, one.address)])).await;
    two.until(1, true).await;
    let address = one.address;
    drop(one);
    two.until(1, false).await;
    eventually(|| *two.came.lost.lock().unwrap() == [node(1)]).await;
    two.peers.send(0, heartbeat(2, 1, 1));
    assert_eq!(two.peers.unsent(), 1);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut again = options(ca.member(1), 1, &[]);
    again.local.start += 1;
    let one = start_on(again, TcpListener::bind(address).await.unwrap());
    two.until(1, true).await;
    one.until(2, true).await;
    two.peers.send(0, heartbeat(2, 1, 2));
    eventually(|| one.came.envelopes.lock().unwrap().len() == 1).await;
}

#[tokio::test]
async fn nodes_come_and_go_and_one_that_was_removed_learns_it() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let reached = [(1, one.address)];
    let mut second = options(ca.member(2), 2, &reached);
    second.nodes = nodes(&[2], &[]);
    let two = start(second).await;
    two.peers.set_nodes(nodes(&[1, 2, 3], &reached));
    two.until(1, true).await;
    one.until(2, true).await;
    one.peers.set_nodes(nodes(&[1, 3], &[]));
    one.until(2, false).await;
    eventually(|| two.came.is_removed.load(Ordering::Relaxed)).await;
}

/// As when it has joined, and leads, while the other one was away.
#[tokio::test]
async fn a_node_that_is_not_known_yet_is_connected_until_the_list_lacks_it() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let mut ninth = options(ca.member(9), 9, &[]);
    ninth.nodes = nodes(&[1, 9], &[(1, one.address)]);
    let nine = start(ninth).await;
    nine.until(1, true).await;
    one.until(9, true).await;
    nine.peers.send(0, heartbeat(9, 1, 1));
    eventually(|| one.came.envelopes.lock().unwrap().len() == 1).await;
    one.peers.set_nodes(NodeTable { highest: 9, ..nodes(&[1, 2, 3], &[]) });
    eventually(|| nine.came.is_removed.load(Ordering::Relaxed)).await;
}

/// As when the others have moved while it was away.
#[tokio::test]
async fn a_node_that_does_not_reach_another_is_reached_by_that_one() {
    let ca = Ca::new();
    let three = start(options(ca.member(3), 3, &[])).await;
    let one = start(options(ca.member(1), 1, &[(3, three.address)])).await;
    three.until(1, true).await;
    one.until(3, true).await;
}

/// A node that waits for connections looks for itself after some seconds.
#[tokio::test]
async fn a_removed_node_that_nobody_connects_to_learns_it_as_well() {
    let ca = Ca::new();
    let mut second = options(ca.member(2), 2, &[]);
    second.nodes = nodes(&[2, 3], &[]);
    let two = start(second).await;
    let one = start(options(ca.member(1), 1, &[(2, two.address)])).await;
    eventually(|| one.came.is_removed.load(Ordering::Relaxed)).await;
    assert_eq!(two.peers.connected(), []);
}

/// Silence is measured in seconds, so this takes some.
#[tokio::test]
async fn idle_connections_stay() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let two = start(options(ca.member(2), 2, &[(1, one.address)])).await;
    two.until(1, true).await;
    one.until(2, true).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        assert_eq!((one.peers.connected().len(), two.peers.connected().len()), (1, 1));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The system takes connections for a process that is frozen.
#[tokio::test]
async fn a_peer_that_never_greets_keeps_nobody_waiting() {
    let ca = Ca::new();
    let one = start(options(ca.member(1), 1, &[])).await;
    let frozen = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let reached = [(1, one.address), (2, frozen.local_addr().unwrap())];
    let three = start(options(ca.member(3), 3, &reached)).await;
    three.until(1, true).await;
    let began = Instant::now();
    let batch = append(3, 2, 1, &[1 << 20]);
    for _ in 0..4 * (WAITING_BYTES_MAX >> 20) {
        three.peers.send(0, batch.clone());
    }
    assert_eq!(three.peers.unsent(), 4 * (WAITING_BYTES_MAX >> 20) as u64);
    assert!(began.elapsed() < Duration::from_secs(1));
    three.peers.send(0, heartbeat(3, 1, 1));
    eventually(|| one.came.envelopes.lock().unwrap().len() == 1).await;
}
