//! Waits for locks. A claim that waits is part of the state, and ends there soon: this is the caller's part
//! of it, which says that the caller is still there, and takes the grant.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::limits::{LOCK_TAKE_MS, LOCK_WAIT_MS_MAX};
use sluice_engine::locks::{LockGrant, LockNotice, LockTicket};
use sluice_engine::outcome::Reply;

use super::proposals::{Pending, Taking};
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::request::{Acquiring, FoundDocument, Granted};
use crate::shard::store::{self, Store};

/// Time after which a claim is said to wait on, in microseconds: soon enough for two tries.
const RENEW_US: u64 = LOCK_WAIT_MS_MAX as u64 * 1_000 / 3;
/// Wait suggested to a caller that found too many waiting, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// A caller that waits.
#[derive(Debug)]
struct Wait {
    acquiring: Box<Acquiring>,
    /// Number of times that the claim had been asked for, this one among them.
    calls: u16,
    /// Monotonic time until which it waits, in microseconds.
    until_us: u64,
    /// Monotonic time at which its claim is said to wait on, in microseconds; `None`: its end is near.
    renew_us: Option<u64>,
}

/// All callers that wait for locks, by their claims.
#[derive(Debug, Default)]
pub(super) struct LockWaits {
    waits: FxHashMap<LockTicket, Wait>,
    /// Claims by the number of their callers.
    callers: FxHashMap<u64, LockTicket>,
    /// Claims whose callers have gone, until they have left their lines, each with the number of times that
    /// it had been asked for.
    leaving: FxHashMap<LockTicket, u16>,
    renewals: BTreeSet<(u64, LockTicket)>,
}

impl LockWaits {
    pub(super) fn len(&self) -> usize {
        self.waits.len()
    }

    /// A caller that asks again takes the place of the former one, who has most likely gone, and may ask
    /// again if not.
    fn push(&mut self, ticket: LockTicket, wait: Wait) {
        if let Some(former) = self.remove(ticket) {
            former.acquiring.refuse(&Error::OutcomeUnknown {});
        }
        self.leaving.remove(&ticket);
        self.callers.insert(wait.acquiring.ticket, ticket);
        self.renewals.extend(wait.renew_us.map(|at_us| (at_us, ticket)));
        self.waits.insert(ticket, wait);
    }

    fn remove(&mut self, ticket: LockTicket) -> Option<Wait> {
        let wait = self.waits.remove(&ticket)?;
        self.callers.remove(&wait.acquiring.ticket);
        self.forget_renewal(ticket, wait.renew_us);
        Some(wait)
    }

    fn remove_caller(&mut self, caller: u64) -> Option<(LockTicket, Wait)> {
        let ticket = *self.callers.get(&caller)?;
        Some((ticket, self.remove(ticket)?))
    }

    fn forget_renewal(&mut self, ticket: LockTicket, renew_us: Option<u64>) {
        if let Some(at_us) = renew_us {
            self.renewals.remove(&(at_us, ticket));
        }
    }

    /// Takes what is to be said of the next claim by now: the time for which it waits on, in milliseconds.
    fn pop_renewal(&mut self, monotonic_us: u64) -> Option<(LockTicket, u32)> {
        let &(at_us, ticket) = self.renewals.first()?;
        if at_us > monotonic_us {
            return None;
        }
        self.renewals.pop_first();
        let wait = self.waits.get_mut(&ticket)?;
        wait.renew_us = next_renewal(monotonic_us, wait.until_us);
        self.renewals.extend(wait.renew_us.map(|at_us| (at_us, ticket)));
        let left_ms = wait.until_us.saturating_sub(monotonic_us) / 1_000;
        Some((ticket, left_ms.clamp(1, LOCK_WAIT_MS_MAX.into()) as u32))
    }

    /// Monotonic time of the next renewal, in microseconds.
    pub(super) fn next_us(&self) -> Option<u64> {
        self.renewals.first().map(|&(at_us, _)| at_us)
    }

    /// Answers every caller; claims stay in their lines, so that who asks again has its place.
    pub(super) fn end(&mut self) {
        for (_, wait) in std::mem::take(self).waits {
            wait.acquiring.refuse(&Error::OutcomeUnknown {});
        }
    }
}

