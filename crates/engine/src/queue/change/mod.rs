//! Changes of messages: cancel, hold, approve, deny, retry, move, and other fields. Each message
//! for itself.
//!
//! Decided here:
//!
//! - A leased message that is cancelled stays with its holder, marked: its lease cannot be extended, and
//!   however it ends, the message is gone.
//! - A held message that was the active one of its ordering key, or could have been when it was sent, blocks
//!   its key. One that waited for its turn lets others pass, and finds its place by the order of sending when
//!   it is approved.
//! - Who and why are kept as one blob, which all messages of a record share.

pub(crate) mod check;
pub(crate) mod moving;

use crate::change::Verb;
use crate::core::Core;
use crate::error::Error;
use crate::event::EventKind;
use crate::hash::mix;
use crate::id::{BlobRef, MessageId};
use crate::limit::{COST_MAX, Cost};
use crate::limits::{ATTEMPTS_MAX, PRIORITY_MAX};
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::limit::COSTS_SINCE;
use crate::queue::message::lookup::queue_not_found;
use crate::queue::record::change::{ChangeRecord, ChangeStep, SetFields};
use crate::queue::state::changed::{Changed, DUE_IN_VERSION_SINCE, Entry};
use crate::queue::state::message::{BlockedBy, Message, Reason};
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::search::SearchKind;
use crate::store::slot::Slot;

/// The action of one record on each of its messages.
#[derive(Clone, Copy)]
enum Step {
    Plain(Verb),
    /// Moves it to the queue in this slot.
    Move(QueueSlot),
    Set(SetFields, BlobRef),
}

impl QueueModule {
    pub(crate) fn change(
        &mut self,
        change: &ChangeRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let index = core.applied_index;
        let step = match self.admit_change(change, core) {
            Ok(step) => step,
            Err(error) => {
                out.released.extend(change.blobs(index));
                return Err(error);
            }
        };
        let note = change.note(index);
        for (id, version) in change.items() {
            let changed = self.change_one(id, version, step, note, core, out);
            out.results.push(changed);
        }
        // Until here the record itself was one of the owners.
        change.blobs(index).for_each(|blob| core.release_blob(blob, out));
        Ok(())
    }

    /// Checks what does not depend on the messages.
    fn admit_change(&mut self, change: &ChangeRecord<'_>, core: &mut Core) -> Result<Step, Error> {
        let Some(namespace_slot) = core.live_namespace(change.namespace) else {
            return Err(change.namespace.not_found());
        };
        match change.action {
            ChangeStep::Plain(verb) => Ok(Step::Plain(verb)),
            ChangeStep::Move { to } => {
                let found = self.find_queue(namespace_slot, to);
                self.admit_to_queue(found)?;
                found.map(Step::Move).ok_or_else(|| queue_not_found(to))
            }
            ChangeStep::Set(fields) => {
                let sound = fields.priority.is_none_or(|priority| priority <= PRIORITY_MAX)
                    && fields.max_attempts.is_none_or(|attempts| attempts <= ATTEMPTS_MAX)
                    && fields.cost.is_none_or(|cost| cost.0 <= COST_MAX);
                if !sound {
                    return Err(Error::Internal { reason: "a change record is out of range".into() });
                }
                if fields.cost.is_some() {
                    core.expect_behaviour(COSTS_SINCE)?;
                }
                fields.deliver.map_or(Ok(()), |deliver| self.admit_time(deliver, core))?;
                Ok(Step::Set(fields, change.tags(core.applied_index)))
            }
        }
    }

    fn change_one(
        &mut self,
        id: MessageId,
        version: u64,
        step: Step,
        note: Option<BlobRef>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let Some(slot) = self.find_message(id, core) else {
            return Err(Error::MessageNotFound { id: id.to_string() });
        };
        self.expect_decided(slot, core)?;
        if version != 0 && version != self.version(slot, core) {
            return Err(Error::VersionMismatch { id: id.to_string() });
        }
        let verb = match step {
            Step::Plain(verb) => verb,
            Step::Move(_) => Verb::Move,
            Step::Set(..) => Verb::Change,
        };
        self.check_state(slot, id, verb)?;
        if verb == Verb::Retry && self.messages.get(slot).state == Some(State::Dead) {
            self.settle_failure(slot, core, out);
            self.admit_redrive(self.messages.get(slot).queue, &[slot], core)?;
        }
        if let Step::Set(SetFields { deliver: Some(deliver), .. }, _) = step {
            self.admit_new_time(slot, deliver, core)?;
        }
        let stays = match step {
            Step::Plain(verb) => self.change_state(slot, verb, core, out),
            Step::Move(to) => {
                self.move_message(slot, to, core, out)?;
                true
            }
            Step::Set(fields, tags) => {
                self.set_fields(slot, fields, tags, core, out);
                true
            }
        };
        // What it became may have been its end.
        if stays
            && self.find_message(id, core) == Some(slot)
            && let Some(note) = note
        {
            core.share_blob(note);
            let entry = Entry { verb, at_us: core.now_us, note };
            if let Some(forgotten) = self.changed_mut(slot).record(entry) {
                core.release_blob(forgotten, out);
            }
        }
        Ok(())
    }

