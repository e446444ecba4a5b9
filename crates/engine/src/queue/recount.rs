//! Recount: a full count of everything that the module keeps, for the simulator and tests.

use std::collections::BTreeMap;

use crate::core::namespace::NamespaceSlot;
use crate::core::{Core, agree};
use crate::query::{Counters, State};
use crate::queue::QueueModule;
use crate::queue::state::message::{BlockedBy, Message, mark};
use crate::queue::state::queue::Queue;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::store::idle::Idle as _;
use crate::store::slot::Slot;

impl QueueModule {
    /// Compares every kept counter, list, directory entry and timer with a full count. Slow: looks at
    /// everything. `others`: messages and bytes of namespaces that are not this module's, or reserved.
    ///
    /// # Errors
    /// A sentence that tells what does not agree.
    pub(crate) fn recount(
        &self,
        others: &BTreeMap<NamespaceSlot, (u64, u64)>,
        core: &Core,
    ) -> Result<(), String> {
        let QueueModule {
            totals: _,         // recount_totals
            messages: _,       // recount_queue, and all below
            extras: _,         // recount_extras
            ordering: _,       // recount_ordering
            lanes: _,          // recount_lanes
            queue_limits: _,   // recount_limits
            unique: _,         // recount_unique
            schedules: _,      // recount_schedules
            flows: _,          // recount_flows
            expiry: _,         // recount_expiry
            consumers: _,      // recount_consumers
            search: _,         // recount_search
            queues: _,         // recount_queue
            queue_defaults: _, // recount_defaults
            idempotency,
            wheel: _,         // recount_timers
            consequences: _,  // recount_consequences
            pending_sends: _, // recount_consequences
            pins: _,          // by the engine
            indexes: _,       // recount_queue and recount_namespaces
            queue_names: _,   // recount_queue
            queue_numbers: _, // recount_queue
            redrives: _,      // recount_redrives
            pushes: _,        // recount_pushes
            next_queue: _,    // nothing else tells it
            work: _,          // nothing else tells all of it
            backlog: _,       // of one record
            spent: _,         // of one record
            last_queue: _,    // a first guess
            weighted: _,      // scratch
        } = self;
        self.recount_totals()?;
        self.recount_redrives()?;
        self.recount_pushes()?;
        self.recount_timers()?;
        self.recount_defaults(core)?;
        self.recount_namespaces(others, core)?;
        self.recount_extras()?;
        self.recount_ordering()?;
        self.recount_lanes()?;
        self.recount_limits(core)?;
        self.recount_unique()?;
        self.recount_schedules(core)?;
        self.recount_flows(core)?;
        self.recount_expiry(core)?;
        self.recount_consumers(core)?;
        self.recount_search()?;
        self.recount_consequences()?;
        idempotency.recount()
    }

    /// Checks each queue, and the counters of all together.
    fn recount_totals(&self) -> Result<(), String> {
        let mut totals = Counters::default();
        let mut messages = 0;
        for (slot, queue) in self.queues.iter() {
            messages +=
                self.recount_queue(slot, queue).map_err(|why| format!("queue {:?}: {why}", queue.name))?;
            for state in State::ALL {
                totals.states[state as usize] += queue.counters.states[state as usize];
            }
            totals.bytes += queue.counters.bytes;
        }
        agree("messages in queues", messages, u64::from(self.messages.used()))?;
        agree("total bytes", totals.bytes, self.totals.bytes)?;
        for state in State::ALL {
            let (counted, kept) = (totals.states[state as usize], self.totals.states[state as usize]);
            agree(&format!("total {}", state.name()), counted, kept)?;
        }
        Ok(())
    }

    fn recount_redrives(&self) -> Result<(), String> {
        let redriven = self.queues.iter().filter(|(_, queue)| queue.redrive.per_second > 0);
        let redrives: std::collections::BTreeSet<_> =
            redriven.map(|(slot, queue)| (queue.redrive.next_us, slot)).collect();
        if redrives != self.redrives {
            return Err("the redrives at a rate and their times do not agree".into());
        }
        Ok(())
    }

    fn recount_pushes(&self) -> Result<(), String> {
        let pushing = |queue: &Queue| !queue.deleted && !queue.settings.push_url.is_empty();
        let queues = self.queues.iter().filter(|(_, queue)| pushing(queue));
        let pushes: BTreeMap<_, _> = queues.map(|(slot, queue)| (queue.number, slot)).collect();
        if pushes != self.pushes {
            return Err("the queues that push and their list do not agree".into());
        }
        Ok(())
    }

    fn recount_defaults(&self, core: &Core) -> Result<(), String> {
        let patterns =
            core.namespaces.iter().map(|(slot, _)| self.indexes.get(slot).defaults.len() as u64).sum();
        agree("patterns of queue defaults", patterns, self.queue_defaults.used().into())
    }

