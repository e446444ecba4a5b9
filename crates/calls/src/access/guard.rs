//! Limits of connections by address: the number at once, and a ban after repeated failures to authenticate.
//!
//! An IPv6 address stands for its /64, which is what one customer gets. This machine's own addresses are not
//! counted: whoever is on it has other ways, and a proxy on it would be taken for all its clients. Neither
//! are those from which a node of the cluster has shown its certificate: nobody who fails beside it may keep
//! it out.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::rate::{Limiter, RequestRate};

/// Addresses that are watched; the connections of more are counted in all only.
const ADDRESSES_MAX: usize = 65_536;
/// Addresses of nodes that are remembered.
const NODES_MAX: usize = 64;
/// Failures count together when they come within this time.
const FAILURES_WITHIN: Duration = Duration::from_secs(60);

/// Bounds for one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuardOptions {
    /// Most connections of an address at once (default 1,024).
    pub connections_max: usize,
    /// Handshakes and authentications that may fail within a minute before the address is turned away, those
    /// included that show nothing where something is needed; 0: any number (default 20).
    pub failures_max: u32,
    /// Length of the ban (default 30 s).
    pub ban: Duration,
    /// True if connections from this machine itself count as well (default false).
    pub own_machine: bool,
}

impl Default for GuardOptions {
    fn default() -> Self {
        GuardOptions {
            connections_max: 1_024,
            failures_max: 20,
            ban: Duration::from_secs(30),
            own_machine: false,
        }
    }
}

/// The reason for refusing a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turned {
    /// Its address has too many connections.
    TooMany,
    /// Its address has failed to authenticate too often.
    Banned,
}

/// The addresses that have connections or have failed.
#[derive(Debug)]
pub struct Guard {
    options: GuardOptions,
    /// Keeps bans from filling the log; all of them show in the metrics.
    warnings: Limiter,
    addresses: Mutex<HashMap<IpAddr, Watched>>,
    /// Addresses from which nodes of the cluster have connected, the latest last.
    nodes: Mutex<VecDeque<IpAddr>>,
}

/// The effect of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failed {
    Counted,
    /// Over the limit: the address is banned from now on.
    NowBanned,
    /// The address is turned away, and this came over a connection from before.
    Banned,
}

#[derive(Debug)]
struct Watched {
    connections: usize,
    failures: u32,
    failing_since: Instant,
    banned_until: Option<Instant>,
}

/// A connection's place among those of its address, until it is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    guard: Arc<Guard>,
    /// Address of the connection's client.
    from: IpAddr,
    /// The address under which it is counted; `None`: it is not.
    counted: Option<IpAddr>,
}

impl Guard {
    /// A guard with these limits.
    pub fn new(options: GuardOptions) -> Guard {
        Guard {
            options,
            warnings: Limiter::new(RequestRate { per_s: 1, burst: 20 }),
            addresses: Mutex::default(),
            nodes: Mutex::default(),
        }
    }

    /// A connection has come.
    ///
    /// # Errors
    /// Why it is turned away.
    pub fn enter(self: &Arc<Guard>, address: IpAddr) -> Result<ConnectionSlot, Turned> {
        if self.is_of_node(address) {
            return Ok(ConnectionSlot { guard: Arc::clone(self), from: address, counted: None });
        }
        self.enter_at(address, self.options.connections_max, Instant::now())
    }

    fn enter_at(
        self: &Arc<Guard>,
        address: IpAddr,
        connections_max: usize,
        now: Instant,
    ) -> Result<ConnectionSlot, Turned> {
        let slot = |counted| ConnectionSlot { guard: Arc::clone(self), from: address, counted };
        let Some(counted) = self.counted(address) else { return Ok(slot(None)) };
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= ADDRESSES_MAX {
            addresses.retain(|_, watched| watched.matters(now));
        }
        let full = addresses.len() >= ADDRESSES_MAX;
        if full && !addresses.contains_key(&counted) {
            return Ok(slot(None));
        }
        let watched = addresses.entry(counted).or_insert_with(|| Watched::new(now));
        if watched.banned_until.is_some_and(|until| now < until) {
            return Err(Turned::Banned);
        }
        if watched.connections >= connections_max {
            return Err(Turned::TooMany);
        }
        watched.connections += 1;
        Ok(slot(Some(counted)))
    }

