//! Transactions: each module admits its operations by the state as it is, and only when all are admitted does
//! each do its own, which cannot fail.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::attachments::AttachmentCommit;
use crate::core::namespace::NamespaceSlot;
use crate::core::tokens::none_left;
use crate::document::attachment::committing::Others;
use crate::document::state::DocumentSlot;
use crate::document::writing::Room;
use crate::engine::Engine;
use crate::error::Error;
use crate::id::{MessageId, NamespaceId};
use crate::limits::TRANSACTION_OUTCOMES_MAX;
use crate::lock::state::ClaimSlot;
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::queue::limit::COSTS_SINCE;
use crate::queue::record::item::SendItemRecord;
use crate::queue::send::several::{Naming, Refused, Several};
use crate::transaction::record::{OperationRecord, TransactionRecord};
use crate::transaction::remembered::Committed;
use crate::transaction::{TRANSACTIONS_SINCE, kind, path};
use crate::transactions::OperationDone;

/// The needs of the operations that are admitted so far, together.
#[derive(Default)]
struct Needs<'a> {
    documents: Room,
    /// Keys of the documents that are new.
    created: BTreeSet<&'a str>,
    /// Keys of attachments without a document before, and the places of their operations.
    awaited: Vec<(usize, &'a str)>,
    /// Number of new attachments of each key.
    attachments: BTreeMap<&'a str, u32>,
    claims: u32,
    /// Fencing tokens.
    tokens: u64,
}

/// Operations that are about to be done.
pub(super) struct Admitted<'a> {
    pub(super) namespace_slot: NamespaceSlot,
    pub(super) messages: Vec<(&'a str, SendItemRecord<'a>)>,
    /// Room that documents take.
    pub(super) room: Room,
    /// Sequence of the first message, once it is reserved.
    pub(super) first: u64,
    /// Claims that are granted already, in the order of the operations that acquire.
    pub(super) granted: VecDeque<ClaimSlot>,
}

impl<'a> Admitted<'a> {
    /// The messages.
    pub(super) fn several(&self, namespace: NamespaceId) -> Several<'_> {
        Several { namespace, namespace_slot: self.namespace_slot, items: &self.messages }
    }
}

impl Engine {
    pub(super) fn transaction(
        &mut self,
        record: &TransactionRecord<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let done = self.commit(record, out);
        self.release_unless_done(done, record, out)
    }