    /// Returns the messages on the queue's list of all, stale ones included.
    fn recount_queue(&self, slot: QueueSlot, queue: &Queue) -> Result<u64, String> {
        let (mut states, mut bytes) = ([0u64; State::COUNT], [0u64; State::COUNT]);
        let (mut count, mut last) = (0, 0);
        let directory = &self.indexes.get(queue.namespace).directory;
        for at in self.all_of(queue) {
            let message = self.messages.get(at);
            let state = message.state.ok_or("a vacant slot is listed")?;
            let beside = queue.arrived.contains(&message.sequence);
            if message.queue != slot
                || message.is_marked(mark::ARRIVED) != beside
                || (!beside && message.sequence <= last)
            {
                return Err(format!("message {} is listed out of place", message.sequence));
            }
            if !beside {
                last = message.sequence;
            }
            count += 1;
            agree(
                "directory entry",
                directory.get(message.sequence).map_or(0, |s| u64::from(s.index()) + 1),
                u64::from(at.index()) + 1,
            )?;
            if !queue.is_stale(message) {
                states[state as usize] += 1;
                bytes[state as usize] += u64::from(message.blob_len);
            }
        }
        for state in State::ALL {
            let at = state as usize;
            agree(state.name(), states[at], queue.counters.states[at])?;
            agree(&format!("bytes {}", state.name()), bytes[at], queue.bytes[at])?;
        }
        agree("bytes", bytes.iter().sum(), queue.counters.bytes)?;
        agree("blocked, by what", queue.blocked_by.iter().sum(), states[State::Blocked as usize])?;
        if !queue.deleted {
            self.recount_lists(queue)?;
            self.recount_trim(slot, queue)?;
            let found = self.find_queue(queue.namespace, &queue.name);
            agree(
                "slot by name",
                found.map_or(0, |s| u64::from(s.index()) + 1),
                u64::from(slot.index()) + 1,
            )?;
        }
        let by_number = self.queue_numbers.get(u64::from(queue.number));
        agree(
            "slot by number",
            by_number.map_or(0, |s| u64::from(s.index()) + 1),
            u64::from(slot.index()) + 1,
        )?;
        Ok(count)
    }

    /// All messages of a queue: those that are linked, then those that have arrived from elsewhere.
    pub(crate) fn all_of<'a>(&'a self, queue: &'a Queue) -> impl Iterator<Item = MessageSlot> + 'a {
        let directory = &self.indexes.get(queue.namespace).directory;
        let arrived = queue.arrived.iter().map(|&sequence| directory.get(sequence).unwrap_or(Slot::NIL));
        queue.all.iter(&self.messages).chain(arrived.filter(|&slot| slot != Slot::NIL))
    }

    fn recount_lists(&self, queue: &Queue) -> Result<(), String> {
        let mut ready = 0;
        for (priority, list) in queue.ready.lists.iter().enumerate() {
            let occupied = queue.ready.occupied >> priority & 1 == 1;
            let listed = match &queue.fair {
                None => list.iter(&self.messages).collect(),
                Some(_) => self.recount_ring(queue, priority)?,
            };
            agree("occupied priorities", u64::from(occupied), u64::from(!listed.is_empty()))?;
            for at in listed {
                let message = self.messages.get(at);
                let right = message.state == Some(State::Ready) && usize::from(message.priority) == priority;
                if !right || queue.is_stale(message) {
                    return Err(format!("message {} does not belong on its ready list", message.sequence));
                }
                ready += 1;
            }
        }
        agree("listed ready", ready, queue.counters.states[State::Ready as usize])?;
        let listed = |list: &crate::store::list::List<Message, 0>, state| {
            let fresh = |at: &MessageSlot| {
                let message = self.messages.get(*at);
                message.state == Some(state) && !queue.is_stale(message)
            };
            list.iter(&self.messages).filter(fresh).count() as u64
        };
        let covered = |at: &MessageSlot| {
            let message = self.messages.get(*at);
            message.state == Some(State::Dead)
                && !queue.is_stale(message)
                && queue.redrive.covers(message.generation)
        };
        let left = queue.dead.iter(&self.messages).filter(covered).count();
        agree("left to redrive", left as u64, queue.redrive.left)?;
        let parked =
            |at: &MessageSlot| matches!(self.messages.get(*at).state, Some(State::Dead | State::Held));
        let counted = self.all_of(queue).filter(parked).count();
        agree("parked", counted as u64, queue.parked.len() as u64)?;
        let retained = |at: &MessageSlot| self.messages.get(*at).is_retained();
        let counted = self.all_of(queue).filter(retained).count();
        agree("retained", counted as u64, queue.done.len() as u64)?;
        agree("listed held", listed(&queue.held, State::Held), queue.counters.states[State::Held as usize])?;
        agree("listed dead", listed(&queue.dead, State::Dead), queue.counters.states[State::Dead as usize])
    }