    fn check_state(&self, slot: MessageSlot, id: MessageId, verb: Verb) -> Result<(), Error> {
        let message = self.messages.get(slot);
        let wrong = |state| Error::WrongState { id: id.to_string(), state, expected: verb.states_text() };
        match message.state {
            Some(State::Held) if verb == Verb::Approve && message.reason == Reason::PayloadDamaged => {
                Err(wrong("held because its payload is damaged"))
            }
            Some(state) if verb.states().contains(&state) => Ok(()),
            state => Err(wrong(state.map_or("gone", State::name))),
        }
    }

    /// False when the message is gone.
    fn change_state(&mut self, slot: MessageSlot, verb: Verb, core: &mut Core, out: &mut Outcome) -> bool {
        match verb {
            Verb::Cancel if self.messages.get(slot).state == Some(State::Leased) => {
                self.changed_mut(slot).cancelled = true;
                self.tell_holder(slot, core, out);
            }
            Verb::Cancel => {
                self.remove_cancelled(slot, core, out);
                return false;
            }
            Verb::Hold => self.hold(slot, Reason::Hold, core, out),
            Verb::Approve => {
                self.tell(slot, EventKind::Approved, core, out);
                let due_us = self.due_of_held(slot);
                self.forget_due(slot);
                self.leave(slot);
                self.admit(slot, due_us, core, out);
            }
            Verb::Deny => self.make_dead(slot, Reason::Denied, core, out),
            Verb::Retry if self.messages.get(slot).state == Some(State::Dead) => {
                self.redrive(slot, core, out)
            }
            // The others are records of their own.
            Verb::Retry | Verb::Move | Verb::Change => {
                self.tell(slot, EventKind::Retried, core, out);
                self.make_ready(slot, core, out);
            }
        }
        true
    }

    /// Delayed, ready or blocked to held. What is left of its delay is kept.
    pub(crate) fn hold(&mut self, slot: MessageSlot, reason: Reason, core: &Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        let timed = matches!(message.state, Some(State::Delayed | State::Blocked));
        if timed && message.time_us > core.now_us {
            let due_us = message.time_us;
            self.changed_mut(slot).due_us = due_us;
        } else {
            self.forget_due(slot);
        }
        self.make_held(slot, reason, core, out);
    }

    /// A new message, which is in no state, waits for a person first.
    pub(crate) fn begin_held(&mut self, slot: MessageSlot, due_us: u64, core: &Core, out: &mut Outcome) {
        if due_us > core.now_us {
            self.changed_mut(slot).due_us = due_us;
        }
        self.claim_ordering(slot);
        self.enter_held(slot, Reason::Hold, core.now_us);
        self.tell_why(slot, EventKind::Held, Reason::Hold, core, out);
        self.check_end(slot, due_us, core);
    }

    /// Time before which a held message must not be delivered, in microseconds since the Unix epoch; 0: none.
    pub(crate) fn due_of_held(&self, slot: MessageSlot) -> u64 {
        self.extras.changed(self.messages.get(slot).extras).map_or(0, |changed| changed.due_us)
    }

    /// Clears what [`QueueModule::due_of_held`] gives: the message is held no longer, or without a delay.
    pub(crate) fn forget_due(&mut self, slot: MessageSlot) {
        if self.due_of_held(slot) > 0
            && let Some(changed) = self.extras.changed_slot(self.messages.get(slot).extras)
        {
            self.extras.changed.get_mut(changed).due_us = 0;
        }
    }

    /// True if a leased message was cancelled.
    #[inline(always)]
    pub(crate) fn is_cancelled(&self, slot: MessageSlot) -> bool {
        let extras = self.messages.get(slot).extras;
        extras != Slot::NIL && self.extras.changed(extras).is_some_and(|changed| changed.cancelled)
    }

    /// Out of its queue for good, counted as cancelled.
    pub(crate) fn remove_cancelled(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        self.count_each(slot, |counters| counters.cancelled += 1);
        self.tell(slot, EventKind::Cancelled, core, out);
        self.remove_failed(slot, Reason::Cancelled, core, out);
    }

