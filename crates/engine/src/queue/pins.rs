//! Pins: deliveries that prepared transactions settle, and queues that they send to. Until such a transaction
//! is finished nobody else settles or extends the lease, it does not end, and the queue is not deleted.
//!
//! A pinned message has another token than its receipt, so that the receipt does not hold it.

use std::collections::BTreeMap;

use crate::core::{Core, agree};
use crate::error::Error;
use crate::id::{NamespaceId, Receipt};
use crate::limits::DELAY_MS_MAX;
use crate::outcome::Outcome;
use crate::query::Counters;
use crate::queue::QueueModule;
use crate::queue::send::several::Several;
use crate::queue::state::work::Work;
use crate::queue::state::{MessageSlot, QueueSlot};
use crate::store::slot::Slot;
use crate::wire::{HeadPart, Put, Reader};

/// The token of a pinned message, which no receipt has.
const PINNED_TOKEN: u64 = 0;

#[derive(Debug, Default)]
pub(crate) struct Pins {
    leases: BTreeMap<MessageSlot, Lease>,
    queues: BTreeMap<QueueSlot, PinnedQueue>,
    /// Queues that are made as short as they may be, with the first of the messages that make no room.
    spared: BTreeMap<QueueSlot, u64>,
    /// Messages that will be sent, of all queues. Derived.
    pub(crate) reserved: u64,
}

/// The lease that a pinned message has.
#[derive(Debug)]
struct Lease {
    token: u64,
    /// When it ends, in microseconds since the Unix epoch.
    until_us: u64,
}

/// Pins of a queue, with the room for messages to come.
#[derive(Debug, Default)]
struct PinnedQueue {
    /// Number of deliveries and messages.
    pins: u32,
    messages: u64,
    bytes: u64,
    /// True if the queue was made for these messages, and nobody has set it since.
    is_made: bool,
}

impl HeadPart for Pins {
    fn write_head(&self, out: &mut Vec<u8>) {
        out.u32(self.leases.len() as u32);
        for (message, lease) in &self.leases {
            message.write(out);
            out.u64(lease.token);
            out.u64(lease.until_us);
        }
        out.u32(self.queues.len() as u32);
        for (queue, pinned) in &self.queues {
            queue.write(out);
            out.u32(pinned.pins);
            out.u64(pinned.messages);
            out.u64(pinned.bytes);
            out.bool(pinned.is_made);
        }
        out.u32(self.spared.len() as u32);
        for (queue, first) in &self.spared {
            queue.write(out);
            out.u64(*first);
        }
    }

    fn read_head(reader: &mut Reader<'_>) -> Option<Self> {
        let mut pins = Pins::default();
        for _ in 0..reader.u32()? {
            let message = Slot::read(reader)?;
            pins.leases.insert(message, Lease { token: reader.u64()?, until_us: reader.u64()? });
        }
        for _ in 0..reader.u32()? {
            let queue = Slot::read(reader)?;
            let (pins_of, messages, bytes) = (reader.u32()?, reader.u64()?, reader.u64()?);
            let is_made = reader.bool()?;
            pins.queues.insert(queue, PinnedQueue { pins: pins_of, messages, bytes, is_made });
            pins.reserved += messages;
        }
        for _ in 0..reader.u32()? {
            pins.spared.insert(Slot::read(reader)?, reader.u64()?);
        }
        Some(pins)
    }
}

impl Pins {
    /// Compares pins with the deliveries and messages of prepared transactions.
    pub(crate) fn recount(&self, leases: u64, messages: u64) -> Result<(), String> {
        agree("pinned deliveries", leases, self.leases.len() as u64)?;
        agree("reserved messages", messages, self.reserved)?;
        let pins = self.queues.values().map(|queue| u64::from(queue.pins)).sum();
        agree("pins of queues", leases + messages, pins)
    }

    /// Messages and bytes that will be sent to a queue.
    pub(crate) fn brings(&self, queue: QueueSlot) -> (u64, u64) {
        self.queues.get(&queue).map_or((0, 0), |pinned| (pinned.messages, pinned.bytes))
    }

    /// Token and end of the lease that a pinned message has, in microseconds since the Unix epoch.
    pub(crate) fn lease(&self, message: MessageSlot) -> Option<(u64, u64)> {
        self.leases.get(&message).map(|lease| (lease.token, lease.until_us))
    }

    fn add(&mut self, queue: QueueSlot, messages: u64, bytes: u64) {
        let pinned = self.queues.entry(queue).or_default();
        pinned.pins += 1;
        self.reserved += messages;
        (pinned.messages, pinned.bytes) = (pinned.messages + messages, pinned.bytes + bytes);
    }

    /// Lets no message of a queue from this sequence on make room.
    pub(crate) fn spare_from(&mut self, queue: QueueSlot, sequence: u64) {
        self.spared.insert(queue, sequence);
    }

    /// Lets each message of a queue make room.
    pub(crate) fn spare_nothing(&mut self, queue: QueueSlot) {
        self.spared.remove(&queue);
    }

    /// True if the message with this sequence makes no room.
    pub(crate) fn spares(&self, queue: QueueSlot, sequence: u64) -> bool {
        self.spared.get(&queue).is_some_and(|first| sequence >= *first)
    }

    /// A queue that is set is not only there for messages to come.
    pub(crate) fn keep(&mut self, queue: QueueSlot) {
        if let Some(pinned) = self.queues.get_mut(&queue) {
            pinned.is_made = false;
        }
    }

