//! The engine: its state, and the door through which records come in.
//!
//! One file per concern: `send`, `receive`, `settle`, `dead`, `change` and `moving` for messages, `queues`
//! and `namespaces` for what holds them, `consumers` for who gets them, `transitions` for how a message goes
//! from one state into another, `ordering` for what may hold it up, `fair` for whose turn it is,
//! `queue_limits` for how much at a time, `unique` and `unique_plan` for keys that one message has, `expiry`
//! for those that wait too long, `length` for queues that hold too much, `flows`, `groups` and `chains` for
//! what waits for what, or follows, `schedules` for what is sent at instants, `consequences` and
//! `pending_sends` for what follows from all that, `timers` and `sweep` for what goes on by itself, `lookup`
//! from names to slots, `read`, `flow_view` and `damage` for those who look, `events` for those who watch,
//! `snapshot` and `restore`, and `recount` for tests.
//!
//! Decided here:
//!
//! - A lease that ends by itself is a failed attempt, and the next is ready at once: the lease was its delay.
//! - Releases alone count against `max_deliveries`; failed attempts end by `max_attempts`.
//! - What is given back stands at the end of its priority's line.
//! - Purge and delete are seen at once. The messages behind are *stale*: no lookup finds them, and `sweep` frees them.
//!   Dead letters that are all redriven stay dead until their slice has come, since only then can they be taken.
//! - A settle tells `already_settled` for the last 2^24 deliveries; of older ones `lease_lost`.
//! - Forgetting idempotency keys over age or number is left to later sends with a key, a few by each.

pub(crate) mod namespaces;
pub(crate) mod recount;
pub(crate) mod restore;
pub(crate) mod snapshot;
pub(crate) mod texts;

use std::collections::{BTreeSet, VecDeque};

use crate::core::Namespaces;
use crate::core::namespace::Namespace;
use crate::core::shared_blobs::SharedBlobs;
use crate::core::tokens::Tokens;
use crate::core::wheel::Wheel;
use crate::engine::snapshot::Snapshot;
use crate::error::Error;
use crate::event::Watched;
use crate::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId, Receipt, ReceiptKey};
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::query::Counters;
use crate::queue::consequence::Consequences;
use crate::queue::consumer::state::AllConsumers;
use crate::queue::defaults::state::AllDefaults;
use crate::queue::delivery::receive::Weighted;
use crate::queue::expiry::state::Expiries;
use crate::queue::fair::state::Lanes;
use crate::queue::flow::state::Flows;
use crate::queue::limit::state::AllLimits;
use crate::queue::message::extras::AllExtras;
use crate::queue::namespace_index::NamespaceIndexes;
use crate::queue::ordering::state::OrderingKeys;
use crate::queue::schedule::state::Schedules;
use crate::queue::send::idempotency::Idempotency;
use crate::queue::send::pending_state::PendingSends;
use crate::queue::unique::state::UniqueKeys;
pub use crate::queue::view::PAGE_ITEMS_MAX;
use crate::queue::work::Work;
use crate::queue::{Messages, Queues};
use crate::record::{Kind, RareRecord, check_behaviour, decode, kind_of};
use crate::settings::Quotas;
use crate::store::directory::Directory;
use crate::store::hash_index::HashIndex;

/// The state machine of one shard.
#[derive(Debug, Default)]
pub struct Engine {
    pub(crate) applied_index: u64,
    pub(crate) now_us: u64,
    pub(crate) epoch: u64,
    pub(crate) receipt_key: ReceiptKey,
    pub(crate) limits: Limits,
    pub(crate) totals: Counters,
    pub(crate) messages: Messages,
    pub(crate) extras: AllExtras,
    pub(crate) ordering: OrderingKeys,
    pub(crate) shared_blobs: SharedBlobs,
    pub(crate) lanes: Lanes,
    pub(crate) queue_limits: AllLimits,
    pub(crate) unique: UniqueKeys,
    pub(crate) schedules: Schedules,
    pub(crate) flows: Flows,
    pub(crate) expiry: Expiries,
    pub(crate) consumers: AllConsumers,
    pub(crate) queues: Queues,
    pub(crate) namespaces: Namespaces,
    /// Derived.
    pub(crate) indexes: NamespaceIndexes,
    pub(crate) wheel: Wheel,
    pub(crate) tokens: Tokens,
    pub(crate) idempotency: Idempotency,
    /// Consequences of the records so far that are still to be done, in order.
    pub(crate) consequences: Consequences,
    /// How many consequences were left when the record being applied began.
    pub(crate) backlog: usize,
    /// Budget for consequences that the record being applied has used, in messages that are changed.
    pub(crate) spent: usize,
    pub(crate) pending_sends: PendingSends,
    /// Work that is done in slices.
    pub(crate) work: VecDeque<Work>,
    pub(crate) next_queue: u32,
    pub(crate) next_namespace: u32,
    /// Queues by namespace and name. Derived.
    pub(crate) queue_names: HashIndex,
    /// Queues by number. Derived.
    pub(crate) queue_numbers: Directory,
    /// Namespaces by number. Derived.
    pub(crate) namespace_numbers: Directory,
    /// Namespaces by name. Derived.
    pub(crate) namespace_names: HashIndex,
    /// Number and slot of the namespace that was found last, as a first guess; not a deleted one.
    pub(crate) last_namespace: Option<(NamespaceId, u32)>,
    /// The queue that was found last by name, as a first guess.
    pub(crate) last_queue: u32,
    pub(crate) queue_defaults: AllDefaults,
    /// Queues whose dead letters are redriven at a rate, by the time of the next slice. Derived.
    pub(crate) redrives: BTreeSet<(u64, u32)>,
    /// What somebody wants to hear of; no part of the state.
    pub(crate) watched: Watched,
    pub(crate) snapshot: Option<Snapshot>,
    /// Reused by each receive over several queues.
    pub(crate) weighted: Vec<Weighted>,
}

