//! Send: checks all messages of a record, then places them, all or none.

pub(crate) mod check;
pub(crate) mod own;
pub(crate) mod pending;

use crate::command::Deliver;
use crate::core::namespace::NamespaceSlot;
use crate::core::namespaces::namespace_not_found;
use crate::core::{Core, internal};
use crate::error::Error;
use crate::event::{EventKind, Watched};
use crate::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId, QueueId};
use crate::item::{Chain, Expires, SendOptions};
use crate::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, IDEMPOTENCY_DUPLICATES_MAX, PRIORITY_MAX};
use crate::outcome::{Outcome, Reply};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::message::lookup::{queue_closed, queue_not_found};
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::read_options;
use crate::queue::record::send::{ItemOptions, SendRecord};
use crate::queue::state::idempotency::Sent;
use crate::queue::state::message::Message;
use crate::queue::state::options::Options;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::rules::name_rule;
use crate::settings::Backoff;
use crate::store::slot::Slot;

/// Where a new message belongs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) namespace_slot: NamespaceSlot,
    pub(crate) queue_slot: QueueSlot,
    pub(crate) sequence: u64,
}

/// The items of a send as a whole, after their checks.
#[derive(Default)]
struct Admitted {
    /// Bytes of their blobs.
    bytes: u64,
    /// Whether one has a unique key.
    unique: bool,
    /// Whether one waits for others, or carries steps.
    linked: bool,
}

impl QueueModule {
    #[inline]
    pub(crate) fn send(
        &mut self,
        send: &SendRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let Some(namespace_slot) = core.live_namespace(send.namespace) else {
            return Err(namespace_not_found(send.namespace));
        };
        let found = self.find_queue_again(namespace_slot, send.queue);
        if let Some(queue_slot) = found
            && self.repeated(queue_slot, send, core, out)?
        {
            out.released.extend(send.blobs(core.applied_index));
            return Ok(());
        }
        self.admit_to_queue(found)?;
        if !send.are_plain {
            return self.send_optional(namespace_slot, found, send, core, out);
        }
        let admitted = Admitted { bytes: send.bytes, ..Admitted::default() };
        self.send_new(namespace_slot, found, send, (&admitted, None), core, out)
    }

    /// A send in which some messages may have more than the plain fields.
    #[inline(never)]
    fn send_optional(
        &mut self,
        namespace_slot: NamespaceSlot,
        found: Option<QueueSlot>,
        send: &SendRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let options = ItemOptions::of(send);
        let admitted = self.admit_items(namespace_slot, send, &options, core)?;
        if admitted.unique {
            return self.send_unique(namespace_slot, found, send, &options, core, out);
        }
        self.send_new(namespace_slot, found, send, (&admitted, Some(&options)), core, out)
    }