    /// True if a node of the cluster has connected from this address: no limit of connections is for it.
    pub fn is_of_node(&self, address: IpAddr) -> bool {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).contains(&address)
    }

    /// The address under which one is counted; `None`: it is not.
    fn counted(&self, address: IpAddr) -> Option<IpAddr> {
        let address = address.to_canonical();
        if address.is_loopback() && !self.options.own_machine {
            return None;
        }
        Some(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        })
    }

    fn failed_at(&self, address: IpAddr, now: Instant) -> Failed {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = addresses.get_mut(&address) else { return Failed::Counted };
        if watched.banned_until.is_some_and(|until| now < until) {
            return Failed::Banned;
        }
        if now.duration_since(watched.failing_since) > FAILURES_WITHIN {
            (watched.failures, watched.failing_since) = (0, now);
        }
        watched.failures += 1;
        if self.options.failures_max == 0 || watched.failures < self.options.failures_max {
            return Failed::Counted;
        }
        watched.failures = 0;
        watched.banned_until = Some(now + self.options.ban);
        Failed::NowBanned
    }
}

impl Watched {
    fn new(now: Instant) -> Watched {
        Watched { connections: 0, failures: 0, failing_since: now, banned_until: None }
    }

    fn matters(&self, now: Instant) -> bool {
        let banned = self.banned_until.is_some_and(|until| now < until);
        let failing = self.failures > 0 && now.duration_since(self.failing_since) <= FAILURES_WITHIN;
        self.connections > 0 || banned || failing
    }
}

impl ConnectionSlot {
    /// Address of the connection's client.
    pub fn address(&self) -> IpAddr {
        self.from
    }

