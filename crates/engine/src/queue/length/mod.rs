//! Bounds of a queue: messages and bytes that wait or are leased; dead letters and finished messages do not
//! count.
//!
//! What is sent is refused when it does not fit, or makes room: then the oldest that wait become dead
//! letters, as many as it takes, as a consequence of the send and in slices. A leased message counts, and
//! never makes room: what does not fit beside the leased ones is refused in any case. What comes otherwise,
//! moved, redriven or as a dead letter of another queue, needs room and makes none: it would often be the
//! oldest itself. So does a step of a chain: what follows the failure of the oldest must not be the end of
//! the next one.

pub(crate) mod recount;

use std::ops::Range;

use crate::command::Deliver;
use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::record::send::SendRecord;
use crate::queue::send::several::Several;
use crate::queue::state::consequence::Consequence;
use crate::queue::state::message::{Message, Reason, SIBLINGS, mark};
use crate::queue::state::queue::Queue;
use crate::queue::state::work::Work;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::settings::{Overflow, QueueSettings};
use crate::store::slot::Slot;

/// Looks that it takes at most, on average, to find and let go one message that waits.
const LOOKS_PER_MESSAGE: usize = 5;

/// The result of a look for a message.
enum Found {
    Slot(MessageSlot),
    Nothing,
    /// The budget was used up before.
    Later,
}

/// Messages and bytes.
type Size = (u64, u64);

impl QueueModule {
    /// True if anything bounds what a send brings to a queue, which need not be there yet.
    #[inline(always)]
    pub(crate) fn is_bounded(
        &self,
        namespace_slot: NamespaceSlot,
        queue_slot: Option<QueueSlot>,
        name: &[u8],
    ) -> bool {
        match queue_slot {
            Some(slot) => self.queues.get(slot).settings.is_bounded(),
            None => self.is_bounded_when_new(namespace_slot, name),
        }
    }

    #[cold]
    fn is_bounded_when_new(&self, namespace_slot: NamespaceSlot, name: &[u8]) -> bool {
        !self.indexes.get(namespace_slot).defaults.is_empty()
            && self.settings_of_new(namespace_slot, &String::from_utf8_lossy(name)).is_bounded()
    }

    /// Refuses what a bounded queue has no room for, and cannot make it for, or what would be too old for it
    /// when it may be delivered; `delays` has the place in a list, if there is one, of each message. Call
    /// [`QueueModule::keep_bounds`] after the send.
    pub(crate) fn admit_to_bounded(
        &self,
        namespace_slot: NamespaceSlot,
        queue_slot: Option<QueueSlot>,
        name: &[u8],
        size: Size,
        delays: impl Iterator<Item = (Option<u32>, Deliver)>,
        core: &Core,
    ) -> Result<(), Error> {
        let Some(slot) = queue_slot else {
            let name = String::from_utf8_lossy(name);
            let settings = self.settings_of_new(namespace_slot, &name);
            self.admit_delays(settings.max_age_ms, delays, core)?;
            return admit_length(&name, &settings, (0, 0), "wait or are leased", size);
        };
        let queue = self.queues.get(slot);
        self.admit_delays(queue.settings.max_age_ms, delays, core)?;
        match queue.settings.overflow {
            Overflow::RefuseNew => self.admit_room(slot, size.0, size.1),
            Overflow::DeadLetterOldest => {
                let at = State::Leased as usize;
                let brings = self.pins.brings(slot);
                let leased = (queue.counters.states[at] + brings.0, queue.bytes[at] + brings.1);
                admit_length(&queue.name, &queue.settings, leased, "are leased, which make no room", size)
            }
        }
    }

    /// The same for a send.
    #[cold]
    pub(crate) fn admit_send_to_bounded(
        &self,
        namespace_slot: NamespaceSlot,
        queue_slot: Option<QueueSlot>,
        send: &SendRecord<'_>,
        size: Size,
        core: &Core,
    ) -> Result<(), Error> {
        let list = send.count > 1;
        let delays = (0..).zip(send.items()).map(|(at, item)| (list.then_some(at), item.deliver));
        self.admit_to_bounded(namespace_slot, queue_slot, send.queue, size, delays, core)
    }

    /// The same for one message that makes no room, whatever the queue says.
    #[cold]
    pub(crate) fn admit_step_to_bounded(
        &self,
        namespace_slot: NamespaceSlot,
        queue_slot: Option<QueueSlot>,
        name: &[u8],
        bytes: u64,
        deliver: Deliver,
        core: &Core,
    ) -> Result<(), Error> {
        let delay = std::iter::once((None, deliver));
        let Some(slot) = queue_slot else {
            return self.admit_to_bounded(namespace_slot, queue_slot, name, (1, bytes), delay, core);
        };
        self.admit_delays(self.queues.get(slot).settings.max_age_ms, delay, core)?;
        self.admit_room(slot, 1, bytes)
    }

