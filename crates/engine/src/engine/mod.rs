//! The engine: the core, the modules over it, and the door through which records come in.
//!
//! Here is what concerns more than one module: `dispatch` of a record to its module, `namespaces`,
//! `snapshot`, `restore` and `recount` of the whole, blobs that live, and the reads that the node makes
//! (`queue_reads`, `lock_reads`, `document_reads`); `document_writes` and `attachments` join locks and
//! documents, and `transactions` all modules.

mod attachments;
mod document_reads;
mod document_writes;
mod lock_reads;
mod namespaces;
mod queue_reads;
mod recount;
mod restore;
mod snapshot;
mod texts;
mod transactions;
mod two_phase;

use crate::core::idempotency::Idempotency;
use crate::core::namespace::Namespace;
use crate::core::{Core, earlier};
use crate::document::DocumentModule;
use crate::engine::snapshot::Snapshot;
use crate::error::Error;
use crate::event::Watched;
use crate::id::{BlobRef, MessageId, NamespaceId, Receipt};
use crate::limits::Limits;
use crate::lock::LockModule;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::record::decode;
use crate::record::decode::{Kind, kind_of};
use crate::record::known::check_behaviour;
use crate::record::table::RareRecord as Rare;
use crate::settings::Quotas;
use crate::transaction::remembered::Committed;
use crate::transaction::two_phase::TwoPhase;

/// The state machine of one shard.
#[derive(Debug, Default)]
pub struct Engine {
    core: Core,
    queue: QueueModule,
    locks: LockModule,
    documents: DocumentModule,
    /// Transactions by their idempotency keys.
    transactions: Idempotency<Committed>,
    /// Transactions over several namespaces.
    two_phase: TwoPhase,
    /// The snapshot that runs. Volatile.
    snapshot: Option<Snapshot>,
}

impl Engine {
    /// An engine in which nothing has happened: the namespaces `$sys` and `default` exist, on shard 0.
    pub fn new() -> Engine {
        let mut engine = Engine::default();
        for (number, name) in [(NamespaceId::SYS, "$sys"), (NamespaceId::DEFAULT, "default")] {
            engine.core.add_namespace(Namespace::new(number.0, name, 0, Quotas::default(), 0));
        }
        engine.queue.cover_namespaces(&engine.core);
        engine.locks.cover_namespaces(&engine.core);
        engine.documents.cover_namespaces(&engine.core);
        engine.core.tokens.begin(0);
        engine
    }

    /// Applies one record. `index` is its place in the log, `now_us` its time in microseconds since the Unix
    /// epoch; time never runs backwards, an earlier time counts as the latest one. What came of it is in
    /// `out`, which is cleared first. A body that no [`crate::Command`] wrote is refused with
    /// [`Error::Internal`].
    pub fn apply(&mut self, now_us: u64, index: u64, body: &[u8], out: &mut Outcome) {
        out.clear();
        self.core.now_us = self.core.now_us.max(now_us);
        self.core.applied_index = index;
        self.queue.begin_record();
        if let Err(error) = self.dispatch(body, out) {
            out.error = Some(error);
        }
        self.queue.end_record(&mut self.core, out);
        self.locks.tell_changes(&self.core, out);
    }

    #[inline(always)]
    fn dispatch(&mut self, body: &[u8], out: &mut Outcome) -> Result<(), Error> {
        let Engine { core, queue: queues, locks, documents, .. } = self;
        match kind_of(body)? {
            Kind::Send => {
                let record = decode::send(body)?;
                let sent = queues.send(&record, core, out);
                if sent.is_err() {
                    out.ids.clear();
                    out.duplicates.clear();
                    out.released.extend(record.blobs(core.applied_index));
                }
                sent
            }
            Kind::Receive => queues.receive(&decode::receive(body)?, core, out),
            Kind::Settle => queues.settle(&decode::settle(body)?, core, out),
            Kind::Extend => queues.extend(&decode::extend(body)?, core, out),
            Kind::Tick if body.len() == 2 => {
                queues.tick(core, out);
                locks.tick(core, out);
                documents.tick(core, out);
                Ok(())
            }
            Kind::Tick | Kind::Rare => self.dispatch_rare(decode::rare(body)?, out),
        }
    }