    /// A send of which each item is a new message. `options`: `None` if no item has any.
    #[inline(always)]
    fn send_new(
        &mut self,
        namespace_slot: NamespaceSlot,
        found: Option<QueueSlot>,
        send: &SendRecord<'_>,
        (admitted, options): (&Admitted, Option<&ItemOptions<'_>>),
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let bytes = admitted.bytes;
        self.admit_messages(u64::from(send.count), core)?;
        self.admit_to_namespace(namespace_slot, u64::from(send.count), bytes, core)?;
        let bounded = self.is_bounded(namespace_slot, found, send.queue);
        if bounded {
            self.admit_send_to_bounded(namespace_slot, found, send, (u64::from(send.count), bytes), core)?;
        }
        let (first, queue_slot) = self.reserve(namespace_slot, found, send.queue, send.count, core)?;
        if admitted.linked {
            (self.flows.first, self.flows.next_blob) = (first, send.count);
        }
        self.count_sent(namespace_slot, queue_slot, u64::from(send.count), bytes, core);
        if options.is_some() || !self.insert_plain(namespace_slot, queue_slot, first, send, core, out) {
            let place = Place { namespace_slot, queue_slot, sequence: first };
            self.insert_all(place, send, options, core, out);
        }
        self.remember(queue_slot, first, send, core, out);
        if bounded {
            self.keep_bounds(queue_slot, first..first + u64::from(send.count), core);
        }
        let first = MessageId { namespace: send.namespace, sequence: first };
        out.reply = Reply::Sent { first, count: send.count, duplicate: false };
        Ok(())
    }

    /// Reserves `count` ids for a send, and makes its queue unless it is `found`; returns the first sequence
    /// number and the queue's slot.
    #[inline(always)]
    pub(crate) fn reserve(
        &mut self,
        namespace_slot: NamespaceSlot,
        found: Option<QueueSlot>,
        queue: &[u8],
        count: u32,
        core: &mut Core,
    ) -> Result<(u64, QueueSlot), Error> {
        match found {
            Some(queue_slot) => Ok((self.reserve_sequences(namespace_slot, count, core)?, queue_slot)),
            None => self.reserve_with_queue(namespace_slot, queue, count, core),
        }
    }

    #[cold]
    fn reserve_with_queue(
        &mut self,
        namespace_slot: NamespaceSlot,
        queue: &[u8],
        count: u32,
        core: &mut Core,
    ) -> Result<(u64, QueueSlot), Error> {
        let name = String::from_utf8_lossy(queue);
        self.admit_new_queue(namespace_slot, &name, core)?;
        let first = self.reserve_sequences(namespace_slot, count, core)?;
        Ok((first, self.make_queue(namespace_slot, &name, core)))
    }

    /// Refuses a queue that must not be made by its first use.
    pub(crate) fn admit_new_queue(
        &self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &Core,
    ) -> Result<(), Error> {
        self.admit_use_of_new(namespace_slot, name, core)?;
        self.admit_queues(namespace_slot, 1, core)
    }

    /// Like [`QueueModule::admit_new_queue`], whatever the number of queues.
    pub(crate) fn admit_use_of_new(
        &self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &Core,
    ) -> Result<(), Error> {
        if !core.limits.auto_create {
            return Err(queue_not_found(name));
        }
        let namespace = core.namespaces.get(namespace_slot);
        if namespace.deleted {
            return Err(namespace_not_found(NamespaceId(namespace.number)));
        }
        if self.settings_of_new(namespace_slot, name).closed {
            return Err(queue_closed(name));
        }
        name_rule("queue", name).map_err(internal)
    }

    /// Refuses what is sent to a closed queue; a missing one is not.
    #[inline]
    pub(crate) fn admit_to_queue(&self, queue_slot: Option<QueueSlot>) -> Result<(), Error> {
        let Some(queue) = queue_slot.map(|slot| self.queues.get(slot)) else { return Ok(()) };
        if queue.settings.closed { Err(queue_closed(&queue.name)) } else { Ok(()) }
    }

    /// Whether an earlier send had this key; then what it gave is in `out`.
    #[inline(always)]
    pub(crate) fn repeated(
        &self,
        queue_slot: QueueSlot,
        send: &SendRecord<'_>,
        core: &Core,
        out: &mut Outcome,
    ) -> Result<bool, Error> {
        if send.idempotency_key.is_empty() {
            Ok(false)
        } else {
            self.repeated_key(queue_slot, send, core, out)
        }
    }

    #[inline(never)]
    fn repeated_key(
        &self,
        queue_slot: QueueSlot,
        send: &SendRecord<'_>,
        core: &Core,
        out: &mut Outcome,
    ) -> Result<bool, Error> {
        let queue = self.queues.get(queue_slot).number;
        let window_us = core.limits.idempotency_window_ms * 1_000;
        let Some(earlier) = self.idempotency.find(queue, send.idempotency_key, core.now_us, window_us) else {
            return Ok(false);
        };
        if earlier.request_digest != send.request_digest {
            let key = String::from_utf8_lossy(send.idempotency_key).into_owned();
            return Err(Error::IdempotencyMismatch { key });
        }
        let id = |sequence| MessageId { namespace: send.namespace, sequence };
        if !earlier.duplicates.is_empty() {
            out.duplicates.extend(earlier.duplicates.iter().map(|(item, _)| item));
            out.ids.extend(earlier.sequences().map(id));
        }
        let first = out.ids.first().copied().unwrap_or(id(earlier.first));
        out.reply = Reply::Sent { first, count: earlier.count, duplicate: true };
        Ok(true)
    }

    /// Refuses a send of which more duplicates would have to be remembered than there is room for.
    pub(crate) fn admit_duplicates(
        &mut self,
        send: &SendRecord<'_>,
        count: usize,
        core: &Core,
    ) -> Result<(), Error> {
        if send.idempotency_key.is_empty() || count == 0 {
            return Ok(());
        }
        let window_us = core.limits.idempotency_window_ms * 1_000;
        self.idempotency.forget(core.now_us, window_us, core.limits.idempotency_keys);
        if self.idempotency.duplicates() + count as u64 > IDEMPOTENCY_DUPLICATES_MAX {
            let what = "duplicates remembered with idempotency keys";
            return Err(Error::LimitExceeded { what, limit: IDEMPOTENCY_DUPLICATES_MAX });
        }
        Ok(())
    }

    /// Remembers what a send gave, if it has a key.
    #[inline(always)]
    pub(crate) fn remember(
        &mut self,
        queue_slot: QueueSlot,
        first: u64,
        send: &SendRecord<'_>,
        core: &Core,
        out: &Outcome,
    ) {
        if !send.idempotency_key.is_empty() {
            self.remember_key(queue_slot, first, send, core, out);
        }
    }

    #[inline(never)]
    fn remember_key(
        &mut self,
        queue_slot: QueueSlot,
        first: u64,
        send: &SendRecord<'_>,
        core: &Core,
        out: &Outcome,
    ) {
        let queue = self.queues.get(queue_slot).number;
        let (key, request_digest, count) = (send.idempotency_key, send.request_digest, send.count);
        let window_us = core.limits.idempotency_window_ms * 1_000;
        let duplicates = out.duplicates.iter().map(|&item| (item, out.ids[item as usize].sequence)).collect();
        let sent = Sent { queue, key, request_digest, first, count, duplicates };
        self.idempotency.remember(sent, core.now_us, window_us, core.limits.idempotency_keys);
    }

    /// Checks items of which some are more than plain.
    #[inline(never)]
    fn admit_items<'a>(
        &self,
        namespace_slot: NamespaceSlot,
        send: &SendRecord<'a>,
        options: &ItemOptions<'a>,
        core: &Core,
    ) -> Result<Admitted, Error> {
        let mut admitted = Admitted::default();
        for (at, item) in (0u32..).zip(send.items()) {
            admitted.bytes += u64::from(item.blob_len);
            self.admit_plain(&item, core)?;
            if let Some(options) = options.get(at, &item, &mut None) {
                self.admit_optional(namespace_slot, send, (at, &item), options, &mut admitted, core)?;
            }
        }
        if send.count == 0 {
            return Err(Error::Internal { reason: "a send record without messages".into() });
        }
        Ok(admitted)
    }