/// The time of the next renewal; `None`: the claim waits until the end without one.
fn next_renewal(now_us: u64, until_us: u64) -> Option<u64> {
    let is_far = until_us.saturating_sub(now_us) > u64::from(LOCK_WAIT_MS_MAX) * 1_000;
    is_far.then_some(now_us + RENEW_US)
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(in crate::shard) fn take_acquiring(&mut self, acquiring: Box<Acquiring>) {
        let waits = acquiring.wait_us > 0;
        if waits && self.leading.draining {
            return acquiring.refuse(&Error::ShuttingDown {});
        }
        if waits && self.leading.locks.len() >= self.leading.waiting_max {
            let (what, retry_after_ms) = ("waits for locks", RETRY_AFTER_MS);
            return acquiring.refuse(&Error::Overloaded { what, retry_after_ms });
        }
        // Its cancellation may have overtaken it.
        if !acquiring.reply.is_closed() {
            let proposals = &mut self.leading.proposals;
            proposals.batch.append(&acquiring.record);
            proposals.batch_pending.push((acquiring.class, Pending::Acquire(acquiring)));
        }
    }

    /// Answers the caller whose claim was applied, or lets it wait.
    pub(super) fn finish_acquiring(&mut self, acquiring: Box<Acquiring>) {
        if let Some(error) = self.outcome.error.take() {
            return acquiring.refuse(&error);
        }
        match self.outcome.reply {
            Reply::LockGranted { grant } => self.hand_grant(*acquiring, grant),
            Reply::LockWaits { ticket, calls } if self.leads() && !self.leading.draining => {
                self.wait_for_locks(ticket, calls, acquiring);
            }
            _ => acquiring.refuse(&Error::OutcomeUnknown {}),
        }
    }

    /// Answers the caller for whom a grant was taken, and tells watchers.
    pub(super) fn finish_taking(&mut self, taking: Taking) {
        let Taking { acquiring, calls, changed } = taking;
        self.tell_lock_changes(changed);
        match self.outcome.reply {
            Reply::LockGranted { grant } => self.hand_grant(acquiring, LockGrant { calls, ..grant }),
            // It has ended before.
            _ => acquiring.refuse(&Error::OutcomeUnknown {}),
        }
    }

    /// Answers the caller whose grant was not taken, as far as is known; it ends soon.
    pub(super) fn refuse_taking(&mut self, taking: Taking, error: &Error) {
        let Taking { acquiring, changed, .. } = taking;
        self.tell_lock_changes(changed);
        acquiring.refuse(error);
    }

    fn wait_for_locks(&mut self, ticket: LockTicket, calls: u16, acquiring: Box<Acquiring>) {
        if acquiring.reply.is_closed() {
            return self.leave_line(ticket, calls);
        }
        let until_us = self.monotonic_us.saturating_add(acquiring.wait_us);
        let renew_us = next_renewal(self.monotonic_us, until_us);
        self.leading.locks.push(ticket, Wait { acquiring, calls, until_us, renew_us });
    }

    /// Answers the callers of claims that the last applied record granted or ended.
    pub(super) fn tell_locks(&mut self) {
        let mut taken: Option<(Command<'static>, Box<Taking>)> = None;
        for LockNotice { ticket, grant } in std::mem::take(&mut self.outcome.locks) {
            if let Some(calls) = self.leading.locks.leaving.remove(&ticket) {
                if let Some(grant) = grant {
                    self.owe(&Command::LockLeave { claim: grant.claim(), calls });
                }
                continue;
            }
            let Some(Wait { acquiring, calls, .. }) = self.leading.locks.remove(ticket) else { continue };
            match grant {
                Some(grant) if acquiring.ttl_ms <= LOCK_TAKE_MS => {
                    self.hand_grant(*acquiring, LockGrant { calls, ..grant });
                }
                Some(LockGrant { token, .. }) => {
                    // The caller hears of a time that it has.
                    let namespace = acquiring.namespace;
                    let renew = Command::LockRenew { namespace, token, ttl_ms: 0 };
                    let taking = Box::new(Taking { acquiring: *acquiring, calls, changed: Vec::new() });
                    if let Some((renew, taking)) = taken.replace((renew, taking)) {
                        self.propose(&renew, Pending::Take(taking));
                    }
                }
                None => {
                    let held = self.held(&acquiring);
                    acquiring.refuse(&held);
                }
            }
        }
        if let Some((renew, mut taking)) = taken {
            // Watchers are told when the last grant is taken, whose end is another one then.
            taking.changed = std::mem::take(&mut self.outcome.changed_locks);
            self.propose(&renew, Pending::Take(taking));
        }
    }

    /// Gives a caller its grant; where it has gone, or the document cannot be told, the grant goes back.
    fn hand_grant(&mut self, acquiring: Acquiring, grant: LockGrant) {
        let document = if acquiring.with_document { self.document_of(&acquiring) } else { Ok(None) };
        let (is_granted, granted) = (document.is_ok(), document.map(|document| Granted { grant, document }));
        if acquiring.reply.send(granted).is_err() || !is_granted {
            self.owe(&Command::LockLeave { claim: grant.claim(), calls: grant.calls });
        }
    }

    /// The document of the key that was granted; in doubt while a prepared transaction is about it.
    fn document_of(&mut self, acquiring: &Acquiring) -> Result<Option<Box<FoundDocument>>, Error> {
        self.engine.expect_decided(acquiring.namespace, &acquiring.key)?;
        let found = self.engine.document(acquiring.namespace, &acquiring.key);
        Ok(found.map(|view| Box::new(FoundDocument { blob: store::read(&mut self.store, view.blob), view })))
    }

    /// The refusal of a claim whose time of waiting is over.
    fn held(&self, acquiring: &Acquiring) -> Error {
        let key = acquiring.key.to_string();
        if self.engine.namespace(acquiring.namespace).is_none() {
            return acquiring.namespace.not_found();
        }
        let view = self.engine.lock(acquiring.namespace, &key, 1);
        let waiting = view.as_ref().map_or(0, |view| view.waiter_count.into());
        let owner = view.and_then(|view| view.holders.into_iter().next()).map(|holder| holder.owner);
        Error::LockHeld { key, owner: owner.unwrap_or_default(), waiting }
    }

    fn leave_line(&mut self, claim: LockTicket, calls: u16) {
        self.leading.locks.leaving.insert(claim, calls);
        self.owe(&Command::LockLeave { claim, calls });
    }

    /// Lets the claim of a caller that has gone leave its lines.
    pub(super) fn cancel_acquiring(&mut self, caller: u64) {
        if let Some((ticket, wait)) = self.leading.locks.remove_caller(caller) {
            self.leave_line(ticket, wait.calls);
        }
    }

    /// Forgets a caller who may ask again, and lets its claim stay in its lines.
    pub(in crate::shard) fn forget_acquiring(&mut self, caller: u64) {
        self.leading.locks.remove_caller(caller);
    }

    /// Says of claims whose callers are there that they wait on.
    pub(super) fn renew_lock_waits(&mut self) {
        while let Some((ticket, wait_ms)) = self.leading.locks.pop_renewal(self.monotonic_us) {
            self.owe(&Command::LockWait { ticket, wait_ms });
        }
    }
}