    fn set_fields(
        &mut self,
        slot: MessageSlot,
        fields: SetFields,
        tags: BlobRef,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        self.tell(slot, EventKind::Changed, core, out);
        if let Some(max_attempts) = fields.max_attempts {
            self.messages.get_mut(slot).max_attempts = max_attempts;
        }
        if let Some(cost) = fields.cost {
            self.set_cost(slot, cost);
        }
        if fields.tags {
            core.share_blob(tags);
            if let Some(replaced) = self.changed_mut(slot).tags.replace(tags) {
                core.release_blob(replaced, out);
            }
            self.change_terms(slot, SearchKind::Tags);
        }
        let due_us = fields.deliver.map(|deliver| self.due_us(deliver, core));
        let message = self.messages.get(slot);
        let priority = fields.priority.filter(|&priority| priority != message.priority);
        if priority.is_some() || due_us.is_some() {
            self.set_place(slot, priority, due_us, core, out);
        }
    }

    /// Another priority or time, for a message that waits.
    pub(crate) fn set_place(
        &mut self,
        slot: MessageSlot,
        priority: Option<u8>,
        due_us: Option<u64>,
        core: &Core,
        out: &mut Outcome,
    ) {
        let message = self.messages.get(slot);
        let (state, time_us) = (message.state, message.time_us);
        match (state, message.blocked_by()) {
            (Some(State::Held), _) => {
                self.set_priority(slot, priority);
                if let Some(due_us) = due_us {
                    self.changed_mut(slot).due_us = due_us;
                    self.check_end(slot, due_us, core);
                }
            }
            // Its place in the line, if it has one, is that of its sending.
            (_, Some(BlockedBy::OrderingKey | BlockedBy::Parents)) => {
                self.set_priority(slot, priority);
                self.messages.get_mut(slot).time_us = due_us.unwrap_or(time_us);
                self.check_end(slot, due_us.unwrap_or(0), core);
            }
            _ => {
                self.leave(slot);
                self.set_priority(slot, priority);
                let stays_us = if state == Some(State::Delayed) { time_us } else { 0 };
                self.admit(slot, due_us.unwrap_or(stays_us), core, out);
            }
        }
    }

    /// For a message that stands in no ready list.
    fn set_priority(&mut self, slot: MessageSlot, priority: Option<u8>) {
        let Some(priority) = priority else { return };
        let message = self.messages.get_mut(slot);
        message.priority = priority;
        let (queue, extras) = (message.queue, message.extras);
        let lane = self.fair_lane(extras);
        if lane != Slot::NIL {
            let key = self.lanes.key(lane).to_vec();
            let entered = self.lanes.enter(queue, priority, &key);
            self.extras.set_fair(extras, entered);
            self.lanes.leave(lane);
        }
    }

    /// The slot of a message's changes, which it gets if it has none.
    fn changed_mut(&mut self, slot: MessageSlot) -> &mut Changed {
        let extras = self.extras_slot(slot);
        let changed = self.extras.enter_changed(extras);
        self.extras.changed.get_mut(changed)
    }

    /// A number that is another one after each change of what a message is and where it stands; never 0.
    pub(crate) fn version(&self, slot: MessageSlot, core: &Core) -> u64 {
        let message = self.messages.get(slot);
        let changed = self.extras.changed(message.extras);
        let tags = changed.and_then(|changed| changed.tags);
        let tags = tags.map_or(0, |tags| mix(tags.index ^ mix(u64::from(tags.item) + 1)));
        let (_, cost) = self.line_and_cost(message.extras);
        let extras = if cost == Cost::default() { tags } else { mix(tags ^ mix(cost.0.into())) };
        let due_us = changed.map_or(0, |changed| changed.due_us);
        let extras = if due_us == 0 || core.expect_behaviour(DUE_IN_VERSION_SINCE).is_err() {
            extras
        } else {
            mix(extras.rotate_left(1) ^ mix(due_us))
        };
        version_of(message, extras).max(1)
    }
}

fn version_of(message: &Message, extras: u64) -> u64 {
    let small = [
        message.state.map_or(0, |state| state as u8 + 1),
        message.priority,
        message.reason as u8,
        0,
        message.attempts as u8,
        (message.attempts >> 8) as u8,
        message.max_attempts as u8,
        (message.max_attempts >> 8) as u8,
    ];
    let words = [
        message.sequence,
        message.time_us,
        message.token,
        message.blob_index,
        u64::from(message.blob_item) << 32 | u64::from(message.queue.index()),
        u64::from(message.deliveries),
        u64::from_le_bytes(small),
        extras,
    ];
    words.into_iter().fold(0, |digest, word| mix(digest ^ mix(word)))
}
