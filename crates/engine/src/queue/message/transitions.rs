//! Transitions of a message from one state into another. Each is one function; all of them keep the counters.

use crate::core::Core;
use crate::event::{EventDetail, EventKind, Watched};
use crate::id::{BlobRef, QueueId};
use crate::outcome::Outcome;
use crate::query::{Attempt, AttemptEnd, Counters, State};
use crate::queue::QueueModule;
use crate::queue::state::flow::End;
use crate::queue::state::message::{BlockedBy, Message, Reason, UNAPPROVED_STAYS_SINCE, mark};
use crate::queue::state::options::Options;
use crate::queue::state::queue::Queue;
use crate::queue::state::{ExtrasSlot, MessageSlot, QueueSlot};
use crate::search::SearchKind;
use crate::store::slot::Slot;

impl QueueModule {
    /// Any state to ready, at the end of its priority's line, as soon as nothing else holds it up.
    pub(crate) fn make_ready(&mut self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        self.leave(slot);
        self.come_back(slot);
        self.admit(slot, 0, core, out);
    }

    /// Any state to delayed until `time_us`, which is to come.
    pub(crate) fn make_delayed(&mut self, slot: MessageSlot, time_us: u64, core: &Core, out: &mut Outcome) {
        self.leave(slot);
        self.come_back(slot);
        self.admit(slot, time_us, core, out);
    }

    /// Lets a message which is in no state go as far as it may: past what blocks it, and past its time
    /// (`time_us`, 0: at once). Whatever holds it up calls this again for it, after [`QueueModule::leave`],
    /// when it lets it go. One that is over by then ends as a consequence.
    #[inline]
    pub(crate) fn admit(&mut self, slot: MessageSlot, time_us: u64, core: &Core, out: &mut Outcome) {
        if self.messages.get(slot).extras == Slot::NIL {
            if time_us > core.now_us {
                return self.enter_delayed(slot, time_us, core, out);
            }
        } else if !self.pass_options(slot, time_us, core, out) {
            return;
        }
        self.enter_ready(slot, core, out);
    }

    /// Lets a message go past its keys and its time. False when one of them holds it up.
    fn pass_options(&mut self, slot: MessageSlot, time_us: u64, core: &Core, out: &mut Outcome) -> bool {
        let options = self.extras.options(self.messages.get(slot).extras);
        let Some(&Options { ordering, limit, flow, expiry, .. }) = options else {
            if time_us > core.now_us {
                self.enter_delayed(slot, time_us, core, out);
            }
            return time_us <= core.now_us;
        };
        if self.is_past(expiry, time_us, core) {
            // It claims nothing on its way out.
            self.put_delayed(slot, time_us.max(core.now_us), core);
            self.list_end(slot, core);
            return false;
        }
        if flow != Slot::NIL && self.flows.slots.get(flow).waiting {
            self.enter_blocked(slot, BlockedBy::Parents, time_us);
            return false;
        }
        let delayed = time_us > core.now_us;
        if ordering != Slot::NIL {
            if delayed && self.steps_aside(slot) {
                self.enter_delayed(slot, time_us, core, out);
                self.free_ordering(slot, ordering);
                return false;
            }
            if !self.pass_ordering(slot, ordering, time_us) {
                return false;
            }
        }
        if delayed {
            self.enter_delayed(slot, time_us, core, out);
            return false;
        }
        limit == Slot::NIL || self.pass_limit(slot, limit, core)
    }

    /// A message has left the queue's work for good, is finished, or is dead: what it held is given to those
    /// that wait for it.
    #[inline]
    pub(crate) fn give_up(&mut self, slot: MessageSlot, end: End, core: &Core, out: &mut Outcome) {
        if core.watched.any() || self.messages.get(slot).extras != Slot::NIL {
            self.give_up_all(slot, end, core, out);
        }
    }

