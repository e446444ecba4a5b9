//! Groups: messages in several queues, and one more, the callback, that follows when all of them have ended.
//!
//! The callback is a message from the beginning: it has its id, its place and its quota, and waits for the
//! members as for parents. So it comes exactly once, whatever happens meanwhile, and cannot be refused in the
//! end. Each member counts once, by its first end.

use crate::core::Core;
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
use crate::queue::send::several::{Naming, Several};
use crate::queue::state::FlowSlot;
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
        let items: Vec<(&str, SendItemRecord<'_>)> = group.items().collect();
        let several = Several { namespace: group.namespace, namespace_slot, items: &items };
        let bytes = self.admit_group(several, core)?;
        core.admit_to_namespace(namespace_slot, group.count.into(), bytes)?;
        let first = self.reserve_sequences(namespace_slot, group.count, core)?;
        self.place_several(several, first, true, core, out);
        if let Some(queue_slot) = self.find_queue(namespace_slot, callback_queue) {
            self.remember(queue_slot, first, &head, core, out);
        }
        let first = MessageId { namespace: group.namespace, sequence: first };
        out.reply = Reply::Sent { first, count: group.count, duplicate: false };
        Ok(true)
    }

    /// Checks the items and their queues; returns the bytes of the blobs.
    fn admit_group(&self, several: Several<'_>, core: &Core) -> Result<u64, Error> {
        let last = several.items.len() - 1;
        let callback = several.items[last].1.options.and_then(read_options);
        if callback.is_some_and(|options| options.depends_on.is_some()) {
            let reason = "a group record whose callback waits for others".into();
            return Err(Error::Internal { reason });
        }
        let prefix = |at| if at == last { "callback.".into() } else { format!("messages[{at}].") };
        let naming = Naming { prefix: &prefix, is_list: true };
        self.admit_several(several, naming, core).map_err(|(_, error)| error)
    }

    /// The last message of a group, which waits for all before it, from `first` on.
    pub(crate) fn insert_callback(
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
