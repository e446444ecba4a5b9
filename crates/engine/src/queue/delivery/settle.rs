//! Settle and extend: how the holder of a lease ends or extends it.

use crate::command::Settlement;
use crate::core::Core;
use crate::error::Error;
use crate::event::EventKind;
use crate::hash::mix;
use crate::id::{BlobRef, MessageId, NamespaceId, Receipt};
use crate::limits::{DELAY_MS_MAX, LEASE_MS_MAX};
use crate::outcome::Outcome;
use crate::plant::{self, Plant};
use crate::query::{AttemptEnd, State};
use crate::queue::QueueModule;
use crate::queue::limit::COSTS_SINCE;
use crate::queue::record::delivery::{ExtendRecord, SettleItemRecord, SettleRecord};
use crate::queue::state::MessageSlot;
use crate::queue::state::message::Reason;
use crate::settings::{Backoff, BackoffKind};

impl QueueModule {
    #[inline]
    pub(crate) fn settle(
        &mut self,
        settle: &SettleRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        if core.live_namespace(settle.namespace).is_none() {
            out.released.extend(settle.blobs(core.applied_index));
            return Err(settle.namespace.not_found());
        }
        let index = core.applied_index;
        for item in settle.items() {
            let error = item.error.map(|(item, len)| BlobRef { index, item, len });
            let result = item.result.map(|(item, len)| BlobRef { index, item, len });
            let counts = item.add_cost == 0 || core.expect_behaviour(COSTS_SINCE).is_ok();
            if counts && let Some(slot) = self.leased_slot(settle.namespace, &item.receipt, core) {
                mark_settled(&item, core);
                if item.add_cost > 0 {
                    self.add_cost(slot, item.add_cost, core);
                }
                self.settle_one(slot, item.settlement, error, result, core, out);
                out.results.push(Ok(()));
            } else {
                out.released.extend(error);
                out.released.extend(result);
                let too_early = (!counts).then(|| core.expect_behaviour(COSTS_SINCE).err()).flatten();
                let why =
                    too_early.unwrap_or_else(|| self.why_not_held(settle.namespace, &item.receipt, core));
                out.results.push(Err(why));
            }
        }
        Ok(())
    }

    /// Settles a delivery of a transaction, whose receipt holds its message.
    pub(crate) fn settle_admitted(
        &mut self,
        namespace: NamespaceId,
        item: &SettleItemRecord,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let index = core.applied_index;
        if let Some(slot) = self.leased_slot(namespace, &item.receipt, core) {
            let blob = |blob: Option<(u32, u32)>| blob.map(|(item, len)| BlobRef { index, item, len });
            mark_settled(item, core);
            if item.add_cost > 0 {
                self.add_cost(slot, item.add_cost, core);
            }
            self.settle_one(slot, item.settlement, blob(item.error), blob(item.result), core, out);
        } else {
            out.released.extend(item.blobs(index));
        }
    }

    #[inline(always)]
    fn settle_one(
        &mut self,
        slot: MessageSlot,
        settlement: Settlement,
        error: Option<BlobRef>,
        result: Option<BlobRef>,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        if self.is_cancelled(slot) {
            out.released.extend(error.into_iter().chain(result));
            return self.remove_cancelled(slot, core, out);
        }
        match settlement {
            Settlement::Ack => {
                self.count_each(slot, |counters| counters.acked += 1);
                out.released.extend(error);
                self.finish(slot, result, core, out);
            }
            Settlement::Nack { delay_ms } => {
                self.count_each(slot, |counters| counters.nacked += 1);
                self.tell(slot, EventKind::Nacked, core, out);
                self.record_attempt(slot, AttemptEnd::Nacked, error, core, out);
                self.nack(slot, delay_ms, core, out);
            }
            Settlement::Release { delay_ms } | Settlement::GiveBack { delay_ms } => {
                self.count_each(slot, |counters| counters.released += 1);
                self.tell(slot, EventKind::Released, core, out);
                self.record_attempt(slot, AttemptEnd::Released, error, core, out);
                self.release(slot, delay_ms, core, out);
            }
            Settlement::Reject => {
                self.count_each(slot, |counters| counters.rejected += 1);
                self.tell(slot, EventKind::Rejected, core, out);
                self.record_attempt(slot, AttemptEnd::Rejected, error, core, out);
                self.make_dead(slot, Reason::Rejected, core, out);
            }
        }
    }

