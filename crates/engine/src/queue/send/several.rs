//! Messages to several queues, all or none: what groups and transactions send.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::{BlobRef, NamespaceId};
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::record::item::SendItemRecord;
use crate::queue::record::options::read_options;
use crate::queue::send::Place;
use crate::queue::state::QueueSlot;

/// Messages of one record with their queues. The blob of each is that with its place in the list; those of
/// the steps that they carry follow.
#[derive(Clone, Copy)]
pub(crate) struct Several<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) namespace_slot: NamespaceSlot,
    pub(crate) items: &'a [(&'a str, SendItemRecord<'a>)],
}

/// Names of messages in errors.
#[derive(Clone, Copy)]
pub(crate) struct Naming<'n> {
    /// Path of a message, with which the names of its fields begin.
    pub(crate) prefix: &'n dyn Fn(usize) -> String,
    /// True if messages are `messages[0]` and so on where a queue is too short for what they wait.
    pub(crate) is_list: bool,
}

/// A refusal, and the message that is to blame; `None`: all of them together.
pub(crate) type Refused = (Option<usize>, Error);

impl Several<'_> {
    /// Bytes of the messages' blobs.
    pub(crate) fn bytes(&self) -> u64 {
        self.items.iter().map(|(_, item)| u64::from(item.blob_len)).sum()
    }
}

impl QueueModule {
    /// Checks messages and their queues; returns the bytes of their blobs. The quotas of the namespace are
    /// still to be checked.
    pub(crate) fn admit_several(
        &self,
        several: Several<'_>,
        naming: Naming<'_>,
        core: &Core,
    ) -> Result<u64, Refused> {
        let mut missing = BTreeSet::new();
        let mut brings: BTreeMap<&str, (usize, u64, u64)> = BTreeMap::new();
        for (at, (queue, item)) in several.items.iter().enumerate() {
            let blame = |error| (Some(at), error);
            self.admit_one_of_several(several, at, naming, core).map_err(blame)?;
            let (last, messages, bytes) = brings.entry(queue).or_default();
            (*last, *messages, *bytes) = (at, *messages + 1, *bytes + u64::from(item.blob_len));
            match self.find_queue(several.namespace_slot, queue) {
                Some(found) => self.admit_to_queue(Some(found)).map_err(blame)?,
                None => {
                    self.admit_use_of_new(several.namespace_slot, queue, core).map_err(blame)?;
                    missing.insert(queue);
                }
            }
        }
        let of_all = |error| (None, error);
        if !missing.is_empty() {
            self.admit_queues(several.namespace_slot, missing.len() as u64, core).map_err(of_all)?;
        }
        self.admit_messages(several.items.len() as u64, core).map_err(of_all)?;
        for (queue, (last, messages, bytes)) in &brings {
            let admitted = self.admit_room_of_several(several, queue, (*messages, *bytes), naming, core);
            admitted.map_err(|error| (Some(*last), error))?;
        }
        Ok(brings.values().map(|(_, _, bytes)| bytes).sum())
    }

    fn admit_one_of_several(
        &self,
        several: Several<'_>,
        at: usize,
        naming: Naming<'_>,
        core: &Core,
    ) -> Result<(), Error> {
        let prefix = || (naming.prefix)(at);
        let options = self.admit_item(several.namespace_slot, &several.items[at].1, core);
        let options = options.map_err(|error| error.within(&prefix()))?.unwrap_or_default();
        if options.unique.is_some() {
            let reason = "a record with messages to several queues, one of which has a unique key".into();
            return Err(Error::Internal { reason });
        }
        self.admit_parents(at as u32, several.namespace, &options, prefix, core)
    }

    /// Refuses messages for which a queue that is bounded has no room.
    fn admit_room_of_several(
        &self,
        several: Several<'_>,
        queue: &str,
        size: (u64, u64),
        naming: Naming<'_>,
        core: &Core,
    ) -> Result<(), Error> {
        let found = self.find_queue(several.namespace_slot, queue);
        if !self.is_bounded(several.namespace_slot, found, queue.as_bytes()) {
            return Ok(());
        }
        let there = (0..).zip(several.items).filter(|(_, (name, _))| *name == queue);
        let delays = there.map(|(at, (_, item))| (naming.is_list.then_some(at), item.deliver));
        self.admit_to_bounded(several.namespace_slot, found, queue.as_bytes(), size, delays, core)
    }

    /// Sends messages that [`QueueModule::admit_several`] has admitted, with the ids from `first` on. The
    /// last one follows the others if it is their callback.
    pub(crate) fn place_several(
        &mut self,
        several: Several<'_>,
        first: u64,
        has_callback: bool,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let Several { namespace_slot, items, .. } = several;
        let queues = self.queues_of_several(several, core);
        (self.flows.first, self.flows.next_blob) = (first, items.len() as u32);
        let index = core.applied_index;
        for ((n, (_, item)), &queue_slot) in (0u32..).zip(items).zip(&queues) {
            let blob = BlobRef { index, item: n, len: item.blob_len };
            let place = Place { namespace_slot, queue_slot, sequence: first + u64::from(n) };
            self.count_sent(namespace_slot, queue_slot, 1, item.blob_len.into(), core);
            if has_callback && n as usize + 1 == items.len() {
                self.insert_callback(place, first, item, blob, core, out);
            } else {
                self.insert_one(place, item, item.options.and_then(read_options).as_ref(), blob, core, out);
            }
        }
        for (sequence, &queue_slot) in (first..).zip(&queues) {
            if self.queues.get(queue_slot).settings.is_bounded() {
                self.keep_bounds(queue_slot, sequence..sequence + 1, core);
            }
        }
    }

    /// The queue of each message; those that are missing are made.
    pub(crate) fn queues_of_several(&mut self, several: Several<'_>, core: &mut Core) -> Vec<QueueSlot> {
        let slot = |(name, _): &(&str, SendItemRecord<'_>)| {
            let found = self.find_queue(several.namespace_slot, name);
            found.unwrap_or_else(|| self.make_queue(several.namespace_slot, name, core))
        };
        several.items.iter().map(slot).collect()
    }
}
