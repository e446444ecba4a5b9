//! Transactions over several namespaces, in two phases: a part is prepared in each namespace but the
//! coordinator's, which admits it and pins what it is about; the coordinator's part is done, and that is the
//! decision; then each prepared part is finished: done, which cannot fail, or let go of.
//!
//! A part that is prepared and not finished asks the coordinator's shard. From the time on that stands in the
//! part, by the clock of the coordinator's log, what is not decided never will be: no decision has to be
//! remembered but those to commit, and these until all parts are finished. The clocks of two logs may be far
//! apart, so no other shard looks at that time.

use std::collections::VecDeque;

use crate::core::namespace::NamespaceSlot;
use crate::engine::Engine;
use crate::engine::transactions::Admitted;
use crate::error::Error;
use crate::id::{NamespaceId, TransactionId};
use crate::lock::state::ClaimSlot;
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::queue::send::several::{Refused, Several};
use crate::transaction::TRANSACTIONS_SINCE;
use crate::transaction::record::{DecideRecord, OperationRecord, PrepareRecord, TransactionRecord};
use crate::transaction::two_phase::Prepared;
use crate::transactions::{DecidedView, Decision, InDoubtTotals, OperationView, PreparedView};

impl Engine {
    pub(super) fn transaction_prepare(
        &mut self,
        record: &PrepareRecord<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let done = self.prepare(record, out);
        self.release_unless_done(done, &record.part, out)
    }

    /// False if it was prepared, or even done, before.
    fn prepare(&mut self, record: &PrepareRecord<'_>, out: &mut Outcome) -> Result<bool, Error> {
        self.core.expect_behaviour(TRANSACTIONS_SINCE)?;
        let part = &record.part;
        let namespace_slot = self.core.find_namespace(part.namespace)?;
        if self.is_repeat(part, out)? {
            return Ok(false);
        }
        if self.two_phase.is_prepared(record.id, part.namespace) {
            out.reply = Reply::Prepared;
            return Ok(false);
        }
        self.two_phase.expect_only(part)?;
        self.two_phase.admit_part(record.bytes.len())?;
        let admitted = self.admit_noting(part, namespace_slot, out)?;
        let pinned = self.pin_all(part, &admitted);
        let granted = self.grant_all(part, namespace_slot);
        let prepared = Prepared {
            namespace_slot,
            shard: record.shard,
            index: self.core.applied_index,
            at_us: self.core.now_us,
            until_us: record.until_us,
            room: admitted.room,
            granted,
            pinned,
            bytes: record.bytes.into(),
        };
        self.two_phase.enter(record.id, part.namespace, prepared);
        out.reply = Reply::Prepared;
        Ok(true)
    }

    /// Pins what admitted operations are about, and reserves their room. Returns the claims that they
    /// release, or are proven by.
    fn pin_all(&mut self, part: &TransactionRecord<'_>, admitted: &Admitted<'_>) -> VecDeque<ClaimSlot> {
        let core = &mut self.core;
        let namespace_slot = admitted.namespace_slot;
        let mut pinned = VecDeque::new();
        for operation in part.operations() {
            if let OperationRecord::Settle(item) = &operation {
                self.queue.pin_delivery(part.namespace, &item.receipt, core);
            }
            if let Some(key) = operation.document() {
                self.documents.pin(namespace_slot, key, core);
            }
            if let Some(token) = operation.token()
                && let Ok(slot) = self.locks.granted(part.namespace, token, core)
            {
                self.locks.pin(slot, matches!(operation, OperationRecord::Release(_)), core);
                pinned.push_back(slot);
            }
        }
        self.queue.pin_messages(admitted.several(part.namespace), core);
        self.documents.pins.reserved += admitted.room;
        core.namespaces.get_mut(namespace_slot).bytes += admitted.room.bytes;
        pinned
    }

    /// Grants what admitted operations acquire, and pins that.
    fn grant_all(
        &mut self,
        part: &TransactionRecord<'_>,
        namespace_slot: NamespaceSlot,
    ) -> VecDeque<ClaimSlot> {
        let core = &mut self.core;
        let mut granted = VecDeque::new();
        for operation in part.operations() {
            if let OperationRecord::Acquire(acquire) = &operation {
                let number = core.tokens.give().unwrap_or_default();
                let slot = self.locks.enter_granted(acquire, namespace_slot, number, core);
                self.locks.pin(slot, false, core);
                granted.push_back(slot);
            }
        }
        granted
    }

    pub(super) fn transaction_decide(
        &mut self,
        record: &DecideRecord<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let done = self.decide(record, out);
        self.release_unless_done(done, &record.part, out)
    }

    /// False if it was decided before, or its request was done.
    fn decide(&mut self, record: &DecideRecord<'_>, out: &mut Outcome) -> Result<bool, Error> {
        self.core.expect_behaviour(TRANSACTIONS_SINCE)?;
        self.core.find_namespace(record.part.namespace)?;
        if self.two_phase.is_committed(record.id) {
            out.reply = Reply::Decided { decision: Decision::Committed };
            return Ok(false);
        }
        if record.until_us <= self.core.now_us && !plant::is(Plant::DecideTooLate) {
            return Err(Error::TransactionAborted {});
        }
        self.two_phase.admit_decision()?;
        if !self.commit(&record.part, out)? {
            return Ok(false);
        }
        self.two_phase.decide(record.id, record.participants(), self.core.now_us);
        Ok(true)
    }