    #[inline(never)]
    fn nack(&mut self, slot: MessageSlot, delay_ms: Option<u64>, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        if self.is_spent(message) {
            return self.make_dead(slot, Reason::MaxAttempts, core, out);
        }
        let delay_ms = delay_ms.unwrap_or_else(|| {
            let own = self.extras.backoff(message.extras);
            let backoff = own.unwrap_or(self.queues.get(message.queue).settings.backoff);
            backoff_delay_ms(&backoff, message.sequence, message.attempts)
        });
        self.ready_after(slot, delay_ms, core, out);
    }

    #[inline(never)]
    pub(crate) fn release(&mut self, slot: MessageSlot, delay_ms: u64, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get_mut(slot);
        message.attempts -= 1;
        if message.deliveries >= self.queues.get(message.queue).settings.max_deliveries {
            return self.make_dead(slot, Reason::MaxDeliveries, core, out);
        }
        self.ready_after(slot, delay_ms, core, out);
    }

    fn ready_after(&mut self, slot: MessageSlot, delay_ms: u64, core: &Core, out: &mut Outcome) {
        if delay_ms == 0 {
            self.make_ready(slot, core, out);
        } else {
            self.make_delayed(slot, core.now_us + delay_ms.min(DELAY_MS_MAX) * 1_000, core, out);
        }
    }

    pub(crate) fn extend(
        &mut self,
        extend: &ExtendRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        core.find_namespace(extend.namespace)?;
        for (receipt, lease_ms) in extend.items() {
            let extended = self.extendable_slot(extend.namespace, &receipt, core);
            out.results.push(extended.map(|slot| self.extend_lease(slot, lease_ms, core)));
        }
        Ok(())
    }

    /// The lease of a leased message ends that long from now; 0: as its queue says.
    pub(crate) fn extend_lease(&mut self, slot: MessageSlot, lease_ms: u64, core: &Core) {
        let message = self.messages.get(slot);
        let of_queue = self.queues.get(message.queue).settings.lease_ms;
        let lease_ms = if lease_ms == 0 { of_queue } else { lease_ms.min(LEASE_MS_MAX) };
        self.wheel.remove(&mut self.messages, slot);
        self.messages.get_mut(slot).time_us = core.now_us + lease_ms * 1_000;
        self.wheel.insert(&mut self.messages, slot, core.now_us);
    }

    /// The message that a receipt holds now, and may go on holding.
    pub(crate) fn extendable_slot(
        &mut self,
        namespace: NamespaceId,
        receipt: &Receipt,
        core: &mut Core,
    ) -> Result<MessageSlot, Error> {
        match self.leased_slot(namespace, receipt, core) {
            Some(slot) if self.is_cancelled(slot) => Err(Error::Cancelled { receipt: receipt.to_string() }),
            Some(slot) => Ok(slot),
            None => Err(self.why_not_held(namespace, receipt, core)),
        }
    }

    /// The message that a receipt holds now.
    #[inline(always)]
    pub(crate) fn leased_slot(
        &mut self,
        namespace: NamespaceId,
        receipt: &Receipt,
        core: &mut Core,
    ) -> Option<MessageSlot> {
        if receipt.id.namespace != namespace {
            return None;
        }
        let slot = self.find_message(receipt.id, core)?;
        let message = self.messages.get(slot);
        let held = message.state == Some(State::Leased)
            && (message.token == receipt.token || plant::is(Plant::StaleToken))
            && message.time_us > core.now_us
            && core.receipt_key.made(receipt);
        held.then_some(slot)
    }

    #[cold]
    pub(crate) fn why_not_held(&self, namespace: NamespaceId, receipt: &Receipt, core: &Core) -> Error {
        if receipt.id.namespace != namespace {
            return Error::InvalidArgument {
                field: "receipt".into(),
                reason: format!("{receipt} belongs to another namespace than the request"),
            };
        }
        if let Some(in_doubt) = self.why_pinned(receipt, core) {
            return in_doubt;
        }
        if !self.was_given(receipt.id, core) {
            return Error::MessageNotFound { id: receipt.id.to_string() };
        }
        if core.receipt_key.made(receipt) && core.tokens.is_settled(receipt.token) {
            return Error::AlreadySettled { receipt: receipt.to_string() };
        }
        Error::LeaseLost { receipt: receipt.to_string() }
    }

