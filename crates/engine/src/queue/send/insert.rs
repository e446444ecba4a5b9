//! New messages: each gets its slot, its keys and its place, and goes as far as it may.

use crate::command::Deliver;
use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::event::{EventKind, Watched};
use crate::id::{BlobRef, QueueId};
use crate::item::{Chain, Expires, SendOptions};
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::send::{ItemOptions, SendRecord};
use crate::queue::send::Place;
use crate::queue::state::message::Message;
use crate::queue::state::options::Options;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::settings::Backoff;
use crate::store::slot::Slot;

impl QueueModule {
    /// New plain messages, which are ready at once: as [`QueueModule::insert_one`] would do with each, with
    /// what they have in common looked up once. False, with nothing done, where a turn or a limit has a say
    /// in when they are delivered.
    #[inline(always)]
    pub(crate) fn insert_plain(
        &mut self,
        namespace_slot: NamespaceSlot,
        queue_slot: QueueSlot,
        first: u64,
        send: &SendRecord<'_>,
        core: &Core,
        out: &mut Outcome,
    ) -> bool {
        let queue = self.queues.get_mut(queue_slot);
        if queue.fair.is_some() || queue.limit != Slot::NIL {
            return false;
        }
        let index = self.indexes.get_mut(namespace_slot);
        for (sequence, (blob_item, item)) in (first..).zip((0u32..).zip(send.items())) {
            let blob = BlobRef { index: core.applied_index, item: blob_item, len: item.blob_len };
            let line = &mut queue.ready.lists[usize::from(item.priority)];
            let slot = self.messages.insert(Message {
                state: Some(State::Ready),
                generation: queue.waiting_generation,
                links: [line.link_behind(), queue.all.link_behind()],
                ..Message::new(queue_slot, sequence, core.now_us, blob, item.priority, item.max_attempts)
            });
            line.push_linked(&mut self.messages, slot);
            queue.all.push_linked(&mut self.messages, slot);
            queue.ready.occupied |= 1 << item.priority;
            index.directory.insert(sequence, slot);
        }
        let count = u64::from(send.count);
        queue.counters.states[State::Ready as usize] += count;
        queue.bytes[State::Ready as usize] += send.bytes;
        self.totals.states[State::Ready as usize] += count;
        out.ready.push(QueueId(queue.number));
        if core.watched.has(Watched::EVENTS) {
            self.tell_sent(queue_slot, first, send.count, core, out);
        }
        true
    }

    #[inline(never)]
    pub(crate) fn insert_all<'a>(
        &mut self,
        first: Place,
        send: &SendRecord<'a>,
        options: Option<&ItemOptions<'a>>,
        core: &Core,
        out: &mut Outcome,
    ) {
        for (sequence, (at, item)) in (first.sequence..).zip((0u32..).zip(send.items())) {
            let blob = BlobRef { index: core.applied_index, item: at, len: item.blob_len };
            let place = Place { sequence, ..first };
            let mut read = None;
            let options = options.and_then(|options| options.get(at, &item, &mut read));
            self.insert_one(place, &item, options, blob, core, out);
        }
    }

    /// A new message, which goes as far as it may. `options`: the item's.
    #[inline]
    pub(crate) fn insert_one(
        &mut self,
        place: Place,
        item: &SendItemRecord<'_>,
        options: Option<&SendOptions<'_>>,
        blob: BlobRef,
        core: &Core,
        out: &mut Outcome,
    ) {
        let slot = self.place_message(place, blob, item, core, out);
        let due_us = self.due_us(item.deliver, core);
        if item.backoff.is_some() || options.is_some() {
            self.insert_optional(slot, item.backoff, options, due_us, core, out);
        } else if due_us > core.now_us {
            self.enter_delayed(slot, due_us, core, out);
        } else {
            self.enter_ready(slot, core, out);
        }
    }

    /// A new message that has more than the plain fields goes as far as it may.
    #[inline(never)]
    fn insert_optional(
        &mut self,
        slot: MessageSlot,
        backoff: Option<Backoff>,
        options: Option<&SendOptions<'_>>,
        due_us: u64,
        core: &Core,
        out: &mut Outcome,
    ) {
        self.add_extras(slot, backoff, options, core);
        if let Some(depends_on) = options.and_then(|options| options.depends_on.as_ref()) {
            self.enter_parents(slot, depends_on, core, out);
        }
        if let Some(&SendOptions { chain: Chain::Laid(laid), .. }) = options {
            self.enter_chain(slot, laid, core);
        }
        if options.is_some_and(|options| options.hold) {
            self.begin_held(slot, due_us, core, out);
        } else {
            self.admit(slot, due_us, core, out);
        }
    }

    /// When a message may become ready; 0: at once.
    #[inline]
    pub(crate) fn due_us(&self, deliver: Deliver, core: &Core) -> u64 {
        match deliver {
            Deliver::Now => 0,
            Deliver::AfterMs(delay_ms) => core.now_us + delay_ms * 1_000,
            Deliver::AtUs(at_us) => at_us,
        }
    }

    /// Puts a new message into its slot, directory and queue; it is in no state yet.
    #[inline]
    pub(crate) fn place_message(
        &mut self,
        place: Place,
        blob: BlobRef,
        item: &SendItemRecord<'_>,
        core: &Core,
        out: &mut Outcome,
    ) -> MessageSlot {
        let (priority, max_attempts) = (item.priority, item.max_attempts);
        let message =
            Message::new(place.queue_slot, place.sequence, core.now_us, blob, priority, max_attempts);
        let slot = self.messages.insert(message);
        self.indexes.get_mut(place.namespace_slot).directory.insert(place.sequence, slot);
        self.queues.get_mut(place.queue_slot).all.push_back(&mut self.messages, slot);
        self.tell(slot, EventKind::Sent, core, out);
        slot
    }

    /// Adds what a message has beside the plain fields.
    #[inline(never)]
    pub(crate) fn add_extras(
        &mut self,
        slot: MessageSlot,
        backoff: Option<Backoff>,
        record: Option<&SendOptions<'_>>,
        core: &Core,
    ) {
        let extras = self.extras.add(backoff);
        let message = self.messages.get_mut(slot);
        message.extras = extras;
        let Some(record) = record else { return };
        let mut options = Options::none();
        options.cost = record.cost;
        if !record.ordering_key.is_empty() {
            options.ordering = self.ordering.enter(message.queue, record.ordering_key);
        }
        if !record.fair_key.is_empty() {
            options.fair = self.lanes.enter(message.queue, message.priority, record.fair_key);
        }
        if !record.limit_key.is_empty() {
            options.limit = self.queue_limits.lines.enter(message.queue, record.limit_key);
        }
        if record.expires != Expires::Never {
            options.expiry = self.expiry.add(slot, self.end_us(record.expires, core), core.now_us);
        }
        (options.unique, options.unique_ends_us) = self.take_unique(slot, record, core);
        options.unique_until = record.unique.map_or(options.unique_until, |unique| unique.until);
        self.extras.add_options(extras, options);
        if record.result_ttl_ms > 0 || !record.correlation_id.is_empty() || !record.reply_to.is_empty() {
            let results = self.extras.enter_results(extras);
            let results = self.extras.results.get_mut(results);
            results.ttl_ms = record.result_ttl_ms;
            results.correlation_id = record.correlation_id.into();
            results.reply_to = record.reply_to.into();
        }
    }
}