    #[cold]
    fn dispatch_rare(&mut self, record: Rare<'_>, out: &mut Outcome) -> Result<(), Error> {
        use Rare::{DeadDelete, DeadRedrive, IndexPut, LimitSet, ScheduleDelete, ScheduleTrigger};
        let Engine { core, queue: queues, locks, documents, .. } = self;
        match record {
            Rare::Epoch { number, behaviour } => self.begin_epoch(number, behaviour, out),
            Rare::Raise { behaviour } => self.raise(behaviour),
            Rare::Consensus { entry: _ } => Ok(()),
            Rare::ReceiptKey(key) => core.begin_receipts(key),
            Rare::Configure(limits) => core.configure(limits),
            Rare::NamespaceCreate { number, name, shard, quotas } => {
                self.namespace_create(number, name, shard, quotas, out)
            }
            Rare::NamespaceSet { namespace, quotas } => core.namespace_set(namespace, quotas),
            Rare::NamespaceDelete { namespace, force } => self.namespace_delete(namespace, force, out),
            Rare::QueueSet { namespace, queue, patch, create } => {
                queues.queue_set(namespace, queue, &patch, create, core, out)
            }
            Rare::QueuePurge { namespace, queue } => queues.queue_purge(namespace, queue, core, out),
            Rare::QueueDelete { namespace, queue } => queues.queue_delete(namespace, queue, core, out),
            DeadRedrive { namespace, queue, ids } => queues.dead_redrive(namespace, queue, &ids, core, out),
            Rare::DeadRedriveRate { namespace, queue, per_second } => {
                queues.dead_redrive_rate(namespace, queue, per_second, core, out)
            }
            DeadDelete { namespace, queue, ids } => queues.dead_delete(namespace, queue, &ids, core, out),
            Rare::DefaultsSet { namespace, pattern, patch } => {
                queues.defaults_set(namespace, pattern, patch, core, out)
            }
            Rare::DefaultsDelete { namespace, pattern } => queues.defaults_delete(namespace, pattern, core),
            LimitSet { namespace, limit, rules } => queues.limit_set(namespace, limit, rules, core, out),
            Rare::LimitDelete { namespace, limit } => queues.limit_delete(namespace, limit, core, out),
            Rare::HoldDamaged { id, blob } => queues.hold_damaged(id, blob, core, out),
            Rare::SchedulePut(put) => queues.schedule_put(&put, core, out),
            ScheduleDelete { namespace, schedule } => queues.schedule_delete(namespace, schedule, core, out),
            Rare::SchedulePause { namespace, schedule, paused, next_at_us } => {
                queues.schedule_pause(namespace, schedule, paused, next_at_us, core)
            }
            Rare::ScheduleFire(fire) => queues.schedule_fire(&fire, core, out),
            ScheduleTrigger { namespace, schedule } => queues.trigger(namespace, schedule, core, out),
            Rare::Group(group) => queues.group(&group, core, out),
            Rare::Report(report) => queues.report(&report, core, out),
            Rare::Change(change) => queues.change(&change, core, out),
            Rare::SearchFill(fill) => queues.search_fill(&fill, core),
            Rare::Attach(attach) => queues.attach(&attach, core, out),
            Rare::Credit { namespace, consumer, credit } => queues.credit(namespace, consumer, credit, core),
            Rare::Detach(detach) => queues.detach_consumer(&detach, core, out),
            Rare::Resume(resume) => queues.resume(&resume, core, out),
            Rare::LockAcquire(acquire) => locks.acquire(&acquire, core, out),
            Rare::LockRenew { namespace, token, ttl_ms } => locks.renew(namespace, token, ttl_ms, core, out),
            Rare::LockRelease { namespace, token } => locks.release(namespace, token, core, out),
            Rare::LockBreak { namespace, key } => locks.break_key(namespace, key, core, out),
            Rare::LockWait { ticket, wait_ms } => locks.wait(ticket, wait_ms, core),
            Rare::LockLeave { claim, calls } => locks.leave(claim, calls, core, out),
            Rare::DocumentPut(put) => self.document_put(&put, out),
            Rare::DocumentDelete(delete) => self.document_delete(&delete, out),
            Rare::DocumentCheck(check) => self.document_check(&check, out),
            IndexPut { namespace, name, pointer } => documents.index_put(namespace, name, pointer, core),
            Rare::IndexDelete { namespace, name } => documents.index_delete(namespace, name, core),
            Rare::IndexFill(fill) => documents.index_fill(&fill, core),
            Rare::UploadBegin(begin) => documents.upload_begin(&begin, core, out),
            Rare::UploadChunk(chunk) => self.upload_chunk(&chunk, out),
            Rare::UploadEnd { namespace, upload } => documents.upload_end(namespace, upload, core),
            Rare::AttachmentCommit(commit) => self.attachment_commit(&commit, out),
            Rare::AttachmentDelete(delete) => self.attachment_delete(&delete, out),
            Rare::Transaction(transaction) => self.transaction(&transaction, out),
            Rare::TransactionPrepare(prepare) => self.transaction_prepare(&prepare, out),
            Rare::TransactionDecide(decide) => self.transaction_decide(&decide, out),
            Rare::TransactionFinish { namespace, id, commit } => self.finish_part(namespace, id, commit, out),
            Rare::TransactionAsk { id, until_us } => self.transaction_ask(id, until_us, out),
        }
    }