    #[inline(never)]
    fn give_up_all(&mut self, slot: MessageSlot, end: End, core: &Core, out: &mut Outcome) {
        if core.watched.has(Watched::ENDS) {
            self.tell_end(slot, core, out);
        }
        let Some(&options) = self.extras.options(self.messages.get(slot).extras) else { return };
        if options.flow != Slot::NIL {
            self.end_in_flows(options.flow, end);
        }
        if options.expiry != Slot::NIL {
            self.expiry.disarm(options.expiry);
        }
        self.give_up_these_keys(slot, &options, end, core);
    }

    /// A message no longer stands in the way of others with its keys.
    pub(crate) fn give_up_keys(&mut self, slot: MessageSlot, end: End, core: &Core) {
        if let Some(&options) = self.extras.options(self.messages.get(slot).extras) {
            self.give_up_these_keys(slot, &options, end, core);
        }
    }

    fn give_up_these_keys(&mut self, slot: MessageSlot, options: &Options, end: End, core: &Core) {
        if options.unique != Slot::NIL {
            self.give_back_unique(slot, options.unique, end, core);
        }
        if options.ordering != Slot::NIL {
            self.free_ordering(slot, options.ordering);
        }
    }

    /// Any state, or none, to dead, or to ready in the queue that takes the dead letters of its own. One that
    /// is held stays in its queue: nobody has approved that it is delivered.
    #[inline(never)]
    pub(crate) fn make_dead(
        &mut self,
        slot: MessageSlot,
        reason: Reason,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let unapproved = self.messages.get(slot).state == Some(State::Held)
            && core.expect_behaviour(UNAPPROVED_STAYS_SINCE).is_ok();
        self.leave(slot);
        self.count_each(slot, |counters| counters.died += 1);
        self.tell_why(slot, EventKind::Died, reason, core, out);
        self.forget_due(slot);
        let failure = self.take_failure(slot, reason, core);
        if unapproved || !self.forward(slot, reason, core, out) {
            self.enter_dead(slot, reason, core.now_us);
            self.messages.get_mut(slot).marks |= if unapproved { mark::UNAPPROVED } else { 0 };
            self.give_up(slot, End::Failed, core, out);
        }
        if let Some(failure) = failure {
            self.list_failure(slot, failure);
        }
    }

    /// Like [`QueueModule::remove`], for a message that has failed: lists the step for its failure.
    pub(crate) fn remove_failed(
        &mut self,
        slot: MessageSlot,
        reason: Reason,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let failure = self.take_failure(slot, reason, core);
        self.remove(slot, End::Failed, core, out);
        if let Some(failure) = failure {
            self.list_send(failure);
        }
    }

    /// Like [`QueueModule::enter_ready`], into the dead ones, among which it is since `since_us`.
    pub(crate) fn enter_dead(&mut self, slot: MessageSlot, reason: Reason, since_us: u64) {
        let message = self.messages.get_mut(slot);
        let queue = self.queues.get_mut(message.queue);
        message.state = Some(State::Dead);
        message.reason = reason;
        message.time_us = since_us;
        message.generation = queue.dead_generation;
        queue.parked.insert(message.sequence);
        queue.dead.push_back(&mut self.messages, slot);
        self.count_in(slot);
    }

    /// Any state to held.
    pub(crate) fn make_held(&mut self, slot: MessageSlot, reason: Reason, core: &Core, out: &mut Outcome) {
        self.leave(slot);
        self.come_back(slot);
        self.enter_held(slot, reason, core.now_us);
        self.tell_why(slot, EventKind::Held, reason, core, out);
    }

    /// Like [`QueueModule::enter_ready`], into the held ones, among which it is since `since_us`.
    pub(crate) fn enter_held(&mut self, slot: MessageSlot, reason: Reason, since_us: u64) {
        let message = self.messages.get_mut(slot);
        let queue = self.queues.get_mut(message.queue);
        message.state = Some(State::Held);
        message.reason = reason;
        message.time_us = since_us;
        message.generation = queue.waiting_generation;
        queue.parked.insert(message.sequence);
        queue.held.push_back(&mut self.messages, slot);
        self.count_in(slot);
    }