    /// Refuses messages that would be too old before they may be delivered.
    fn admit_delays(
        &self,
        max_age_ms: u64,
        delays: impl Iterator<Item = (Option<u32>, Deliver)>,
        core: &Core,
    ) -> Result<(), Error> {
        if max_age_ms == 0 {
            return Ok(());
        }
        for (at, deliver) in delays {
            let delay_us = self.due_us(deliver, core).saturating_sub(core.now_us);
            if deliver != Deliver::Now && delay_us >= max_age_ms * 1_000 {
                let field = deliver.field();
                let field = at.map_or(field.to_owned(), |at| format!("messages[{at}].{field}"));
                let reason =
                    format!("the message would be too old by then: its queue has max_age_ms {max_age_ms}");
                return Err(Error::InvalidArgument { field, reason });
            }
        }
        Ok(())
    }

    /// Refuses a message that moves to a queue, and would be too old for it at `due_us`, when it may be
    /// delivered.
    pub(crate) fn admit_age(&self, queue_slot: QueueSlot, due_us: u64, core: &Core) -> Result<(), Error> {
        let queue = self.queues.get(queue_slot);
        let max_age_ms = queue.settings.max_age_ms;
        let delay_us = due_us.saturating_sub(core.now_us);
        if max_age_ms == 0 || delay_us < max_age_ms * 1_000 {
            return Ok(());
        }
        let reason = format!(
            "the message is delayed for {} ms more and would be too old by then: \
             queue {:?} has max_age_ms {max_age_ms}",
            delay_us / 1_000,
            queue.name
        );
        Err(Error::InvalidArgument { field: "to".into(), reason })
    }

    /// Refuses a payload of `bytes` that replaces another one and is by itself larger than all that the queue
    /// may hold.
    pub(crate) fn admit_replacement(&self, queue_slot: QueueSlot, bytes: u64) -> Result<(), Error> {
        let queue = self.queues.get(queue_slot);
        admit_length(&queue.name, &queue.settings, (0, 0), "count beside the new payload", (0, bytes))
    }

    /// Refuses what does not fit into a queue without making room.
    pub(crate) fn admit_room(&self, queue_slot: QueueSlot, messages: u64, bytes: u64) -> Result<(), Error> {
        let queue = self.queues.get(queue_slot);
        if !queue.settings.is_bounded() {
            return Ok(());
        }
        let (alive, brings) = (alive(queue), self.pins.brings(queue_slot));
        let held = (alive.0 + brings.0, alive.1 + brings.1);
        admit_length(&queue.name, &queue.settings, held, "wait or are leased", (messages, bytes))
    }

    /// True if a queue has room for one message more.
    pub(crate) fn has_room_for(&self, queue_slot: QueueSlot, message: &Message) -> bool {
        self.admit_room(queue_slot, 1, message.blob_len.into()).is_ok()
    }

    /// Begins the ages of messages that were sent to a bounded queue, and lists making room for them.
    #[cold]
    pub(crate) fn keep_bounds(&mut self, queue_slot: QueueSlot, sequences: Range<u64>, core: &Core) {
        let sent = sequences.end - sequences.start;
        self.begin_ages(queue_slot, sequences, core);
        self.list_trim(queue_slot, sent as u32);
    }

    /// Lists making room for `sent` messages, if the queue is too long.
    pub(crate) fn list_trim(&mut self, queue_slot: QueueSlot, sent: u32) {
        if !self.makes_room(queue_slot) {
            return;
        }
        let trim = &mut self.queues.get_mut(queue_slot).trim;
        let is_new = trim.owed == 0;
        trim.owed += sent.max(1);
        self.pins.spare_nothing(queue_slot);
        if is_new {
            self.list(Consequence::Trim(queue_slot));
        }
    }

    /// Keeps messages that a prepared part has just brought, with the ids from `first` on, from making room.
    /// There was room for them beside the leases of then, and more may be held by now.
    pub(crate) fn spare(&mut self, several: Several<'_>, first: u64) {
        for (name, _) in several.items {
            if let Some(slot) = self.find_queue(several.namespace_slot, name)
                && self.queues.get(slot).trim.owed > 0
            {
                self.pins.spare_from(slot, first);
            }
        }
    }