    /// Leases go on through a new epoch: a receiver that pulls keeps its receipts. Nobody is attached any
    /// more.
    fn begin_epoch(&mut self, number: u64, behaviour: u16, out: &mut Outcome) -> Result<(), Error> {
        self.raise(behaviour)?;
        self.core.begin_epoch(number)?;
        self.queue.detach_all(None, &self.core, out);
        Ok(())
    }

    /// A leader that has not applied the latest raise yet begins its epoch with a version that is lower: that
    /// changes nothing.
    fn raise(&mut self, behaviour: u16) -> Result<(), Error> {
        check_behaviour(behaviour.into()).map_err(|reason| Error::Internal { reason })?;
        self.core.behaviour = self.core.behaviour.max(behaviour);
        Ok(())
    }

    /// Time at which a `Tick` is due, in microseconds; a time that is past while consequences or work in
    /// slices are left. `None`: nothing waits.
    pub fn next_deadline(&self) -> Option<u64> {
        let queue = self.queue.next_deadline(&self.core);
        let of_others =
            earlier(self.locks.next_deadline(&self.core), self.documents.next_deadline(&self.core));
        earlier(queue, of_others)
    }

    /// Index of the latest record applied.
    pub fn applied_index(&self) -> u64 {
        self.core.applied_index
    }

    /// Time of the latest record applied, in microseconds since the Unix epoch.
    pub fn time_us(&self) -> u64 {
        self.core.now_us
    }

    /// The epoch in force; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.core.epoch
    }

    /// The behaviour version in force; 0 before the first epoch.
    pub fn behaviour(&self) -> u16 {
        self.core.behaviour
    }

    /// The smallest number that the next epoch may have: above every id and token that was given.
    pub fn next_epoch(&self) -> u64 {
        self.core.next_epoch()
    }

    /// True if receipts have tags that nobody can guess.
    pub fn has_receipt_key(&self) -> bool {
        self.core.has_receipt_key()
    }

    /// The receipt of a delivery.
    #[inline]
    pub fn receipt(&self, id: MessageId, token: u64) -> Receipt {
        self.core.receipt(id, token)
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.core.limits
    }

    /// Sets whether [`Outcome::events`] is filled. No part of the state.
    pub fn watch_events(&mut self, watch: bool) {
        self.core.watched.set(Watched::EVENTS, watch);
    }

    /// Sets whether [`Outcome::ended`] is filled: worth it only while somebody waits for results. No part of
    /// the state.
    pub fn watch_ends(&mut self, watch: bool) {
        self.core.watched.set(Watched::ENDS, watch);
    }

    /// Sets whether [`Outcome::changed_locks`] is filled. No part of the state.
    pub fn watch_locks(&mut self, watch: bool) {
        self.locks.watch(watch);
    }

    /// Every blob that the engine has not let go of, each once, in no particular order; for the journal after
    /// a restart.
    pub fn live_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let shared = &self.core.shared_blobs;
        let alone = |blob: &BlobRef| shared.owners(*blob) == 1;
        self.owned_blobs().filter(alone).chain(shared.blobs())
    }

    /// Every reference of a module to a blob, one for each owner.
    fn owned_blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.queue.owned_blobs().chain(self.documents.owned_blobs()).chain(self.two_phase.owned_blobs())
    }
}