    /// Ready to leased: takes the first in line of a queue whose highest priority is `priority`.
    #[inline]
    pub(crate) fn lease_first(
        &mut self,
        queue_slot: QueueSlot,
        priority: usize,
        lease_ms: u64,
        token: u64,
        core: &Core,
    ) -> MessageSlot {
        let mut queue = self.queues.get_mut(queue_slot);
        let slot = if queue.fair.is_none() {
            let list = &mut queue.ready.lists[priority];
            let slot = list.head;
            list.unlink(&mut self.messages, slot);
            if list.is_empty() {
                queue.ready.occupied &= !(1 << priority);
            }
            slot
        } else {
            let slot = self.take_from_lane(queue_slot, priority);
            queue = self.queues.get_mut(queue_slot);
            slot
        };
        let lease_ms = if lease_ms == 0 { queue.settings.lease_ms } else { lease_ms };
        let message = self.messages.get_mut(slot);
        message.state = Some(State::Leased);
        message.attempts = message.attempts.saturating_add(1);
        message.deliveries = message.deliveries.saturating_add(1);
        message.token = token;
        message.started_at_us = core.now_us;
        message.set_hold(Slot::NIL);
        message.time_us = core.now_us + lease_ms * 1_000;
        let len = u64::from(message.blob_len);
        let (extras, limited) = (message.extras, queue.limit != Slot::NIL);
        self.wheel.insert(&mut self.messages, slot, core.now_us);
        for counters in [&mut queue.counters, &mut self.totals] {
            counters.states[State::Ready as usize] -= 1;
            counters.states[State::Leased as usize] += 1;
            counters.delivered += 1;
        }
        queue.bytes[State::Ready as usize] -= len;
        queue.bytes[State::Leased as usize] += len;
        if limited || extras != Slot::NIL {
            self.begin_flight(queue_slot, extras, core);
        }
        slot
    }

    /// Out of the queue for good: counters, slot, directory and blobs.
    #[inline]
    pub(crate) fn remove(&mut self, slot: MessageSlot, end: End, core: &mut Core, out: &mut Outcome) {
        self.detach(slot);
        let message = self.messages.get_mut(slot);
        let (queue_slot, len) = (message.queue, u64::from(message.blob_len));
        let queue = self.queues.get_mut(queue_slot);
        let in_flight = count_out(message, queue, &mut self.totals);
        queue.counters.bytes -= len;
        self.totals.bytes -= len;
        let namespace = core.namespaces.get_mut(queue.namespace);
        namespace.messages -= 1;
        namespace.bytes -= len;
        if in_flight {
            self.end_flight(queue_slot);
        }
        self.give_up(slot, end, core, out);
        self.free(slot, core, out);
    }

    /// Frees a stale message, which no counter counts any more.
    pub(crate) fn sweep_message(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        self.detach(slot);
        self.give_up(slot, End::Failed, core, out);
        self.free(slot, core, out);
    }

    /// Frees the slot of a message that is on no list but that of its siblings.
    #[inline(always)]
    fn free(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        let (queue_slot, extras, sequence) = (message.queue, message.extras, message.sequence);
        core.release_blob(message.blob(), out);
        self.leave_siblings(slot);
        let namespace = self.queues.get(queue_slot).namespace;
        self.indexes.get_mut(namespace).directory.remove(sequence);
        if extras != Slot::NIL {
            self.free_extras(extras, core, out);
        }
        self.messages.free(slot);
    }

    #[inline(never)]
    fn free_extras(&mut self, extras: ExtrasSlot, core: &mut Core, out: &mut Outcome) {
        if let Some(&options) = self.extras.options(extras) {
            self.leave_keys(&options);
            if options.flow != Slot::NIL {
                self.drop_chain(options.flow, core, out);
                self.flows.leave(options.flow);
            }
            if options.expiry != Slot::NIL {
                self.expiry.slots.free(options.expiry);
            }
        }
        let shared = &mut core.shared_blobs;
        self.extras.remove(extras, |blob| {
            if shared.is_empty() || shared.let_go(blob) {
                out.released.push(blob);
            }
        });
    }