    /// Makes a queue as short as it may be. Looks at [`LOOKS_PER_MESSAGE`] messages for each that was sent,
    /// so that sends never outrun it, and at `budget` more, unless that is sliced work already. What is left
    /// is listed as such.
    pub(crate) fn make_room(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let queue = self.queues.get_mut(queue_slot);
        let sent = std::mem::take(&mut queue.trim.owed) as usize;
        // The queue may be gone since, or be another one.
        if sent == 0 || queue.deleted {
            return;
        }
        let more = if queue.trim.running { 0 } else { *budget };
        let mut looks = LOOKS_PER_MESSAGE * sent + more;
        if !self.trim(queue_slot, &mut looks, core, out) {
            self.queues.get_mut(queue_slot).trim.running = true;
            self.list_work(Work::Queue(queue_slot));
        }
        *budget -= more.saturating_sub(looks);
    }

    /// Messages have come to a bounded queue: their ages begin.
    pub(crate) fn begin_ages(&mut self, queue_slot: QueueSlot, sequences: Range<u64>, core: &Core) {
        let namespace = self.queues.get(queue_slot).namespace;
        if self.queues.get(queue_slot).settings.max_age_ms == 0 {
            return;
        }
        for sequence in sequences {
            let found = self.indexes.get(namespace).directory.get(sequence);
            let here = |slot: &MessageSlot| self.messages.get(*slot).queue == queue_slot;
            if let Some(slot) = found.filter(here).filter(|&slot| self.messages.get(slot).waits()) {
                self.begin_age(slot, core);
            }
        }
    }

    /// True if messages of a queue have to go.
    fn makes_room(&self, queue_slot: QueueSlot) -> bool {
        let queue = self.queues.get(queue_slot);
        let settings = &queue.settings;
        let (messages, bytes) = alive(queue);
        let over = |held: u64, most: u64| most > 0 && held > most;
        settings.overflow == Overflow::DeadLetterOldest
            && (over(messages, settings.max_messages) || over(bytes, settings.max_bytes))
    }

    /// Makes a queue as short as it may be; true when nothing is left to do.
    pub(crate) fn trim(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while self.makes_room(queue_slot) {
            match self.oldest_waiting(queue_slot, budget) {
                Found::Slot(slot) if self.pins.spares(queue_slot, self.messages.get(slot).sequence) => break,
                Found::Slot(slot) => self.make_dead(slot, Reason::Overflow, core, out),
                Found::Nothing => break,
                Found::Later => return false,
            }
        }
        self.queues.get_mut(queue_slot).trim.running = false;
        self.pins.spare_nothing(queue_slot);
        true
    }

    /// The message that was sent first among those that wait in a queue.
    fn oldest_waiting(&mut self, queue_slot: QueueSlot, budget: &mut usize) -> Found {
        let mut oldest = Found::Nothing;
        for look in [QueueModule::first_returned, QueueModule::first_arrived, QueueModule::first_listed] {
            oldest = match (oldest, look(self, queue_slot, budget)) {
                (_, Found::Later) => return Found::Later,
                (Found::Slot(one), Found::Slot(other)) => {
                    let sequence = |slot| self.messages.get(slot).sequence;
                    Found::Slot(if sequence(one) < sequence(other) { one } else { other })
                }
                (found, Found::Nothing) | (_, found) => found,
            };
        }
        oldest
    }

    /// The first of those that have come back to waiting.
    fn first_returned(&mut self, queue_slot: QueueSlot, budget: &mut usize) -> Found {
        while let Some(&sequence) = self.queues.get(queue_slot).trim.returned.first() {
            if *budget == 0 {
                return Found::Later;
            }
            *budget -= 1;
            let found = self.of_sequence(queue_slot, sequence);
            if let Some(slot) = found.filter(|&slot| self.waits_here(slot)) {
                return Found::Slot(slot);
            }
            self.queues.get_mut(queue_slot).trim.returned.remove(&sequence);
            if let Some(slot) = found {
                self.messages.get_mut(slot).marks &= !mark::RETURNED;
            }
        }
        Found::Nothing
    }

    /// The first of those that are not on the list of all.
    fn first_arrived(&mut self, queue_slot: QueueSlot, budget: &mut usize) -> Found {
        loop {
            let queue = self.queues.get(queue_slot);
            let Some(&sequence) = queue.arrived.range(queue.trim.arrived_from..).next() else {
                return Found::Nothing;
            };
            if *budget == 0 {
                return Found::Later;
            }
            *budget -= 1;
            let found = self.of_sequence(queue_slot, sequence);
            if let Some(slot) = found.filter(|&slot| self.waits_here(slot)) {
                return Found::Slot(slot);
            }
            self.queues.get_mut(queue_slot).trim.arrived_from = sequence + 1;
        }
    }