    /// Finishes a part; one that is not prepared any more is no error. That of the coordinator is forgotten.
    pub(super) fn finish_part(
        &mut self,
        namespace: NamespaceId,
        id: TransactionId,
        commit: bool,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        if namespace == id.coordinator {
            out.reply = Reply::Finished { known: self.two_phase.forget(id) };
            return Ok(());
        }
        let Some(prepared) = self.two_phase.take(id, namespace) else {
            out.reply = Reply::Finished { known: false };
            return Ok(());
        };
        let Some(part) = prepared.part() else {
            return Err(Error::Internal { reason: "a prepared part cannot be read".into() });
        };
        // The blobs are those of the record that prepared it.
        let index = std::mem::replace(&mut self.core.applied_index, prepared.index);
        let claimed = self.documents.claimed();
        self.unpin_all(&part, &prepared, commit, out);
        if commit {
            self.do_prepared(&part, &prepared, out);
            let (before, now) = (claimed.into_iter(), self.documents.claimed());
            debug_assert!(before.zip(now).all(|(before, now)| now <= before), "{claimed:?} became {now:?}");
        } else {
            out.released.extend(part.blobs(prepared.index));
        }
        self.core.applied_index = index;
        out.reply = Reply::Finished { known: true };
        Ok(())
    }

    /// Lets go of all parts that are prepared in a namespace, which is deleted with what they would do.
    pub(super) fn drop_parts(&mut self, namespace: NamespaceId, out: &mut Outcome) -> Result<(), Error> {
        let parts = self.two_phase.prepared_in(namespace);
        parts.into_iter().try_for_each(|id| self.finish_part(namespace, id, false, out))
    }

    fn unpin_all(
        &mut self,
        part: &TransactionRecord<'_>,
        prepared: &Prepared,
        commit: bool,
        out: &mut Outcome,
    ) {
        let core = &mut self.core;
        let messages: Vec<_> = part.messages().collect();
        let several =
            Several { namespace: part.namespace, namespace_slot: prepared.namespace_slot, items: &messages };
        self.queue.unpin_messages(several, commit, core, out);
        self.documents.pins.reserved -= prepared.room;
        core.namespaces.get_mut(prepared.namespace_slot).bytes -= prepared.room.bytes;
        for operation in part.operations() {
            if let OperationRecord::Settle(item) = &operation {
                self.queue.unpin_delivery(&item.receipt, !commit, core);
            }
            if let Some(key) = operation.document() {
                let is_written = commit && matches!(operation, OperationRecord::Put(_));
                self.documents.unpin(prepared.namespace_slot, key, is_written, core);
            }
        }
        prepared.pinned.iter().for_each(|slot| self.locks.unpin(*slot, commit, core));
        for slot in &prepared.granted {
            self.locks.unpin(*slot, commit, core);
            if !commit {
                self.locks.end_grant(*slot, core, out);
            }
        }
    }

    fn do_prepared(&mut self, part: &TransactionRecord<'_>, prepared: &Prepared, out: &mut Outcome) {
        let messages: Vec<_> = part.messages().collect();
        let sent = messages.len() as u32;
        let first = self.queue.reserve_sequences(prepared.namespace_slot, sent, &mut self.core);
        let first = first.unwrap_or_default();
        let mut admitted = Admitted {
            namespace_slot: prepared.namespace_slot,
            messages,
            room: prepared.room,
            first,
            granted: prepared.granted.clone(),
        };
        self.carry_out(part, &mut admitted, out);
        self.queue.spare(admitted.several(part.namespace), first);
        self.remember(part, out);
    }

    pub(super) fn transaction_ask(
        &self,
        id: TransactionId,
        until_us: u64,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        self.core.expect_behaviour(TRANSACTIONS_SINCE)?;
        let decision = if self.two_phase.is_committed(id) {
            Decision::Committed
        } else if until_us <= self.core.now_us {
            Decision::Aborted
        } else {
            Decision::Open
        };
        out.reply = Reply::Decided { decision };
        Ok(())
    }

    /// Parts that are prepared and not finished, at most [`TRANSACTIONS_PREPARED_MAX`].
    ///
    /// [`TRANSACTIONS_PREPARED_MAX`]: crate::limits::TRANSACTIONS_PREPARED_MAX
    pub fn prepared_transactions(&self) -> Vec<PreparedView> {
        self.two_phase.prepared_views().collect()
    }

    /// Transactions that were decided to commit and are not forgotten, as many at most.
    pub fn decided_transactions(&self) -> Vec<DecidedView> {
        self.two_phase.decided_views().collect()
    }

    /// Operations of a part that is prepared in a namespace, in order; `None`: it is not prepared there.
    pub fn prepared_operations(
        &self,
        id: TransactionId,
        namespace: NamespaceId,
    ) -> Option<Vec<OperationView>> {
        self.two_phase.operations(id, namespace)
    }

    /// Number and age of both.
    pub fn in_doubt_totals(&self) -> InDoubtTotals {
        self.two_phase.totals()
    }

    /// Refuses to read a document that a prepared transaction is about.
    ///
    /// # Errors
    /// `in_doubt`.
    pub fn expect_decided(&self, namespace: NamespaceId, key: &str) -> Result<(), Error> {
        self.documents.expect_decided(namespace, key, &self.core)
    }

    /// Admits a transaction, and notes which operation is to blame if it is refused.
    fn admit_noting<'a>(
        &mut self,
        part: &TransactionRecord<'a>,
        namespace_slot: NamespaceSlot,
        out: &mut Outcome,
    ) -> Result<Admitted<'a>, Error> {
        self.admit(part, namespace_slot, out).map_err(|(at, error): Refused| {
            out.refused_at = at.map(|at| at as u32);
            error
        })
    }
}
