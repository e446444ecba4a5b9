//! The module of queues: messages, and all that may happen to them.
//!
//! - `state`: what is kept, and its layout in a snapshot; `record`: the layouts of commands in the log. They
//!   use no room.
//! - Rooms: `message` the transitions of a message, and how it is found; `send`; `delivery` receive, settle,
//!   extend and report; `change` changes to messages; `dead` dead letters; `flow` parents, groups and chains;
//!   `limit` queue limits; `schedule`; `consumer` attached consumers; `search`
//!   indexes of messages. Order and admission: `ordering`, `fair`
//!   and `unique` keys, `expiry`, `length` of a queue. Queues themselves: `queues` and `defaults`, with their
//!   part of `namespaces`.
//! - What goes on by itself: `timers`, `work` in slices, `consequences`. A room lists what follows as data,
//!   and `consequences` calls the room that does it.
//! - For others: `view` reads, `events`, `recount`.
//!
//! Decided here:
//!
//! - A lease that ends by itself is a failed attempt, and the next is ready at once: the lease was its delay.
//! - Releases alone count against `max_deliveries`; failed attempts end by `max_attempts`.
//! - What is given back stands at the end of its priority's line.
//! - Purge and delete are seen at once. The messages behind are *stale*: no lookup finds them, and `sweep`
//!   frees them. Dead letters that are all redriven stay dead until their slice has come, since only then can
//!   they be taken.
//! - A settle tells `already_settled` for the last 2^24 deliveries; of older ones `lease_lost`.
//! - Forgetting idempotency keys over age or number is left to later sends with a key, a few by each.

pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod consequences;
pub(crate) mod consumer;
pub(crate) mod dead;
pub(crate) mod defaults;
pub(crate) mod delivery;
pub(crate) mod events;
pub(crate) mod expiry;
pub(crate) mod fair;
pub(crate) mod flow;
pub(crate) mod length;
pub(crate) mod limit;
pub(crate) mod message;
pub(crate) mod namespaces;
pub(crate) mod ordering;
pub(crate) mod pins;
pub(crate) mod queues;
pub(crate) mod record;
pub(crate) mod recount;
pub(crate) mod schedule;
pub(crate) mod search;
pub(crate) mod send;
pub(crate) mod state;
pub(crate) mod timers;
pub(crate) mod unique;
pub(crate) mod view;
pub(crate) mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::core::Core;
use crate::core::idempotency::Idempotency;
use crate::core::wheel::Wheel;
use crate::query::{Counters, State};
use crate::queue::delivery::receive::Weighted;
use crate::queue::pins::Pins;
use crate::queue::state::QueueSlot;
use crate::queue::state::consequence::Consequences;
use crate::queue::state::consumer::AllConsumers;
use crate::queue::state::defaults::AllDefaults;
use crate::queue::state::expiry::Expiries;
use crate::queue::state::extras::AllExtras;
use crate::queue::state::fair::Lanes;
use crate::queue::state::flow::Flows;
use crate::queue::state::limit::AllLimits;
use crate::queue::state::message::{Message, Messages, mark};
use crate::queue::state::namespace_index::NamespaceIndexes;
use crate::queue::state::ordering::OrderingKeys;
use crate::queue::state::pending::PendingSends;
use crate::queue::state::queue::{Queue, Queues};
use crate::queue::state::schedule::Schedules;
use crate::queue::state::search::AllSearch;
use crate::queue::state::sent::Sent;
use crate::queue::state::unique::UniqueKeys;
use crate::queue::state::work::Work;
use crate::store::directory::Directory;
use crate::store::hash_index::HashIndex;
use crate::store::slot::Slot;