    fn first_listed(&mut self, queue_slot: QueueSlot, budget: &mut usize) -> Found {
        loop {
            let queue = self.queues.get(queue_slot);
            let passed = queue.trim.passed;
            let next = if passed == Slot::NIL {
                queue.all.head
            } else {
                self.messages.get(passed).links[SIBLINGS].next
            };
            if next == Slot::NIL {
                return Found::Nothing;
            }
            if *budget == 0 {
                return Found::Later;
            }
            *budget -= 1;
            if self.waits_here(next) {
                return Found::Slot(next);
            }
            self.pass(queue_slot, next);
        }
    }

    fn of_sequence(&self, queue_slot: QueueSlot, sequence: u64) -> Option<MessageSlot> {
        self.indexes.get(self.queues.get(queue_slot).namespace).directory.get(sequence)
    }

    /// True if a message waits, and was not purged.
    pub(crate) fn waits_here(&self, slot: MessageSlot) -> bool {
        self.messages.get(slot).waits() && !self.is_stale(slot)
    }

    /// All messages on the list up to this one, `NIL` for none, have been passed.
    fn pass(&mut self, queue_slot: QueueSlot, slot: MessageSlot) {
        let trim = &mut self.queues.get_mut(queue_slot).trim;
        let before = std::mem::replace(&mut trim.passed, slot);
        if before != Slot::NIL {
            self.messages.get_mut(before).marks &= !mark::PASSED_LAST;
        }
        if slot != Slot::NIL {
            self.messages.get_mut(slot).marks |= mark::PASSED_LAST;
        }
    }

    /// True if the search for the oldest has been past where this message stands.
    pub(crate) fn is_passed(&self, message: &Message) -> bool {
        let trim = &self.queues.get(message.queue).trim;
        if message.is_marked(mark::ARRIVED) {
            return message.sequence < trim.arrived_from;
        }
        trim.passed != Slot::NIL && message.sequence <= self.messages.get(trim.passed).sequence
    }

    /// A message comes, or comes back, to waiting.
    #[inline]
    pub(crate) fn come_back(&mut self, slot: MessageSlot) {
        if self.queues.get(self.messages.get(slot).queue).trim.has_begun() {
            self.return_passed(slot);
        }
    }

    #[cold]
    fn return_passed(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        if message.is_marked(mark::RETURNED) || !self.is_passed(message) {
            return;
        }
        let (queue, sequence) = (message.queue, message.sequence);
        self.messages.get_mut(slot).marks |= mark::RETURNED;
        self.queues.get_mut(queue).trim.returned.insert(sequence);
    }

    /// A message leaves its queue that others lead to than its siblings.
    #[cold]
    pub(crate) fn forget_marks(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let (queue_slot, sequence, prev) = (message.queue, message.sequence, message.links[SIBLINGS].prev);
        if message.is_marked(mark::PASSED_LAST) {
            self.pass(queue_slot, prev);
        }
        let message = self.messages.get_mut(slot);
        let marks = message.marks;
        message.marks &= mark::UNAPPROVED;
        let queue = self.queues.get_mut(queue_slot);
        if marks & mark::RETURNED != 0 {
            queue.trim.returned.remove(&sequence);
        }
        if marks & mark::ARRIVED != 0 {
            queue.arrived.remove(&sequence);
        }
        if marks & (mark::POSTED | mark::DIRTY) != 0 {
            self.leave_search(queue_slot, slot, sequence, marks);
        }
    }
}

/// Numbers of messages and bytes of a queue that wait or are leased.
fn alive(queue: &Queue) -> Size {
    let alive = |figures: &[u64; State::COUNT]| {
        let others = figures[State::Dead as usize] + figures[State::Done as usize];
        figures.iter().sum::<u64>() - others
    };
    (alive(&queue.counters.states), alive(&queue.bytes))
}

fn admit_length(
    queue: &str,
    settings: &QueueSettings,
    held: Size,
    how: &'static str,
    more: Size,
) -> Result<(), Error> {
    let figures =
        [("messages", settings.max_messages, held.0, more.0), ("bytes", settings.max_bytes, held.1, more.1)];
    for (what, limit, held, more) in figures {
        if limit > 0 && more > 0 && held + more > limit {
            return Err(Error::QueueFull { queue: queue.to_owned(), what, limit, held, how, more });
        }
    }
    Ok(())
}