    fn recount_timers(&self) -> Result<(), String> {
        let mut listed = 0;
        for (bucket, slot) in self.wheel.iter(&self.messages) {
            let message = self.messages.get(slot);
            if !message.is_timed() || usize::from(message.bucket) != bucket {
                return Err(format!("message {} does not belong into its timer bucket", message.sequence));
            }
            listed += 1;
        }
        let counted = self.messages.iter().filter(|(_, message)| message.is_timed()).count();
        agree("timers listed", listed, counted as u64)?;
        agree("timers", counted as u64, u64::from(self.wheel.len()))
    }

    fn recount_namespaces(
        &self,
        others: &BTreeMap<NamespaceSlot, (u64, u64)>,
        core: &Core,
    ) -> Result<(), String> {
        for (slot, namespace) in core.namespaces.iter() {
            let of_it = || self.queues.iter().filter(move |(_, queue)| queue.namespace == slot);
            let what = |field: &str| format!("namespace {:?}: {field}", namespace.name);
            let messages: u64 = of_it().map(|(_, queue)| queue.messages()).sum();
            let (reserved, of_others) = others.get(&slot).copied().unwrap_or_default();
            agree(&what("messages"), messages + reserved, namespace.messages)?;
            let bytes: u64 = of_it().map(|(_, queue)| queue.counters.bytes).sum();
            agree(&what("bytes"), bytes + of_others, namespace.bytes)?;
            agree(&what("queue slots"), of_it().count() as u64, u64::from(namespace.queue_slots))?;
            let named = of_it().filter(|(_, queue)| !queue.deleted).count() as u64;
            agree(&what("queues"), named, self.indexes.get(slot).queues.len() as u64)?;
        }
        Ok(())
    }

    fn recount_extras(&self) -> Result<(), String> {
        let (mut slots, mut entries, mut results, mut changed, mut origins) = (0, 0, 0, 0, 0);
        for (_, message) in self.messages.iter().filter(|(_, message)| message.extras != Slot::NIL) {
            slots += 1;
            entries += self.extras.history(message.extras).count() as u64;
            results += u64::from(self.extras.results(message.extras).is_some());
            changed += u64::from(self.extras.changed(message.extras).is_some());
            origins += u64::from(self.extras.origin(message.extras).is_some());
        }
        agree("extras", slots, u64::from(self.extras.slots.used()))?;
        agree("changed", changed, u64::from(self.extras.changed.used()))?;
        agree("origins", origins, u64::from(self.extras.origins.used()))?;
        agree("results", results, u64::from(self.extras.results.used()))?;
        agree("history entries", entries, u64::from(self.extras.entries.used()))
    }

    fn recount_ordering(&self) -> Result<(), String> {
        let key_of =
            |message: &Message| self.extras.options(message.extras).map_or(Slot::NIL, |o| o.ordering);
        let by_ordering = |message: &&Message| message.blocked_by() == Some(BlockedBy::OrderingKey);
        let all = || self.messages.iter().map(|(_, message)| message);
        self.ordering.idle.recount(&self.ordering.slots).map_err(|why| format!("ordering keys: {why}"))?;
        let mut listed = 0;
        for (key, ordering) in self.ordering.slots.iter() {
            if ordering.is_idle() && ordering.active != Slot::NIL {
                return Err(format!("ordering key {key} has an active message and no messages"));
            }
            let queue = self.queues.get(ordering.queue);
            if queue.deleted || !ordering.is_of(queue.waiting_generation) {
                continue;
            }
            for at in ordering.all_waiting(&self.messages) {
                let message = self.messages.get(at);
                if key_of(message) != key || !by_ordering(&message) {
                    return Err(format!("message {} does not wait for its ordering key", message.sequence));
                }
                listed += 1;
            }
            if ordering.active == Slot::NIL && !ordering.is_free() && !ordering.working {
                return Err(format!("nothing goes on of ordering key {key}, and messages wait"));
            }
        }
        let fresh = |message: &&Message| !self.queues.get(message.queue).is_stale(message);
        agree("blocked by ordering keys", all().filter(by_ordering).filter(fresh).count() as u64, listed)?;
        let keyed = all().filter(|message| key_of(message) != Slot::NIL).count();
        let members: u64 = self.ordering.slots.iter().map(|(_, key)| u64::from(key.members())).sum();
        agree("messages with ordering keys", keyed as u64, members)
    }
}