    /// True if an id can be one that was given: it is not above the latest.
    pub(crate) fn was_given(&self, id: MessageId, core: &Core) -> bool {
        let Some(slot) = core.namespace_slot(id.namespace) else { return false };
        id.sequence > 0 && id.sequence <= core.namespaces.get(slot).last_sequence
    }

    /// Holds a message whose payload could not be read back, unless it is finished.
    pub(crate) fn hold_damaged(
        &mut self,
        id: MessageId,
        blob: BlobRef,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        core.find_namespace(id.namespace)?;
        let Some(slot) = self.find_message(id, core) else {
            return Err(Error::MessageNotFound { id: id.to_string() });
        };
        self.expect_decided(slot, core)?;
        let message = self.messages.get(slot);
        if message.blob() != blob || matches!(message.state, Some(State::Held | State::Done)) {
            return Ok(());
        }
        if self.is_cancelled(slot) {
            self.remove_cancelled(slot, core, out);
        } else {
            // It stays for the operator to see.
            self.disarm(slot);
            self.forget_end(slot);
            self.make_held(slot, Reason::PayloadDamaged, core, out);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn count_each(&mut self, slot: MessageSlot, count: impl Fn(&mut crate::query::Counters)) {
        count(&mut self.queues.get_mut(self.messages.get(slot).queue).counters);
        count(&mut self.totals);
    }
}

/// Notes that the holder of a receipt has settled its message.
#[inline]
fn mark_settled(item: &SettleItemRecord, core: &mut Core) {
    if !matches!(item.settlement, Settlement::GiveBack { .. }) {
        core.tokens.settle(item.receipt.token);
    }
}

/// The delay after `attempts` failed attempts. The jitter is a function of message and attempt, so that
/// replay agrees.
fn backoff_delay_ms(backoff: &Backoff, sequence: u64, attempts: u16) -> u64 {
    let attempts = u64::from(attempts.max(1));
    let plain = match backoff.kind {
        BackoffKind::None => return 0,
        BackoffKind::Fixed => backoff.base_ms,
        BackoffKind::Linear => backoff.base_ms.saturating_mul(attempts),
        BackoffKind::Exponential => {
            let factor = u32::try_from(attempts - 1).ok().and_then(|doublings| 1u64.checked_shl(doublings));
            backoff.base_ms.saturating_mul(factor.unwrap_or(u64::MAX))
        }
    };
    let plain = plain.min(backoff.cap_ms);
    let reach = plain / 100 * u64::from(backoff.jitter_percent)
        + plain % 100 * u64::from(backoff.jitter_percent) / 100;
    let varied = plain - reach + mix(sequence ^ mix(attempts)) % (2 * reach + 1);
    varied.min(backoff.cap_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(kind: BackoffKind, jitter_percent: u8, attempts: u16) -> u64 {
        let backoff = Backoff { kind, base_ms: 100, cap_ms: 5_000, jitter_percent };
        backoff_delay_ms(&backoff, 7, attempts)
    }

    #[test]
    fn backoff_grows_as_it_says_up_to_its_cap() {
        assert_eq!([1, 2, 9].map(|n| delay(BackoffKind::None, 0, n)), [0, 0, 0]);
        assert_eq!([1, 2, 9].map(|n| delay(BackoffKind::Fixed, 0, n)), [100, 100, 100]);
        assert_eq!([1, 2, 60].map(|n| delay(BackoffKind::Linear, 0, n)), [100, 200, 5_000]);
        assert_eq!(
            [1, 2, 3, 7, 10_000].map(|n| delay(BackoffKind::Exponential, 0, n)),
            [100, 200, 400, 5_000, 5_000]
        );
    }

    #[test]
    fn jitter_stays_within_its_reach_and_differs_by_attempt() {
        let delays: Vec<u64> = (1..50).map(|n| delay(BackoffKind::Fixed, 20, n)).collect();
        assert!(delays.iter().all(|ms| (80..=120).contains(ms)));
        assert!(delays.iter().any(|&ms| ms != delays[0]));
        let extreme = Backoff {
            kind: BackoffKind::Exponential,
            base_ms: DELAY_MS_MAX,
            cap_ms: DELAY_MS_MAX,
            jitter_percent: 100,
        };
        assert!(backoff_delay_ms(&extreme, 1, u16::MAX) <= DELAY_MS_MAX);
    }
}