    /// One message fewer has these keys.
    pub(crate) fn leave_keys(&mut self, options: &Options) {
        if options.ordering != Slot::NIL {
            self.ordering.leave(options.ordering);
        }
        if options.fair != Slot::NIL {
            self.lanes.leave(options.fair);
        }
        if options.limit != Slot::NIL {
            self.leave_key_line(options.limit);
        }
        if options.unique != Slot::NIL {
            self.unique.leave(options.unique);
        }
    }

    /// Enters a message that was just put into its slot, or has left its state, into the ready ones.
    #[inline]
    pub(crate) fn enter_ready(&mut self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        let message = self.messages.get_mut(slot);
        let queue = self.queues.get_mut(message.queue);
        let priority = usize::from(message.priority);
        message.state = Some(State::Ready);
        message.generation = queue.waiting_generation;
        let plain = message.extras == Slot::NIL && queue.fair.is_none() && queue.limit == Slot::NIL;
        if plain {
            queue.ready.lists[priority].push_back(&mut self.messages, slot);
            queue.ready.occupied |= 1 << priority;
        }
        let number = QueueId(queue.number);
        if out.ready.last() != Some(&number) {
            out.ready.push(number);
        }
        if !plain {
            self.push_ready(slot, core);
        }
        self.count_in(slot);
    }

    /// Like [`QueueModule::enter_ready`], into the delayed ones.
    pub(crate) fn enter_delayed(&mut self, slot: MessageSlot, time_us: u64, core: &Core, out: &mut Outcome) {
        self.put_delayed(slot, time_us, core);
        if core.watched.has(Watched::EVENTS) {
            self.tell_more(slot, EventKind::Delayed, EventDetail::Until(time_us), core, out);
        }
    }

    fn put_delayed(&mut self, slot: MessageSlot, time_us: u64, core: &Core) {
        let message = self.messages.get_mut(slot);
        message.state = Some(State::Delayed);
        message.generation = self.queues.get(message.queue).waiting_generation;
        message.time_us = time_us;
        self.wheel.insert(&mut self.messages, slot, core.now_us);
        self.count_in(slot);
    }

    /// Like [`QueueModule::enter_ready`], into the blocked ones; what blocks it keeps the list that it waits
    /// on. Sets that it may not be delivered before `time_us` when it is let go.
    pub(crate) fn enter_blocked(&mut self, slot: MessageSlot, by: BlockedBy, time_us: u64) {
        let message = self.messages.get_mut(slot);
        message.time_us = time_us;
        message.state = Some(State::Blocked);
        message.bucket = by as u16;
        let queue = self.queues.get_mut(message.queue);
        message.generation = queue.waiting_generation;
        queue.blocked_by[by as usize] += 1;
        self.count_in(slot);
    }

    /// Takes a message off the list of its state and out of that state's counters.
    pub(crate) fn leave(&mut self, slot: MessageSlot) {
        self.detach(slot);
        let message = self.messages.get_mut(slot);
        let queue_slot = message.queue;
        if count_out(message, self.queues.get_mut(queue_slot), &mut self.totals) {
            self.end_flight(queue_slot);
        }
    }

    #[inline(always)]
    pub(crate) fn count_in(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let Some(state) = message.state else { return };
        let queue = self.queues.get_mut(message.queue);
        queue.counters.states[state as usize] += 1;
        queue.bytes[state as usize] += u64::from(message.blob_len);
        self.totals.states[state as usize] += 1;
    }

    /// Takes a message off whichever list or timer it is on. The lists of stale messages are gone already.
    #[inline(always)]
    fn detach(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        if message.state != Some(State::Leased) || message.extras != Slot::NIL || message.hold() != Slot::NIL
        {
            return self.detach_any(slot);
        }
        // A plain message in the hands of somebody without a name.
        self.wheel.remove(&mut self.messages, slot);
    }