    /// Lets go of the blobs of operations that were not done, or had been before (`Ok(false)`).
    pub(super) fn release_unless_done(
        &self,
        done: Result<bool, Error>,
        operations: &TransactionRecord<'_>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        if done != Ok(true) {
            out.released.extend(operations.blobs(self.core.applied_index));
        }
        done.map(|_| ())
    }

    /// False if it was done before, under its idempotency key.
    pub(super) fn commit(
        &mut self,
        record: &TransactionRecord<'_>,
        out: &mut Outcome,
    ) -> Result<bool, Error> {
        self.core.expect_behaviour(TRANSACTIONS_SINCE)?;
        let namespace_slot = self.core.find_namespace(record.namespace)?;
        if self.is_repeat(record, out)? {
            return Ok(false);
        }
        self.two_phase.expect_only(record)?;
        let admitted = self.admit(record, namespace_slot, out).and_then(|mut admitted| {
            let sent = admitted.messages.len() as u32;
            let first = self.queue.reserve_sequences(namespace_slot, sent, &mut self.core);
            admitted.first = first.map_err(|error| (None, error))?;
            Ok(admitted)
        });
        match admitted {
            Ok(mut admitted) => self.carry_out(record, &mut admitted, out),
            Err((at, error)) => {
                out.refused_at = at.map(|at| at as u32);
                if plant::is(Plant::SettleWithoutTheRest) {
                    self.settle_all(record, out);
                }
                return Err(error);
            }
        }
        self.remember(record, out);
        out.reply = Reply::Committed { duplicate: false };
        Ok(true)
    }

    /// True if it was done before; then what it gave is in `out`.
    pub(super) fn is_repeat(&self, record: &TransactionRecord<'_>, out: &mut Outcome) -> Result<bool, Error> {
        if record.idempotency_key.is_empty() || plant::is(Plant::ForgetTransaction) {
            return Ok(false);
        }
        let request = (record.namespace.0, record.idempotency_key, record.request_digest);
        let Some(operations) = self.find_committed(request, self.core.now_us)? else { return Ok(false) };
        out.operations.extend_from_slice(operations);
        out.reply = Reply::Committed { duplicate: true };
        Ok(true)
    }

    fn find_committed(
        &self,
        request: (u32, &[u8], u64),
        now_us: u64,
    ) -> Result<Option<&[OperationDone]>, Error> {
        let window_us = self.core.limits.idempotency_window_ms * 1_000;
        let found = self.transactions.find(request, now_us, window_us)?;
        Ok(found.map(|Committed(operations)| &**operations))
    }

    /// Outcomes of the transaction with an idempotency key; `None`: there was none, as far as is remembered
    /// at `now_us`, in microseconds since the Unix epoch.
    ///
    /// # Errors
    /// `idempotency_mismatch`: the digest of its request is another.
    pub fn committed(
        &self,
        namespace: NamespaceId,
        idempotency_key: &[u8],
        request_digest: u64,
        now_us: u64,
    ) -> Result<Option<Vec<OperationDone>>, Error> {
        let now_us = now_us.max(self.core.now_us);
        let found = self.find_committed((namespace.0, idempotency_key, request_digest), now_us)?;
        Ok(found.map(<[_]>::to_vec))
    }

    pub(super) fn remember(&mut self, record: &TransactionRecord<'_>, out: &Outcome) {
        if !record.idempotency_key.is_empty() {
            let (now_us, limits) = (self.core.now_us, &self.core.limits);
            let request = (record.namespace.0, record.idempotency_key, record.request_digest);
            let (window_us, keys_max) = (limits.idempotency_window_ms * 1_000, limits.idempotency_keys);
            let gave = Committed(out.operations.as_slice().into());
            let room = TRANSACTION_OUTCOMES_MAX.saturating_sub(record.count.into());
            self.transactions.forget_down_to(room);
            self.transactions.remember(request, gave, now_us, window_us, keys_max);
        }
    }

    /// Checks all operations; nothing that counts is changed when one is refused.
    pub(super) fn admit<'a>(
        &mut self,
        record: &TransactionRecord<'a>,
        namespace_slot: NamespaceSlot,
        out: &mut Outcome,
    ) -> Result<Admitted<'a>, Refused> {
        let of_all = |error| (None, error);
        self.locks.catch_up(&mut self.core, out);
        let mut needs = Needs::default();
        for (at, operation) in record.operations().enumerate() {
            self.admit_operation((at, record), namespace_slot, &operation, &mut needs, out)
                .map_err(|error| (Some(at), error.within(&operation.path(at))))?;
        }
        let is_missing = |(_, key): &&(usize, &str)| !needs.created.contains(key);
        if let Some((at, key)) = needs.awaited.iter().find(is_missing) {
            return Err((Some(*at), Error::DocumentNotFound { key: (*key).to_owned() }));
        }
        let messages: Vec<_> = record.messages().collect();
        let several = Several { namespace: record.namespace, namespace_slot, items: &messages };
        let bytes = self.admit_messages(record, several)?;
        self.documents.admit(needs.documents).map_err(of_all)?;
        self.locks.admit_claims(needs.claims).map_err(of_all)?;
        let (sent, bytes) = (messages.len() as u64, bytes + needs.documents.bytes);
        self.core.admit_growth(namespace_slot, sent, bytes).map_err(of_all)?;
        if !self.core.tokens.has(needs.tokens) {
            return Err((None, none_left()));
        }
        let (room, granted) = (needs.documents, VecDeque::new());
        Ok(Admitted { namespace_slot, messages, room, first: 0, granted })
    }

    /// Checks an operation, but for a message.
    fn admit_operation<'a>(
        &mut self,
        (at, record): (usize, &TransactionRecord<'_>),
        namespace_slot: NamespaceSlot,
        operation: &OperationRecord<'a>,
        needs: &mut Needs<'a>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        match operation {
            OperationRecord::Send(..) => Ok(()),
            OperationRecord::Settle(item) => {
                if item.add_cost > 0 {
                    self.core.expect_behaviour(COSTS_SINCE)?;
                }
                self.queue.extendable_slot(record.namespace, &item.receipt, &mut self.core).map(|_| ())
            }
            OperationRecord::Put(put) => {
                self.expect_lock(put.namespace, &put.when, put.key)?;
                let (namespace, found) =
                    self.documents.look_up(put.namespace, put.key, &mut self.core, out)?;
                self.documents.expect(&put.when, put.key, found)?;
                needs.documents += self.documents.room_of((namespace, found), put);
                needs.created.extend(found.is_none().then_some(put.key));
                needs.tokens += 1;
                Ok(())
            }
            OperationRecord::Delete(delete) => {
                self.expect_lock(delete.namespace, &delete.when, delete.key)?;
                let (_, found) = self.documents.look_up(delete.namespace, delete.key, &mut self.core, out)?;
                needs.tokens += 1;
                self.documents.expect_to_delete(&delete.when, delete.key, found).map(|_| ())
            }
            OperationRecord::Check(check) => self.document_check(check, out),
            OperationRecord::Attach(commit) => self.admit_attachment((at, commit), needs, out),
            OperationRecord::Detach(delete) => {
                self.expect_lock(delete.namespace, &delete.when, delete.key)?;
                let (_, found) = self.documents.look_up(delete.namespace, delete.key, &mut self.core, out)?;
                self.documents.expect_to_detach(found, delete).map(|_| ())
            }
            OperationRecord::Acquire(acquire) => {
                needs.claims += 1;
                needs.tokens += 1;
                self.locks.expect_open(acquire, namespace_slot)
            }
            OperationRecord::Release(token) => {
                let granted = self.locks.granted(record.namespace, *token, &mut self.core)?;
                self.locks.expect_decided(granted)
            }
        }
    }

    /// Checks an upload that becomes an attachment, of a document that is there, or that is put with it.
    fn admit_attachment<'a>(
        &mut self,
        (at, commit): (usize, &AttachmentCommit<'a>),
        needs: &mut Needs<'a>,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        self.expect_lock(commit.namespace, &commit.when, commit.key)?;
        let place = self.documents.look_up(commit.namespace, commit.key, &mut self.core, out)?;
        needs.awaited.extend(place.1.is_none().then_some((at, commit.key)));
        let of_document = needs.attachments.get(commit.key).copied().unwrap_or(0);
        let others = Others { of_document, all: needs.attachments.values().sum() };
        if self.documents.expect_to_commit(place, commit, others, &self.core)? {
            needs.attachments.insert(commit.key, of_document + 1);
        }
        needs.tokens += 1;
        Ok(())
    }

    /// Checks the messages; returns the bytes of their blobs.
    fn admit_messages(&self, record: &TransactionRecord<'_>, several: Several<'_>) -> Result<u64, Refused> {
        // Places of the messages among the operations.
        let is_send =
            |(_, operation): &(usize, OperationRecord<'_>)| matches!(operation, OperationRecord::Send(..));
        let place = |message: usize| {
            let sends = record.operations().enumerate().filter(is_send);
            sends.map(|(at, _)| at).nth(message).unwrap_or_default()
        };
        let prefix = |message| path(place(message), kind::SEND);
        let naming = Naming { prefix: &prefix, is_list: false };
        let admitted = self.queue.admit_several(several, naming, &self.core);
        admitted.map_err(|(message, error)| (message.map(place), error))
    }

    /// Does what was admitted. Messages are sent first, so that a step that follows an acked message has no
    /// place of theirs; attachments are made when all documents are there; grants are released last, since
    /// others follow them.
    pub(super) fn carry_out(
        &mut self,
        record: &TransactionRecord<'_>,
        admitted: &mut Admitted<'_>,
        out: &mut Outcome,
    ) {
        let namespace_slot = admitted.namespace_slot;
        if !admitted.messages.is_empty() {
            let several = admitted.several(record.namespace);
            self.queue.place_several(several, admitted.first, false, &mut self.core, out);
        }
        for operation in record.operations() {
            let done = self.do_operation(record, &operation, admitted, out);
            out.operations.push(done);
        }
        for (at, operation) in record.operations().enumerate() {
            if let OperationRecord::Attach(commit) = &operation {
                let (version, created) =
                    self.documents.attach_admitted(namespace_slot, commit, &mut self.core);
                out.operations[at] = OperationDone::Written { version, created };
            }
        }
        for operation in record.operations() {
            if let OperationRecord::Release(token) = operation
                && !plant::is(Plant::KeepReleasedLock)
                && let Ok(slot) = self.locks.granted(record.namespace, token, &mut self.core)
            {
                self.locks.end_grant(slot, &mut self.core, out);
            }
        }
    }

    /// Settles what a transaction settles: for the simulator, which plants this as a bug.
    fn settle_all(&mut self, record: &TransactionRecord<'_>, out: &mut Outcome) {
        for operation in record.operations() {
            if let OperationRecord::Settle(item) = operation
                && item.error.is_none()
                && item.result.is_none()
            {
                self.queue.settle_admitted(record.namespace, &item, &mut self.core, out);
            }
        }
    }

    /// Does an operation, but for a message, which is sent, and a release.
    fn do_operation(
        &mut self,
        record: &TransactionRecord<'_>,
        operation: &OperationRecord<'_>,
        admitted: &mut Admitted<'_>,
        out: &mut Outcome,
    ) -> OperationDone {
        let (core, namespace) = (&mut self.core, admitted.namespace_slot);
        match operation {
            OperationRecord::Send(..) => {
                let sequence = admitted.first;
                admitted.first += 1;
                OperationDone::Sent { id: MessageId { namespace: record.namespace, sequence } }
            }
            OperationRecord::Settle(item) => {
                self.queue.settle_admitted(record.namespace, item, core, out);
                OperationDone::Settled
            }
            OperationRecord::Put(put) => {
                let found: Option<DocumentSlot> = self.documents.documents.find(namespace, put.key);
                let revision = core.tokens.give().unwrap_or_default();
                let version = self.documents.write((namespace, found), put, revision, core, out);
                OperationDone::Written { version, created: found.is_none() }
            }
            OperationRecord::Delete(delete) => {
                let found = self.documents.documents.find(namespace, delete.key);
                let version = found.map(|slot| self.documents.delete_found(slot, core, out));
                OperationDone::Deleted { version: version.unwrap_or_default() }
            }
            OperationRecord::Check(_) => OperationDone::Checked,
            // Done when all documents are there.
            OperationRecord::Attach(_) => OperationDone::Checked,
            OperationRecord::Detach(delete) => {
                let version = self.documents.detach_admitted(namespace, delete, core);
                OperationDone::Deleted { version }
            }
            OperationRecord::Acquire(acquire) => {
                let granted = admitted.granted.pop_front().unwrap_or_else(|| {
                    let number = core.tokens.give().unwrap_or_default();
                    self.locks.enter_granted(acquire, namespace, number, core)
                });
                OperationDone::Granted { grant: self.locks.begin_grant(granted, record.namespace, core) }
            }
            OperationRecord::Release(_) => OperationDone::Released,
        }
    }
}