impl Engine {
    /// An engine in which nothing has happened: the namespaces `$sys` and `default` exist, on shard 0.
    pub fn new() -> Engine {
        let mut engine = Engine::default();
        for (number, name) in [(NamespaceId::SYS, "$sys"), (NamespaceId::DEFAULT, "default")] {
            engine.add_namespace(Namespace::new(number.0, name, 0, Quotas::default(), 0));
        }
        engine.tokens.begin(0);
        engine
    }

    /// Applies one record. `index` is its place in the log, `now_us` its time in microseconds since the Unix epoch; time
    /// never runs backwards, an earlier time counts as the latest one. What came of it is in `out`, which is cleared
    /// first. A body that no [`crate::Command`] wrote is refused with [`Error::Internal`].
    pub fn apply(&mut self, now_us: u64, index: u64, body: &[u8], out: &mut Outcome) {
        out.clear();
        self.now_us = self.now_us.max(now_us);
        self.applied_index = index;
        (self.backlog, self.spent) = (self.consequences.len(), 0);
        if let Err(error) = self.dispatch(body, out) {
            out.error = Some(error);
        }
        let entails = !self.consequences.is_empty() | (self.consumers.totals.attached > 0);
        if entails | self.watched.has(Watched::EVENTS) {
            self.follow_up(out);
        }
    }

    #[inline(always)]
    fn dispatch(&mut self, body: &[u8], out: &mut Outcome) -> Result<(), Error> {
        match kind_of(body)? {
            Kind::Send => {
                let record = decode::send(body)?;
                let sent = self.send(&record, out);
                if sent.is_err() {
                    out.ids.clear();
                    out.duplicates.clear();
                    out.released.extend(record.blobs(self.applied_index));
                }
                sent
            }
            Kind::Receive => self.receive(&decode::receive(body)?, out),
            Kind::Settle => self.settle(&decode::settle(body)?, out),
            Kind::Extend => self.extend(&decode::extend(body)?, out),
            Kind::Tick if body.len() == 2 => {
                self.tick(out);
                Ok(())
            }
            Kind::Tick | Kind::Rare => self.dispatch_rare(decode::rare(body)?, out),
        }
    }

