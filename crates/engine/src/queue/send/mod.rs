//! Send: checks all messages of a record, then places them, all or none.

mod admit;
pub(crate) mod check;
mod insert;
pub(crate) mod own;
pub(crate) mod pending;
mod repeats;
pub(crate) mod several;

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::{EPOCH_SHIFT, MessageId};
use crate::outcome::{Outcome, Reply};
use crate::queue::QueueModule;
use crate::queue::record::send::{ItemOptions, SendRecord};
use crate::queue::send::admit::Admitted;
use crate::queue::state::QueueSlot;

/// Where a new message belongs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) namespace_slot: NamespaceSlot,
    pub(crate) queue_slot: QueueSlot,
    pub(crate) sequence: u64,
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
            return Err(send.namespace.not_found());
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
        core.admit_to_namespace(namespace_slot, u64::from(send.count), bytes)?;
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
