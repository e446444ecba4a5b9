//! Locks in a cluster: clients that acquire, renew, release and go away, and what they were promised. One
//! client at a time holds a key, until its grant ends or it releases it; later grants have larger tokens; a
//! request that is made again after an unknown outcome has its grant or its place.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sluice_engine::command::LockAcquire;
use sluice_engine::id::LockToken;
use sluice_engine::locks::{LockGrant, LockMode};
use sluice_engine::{Command, Error};
use sluice_node::shard::request::{Acquiring, Request};
use tokio::sync::oneshot;

use super::calls::{Answered, Call, Client, NAMESPACE, Waiting, propose};
use super::holding::Lease;
use super::judge::{Judge, Outcome};
use super::promised::End;
use super::{ClusterWorld, SECOND_US};
use crate::model::Checked;
use crate::rng::Rng;

const KEYS: [&str; 2] = ["x", "y"];
/// Upper limit of calls about locks that are open.
const OPEN_MAX: usize = 12;

/// A request for a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    key: &'static str,
    /// Number by which a repeat is known.
    request: u64,
    ttl_ms: u32,
}

/// A call about a lock.
#[derive(Clone, Copy, Debug)]
pub(super) enum LockCall {
    Acquire(Wanted),
    Renew { key: &'static str, token: LockToken, ttl_ms: u32 },
    Release(LockToken),
}

/// A grant that a client was told of, and has not asked to release.
#[derive(Clone, Copy, Debug)]
struct Held {
    token: LockToken,
    wanted: Wanted,
    lease: Lease,
}

/// What clients know of locks, and what they were promised.
#[derive(Debug, Default)]
pub(super) struct Locking {
    /// Draws of its own, so that those of other clients do not change; `None`: no locks are used.
    rng: Option<Rng>,
    requests: u64,
    held: BTreeMap<&'static str, Vec<Held>>,
    /// The largest token of each key that was answered, and the time of that.
    latest: BTreeMap<&'static str, (u64, u64)>,
    /// Tokens that were asked to be released.
    released: HashSet<LockToken>,
    /// Requests of which a caller has gone: a grant that it was to get goes back.
    gone: HashSet<u64>,
    /// Requests whose outcome is not known.
    again: Vec<Wanted>,
}

impl Locking {
    /// Clients of half of the seeds use locks.
    pub(super) fn new(seed: u64) -> Locking {
        let mut rng = Rng::new(!seed);
        Locking { rng: rng.chance(1, 2).then_some(rng), ..Locking::default() }
    }

    /// The next call; with it, how long it waits in microseconds.
    fn draw(&mut self) -> Option<(LockCall, u64)> {
        let rng = self.rng.as_mut()?;
        if !rng.chance(1, 10) {
            return None;
        }
        let key = *rng.pick(&KEYS);
        let held = self.held.get(key).and_then(|held| held.last()).copied();
        let short_us = rng.below(4 * SECOND_US);
        let wait_us = rng.weighted(&[(2, 0), (3, short_us), (1, 45 * SECOND_US)]);
        let call = match (rng.below(8), held) {
            (0..3, Some(held)) => LockCall::Release(held.token),
            (3 | 4, Some(Held { token, wanted, .. })) => {
                LockCall::Renew { key, token, ttl_ms: wanted.ttl_ms }
            }
            (5, Some(held)) => LockCall::Acquire(held.wanted),
            (6, _) if !self.again.is_empty() => {
                LockCall::Acquire(self.again.swap_remove(rng.index(self.again.len())))
            }
            _ => {
                self.requests += 1;
                let ttl_ms = *rng.pick(&[1_000, 8_000, 25_000]);
                LockCall::Acquire(Wanted { key, request: self.requests, ttl_ms })
            }
        };
        Some((call, wait_us))
    }

    /// True when a caller that waits goes away.
    fn goes(&mut self) -> bool {
        self.rng.as_mut().is_some_and(|rng| rng.chance(1, 400))
    }

    /// Whoever makes a request again has no use for the answer to a former one: they all go back with the
    /// last.
    fn has_gone(&mut self, call: LockCall) {
        if let LockCall::Acquire(Wanted { request, .. }) = call {
            self.gone.insert(request);
            self.held.values_mut().for_each(|held| held.retain(|held| held.wanted.request != request));
        }
    }

    fn forget(&mut self, token: LockToken) {
        self.held.values_mut().for_each(|held| held.retain(|held| held.token != token));
    }
}

impl Client<'_> {
    fn lock(&self, call: LockCall, wait_us: u64) -> Waiting {
        match call {
            LockCall::Acquire(Wanted { key, request, ttl_ms }) => {
                let acquire = LockAcquire {
                    namespace: NAMESPACE,
                    keys: &[key],
                    owner: "client",
                    mode: LockMode::Exclusive,
                    ttl_ms,
                    wait_ms: 0,
                    request: [7, request],
                };
                let (sender, reply) = oneshot::channel();
                let wait = Duration::from_micros(wait_us);
                let acquiring = Acquiring::new(self.ticket, acquire, wait, sender);
                let call = Call::Acquire { call, ticket: self.ticket, reply };
                self.ask(Request::Acquire(Box::new(acquiring)), wait_us, call)
            }
            LockCall::Renew { token, ttl_ms, .. } => {
                let renew = Command::LockRenew { namespace: NAMESPACE, token, ttl_ms };
                let (request, reply) = propose(&renew);
                self.ask(request, 0, Call::Lock(call, reply))
            }
            LockCall::Release(token) => {
                let (request, reply) = propose(&Command::LockRelease { namespace: NAMESPACE, token });
                self.ask(request, 0, Call::Lock(call, reply))
            }
        }
    }
}

