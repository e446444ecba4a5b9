//! Unique messages: of those of a queue that were sent with the same key, one is there at a time.
//!
//! A send of a batch is planned before anything is changed (`plan`), so that what is refused changes
//! nothing. A key is free when its message is done, dead, purged or deleted, or, if the sender chose so, at
//! the end of its window alone; at the end of the window in any case. A purge frees at once, although the
//! messages are swept later.

pub(crate) mod plan;
pub(crate) mod recount;

use std::collections::BTreeMap;

use crate::command::Deliver;
use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::event::EventKind;
use crate::id::{BlobRef, MessageId};
use crate::item::{OnDuplicate, SendOptions, Unique, UniqueUntil};
use crate::limits::UNIQUE_KEYS_LINGERING_MAX;
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::unique_of;
use crate::queue::record::send::{ItemOptions, SendRecord};
use crate::queue::state::flow::End;
use crate::queue::state::message::BlockedBy;
use crate::queue::state::{MessageSlot, QueueSlot, UniqueSlot};
use crate::search::SearchKind;
use crate::store::slot::Slot;

/// The message that has a unique key.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) sequence: u64,
    /// Slot of the message; `NIL`: it is gone while the window goes on, or comes with the same batch.
    pub(crate) slot: MessageSlot,
    /// Its end, if it is gone.
    pub(crate) end: Option<End>,
    /// The event that frees the key.
    pub(crate) until: UniqueUntil,
    /// When it ends, in microseconds since the Unix epoch, if it waits; 0: never.
    pub(crate) ends_us: u64,
}