    #[inline(never)]
    fn detach_any(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        match message.state {
            Some(State::Delayed) => self.wheel.remove(&mut self.messages, slot),
            Some(State::Leased) => {
                let (extras, hold) = (message.extras, message.hold());
                self.wheel.remove(&mut self.messages, slot);
                if hold != Slot::NIL {
                    self.end_hold(hold);
                }
                if extras != Slot::NIL {
                    self.end_flight_of_key(extras);
                }
            }
            Some(State::Ready) if self.queues.get(message.queue).is_stale(message) => {}
            Some(State::Ready) => {
                if message.extras != Slot::NIL {
                    self.limit_unready(message.extras);
                }
                let message = self.messages.get(slot);
                if self.queues.get(message.queue).fair.is_some() {
                    return self.unlink_from_lane(slot);
                }
                let priority = usize::from(message.priority);
                let ready = &mut self.queues.get_mut(message.queue).ready;
                ready.lists[priority].unlink(&mut self.messages, slot);
                if ready.lists[priority].is_empty() {
                    ready.occupied &= !(1 << priority);
                }
            }
            Some(State::Held) => {
                let queue = self.queues.get_mut(message.queue);
                queue.parked.remove(&message.sequence);
                if !queue.is_stale(message) {
                    queue.held.unlink(&mut self.messages, slot);
                }
            }
            Some(State::Dead) => {
                let queue = self.queues.get_mut(message.queue);
                queue.parked.remove(&message.sequence);
                if !queue.deleted {
                    let left = !queue.is_stale(message) && queue.redrive.covers(message.generation);
                    queue.redrive.left -= u64::from(left);
                    queue.dead.unlink(&mut self.messages, slot);
                }
            }
            Some(State::Blocked) => self.unblock(slot),
            Some(State::Done) => {
                if message.is_retained() {
                    let place = (message.started_at_us, message.sequence);
                    self.queues.get_mut(message.queue).done.remove(&place);
                }
                if self.messages.get(slot).is_timed() {
                    self.wheel.remove(&mut self.messages, slot);
                }
            }
            None => {}
        }
    }

    /// Takes a blocked message off the list that it waits on.
    fn unblock(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let Some(options) = self.extras.options(message.extras) else { return };
        match message.blocked_by() {
            Some(BlockedBy::OrderingKey) => {
                self.ordering.slots.get_mut(options.ordering).stop_waiting(&mut self.messages, slot);
            }
            Some(BlockedBy::Limit) => self.leave_line(slot),
            Some(BlockedBy::Consumer) => self.leave_parked(slot),
            // Nothing but its parents leads to it.
            Some(BlockedBy::Parents) | None => {}
        }
    }

    /// The slot of a message's optional fields, which it gets if it has none.
    pub(crate) fn extras_slot(&mut self, slot: MessageSlot) -> ExtrasSlot {
        let message = self.messages.get_mut(slot);
        if message.extras == Slot::NIL {
            message.extras = self.extras.add(None);
        }
        message.extras
    }

    /// Writes the end of the running attempt into the history.
    #[inline(never)]
    pub(crate) fn record_attempt(
        &mut self,
        slot: MessageSlot,
        end: AttemptEnd,
        error: Option<BlobRef>,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let extras = self.extras_slot(slot);
        let message = self.messages.get(slot);
        let attempt = Attempt {
            number: message.attempts,
            end,
            started_at_us: message.started_at_us,
            ended_at_us: core.now_us.min(message.time_us),
            error,
        };
        if let Some(forgotten) = self.extras.record(extras, attempt) {
            core.release_blob(forgotten, out);
        }
        if error.is_some() {
            self.change_terms(slot, SearchKind::Errors);
        }
    }

    /// The failed attempts of a message are used up.
    pub(crate) fn is_spent(&self, message: &Message) -> bool {
        message.attempts >= self.queues.get(message.queue).max_attempts(message)
    }
}

/// Takes a message out of the counters of its state; whether it was in flight under a limit of its queue.
#[inline(always)]
fn count_out(message: &mut Message, queue: &mut Queue, totals: &mut Counters) -> bool {
    let Some(state) = message.state else { return false };
    message.reason = Reason::None;
    queue.counters.states[state as usize] -= 1;
    queue.bytes[state as usize] -= u64::from(message.blob_len);
    totals.states[state as usize] -= 1;
    if state == State::Blocked {
        queue.blocked_by[usize::from(message.bucket)] -= 1;
    }
    state == State::Leased && queue.limit != Slot::NIL
}
