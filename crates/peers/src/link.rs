//! Connection to a peer, as the rest of the node uses it, and the table of all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sluice_replica::NodeId;
use tokio::sync::Notify;

use crate::SILENCE_MAX;
use crate::calls::Calls;
use crate::hello::{Hello, Refusal};
use crate::outbound::Outbound;

/// Time for which a refused twin is told after its last attempt.
const TWIN_TOLD: Duration = Duration::from_secs(60);

/// A live connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// Greeting of the peer.
    pub(crate) hello: Hello,
    /// Version of the protocol on which the two sides agree.
    pub(crate) protocol: u8,
    /// Time by which the peer's wall clock was ahead of this node's when it greeted, in microseconds.
    pub(crate) clock_ahead_us: i64,
    pub(crate) outbound: Outbound,
    pub(crate) calls: Calls,
    replaced: Notify,
    /// Another process with the peer's identity, while this connection stands.
    twin: Mutex<Option<Twin>>,
}

/// A process that was refused, since another one with the same identity is connected.
#[derive(Debug)]
struct Twin {
    address: String,
    /// Times of the first and last refusal.
    first: Instant,
    last: Instant,
}

impl Link {
    /// A connection with this version of the protocol, whose peer has greeted with `hello` at this time.
    pub(crate) fn new(hello: Hello, protocol: u8, wall_us: u64) -> Link {
        Link {
            hello,
            protocol,
            clock_ahead_us: hello.wall_us.wrapping_sub(wall_us).cast_signed(),
            outbound: Outbound::default(),
            calls: Calls::default(),
            replaced: Notify::new(),
            twin: Mutex::default(),
        }
    }

    /// The peer.
    pub(crate) fn node(&self) -> NodeId {
        self.hello.identity.node
    }

    /// Notes that another process with the peer's identity, at this address, was refused.
    pub(crate) fn note_twin(&self, address: &str, at: Instant) {
        let mut twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner);
        let first = twin.as_ref().map_or(at, |twin| twin.first);
        *twin = Some(Twin { address: address.to_owned(), first, last: at });
    }

    /// Address of another process with the peer's identity that was refused lately. One that only has come
    /// back before the end of its former connection was noticed is none: this connection ends then.
    pub(crate) fn twin(&self, now: Instant) -> Option<String> {
        let twin = self.twin.lock().unwrap_or_else(PoisonError::into_inner);
        let is_one = |twin: &&Twin| now - twin.first > SILENCE_MAX && now - twin.last < TWIN_TOLD;
        twin.as_ref().filter(is_one).map(|twin| twin.address.clone())
    }

    /// Resolves when a newer connection of the same process has taken the place of this one.
    pub(crate) async fn replaced(&self) {
        self.replaced.notified().await;
    }
}

/// Live connections, one a peer.
#[derive(Debug)]
pub(crate) struct Links {
    links: RwLock<BTreeMap<NodeId, Arc<Link>>>,
    /// Time of the start.
    began: Instant,
    /// Times at which connections have ended.
    ended: RwLock<BTreeMap<NodeId, Instant>>,
    /// Reasons for which the last attempts at a connection came to nothing.
    reasons: RwLock<BTreeMap<NodeId, String>>,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            links: RwLock::default(),
            began: Instant::now(),
            ended: RwLock::default(),
            reasons: RwLock::default(),
        }
    }
}

impl Links {
    /// The connection to a node; `None`: there is none.
    pub(crate) fn get(&self, node: NodeId) -> Option<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// Time since which a node is not connected: since its last connection, or since the start.
    pub(crate) fn silent_since(&self, node: NodeId) -> Option<Instant> {
        let is_connected = self.get(node).is_some();
        let ended = self.ended.read().unwrap_or_else(PoisonError::into_inner).get(&node).copied();
        (!is_connected).then(|| ended.unwrap_or(self.began))
    }

    /// Notes the reason for which an attempt at a connection with a node came to nothing.
    pub(crate) fn note(&self, node: NodeId, reason: String) {
        self.reasons.write().unwrap_or_else(PoisonError::into_inner).insert(node, reason);
    }