impl QueueModule {
    /// A send in which some messages are unique.
    pub(crate) fn send_unique<'a>(
        &mut self,
        namespace_slot: NamespaceSlot,
        found: Option<QueueSlot>,
        send: &SendRecord<'a>,
        options: &ItemOptions<'a>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let first = self.next_sequence(namespace_slot, core);
        let needs = self.plan_unique(found, first, send, options, core, out);
        self.unique.guess = needs.key;
        self.admit_messages(needs.messages, core)?;
        core.admit_to_namespace(namespace_slot, needs.messages, needs.bytes)?;
        let bounded = self.is_bounded(namespace_slot, found, send.queue);
        if bounded {
            self.admit_send_to_bounded(namespace_slot, found, send, (needs.messages, needs.bytes), core)?;
            self.admit_replacements(found, &needs)?;
        }
        self.admit_duplicates(send, out.duplicates.len(), core)?;
        let (_, queue_slot) = self.reserve(namespace_slot, found, send.queue, needs.messages as u32, core)?;
        self.count_sent(namespace_slot, queue_slot, needs.messages, needs.sent_bytes, core);
        self.flows.next_blob = send.count;
        if !needs.gone.is_empty() {
            self.flows.gone = needs.gone;
        }
        let mut duplicates = 0;
        for (n, item) in (0u32..).zip(send.items()) {
            let blob = BlobRef { index: core.applied_index, item: n, len: item.blob_len };
            let sequence = out.ids[n as usize].sequence;
            if out.duplicates.get(duplicates) == Some(&n) {
                duplicates += 1;
                self.meet_duplicate(namespace_slot, sequence, &item, blob, core, out);
            } else {
                let place = crate::queue::send::Place { namespace_slot, queue_slot, sequence };
                self.insert_one(place, &item, options.get(n, &item, &mut None), blob, core, out);
            }
        }
        if !self.flows.gone.is_empty() {
            self.flows.gone.clear();
        }
        self.remember(queue_slot, first, send, core, out);
        if bounded {
            self.keep_bounds(queue_slot, first..first + needs.messages, core);
        }
        let reply = Reply::Sent { first: out.ids[0], count: send.count, duplicate: false };
        out.reply = reply;
        if out.duplicates.is_empty() {
            out.ids.clear();
        }
        Ok(())
    }

    pub(crate) fn holder_of_name(&self, queue_slot: QueueSlot, key: &[u8], core: &Core) -> Option<Holder> {
        self.holder_of(self.unique.find(self.queues.get(queue_slot).number, key)?, core)
    }

    /// The message that has a key now; `None`: the key is free.
    pub(crate) fn holder_of(&self, key: UniqueSlot, core: &Core) -> Option<Holder> {
        let known = self.unique.slots.get(key);
        if known.ends_us <= core.now_us {
            return None;
        }
        let slot = known.holder;
        if slot == Slot::NIL || self.is_stale(slot) {
            let lingers = known.lingers || (slot != Slot::NIL && known.until == UniqueUntil::Window);
            let end = if slot == Slot::NIL { known.end } else { End::Failed };
            let holder = Holder {
                sequence: known.first,
                slot: Slot::NIL,
                end: Some(end),
                until: known.until,
                ends_us: 0,
            };
            return lingers.then_some(holder);
        }
        if plant::is(Plant::UniqueWhileLeased) && self.messages.get(slot).state == Some(State::Leased) {
            return None;
        }
        let ends_us = if self.messages.get(slot).waits() { self.expires_us(slot) } else { 0 };
        Some(Holder { sequence: known.first, slot, end: None, until: known.until, ends_us })
    }

    /// Enters the unique key of a new message, which takes it; returns the key's slot, and the end of its
    /// window in microseconds since the Unix epoch. A message that is over on arrival takes the key only when
    /// it is redriven.
    pub(crate) fn take_unique(
        &mut self,
        slot: MessageSlot,
        options: &SendOptions<'_>,
        core: &Core,
    ) -> (UniqueSlot, u64) {
        let Some(unique) = &options.unique else { return (Slot::NIL, 0) };
        let message = self.messages.get(slot);
        let (sequence, ends_us) =
            (message.sequence, core.now_us.saturating_add(unique.window_ms.saturating_mul(1_000)));
        let key = self.unique.enter(self.queues.get(message.queue).number, unique.key);
        if !self.has_ended(options.expires, core) {
            self.unique.take(key, slot, sequence, unique.until, ends_us);
        }
        (key, ends_us)
    }

    /// A message is gone, dead or finished: its key is given back if it has it still.
    pub(crate) fn give_back_unique(&mut self, slot: MessageSlot, key: UniqueSlot, end: End, core: &Core) {
        if self.unique.slots.get(key).holder == slot {
            self.unique.give_back(key, end, core.now_us, UNIQUE_KEYS_LINGERING_MAX);
        }
    }

    /// One message with a unique key is about to be sent. If the key is taken, the message that has it takes
    /// what it is to take over from the new one; returns its sequence.
    pub(crate) fn meet_unique(
        &mut self,
        queue_slot: QueueSlot,
        unique: &Unique<'_>,
        item: &SendItemRecord<'_>,
        blob: BlobRef,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<Option<u64>, Error> {
        let Some(holder) = self.holder_of_name(queue_slot, unique.key, core) else { return Ok(None) };
        let namespace_slot = self.queues.get(queue_slot).namespace;
        if unique.on_duplicate == OnDuplicate::ReplacePayload
            && let Some(freed) = self.replaced_bytes(&holder)
        {
            let bytes = u64::from(blob.len).saturating_sub(freed);
            core.admit_to_namespace(namespace_slot, 0, bytes)?;
            self.admit_replacement(queue_slot, u64::from(blob.len))?;
            self.admit_to_bounded(
                namespace_slot,
                Some(queue_slot),
                &[],
                (0, bytes),
                std::iter::empty(),
                core,
            )?;
        }
        self.meet_duplicate(namespace_slot, holder.sequence, item, blob, core, out);
        self.list_trim(queue_slot, 0);
        Ok(Some(holder.sequence))
    }

    /// Replaces the first message with a duplicate that asks for it, if the first one still waits.
    fn meet_duplicate(
        &mut self,
        namespace_slot: NamespaceSlot,
        sequence: u64,
        item: &SendItemRecord<'_>,
        blob: BlobRef,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        self.skip_chain(item, core, out);
        let first = self.indexes.get(namespace_slot).directory.get(sequence);
        let waiting = first.filter(|&slot| self.waits_here(slot));
        let unique = item.options.and_then(unique_of);
        match (waiting, unique.map(|unique| unique.on_duplicate)) {
            (Some(slot), Some(OnDuplicate::ReplacePayload)) => {
                self.tell(slot, EventKind::Changed, core, out);
                self.replace_blob(slot, blob, core, out);
            }
            (Some(slot), Some(OnDuplicate::Debounce)) => {
                self.tell(slot, EventKind::Changed, core, out);
                core.release_blob(blob, out);
                self.put_off(slot, item.deliver, core, out);
            }
            _ => core.release_blob(blob, out),
        }
    }

    /// A message that waits takes over another payload.
    fn replace_blob(&mut self, slot: MessageSlot, blob: BlobRef, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get_mut(slot);
        let old = message.blob();
        (message.blob_index, message.blob_item, message.blob_len) = (blob.index, blob.item, blob.len);
        let Some(state) = message.state else { return };
        let queue = self.queues.get_mut(message.queue);
        let namespace = core.namespaces.get_mut(queue.namespace);
        for bytes in [
            &mut queue.bytes[state as usize],
            &mut queue.counters.bytes,
            &mut self.totals.bytes,
            &mut namespace.bytes,
        ] {
            *bytes = *bytes + u64::from(blob.len) - u64::from(old.len);
        }
        core.release_blob(old, out);
        self.change_terms(slot, SearchKind::Tags);
    }

    /// The delay of a message that waits begins anew. One that could be ready now and shall be keeps its
    /// place.
    fn put_off(&mut self, slot: MessageSlot, deliver: Deliver, core: &Core, out: &mut Outcome) {
        let due_us = self.due_us(deliver, core);
        let message = self.messages.get(slot);
        let could_be_ready =
            message.state == Some(State::Ready) || message.blocked_by() == Some(BlockedBy::Limit);
        if !could_be_ready || due_us > core.now_us {
            self.set_place(slot, None, Some(due_us), core, out);
        }
    }

    /// The message that has the unique key which a dead one would need again; `None`: nothing is in its way.
    pub(crate) fn rival(&self, slot: MessageSlot, core: &Core) -> Option<u64> {
        let key = self.needed_key(slot, core)?;
        let holder = self.holder_of(key, core)?;
        (holder.sequence != self.messages.get(slot).sequence).then_some(holder.sequence)
    }

    /// The unique key that a message has to take when it is redriven: its own until the end of its window.
    fn needed_key(&self, slot: MessageSlot, core: &Core) -> Option<UniqueSlot> {
        let options = self.extras.options(self.messages.get(slot).extras)?;
        (options.unique != Slot::NIL && options.unique_ends_us > core.now_us).then_some(options.unique)
    }

    /// Refuses to redrive dead letters of which one's unique key is another's, or would be.
    pub(crate) fn admit_unique_redrive(&self, slots: &[MessageSlot], core: &Core) -> Result<(), Error> {
        let mut taken = BTreeMap::new();
        for &slot in slots {
            let Some(key) = self.needed_key(slot, core) else { continue };
            let sequence = self.messages.get(slot).sequence;
            let other = *taken.entry(key).or_insert(sequence);
            let rival = self.rival(slot, core).or((other != sequence).then_some(other));
            if let Some(rival) = rival {
                return Err(self.unique_key_taken(slot, key, rival, core));
            }
        }
        Ok(())
    }

    fn unique_key_taken(&self, slot: MessageSlot, key: UniqueSlot, rival: u64, core: &Core) -> Error {
        let message = self.messages.get(slot);
        let id = self.id_of(message, self.queues.get(message.queue), core);
        Error::UniqueKeyTaken {
            id: id.to_string(),
            key: String::from_utf8_lossy(self.unique.key(key)).into_owned(),
            holder: MessageId { sequence: rival, ..id }.to_string(),
        }
    }

    /// True if a message has the unique key that it was sent with.
    fn holds_unique(&self, slot: MessageSlot) -> bool {
        let key =
            self.extras.options(self.messages.get(slot).extras).map_or(Slot::NIL, |options| options.unique);
        key != Slot::NIL && self.unique.slots.get(key).holder == slot
    }

    /// Refuses to move a message to a queue where another one has its unique key.
    pub(crate) fn admit_unique_move(
        &self,
        slot: MessageSlot,
        to: QueueSlot,
        core: &Core,
    ) -> Result<(), Error> {
        let Some(key) = self.needed_key(slot, core).filter(|_| self.holds_unique(slot)) else {
            return Ok(());
        };
        match self.holder_of_name(to, self.unique.key(key), core) {
            Some(rival) => Err(self.unique_key_taken(slot, key, rival.sequence, core)),
            None => Ok(()),
        }
    }

    /// The unique key that a message which moves takes along, and whether it has it.
    pub(crate) fn take_unique_along(&mut self, slot: MessageSlot) -> Option<(Box<[u8]>, bool)> {
        let key = self.extras.options(self.messages.get(slot).extras)?.unique;
        if key == Slot::NIL {
            return None;
        }
        let holds = self.holds_unique(slot);
        if holds {
            self.unique.slots.get_mut(key).holder = Slot::NIL;
        }
        Some((self.unique.key(key).into(), holds))
    }

    /// Enters the unique key of a message that has moved; returns its slot.
    pub(crate) fn enter_unique(
        &mut self,
        slot: MessageSlot,
        key: &[u8],
        holds: bool,
        core: &Core,
    ) -> UniqueSlot {
        let message = self.messages.get(slot);
        let (sequence, extras) = (message.sequence, message.extras);
        let entered = self.unique.enter(self.queues.get(message.queue).number, key);
        if let Some(options) = self.extras.options(extras)
            && holds
            && options.unique_ends_us > core.now_us
        {
            self.unique.take(entered, slot, sequence, options.unique_until, options.unique_ends_us);
        }
        entered
    }

    /// A dead letter that comes back takes its unique key again.
    pub(crate) fn retake_unique(&mut self, slot: MessageSlot, core: &Core) {
        let Some(key) = self.needed_key(slot, core) else { return };
        let message = self.messages.get(slot);
        let Some(options) = self.extras.options(message.extras) else { return };
        let (until, ends_us) = (options.unique_until, options.unique_ends_us);
        self.unique.take(key, slot, message.sequence, until, ends_us);
    }
}