impl ClusterWorld {
    /// Lets a client make a call about a lock, at times, and one that waits go away.
    pub(super) fn use_locks(&mut self) -> Checked {
        let is_acquiring = |call: &Waiting| matches!(call.call, Call::Acquire { .. });
        let open = self.clients.open.iter().filter(|call| is_acquiring(call)).count();
        if open > 0 && self.judge.locking.goes() {
            let at = self.clients.open.iter().position(is_acquiring).unwrap_or_default();
            let Waiting { call, node, .. } = self.clients.open.swap_remove(at);
            if let Call::Acquire { call, ticket, reply } = call {
                drop(reply);
                self.judge.locking.has_gone(call);
                if let Some(server) = &self.nodes[node].server {
                    server.mailbox.push_surely(Request::Cancel { ticket });
                }
                return self.input(node, |_| {});
            }
        }
        let Some((call, wait_us)) = self.judge.locking.draw().filter(|_| open < OPEN_MAX) else {
            return Ok(());
        };
        let Some(node) = self.leader() else { return Ok(()) };
        self.ask(node, |client| client.lock(call, wait_us));
        self.input(node, |_| {})
    }
}

impl Judge {
    /// Notes what a call about a lock may change from now on.
    pub(super) fn is_lock_asked(&mut self, call: &LockCall) {
        if let LockCall::Release(token) = call {
            self.locking.released.insert(*token);
            self.locking.forget(*token);
        }
    }

    /// A request whose node is gone has no answer.
    pub(super) fn hears_nothing_of_lock(&mut self, call: LockCall) {
        if let LockCall::Acquire(wanted) = call {
            self.locking.again.push(wanted);
        }
    }

    pub(super) fn hears_of_lock(
        &mut self,
        call: LockCall,
        answer: Result<Option<LockGrant>, Error>,
        (begun_us, wait_us): (u64, u64),
        now_us: u64,
    ) -> Checked {
        match (call, answer) {
            (LockCall::Acquire(wanted), Ok(Some(grant))) => self.is_granted(wanted, grant, begun_us, now_us),
            (LockCall::Acquire(wanted), Err(Error::LockHeld { .. })) => {
                self.stats.answers += 1;
                let early_us = self.starts.early_us(End::after(begun_us, wait_us), 0, now_us);
                if early_us > 0 {
                    return Err(format!("{wanted:?} has waited to the end {early_us} us before it"));
                }
                Ok(())
            }
            (LockCall::Acquire(wanted), answer) => {
                if self.outcome(&answer)? != Outcome::Done {
                    self.locking.again.push(wanted);
                }
                Ok(())
            }
            (LockCall::Renew { key, token, ttl_ms }, Ok(Some(grant))) => {
                self.stats.answers += 1;
                let until = End::after(begun_us, u64::from(ttl_ms) * 1_000);
                let held = self.locking.held.entry(key).or_default();
                if let Some(held) = held.iter_mut().find(|held| held.token == token) {
                    held.lease = Lease { until, told_us: grant.until_us };
                }
                Ok(())
            }
            (LockCall::Renew { token, .. } | LockCall::Release(token), Err(Error::LockLost { .. })) => {
                self.stats.answers += 1;
                let held = self.locking.held.values().flatten().find(|held| held.token == token);
                let early_us = held.map_or(0, |held| self.is_early(held, now_us));
                self.locking.forget(token);
                if early_us > 0 {
                    return Err(format!("{token} was lost {early_us} us before the end of its time"));
                }
                Ok(())
            }
            (_, answer) => self.outcome(&answer).map(drop),
        }
    }

    fn is_early(&self, held: &Held, now_us: u64) -> u64 {
        self.starts.early_us(held.lease.until, held.lease.told_us, now_us)
    }

    fn is_granted(&mut self, wanted: Wanted, grant: LockGrant, begun_us: u64, now_us: u64) -> Checked {
        self.stats.answers += 1;
        let until = End::after(begun_us, u64::from(wanted.ttl_ms) * 1_000);
        let lease = Lease { until, told_us: grant.until_us };
        let others = self.locking.held.get(wanted.key).into_iter().flatten();
        for other in others.filter(|other| other.token != grant.token) {
            let early_us = self.is_early(other, now_us);
            // The answer may have come late, of a grant that came before the other.
            if early_us > 0 && other.token.number < grant.token.number {
                return Err(format!("{grant:?} is granted beside {other:?}, {early_us} us too early"));
            }
        }
        let (latest, at_us) = self.locking.latest.get(wanted.key).copied().unwrap_or_default();
        if at_us < begun_us && grant.token.number < latest {
            return Err(format!("{grant:?} is not above {latest}, which was answered before"));
        }
        if grant.token.number > latest {
            self.locking.latest.insert(wanted.key, (grant.token.number, now_us));
        }
        let is_over = self.locking.released.contains(&grant.token);
        if is_over || self.locking.gone.contains(&wanted.request) {
            return Ok(());
        }
        let held = self.locking.held.entry(wanted.key).or_default();
        held.retain(|other| other.token.number >= grant.token.number);
        match held.iter_mut().find(|other| other.token == grant.token) {
            Some(known) => known.lease = lease,
            None => held.push(Held { token: grant.token, wanted, lease }),
        }
        Ok(())
    }
}

/// The grant in an answer to a call about a lock.
pub(super) fn answered(answer: sluice_node::shard::request::Answer) -> Answered {
    Answered::Locked(answer.result.map(|reply| match reply {
        sluice_engine::outcome::Reply::LockGranted { grant } => Some(grant),
        _ => None,
    }))
}