    /// Reason for which a node is not connected; `None`: it is, or nothing was tried.
    pub(crate) fn reason(&self, node: NodeId) -> Option<String> {
        let reason = self.reasons.read().unwrap_or_else(PoisonError::into_inner).get(&node).cloned();
        reason.filter(|_| self.get(node).is_none())
    }

    /// All connections, by their nodes' numbers.
    pub(crate) fn all(&self) -> Vec<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Puts in a connection. An older one of the same process ends: that process has given it up.
    ///
    /// # Errors
    ///
    /// Another process with the same identity is connected.
    pub(crate) fn enter(&self, link: &Arc<Link>) -> Result<(), Refusal> {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(older) = links.get(&link.node()) {
            if older.hello.start != link.hello.start {
                return Err(Refusal::Twin(link.node()));
            }
            older.replaced.notify_one();
        }
        links.insert(link.node(), Arc::clone(link));
        self.reasons.write().unwrap_or_else(PoisonError::into_inner).remove(&link.node());
        Ok(())
    }

    /// Takes out a connection that is over; false: a newer one of its node has taken its place, and stays.
    pub(crate) fn leave(&self, link: &Arc<Link>) -> bool {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        let is_present = links.get(&link.node()).is_some_and(|present| Arc::ptr_eq(present, link));
        if is_present {
            links.remove(&link.node());
            self.ended.write().unwrap_or_else(PoisonError::into_inner).insert(link.node(), Instant::now());
            self.reasons.write().unwrap_or_else(PoisonError::into_inner).remove(&link.node());
        }
        drop(links);
        link.calls.end();
        link.outbound.close();
        is_present
    }
}

#[cfg(test)]
mod tests {
    use sluice_replica::Protocols;

    use super::*;
    use crate::hello::Formats;
    use crate::identity::{ClusterId, Identity};

    fn link(start: u64) -> Arc<Link> {
        let identity = Identity { cluster: ClusterId(1), node: NodeId::new(2).unwrap() };
        let formats = Formats { highest: 1, in_force: 1 };
        let hello = Hello { identity, protocols: Protocols::OWN, start, wall_us: 5, formats };
        Arc::new(Link::new(hello, 1, 7))
    }

    #[test]
    fn of_two_processes_with_one_identity_the_first_stays() {
        let links = Links::default();
        let (first, twin, again) = (link(1), link(2), link(1));
        assert_eq!(first.clock_ahead_us, -2);
        let node = first.node();
        assert_eq!(links.enter(&first), Ok(()));
        assert_eq!(links.enter(&twin), Err(Refusal::Twin(node)));
        // The same process has lost its connection, and this side has not heard of it.
        assert_eq!(links.enter(&again), Ok(()));
        assert!(!links.leave(&first));
        assert!(Arc::ptr_eq(&links.get(node).unwrap(), &again));
        assert!(links.leave(&again));
        assert_eq!(links.enter(&twin), Ok(()));
    }

    #[test]
    fn a_twin_is_told_once_the_first_is_known_to_live_and_for_a_while() {
        let (link, start) = (link(1), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(link.twin(start), None);
        link.note_twin("10.0.0.9", start);
        assert_eq!(link.twin(after(3)), None);
        assert_eq!(link.twin(after(4)).as_deref(), Some("10.0.0.9"));
        link.note_twin("10.0.0.9", after(30));
        assert_eq!(link.twin(after(89)).as_deref(), Some("10.0.0.9"));
        assert_eq!(link.twin(after(90)), None);
    }

    #[test]
    fn a_reason_holds_until_there_is_a_connection() {
        let (links, link) = (Links::default(), link(1));
        assert_eq!(links.reason(link.node()), None);
        links.note(link.node(), "it is older".to_owned());
        assert_eq!(links.reason(link.node()).as_deref(), Some("it is older"));
        links.enter(&link).unwrap();
        assert_eq!(links.reason(link.node()), None);
        // What another process with this identity was told is over with the connection.
        links.note(link.node(), "twin".to_owned());
        links.leave(&link);
        assert_eq!(links.reason(link.node()), None);
    }
}