    /// The slot of a connection whose other end has shown the certificate of a node: it is counted no more,
    /// and none from its address is from now on.
    #[must_use]
    pub fn of_node(self) -> ConnectionSlot {
        let mut nodes = self.guard.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|address| *address != self.from);
        if nodes.len() >= NODES_MAX {
            nodes.pop_front();
        }
        nodes.push_back(self.from);
        drop(nodes);
        // What was counted of it ends with the slot that it had.
        self.of_banned(self.from)
    }

    /// A slot for a client of another node, for which this connection speaks. Its connections are limited by
    /// that node; what it fails in counts here as well.
    ///
    /// # Errors
    /// A ban of the address.
    pub(super) fn of_client(&self, address: IpAddr) -> Result<ConnectionSlot, Turned> {
        self.guard.enter_at(address, usize::MAX, Instant::now())
    }

    /// A slot for a client whose address is banned; nothing that it does is counted.
    pub(super) fn of_banned(&self, address: IpAddr) -> ConnectionSlot {
        ConnectionSlot { guard: Arc::clone(&self.guard), from: address, counted: None }
    }

    /// Counts a failed authentication, in the handshake or of a request. Returns true if the address is
    /// banned now, so that the connection has to end.
    #[must_use]
    pub fn failed(&self) -> bool {
        let Some(address) = self.counted else { return false };
        let failed = self.guard.failed_at(address, Instant::now());
        if failed == Failed::NowBanned && self.guard.warnings.take(false).is_ok() {
            tracing::warn!("{address} has failed too often: turned away for {:?}", self.guard.options.ban);
        }
        failed != Failed::Counted
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some(address) = self.counted else { return };
        let mut addresses = self.guard.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = addresses.get_mut(&address) {
            watched.connections -= 1;
            if !watched.matters(Instant::now()) {
                addresses.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(connections_max: usize, failures_max: u32) -> Arc<Guard> {
        Arc::new(Guard::new(GuardOptions { connections_max, failures_max, ..GuardOptions::default() }))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_address_has_so_many_connections() {
        let guard = guard(2, 0);
        let one = guard.enter(address("192.0.2.1")).unwrap();
        let _two = guard.enter(address("::ffff:192.0.2.1")).unwrap();
        assert_eq!(guard.enter(address("192.0.2.1")).unwrap_err(), Turned::TooMany);
        assert!(guard.enter(address("192.0.2.2")).is_ok());
        drop(one);
        assert!(guard.enter(address("192.0.2.1")).is_ok());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_this_machine_is_none() {
        let guard = guard(1, 0);
        let _one = guard.enter(address("2001:db8::1")).unwrap();
        assert!(guard.enter(address("2001:db8::ffff:1")).is_err());
        assert!(guard.enter(address("2001:db8:0:1::1")).is_ok());
        let own: Vec<_> = (0..5).map(|_| guard.enter(address("127.0.0.1")).unwrap()).collect();
        assert_eq!(own.len(), 5);
    }

    #[test]
    fn an_address_that_keeps_failing_is_turned_away_for_a_while() {
        let guard = guard(10, 3);
        let slot = guard.enter(address("192.0.2.1")).unwrap();
        assert_eq!([(); 4].map(|()| slot.failed()), [false, false, true, true]);
        assert_eq!(guard.enter(address("192.0.2.1")).unwrap_err(), Turned::Banned);
        let later = Instant::now() + guard.options.ban;
        assert!(guard.enter_at(address("192.0.2.1"), 10, later).is_ok());
    }

    #[test]
    fn a_client_of_another_node_is_never_one_too_many_and_yet_banned() {
        let guard = guard(1, 2);
        let node = guard.enter(address("192.0.2.9")).unwrap();
        let clients: Vec<_> = (0..3).map(|_| node.of_client(address("192.0.2.1")).unwrap()).collect();
        assert_eq!([clients[0].failed(), clients[1].failed()], [false, true]);
        assert_eq!(node.of_client(address("192.0.2.1")).unwrap_err(), Turned::Banned);
        assert!(node.of_client(address("192.0.2.2")).is_ok());
        assert!(!node.failed(), "the node has failed in nothing");
    }

    #[test]
    fn a_node_is_neither_counted_nor_kept_out_by_who_fails_beside_it() {
        let guard = guard(1, 1);
        let node = guard.enter(address("192.0.2.9")).unwrap().of_node();
        let (beside, other) = (guard.enter(address("192.0.2.9")).unwrap(), guard.enter(address("192.0.2.1")));
        assert!(!beside.failed() && other.unwrap().failed());
        assert!(guard.enter(address("192.0.2.9")).is_ok());
        assert_eq!(guard.enter(address("192.0.2.1")).unwrap_err(), Turned::Banned);
        let others = (0..NODES_MAX as u32).map(|host| IpAddr::from((0x0a00_0000 + host).to_be_bytes()));
        others.for_each(|host| drop(guard.enter(host).unwrap().of_node()));
        drop(node);
        assert!(!guard.is_of_node(address("192.0.2.9")));
        assert_eq!(guard.addresses.lock().unwrap().len(), 1, "the other's failure alone");
    }

    #[test]
    fn failures_long_ago_do_not_count() {
        let guard = guard(10, 2);
        let _slot = guard.enter(address("192.0.2.1")).unwrap();
        let now = Instant::now();
        let failed_at = |now| guard.failed_at(address("192.0.2.1"), now);
        assert_eq!(failed_at(now), Failed::Counted);
        assert_eq!(failed_at(now + FAILURES_WITHIN * 2), Failed::Counted);
        assert_eq!(failed_at(now + FAILURES_WITHIN * 2), Failed::NowBanned);
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let guard = guard(10, 2);
        drop(guard.enter(address("192.0.2.1")).unwrap());
        assert!(guard.addresses.lock().unwrap().is_empty());
        let slot = guard.enter(address("192.0.2.1")).unwrap();
        assert!(!slot.failed());
        drop(slot);
        assert_eq!(guard.addresses.lock().unwrap().len(), 1, "its failure is remembered for a while");
    }
}
