//! Groups: messages in several queues, and one more, the callback, that follows when all of them have ended.
//!
//! The callback is a message from the beginning: it has its id, its place and its quota, and waits for the
//! members as for parents. So it comes exactly once, whatever happens meanwhile, and cannot be refused in the
//! end. Each member counts once, by its first end.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::{BlobRef, MessageId};
use crate::item::{Chain, DependsMode, OnParentFailed, SendOptions};
use crate::outcome::{Outcome, Reply};
use crate::query::GroupView;
use crate::queue::QueueModule;
use crate::queue::record::group::GroupRecord;
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::read_options;
use crate::queue::send::Place;
use crate::queue::state::{FlowSlot, QueueSlot};
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn group(
        &mut self,
        group: &GroupRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let sent = self.send_group(group, core, out);
        if sent != Ok(true) {
            out.released.extend(group.blobs(core.applied_index));
        }
        sent.map(|_| ())
    }

    /// False if it was sent before, under its idempotency key.
    fn send_group(
        &mut self,
        group: &GroupRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<bool, Error> {
        let namespace_slot = core.find_namespace(group.namespace)?;
        let callback_queue = group.items().last().map_or("", |(queue, _)| queue);
        let head = group.head(callback_queue);
        if let Some(queue_slot) = self.find_queue(namespace_slot, callback_queue)
            && self.repeated(queue_slot, &head, core, out)?
        {
            return Ok(false);
        }
        let bytes = self.admit_group(namespace_slot, group, core)?;
        self.admit_messages(group.count.into(), core)?;
        core.admit_to_namespace(namespace_slot, group.count.into(), bytes)?;
        let first = self.reserve_sequences(namespace_slot, group.count, core)?;
        let queues = self.queues_of_group(namespace_slot, group, core);
        (self.flows.first, self.flows.next_blob) = (first, group.count);
        let index = core.applied_index;
        for ((n, (_, item)), &queue_slot) in (0u32..).zip(group.items()).zip(&queues) {
            let blob = BlobRef { index, item: n, len: item.blob_len };
            let place = Place { namespace_slot, queue_slot, sequence: first + u64::from(n) };
            self.count_sent(namespace_slot, queue_slot, 1, item.blob_len.into(), core);
            if n + 1 == group.count {
                self.insert_callback(place, first, &item, blob, core, out);
                self.remember(queue_slot, first, &head, core, out);
            } else {
                self.insert_one(place, &item, item.options.and_then(read_options).as_ref(), blob, core, out);
            }
        }
        for (sequence, &queue_slot) in (first..).zip(&queues) {
            if self.queues.get(queue_slot).settings.is_bounded() {
                self.keep_bounds(queue_slot, sequence..sequence + 1, core);
            }
        }
        let first = MessageId { namespace: group.namespace, sequence: first };
        out.reply = Reply::Sent { first, count: group.count, duplicate: false };
        Ok(true)
    }

    /// Checks the items and their queues; returns the bytes of the blobs.
    fn admit_group(
        &self,
        namespace_slot: NamespaceSlot,
        group: &GroupRecord<'_>,
        core: &Core,
    ) -> Result<u64, Error> {
        let mut bytes = 0;
        let mut missing = BTreeSet::new();
        let mut brings: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (at, (queue, item)) in (0u32..).zip(group.items()) {
            bytes += u64::from(item.blob_len);
            let callback = at + 1 == group.count;
            let prefix = || if callback { "callback.".into() } else { format!("messages[{at}].") };
            let options = self.admit_item(namespace_slot, &item, core);
            let options = options.map_err(|error| error.within(&prefix()))?.unwrap_or_default();
            if options.unique.is_some() || (callback && options.depends_on.is_some()) {
                return Err(Error::Internal {
                    reason: "a group record whose messages cannot belong to one".into(),
                });
            }
            self.admit_parents(at, group.namespace, &options, prefix, core)?;
            let (messages, bytes_there) = brings.entry(queue).or_default();
            *messages += 1;
            *bytes_there += u64::from(item.blob_len);
            match self.find_queue(namespace_slot, queue) {
                Some(found) => self.admit_to_queue(Some(found))?,
                None => {
                    self.admit_use_of_new(namespace_slot, queue, core)?;
                    missing.insert(queue);
                }
            }
        }
        if !missing.is_empty() {
            self.admit_queues(namespace_slot, missing.len() as u64, core)?;
        }
        for (queue, size) in brings {
            let found = self.find_queue(namespace_slot, queue);
            if self.is_bounded(namespace_slot, found, queue.as_bytes()) {
                let there = (0..).zip(group.items()).filter(|(_, (name, _))| *name == queue);
                let delays = there.map(|(at, (_, item))| (Some(at), item.deliver));
                self.admit_to_bounded(namespace_slot, found, queue.as_bytes(), size, delays, core)?;
            }
        }
        Ok(bytes)
    }

    /// The queue of each item; those that are missing are made.
    fn queues_of_group(
        &mut self,
        namespace_slot: NamespaceSlot,
        group: &GroupRecord<'_>,
        core: &mut Core,
    ) -> Vec<QueueSlot> {
        let names = group.items().map(|(queue, _)| queue);
        let slot = |name| {
            let found = self.find_queue(namespace_slot, name);
            found.unwrap_or_else(|| self.make_queue(namespace_slot, name, core))
        };
        names.map(slot).collect()
    }

    /// The last message of a group, which waits for all before it, from `first` on.
    fn insert_callback(
        &mut self,
        place: Place,
        first: u64,
        item: &SendItemRecord<'_>,
        blob: BlobRef,
        core: &Core,
        out: &mut Outcome,
    ) {
        let slot = self.place_message(place, blob, item, core, out);
        let options = item.options.and_then(read_options);
        self.add_extras(slot, item.backoff, options.as_ref(), core);
        if let Some(SendOptions { chain: Chain::Laid(laid), .. }) = options {
            self.enter_chain(slot, laid, core);
        }
        let flow = self.enter_flow(slot);
        let of_callback = self.flows.slots.get_mut(flow);
        of_callback.group = true;
        of_callback.waiting = true;
        of_callback.mode = DependsMode::All;
        of_callback.on_parent_failed = OnParentFailed::Run;
        for sequence in first..place.sequence {
            let found = self.indexes.get_mut(place.namespace_slot).directory.find(sequence);
            let Some(member) = found else { continue };
            let member_flow = self.enter_flow(member);
            let parent = self.flows.enter_parent(member_flow, sequence, None);
            self.flows.connect(parent, slot, flow);
        }
        self.list_judgement(slot, core);
        let due_us = self.due_us(item.deliver, core);
        if options.is_some_and(|options| options.hold) {
            self.begin_held(slot, due_us, core, out);
        } else {
            self.admit(slot, due_us, core, out);
        }
    }

    pub(crate) fn group_view(&self, callback: MessageId, core: &Core) -> Option<GroupView> {
        let slot = self.message_slot(callback, core)?;
        let flow = self.flows.slots.get(self.flow_of(slot)?);
        let state = self.messages.get(slot).state?;
        let view = GroupView { pending: flow.open, done: flow.done, dead: flow.failed, callback: state };
        flow.group.then_some(view)
    }

    /// Numbers of members that are done and that have failed, for the delivery of a callback.
    pub(crate) fn group_counts(&self, flow: FlowSlot) -> Option<(u32, u32)> {
        let flow = (flow != Slot::NIL).then(|| self.flows.slots.get(flow))?;
        flow.group.then_some((flow.done, flow.failed))
    }
}