    /// Checks the options of the item `at` of a send.
    #[inline(never)]
    fn admit_optional(
        &self,
        namespace_slot: NamespaceSlot,
        send: &SendRecord<'_>,
        (at, item): (u32, &SendItemRecord<'_>),
        options: &SendOptions<'_>,
        admitted: &mut Admitted,
        core: &Core,
    ) -> Result<(), Error> {
        self.admit_options(namespace_slot, item, options, core)?;
        admitted.unique |= options.unique.is_some();
        admitted.linked |= options.depends_on.is_some() || options.chain != Chain::None;
        let prefix = || if send.count == 1 { String::new() } else { format!("messages[{at}].") };
        self.admit_parents(at, send.namespace, options, prefix, core)
    }

    /// Checks what one item is by itself; returns its options.
    pub(crate) fn admit_item<'a>(
        &self,
        namespace_slot: NamespaceSlot,
        item: &SendItemRecord<'a>,
        core: &Core,
    ) -> Result<Option<SendOptions<'a>>, Error> {
        self.admit_plain(item, core)?;
        let options = item.options.and_then(read_options);
        if let Some(options) = &options {
            self.admit_options(namespace_slot, item, options, core)?;
        }
        Ok(options)
    }

    /// Checks the plain fields of an item.
    fn admit_plain(&self, item: &SendItemRecord<'_>, core: &Core) -> Result<(), Error> {
        let sound = item.priority <= PRIORITY_MAX && item.max_attempts <= ATTEMPTS_MAX;
        if !sound {
            return Err(out_of_range(item));
        }
        if let Some(backoff) = &item.backoff {
            backoff.check("backoff").map_err(internal)?;
        }
        self.admit_time(item.deliver, core)
    }

    /// Checks the options of an item.
    #[inline(always)]
    fn admit_options(
        &self,
        namespace_slot: NamespaceSlot,
        item: &SendItemRecord<'_>,
        options: &SendOptions<'_>,
        core: &Core,
    ) -> Result<(), Error> {
        self.admit_reply_to(namespace_slot, options, core)?;
        self.admit_expiry(item.deliver, options.expires, core)?;
        if let Chain::Laid(laid) = options.chain {
            self.admit_chain(namespace_slot, laid, core)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn admit_messages(&self, messages: u64, core: &Core) -> Result<(), Error> {
        if u64::from(self.messages.used()) + messages > core.limits.messages {
            return Err(Error::LimitExceeded { what: "messages", limit: core.limits.messages });
        }
        Ok(())
    }

    pub(crate) fn admit_time(&self, deliver: Deliver, core: &Core) -> Result<(), Error> {
        let delay_ms = match deliver {
            Deliver::Now => return Ok(()),
            Deliver::AfterMs(delay_ms) => delay_ms,
            Deliver::AtUs(at_us) => at_us.saturating_sub(core.now_us) / 1_000,
        };
        if delay_ms <= DELAY_MS_MAX {
            return Ok(());
        }
        let reason = format!("{delay_ms} ms from now is too far: use at most {DELAY_MS_MAX} (ten years)");
        Err(Error::InvalidArgument { field: deliver.field().into(), reason })
    }

    #[inline(always)]
    pub(crate) fn admit_to_namespace(
        &self,
        namespace_slot: NamespaceSlot,
        messages: u64,
        bytes: u64,
        core: &Core,
    ) -> Result<(), Error> {
        let namespace = core.namespaces.get(namespace_slot);
        let quotas = &namespace.quotas;
        if quotas.messages > 0 && namespace.messages + messages > quotas.messages {
            let (limit, held) = (quotas.messages, namespace.messages);
            return Err(Error::QuotaExceeded { what: "messages", limit, held, more: messages });
        }
        if quotas.bytes > 0 && namespace.bytes + bytes > quotas.bytes {
            let (limit, held) = (quotas.bytes, namespace.bytes);
            return Err(Error::QuotaExceeded { what: "bytes", limit, held, more: bytes });
        }
        Ok(())
    }

    /// The sequence number that [`QueueModule::reserve_sequences`] gives next.
    pub(crate) fn next_sequence(&self, namespace_slot: NamespaceSlot, core: &Core) -> u64 {
        let epoch_begin = core.epoch << EPOCH_SHIFT;
        core.namespaces.get(namespace_slot).last_sequence.max(epoch_begin) + 1
    }

    /// Reserves `count` sequence numbers; returns the first.
    #[inline(always)]
    pub(crate) fn reserve_sequences(
        &mut self,
        namespace_slot: NamespaceSlot,
        count: u32,
        core: &mut Core,
    ) -> Result<u64, Error> {
        let namespace = core.namespaces.get_mut(namespace_slot);
        let last = namespace.last_sequence.max(core.epoch << EPOCH_SHIFT);
        let Some(latest) = last.checked_add(u64::from(count)) else {
            return Err(Error::LimitExceeded { what: "messages ever sent", limit: u64::MAX });
        };
        namespace.last_sequence = latest;
        Ok(last + 1)
    }

    /// New plain messages, which are ready at once: as [`QueueModule::insert_one`] would do with each, with
    /// what they have in common looked up once. False, with nothing done, where a turn or a limit has a say
    /// in when they are delivered.
    #[inline(always)]
    fn insert_plain(
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
    fn insert_all<'a>(
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

    #[inline(always)]
    pub(crate) fn count_sent(
        &mut self,
        namespace_slot: NamespaceSlot,
        queue_slot: QueueSlot,
        messages: u64,
        bytes: u64,
        core: &mut Core,
    ) {
        for counters in [&mut self.queues.get_mut(queue_slot).counters, &mut self.totals] {
            counters.sent += messages;
            counters.bytes += bytes;
        }
        let namespace = core.namespaces.get_mut(namespace_slot);
        namespace.messages += messages;
        namespace.bytes += bytes;
    }
}

#[cold]
fn out_of_range(item: &SendItemRecord<'_>) -> Error {
    let reason = format!("priority {}, max_attempts {}", item.priority, item.max_attempts);
    Error::Internal { reason: format!("a send record is out of range: {reason}") }
}
