//! Locks in a cluster: clients that acquire, renew, release and go away, and what they were promised. One
//! client at a time holds a key, until its grant ends or it releases it; later grants have larger tokens; a
//! request that is made again after an unknown outcome has its grant or its place.

use sluice_engine::Error;
use sluice_engine::locks::LockGrant;
use sluice_node::shard::request::Request;

use super::ClusterWorld;
use super::calls::{Call, LockCall, Waiting, Wanted};
use super::holding::Lease;
use super::judge::{Judge, Outcome};
use super::locks::Held;
use super::promised::End;
use crate::model::Checked;

/// Upper limit of calls about locks that are open.
const OPEN_MAX: usize = 12;

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
    pub(super) fn is_lock_asked(&mut self, call: &LockCall, begun_us: u64) {
        match call {
            LockCall::Release(token) => {
                self.locking.released.insert(*token);
                self.locking.forget(*token);
            }
            LockCall::Acquire(wanted) => {
                self.locking.asked.insert(wanted.request, begun_us);
            }
            LockCall::Renew { .. } => {}
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
                // A repeat that does not wait takes the request out of its line, for its former callers too.
                let is_last = self.locking.asked.get(&wanted.request) == Some(&begun_us);
                if early_us > 0 && is_last {
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