    #[cold]
    fn dispatch_rare(&mut self, record: RareRecord<'_>, out: &mut Outcome) -> Result<(), Error> {
        match record {
            RareRecord::Epoch { number, behaviour } => self.begin_epoch(number, behaviour, out),
            RareRecord::ReceiptKey(key) => self.begin_receipts(key),
            RareRecord::Configure(limits) => {
                limits.check().map_err(internal)?;
                self.limits = limits;
                Ok(())
            }
            RareRecord::NamespaceCreate { number, name, shard, quotas } => {
                self.namespace_create(number, name, shard, quotas, out)
            }
            RareRecord::NamespaceSet { namespace, quotas } => self.namespace_set(namespace, quotas),
            RareRecord::NamespaceDelete { namespace, force } => self.namespace_delete(namespace, force, out),
            RareRecord::QueueSet { namespace, queue, patch, create } => {
                self.queue_set(namespace, queue, &patch, create, out)
            }
            RareRecord::QueuePurge { namespace, queue } => self.queue_purge(namespace, queue, out),
            RareRecord::QueueDelete { namespace, queue } => self.queue_delete(namespace, queue, out),
            RareRecord::DeadRedrive { namespace, queue, ids } => {
                self.dead_redrive(namespace, queue, &ids, out)
            }
            RareRecord::DeadRedriveRate { namespace, queue, per_second } => {
                self.dead_redrive_rate(namespace, queue, per_second, out)
            }
            RareRecord::DeadDelete { namespace, queue, ids } => self.dead_delete(namespace, queue, &ids, out),
            RareRecord::DefaultsSet { namespace, pattern, patch } => {
                self.defaults_set(namespace, pattern, patch, out)
            }
            RareRecord::DefaultsDelete { namespace, pattern } => self.defaults_delete(namespace, pattern),
            RareRecord::LimitSet { namespace, limit, rules } => self.limit_set(namespace, limit, rules, out),
            RareRecord::LimitDelete { namespace, limit } => self.limit_delete(namespace, limit, out),
            RareRecord::HoldDamaged { id, blob } => self.hold_damaged(id, blob, out),
            RareRecord::SchedulePut(put) => {
                let done = self.schedule_put(&put, out);
                if done.is_err() {
                    let blob = BlobRef { index: self.applied_index, item: 0, len: put.item.blob_len };
                    out.released.push(blob);
                }
                done
            }
            RareRecord::ScheduleDelete { namespace, schedule } => {
                self.schedule_delete(namespace, schedule, out)
            }
            RareRecord::SchedulePause { namespace, schedule, paused, next_at_us } => {
                self.schedule_pause(namespace, schedule, paused, next_at_us)
            }
            RareRecord::ScheduleFire(fire) => self.schedule_fire(&fire, out),
            RareRecord::ScheduleTrigger { namespace, schedule } => {
                self.schedule_trigger(namespace, schedule, out)
            }
            RareRecord::Group(group) => self.group(&group, out),
            RareRecord::Report(report) => self.report(&report, out),
            RareRecord::Change(change) => self.change(&change, out),
            RareRecord::Attach(attach) => self.attach(&attach, out),
            RareRecord::Credit { namespace, consumer, credit } => self.credit(namespace, consumer, credit),
            RareRecord::Detach { namespace, consumer, grace_ms, reached } => {
                self.detach_consumer(namespace, consumer, grace_ms, reached, out)
            }
            RareRecord::Resume(resume) => self.resume(&resume, out),
        }
    }

    /// Leases go on through a new epoch: a receiver that pulls keeps its receipts. Nobody is attached any more.
    fn begin_epoch(&mut self, number: u64, behaviour: u16, out: &mut Outcome) -> Result<(), Error> {
        check_behaviour(behaviour.into()).map_err(|reason| Error::Internal { reason })?;
        if number < self.next_epoch() || number >> (u64::BITS - EPOCH_SHIFT) != 0 {
            let reason = format!("epoch {number} does not follow epoch {}", self.epoch);
            return Err(Error::Internal { reason });
        }
        self.epoch = number;
        self.tokens.begin(number);
        self.detach_all(None, out);
        Ok(())
    }

    /// A log keeps its key: with another one no receipt would count that was given before.
    fn begin_receipts(&mut self, key: ReceiptKey) -> Result<(), Error> {
        if self.has_receipt_key() || key == ReceiptKey::default() {
            return Err(Error::Internal { reason: "a log gets one key for its receipts".into() });
        }
        self.receipt_key = key;
        Ok(())
    }

    /// When a `Tick` is due, in microseconds; a time that is past while consequences or work in slices are
    /// left. `None`: nothing waits.
    pub fn next_deadline(&self) -> Option<u64> {
        if !self.work.is_empty() || !self.consequences.is_empty() {
            return Some(self.now_us);
        }
        let others = self.unique.wheel.len() | self.expiry.wheel.len();
        if others > 0 || !self.redrives.is_empty() || !self.queue_limits.timers.is_empty() {
            return self.next_of_all();
        }
        self.wheel.next_us(&self.messages)
    }

    #[inline(never)]
    fn next_of_all(&self) -> Option<u64> {
        let redrive = self.redrives.first().map(|(due_us, _)| *due_us);
        let deadlines = [
            self.wheel.next_us(&self.messages),
            self.unique.wheel.next_us(&self.unique.slots),
            self.expiry.wheel.next_us(&self.expiry.slots),
            self.next_limit_us(),
            redrive,
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Index of the latest record applied.
    pub fn applied_index(&self) -> u64 {
        self.applied_index
    }

    /// Time of the latest record applied, in microseconds since the Unix epoch.
    pub fn time_us(&self) -> u64 {
        self.now_us
    }

    /// The epoch in force; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether receipts have tags that nobody can guess.
    pub fn has_receipt_key(&self) -> bool {
        self.receipt_key != ReceiptKey::default()
    }

    /// The receipt of a delivery.
    #[inline]
    pub fn receipt(&self, id: MessageId, token: u64) -> Receipt {
        self.receipt_key.receipt(id, token)
    }

    /// The smallest number that the next epoch may have: above every id and token that was given.
    pub fn next_epoch(&self) -> u64 {
        let ids = self.namespaces.iter().map(|(_, namespace)| namespace.last_sequence);
        let latest = ids.fold(self.tokens.latest(), u64::max);
        self.epoch.max(latest >> EPOCH_SHIFT) + 1
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// What a check before the proposal should have refused.
pub(crate) fn internal(error: Error) -> Error {
    Error::Internal { reason: format!("a record that should not have been proposed: {error}") }
}
