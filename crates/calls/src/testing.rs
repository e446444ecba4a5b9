//! Helpers for tests: a node in memory, a caller who may do everything in it, and numbers that repeat.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use sluice_engine::command::{Send, SendItem};
use sluice_engine::{MessageId, NamespaceId};
use sluice_node::{AgreedClock, Durability, Node, Options};

use crate::access::{Access, Caller, Guard, GuardOptions, Identity, Peer, Policy, Proof};
use crate::operation::Operation;
use crate::permit::{Asker, CallName, Permit};
use crate::room::Uncounted;
use crate::roster::{ClusterCa, OwnNode};
use crate::server::{About, Calls};

/// The options of a node in memory, with one shard.
pub fn options() -> Options {
    Options {
        data_dir: None,
        shards: 1,
        durability: Durability::Os,
        cache_bytes: 1 << 20,
        limits: Default::default(),
        mailbox_requests: 1_024,
        mailbox_bytes: 256 << 20,
        waiting_receives: 100,
        events: Default::default(),
        reserve_bytes: 0,
        low_water_bytes: 0,
        accept_clock_jump: false,
        movable_time: false,
        encryption: Default::default(),
        key_source: None,
    }
}

/// A node in memory, with one shard.
pub fn node() -> Node {
    Node::start(options()).unwrap()
}

/// The first node of a cluster of two, of which the other is not connected.
#[derive(Debug)]
pub struct FirstNode;

impl OwnNode for FirstNode {
    fn cluster(&self) -> &str {
        "5b0c"
    }

    fn number(&self) -> u64 {
        1
    }

    fn addresses(&self) -> BTreeMap<u64, String> {
        [(1, "10.0.0.1:7070".to_owned()), (2, "10.0.0.2:7070".to_owned())].into()
    }

    fn connected(&self) -> Vec<u64> {
        Vec::new()
    }

    fn authority(&self) -> Result<ClusterCa, String> {
        Ok(ClusterCa { certificate: "CA".to_owned(), fingerprint: [7; 32], key: "KEY".to_owned() })
    }
}

/// A caller to whom one rule applies, which is given without its name and identities.
pub fn caller(rule: &str) -> Caller {
    let policy = Policy::parse(&format!("[[rule]]\nname = 'a'\nidentities = ['a']\n{rule}\n")).unwrap();
    Caller::Known(Arc::new(Identity {
        name: "a".into(),
        proof: Proof::Token("t".into()),
        grants: policy.grants_of("a").collect(),
        expires_at_ms: u64::MAX,
        clock: AgreedClock::default(),
        limiter: None,
    }))
}

/// A server in memory without access rules, and one connection to it.
pub struct Open {
    calls: Calls,
    peer: Arc<Peer>,
}

impl Open {
    /// A server that has nothing yet.
    pub fn new() -> Open {
        Open::of(node())
    }

    /// A server of a node.
    pub fn of(node: Node) -> Open {
        let access = Access::default();
        let slot = Arc::new(Guard::new(GuardOptions::default())).enter(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let peer = Arc::new(Peer::new(&access, slot.unwrap(), None));
        Open { calls: Calls::new(node, access, About::default()), peer }
    }

    /// A server that is a node of a cluster.
    pub fn in_cluster(own: Arc<dyn OwnNode>) -> Open {
        let Open { calls, peer } = Open::new();
        Open { calls: calls.in_cluster(own), peer }
    }

    /// Its calls.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The node behind it.
    pub fn node(&self) -> &Node {
        self.calls.node()
    }

    /// Sends a message to a queue of the default namespace; tells its id.
    pub async fn send(&self, queue: &str, payload: &[u8]) -> MessageId {
        let items = [SendItem { payload, ..SendItem::default() }];
        let send = Send {
            namespace: NamespaceId::DEFAULT,
            queue,
            idempotency_key: b"",
            request_digest: 0,
            items: &items,
        };
        self.node().send(&send).await.unwrap().first
    }

    /// Tells those who wait that the server stops.
    pub fn stop(&self) {
        self.calls.stop();
    }

    /// The permit for an operation in the default namespace.
    pub fn permit<'c>(&'c self, operation: Operation, name: &'c str) -> Permit<'c> {
        let asker = Asker {
            calls: &self.calls,
            peer: &self.peer,
            caller: &Caller::Anybody,
            authorization: None,
            room: &Uncounted,
            path: "",
        };
        asker.permit(CallName { operation, namespace: None, name, is_stale: false }).unwrap()
    }
}

impl Default for Open {
    fn default() -> Open {
        Open::new()
    }
}

/// A small generator with a fixed seed (splitmix64), so that a failure repeats.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit.max(1) as u64) as usize
    }

    /// Changes `bytes` in one to four places.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const TOKENS: &[&[u8]] = &[
            b"\"",
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"null",
            b"-1",
            b"1e9",
            b"\\ud800",
            b"\xff",
            b"99999999999999999999",
        ];
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = self.number() as u8,
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                2 => bytes.truncate(at),
                3 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    bytes.splice(at..at, token.iter().copied());
                }
                _ => {
                    let to = at + self.below(bytes.len() - at + 1);
                    let piece = bytes[at..to].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
}