/// The state of the module.
#[derive(Debug, Default)]
pub(crate) struct QueueModule {
    /// Counters of all queues together.
    pub(crate) totals: Counters,
    pub(crate) messages: Messages,
    /// Optional fields of messages.
    pub(crate) extras: AllExtras,
    pub(crate) ordering: OrderingKeys,
    /// Ready messages by fair key.
    pub(crate) lanes: Lanes,
    pub(crate) queue_limits: AllLimits,
    pub(crate) unique: UniqueKeys,
    pub(crate) schedules: Schedules,
    pub(crate) flows: Flows,
    pub(crate) expiry: Expiries,
    pub(crate) consumers: AllConsumers,
    /// Indexes of messages.
    pub(crate) search: AllSearch,
    pub(crate) queues: Queues,
    /// The smallest number that no queue has had.
    pub(crate) next_queue: u32,
    pub(crate) queue_defaults: AllDefaults,
    pub(crate) idempotency: Idempotency<Sent>,
    /// Timers of messages: delays, leases, retention.
    pub(crate) wheel: Wheel<Message>,
    /// Consequences of the records so far that are still to be done, in order.
    pub(crate) consequences: Consequences,
    /// Consequences that were left when the record being applied began. Volatile.
    pub(crate) backlog: usize,
    /// Budget for consequences that the record being applied has used, in messages that are changed.
    /// Volatile.
    pub(crate) spent: usize,
    pub(crate) pending_sends: PendingSends,
    pub(crate) pins: Pins,
    /// Work that is done in slices, in turn.
    pub(crate) work: VecDeque<Work>,
    /// Objects of namespaces, by name and number. Derived.
    pub(crate) indexes: NamespaceIndexes,
    /// Queues by namespace and name. Derived.
    pub(crate) queue_names: HashIndex<Queue>,
    /// Queues by number. Derived.
    pub(crate) queue_numbers: Directory<Queue>,
    /// Queues that push, by number. Derived.
    pub(crate) pushes: BTreeMap<u32, QueueSlot>,
    /// Slot of the queue that was found last by name, as a first guess. Volatile.
    pub(crate) last_queue: QueueSlot,
    /// Queues whose dead letters are redriven at a rate, by the time of the next slice in microseconds.
    /// Derived.
    pub(crate) redrives: BTreeSet<(u64, QueueSlot)>,
    /// Scratch of receives over several queues, kept for its memory. Volatile.
    pub(crate) weighted: Vec<Weighted>,
}

impl QueueModule {
    /// Begins a record: its consequences are counted anew.
    #[inline]
    pub(crate) fn begin_record(&mut self) {
        (self.backlog, self.spent) = (self.consequences.len(), 0);
    }

    /// Time at which a `Tick` is due, in microseconds; a time that is past while consequences or work in
    /// slices are left. `None`: nothing waits.
    pub(crate) fn next_deadline(&self, core: &Core) -> Option<u64> {
        if !self.work.is_empty() || !self.consequences.is_empty() {
            return Some(core.now_us);
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

    /// Derives what a snapshot leaves out, after all slots were read.
    pub(crate) fn rebuild(&mut self, core: &mut Core) {
        self.indexes.cover(core.namespaces.slots());
        let queues: Vec<_> = self.queues.iter().map(|(slot, _)| slot).collect();
        queues.into_iter().for_each(|slot| self.index_queue(slot));
        self.search.rebuild();
        for (slot, index) in self.search.indexes.iter() {
            self.queues.get_mut(index.queue).search = slot;
        }
        for (slot, message) in self.messages.iter() {
            let queue = self.queues.get_mut(message.queue);
            if matches!(message.state, Some(State::Dead | State::Held)) {
                queue.parked.insert(message.sequence);
            }
            if message.state == Some(State::Ready) && !queue.is_stale(message) {
                let options = self.extras.options(message.extras);
                if let Some(options) = options.filter(|options| options.limit != Slot::NIL) {
                    self.queue_limits.lines.slots.get_mut(options.limit).ready_cost +=
                        u64::from(options.cost.0);
                }
            }
            if message.is_marked(mark::ARRIVED) {
                queue.arrived.insert(message.sequence);
            }
            if message.is_marked(mark::RETURNED) {
                queue.trim.returned.insert(message.sequence);
            }
            if message.is_marked(mark::DIRTY) && queue.search != Slot::NIL {
                self.search.indexes.get_mut(queue.search).dirty.insert(message.sequence);
            }
            if message.is_retained() {
                queue.done.insert((message.started_at_us, message.sequence));
            }
            self.indexes.get_mut(queue.namespace).directory.insert(message.sequence, slot);
        }
        self.idempotency.rebuild();
        self.ordering.rebuild();
        self.lanes.rebuild();
        self.queue_limits.rebuild();
        self.derive_put_back();
        for (slot, limit) in self.queue_limits.slots.iter().filter(|(_, limit)| !limit.deleted) {
            self.indexes.get_mut(limit.namespace).limits.insert(limit.name.clone(), slot);
        }
        self.schedules.rebuild();
        for (slot, schedule) in self.schedules.slots.iter() {
            self.indexes.get_mut(schedule.namespace).schedules.insert(schedule.name.clone(), slot);
        }
        for (slot, defaults) in self.queue_defaults.iter() {
            self.indexes.get_mut(defaults.namespace).defaults.insert(defaults.pattern.clone(), slot);
        }
        let redriven = self.queues.iter().filter(|(_, queue)| queue.redrive.per_second > 0);
        self.redrives = redriven.map(|(slot, queue)| (queue.redrive.next_us, slot)).collect();
        for (slot, queue) in self.queues.iter().filter(|(_, queue)| queue.limit != Slot::NIL) {
            self.queue_limits.slots.get_mut(queue.limit).queues.push(slot);
        }
        self.unique.rebuild();
        self.derive_consumers();
        for work in &self.work {
            if let Work::Namespace(slot) = work {
                core.begin_sweep(*slot);
            }
        }
    }
}