    /// True: nothing pins the queue any more, which was made for what did.
    fn remove(&mut self, queue: QueueSlot, messages: u64, bytes: u64) -> bool {
        let Some(pinned) = self.queues.get_mut(&queue) else { return false };
        pinned.pins -= 1;
        self.reserved -= messages;
        (pinned.messages, pinned.bytes) = (pinned.messages - messages, pinned.bytes - bytes);
        let (is_last, is_made) = (pinned.pins == 0, pinned.is_made);
        if is_last {
            self.queues.remove(&queue);
        }
        is_last && is_made
    }
}

impl QueueModule {
    /// Pins a delivery. Its consumer does not hold it any more.
    pub(crate) fn pin_delivery(&mut self, namespace: NamespaceId, receipt: &Receipt, core: &mut Core) {
        let Some(slot) = self.leased_slot(namespace, receipt, core) else { return };
        let hold = self.messages.get(slot).hold();
        if hold != Slot::NIL {
            self.end_hold(hold);
        }
        let message = self.messages.get_mut(slot);
        message.set_hold(Slot::NIL);
        let lease = Lease { token: message.token, until_us: message.time_us };
        message.token = PINNED_TOKEN;
        let queue = message.queue;
        self.pins.leases.insert(slot, lease);
        self.pins.add(queue, 0, 0);
        self.set_lease(slot, core.now_us + DELAY_MS_MAX * 1_000, core);
    }

    /// Lets go of a delivery. `ends`: its lease goes on as long as it would have; else it holds until it is
    /// settled.
    pub(crate) fn unpin_delivery(&mut self, receipt: &Receipt, ends: bool, core: &mut Core) {
        let Some(slot) = self.find_message(receipt.id, core) else { return };
        let Some(lease) = self.pins.leases.remove(&slot) else { return };
        let message = self.messages.get_mut(slot);
        message.token = lease.token;
        let queue = message.queue;
        self.pins.remove(queue, 0, 0);
        if ends {
            self.set_lease(slot, lease.until_us, core);
        }
    }

    fn set_lease(&mut self, slot: MessageSlot, until_us: u64, core: &Core) {
        self.wheel.remove(&mut self.messages, slot);
        self.messages.get_mut(slot).time_us = until_us;
        self.wheel.insert(&mut self.messages, slot, core.now_us);
    }

    /// Refuses to touch a message that is pinned.
    pub(crate) fn expect_decided(&self, slot: MessageSlot, core: &Core) -> Result<(), Error> {
        if self.pins.leases.is_empty() || !self.pins.leases.contains_key(&slot) {
            return Ok(());
        }
        Err(Error::InDoubt { what: format!("message {}", self.id_of_slot(slot, core)) })
    }

    /// The refusal of a receipt whose delivery is pinned.
    pub(crate) fn why_pinned(&self, receipt: &Receipt, core: &Core) -> Option<Error> {
        let namespace = core.namespace_slot(receipt.id.namespace)?;
        let slot = self.indexes.get(namespace).directory.get(receipt.id.sequence)?;
        let lease = self.pins.leases.get(&slot)?;
        (lease.token == receipt.token && core.receipt_key.made(receipt))
            .then(|| Error::InDoubt { what: format!("the delivery of {}", receipt.id) })
    }

    /// Refuses to delete a queue that is pinned.
    pub(crate) fn expect_queue_decided(&self, slot: QueueSlot) -> Result<(), Error> {
        if !self.pins.queues.contains_key(&slot) {
            return Ok(());
        }
        Err(Error::InDoubt { what: format!("queue {:?}", self.queues.get(slot).name) })
    }

    /// Reserves room for messages that were admitted, which count in the namespace; missing queues are made.
    pub(crate) fn pin_messages(&mut self, several: Several<'_>, core: &mut Core) {
        let first_new = self.next_queue;
        let queues = self.queues_of_several(several, core);
        for ((_, item), queue) in several.items.iter().zip(queues) {
            self.pins.add(queue, 1, item.blob_len.into());
            if self.queues.get(queue).number >= first_new
                && let Some(pinned) = self.pins.queues.get_mut(&queue)
            {
                pinned.is_made = true;
            }
        }
        let namespace = core.namespaces.get_mut(several.namespace_slot);
        namespace.messages += several.items.len() as u64;
        namespace.bytes += several.bytes();
    }

    /// Deletes a queue that was made for messages which are not sent, if nothing has ever been in it.
    fn unmake(&mut self, slot: QueueSlot, core: &mut Core, out: &mut Outcome) {
        if self.queues.get(slot).counters == Counters::default() {
            self.delete_queue(slot, core, out);
            self.begin_work(Work::Queue(slot), core, out);
        }
    }

    /// Gives back the room of messages, which are sent now or not at all.
    pub(crate) fn unpin_messages(
        &mut self,
        several: Several<'_>,
        commit: bool,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        for (queue, item) in several.items {
            if let Some(slot) = self.find_queue(several.namespace_slot, queue)
                && self.pins.remove(slot, 1, item.blob_len.into())
                && !commit
            {
                self.unmake(slot, core, out);
            }
        }
        let namespace = core.namespaces.get_mut(several.namespace_slot);
        namespace.messages -= several.items.len() as u64;
        namespace.bytes -= several.bytes();
    }
}
