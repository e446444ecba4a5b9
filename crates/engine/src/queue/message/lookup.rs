//! Look-ups from names, numbers and ids to slots.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::hash::hash;
use crate::id::{MessageId, NamespaceId};
use crate::queue::QueueModule;
use crate::queue::state::message::Message;
use crate::queue::state::queue::Queue;
use crate::queue::state::{MessageSlot, QueueSlot};

pub(crate) fn queue_hash(namespace_slot: NamespaceSlot, name: &str) -> u64 {
    hash(u64::from(namespace_slot.index()), name.as_bytes())
}

impl QueueModule {
    /// Like `find_queue`, for a name as bytes, on the hot path.
    #[inline(always)]
    pub(crate) fn find_queue_again(
        &mut self,
        namespace_slot: NamespaceSlot,
        name: &[u8],
    ) -> Option<QueueSlot> {
        if self.was_last_queue(namespace_slot, name) {
            return Some(self.last_queue);
        }
        self.look_up_queue(namespace_slot, name)
    }

    /// The same for reads.
    pub(crate) fn peek_queue(&self, namespace_slot: NamespaceSlot, name: &str) -> Option<QueueSlot> {
        if self.was_last_queue(namespace_slot, name.as_bytes()) {
            return Some(self.last_queue);
        }
        self.find_queue(namespace_slot, name)
    }

    #[inline(always)]
    fn was_last_queue(&self, namespace_slot: NamespaceSlot, name: &[u8]) -> bool {
        self.last_queue.index() < self.queues.slots() && {
            let queue = self.queues.get(self.last_queue);
            queue.namespace == namespace_slot && queue.name.as_bytes() == name && !queue.deleted
        }
    }

    #[inline(never)]
    fn look_up_queue(&mut self, namespace_slot: NamespaceSlot, name: &[u8]) -> Option<QueueSlot> {
        let found = self.find_queue(namespace_slot, std::str::from_utf8(name).ok()?)?;
        self.last_queue = found;
        Some(found)
    }

    /// Slot of the queue with this name.
    #[inline]
    pub(crate) fn find_queue(&self, namespace_slot: NamespaceSlot, name: &str) -> Option<QueueSlot> {
        self.queue_names.find(queue_hash(namespace_slot, name), |slot| {
            let queue = self.queues.get(slot);
            queue.namespace == namespace_slot && *queue.name == *name
        })
    }

    /// Slots of namespace and queue, both existing.
    pub(crate) fn require_queue(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
    ) -> Result<QueueSlot, Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        self.find_queue(namespace_slot, name).ok_or_else(|| queue_not_found(name))
    }

    /// Slot of a message that is there for those who ask.
    #[inline(always)]
    pub(crate) fn find_message(&mut self, id: MessageId, core: &mut Core) -> Option<MessageSlot> {
        let namespace_slot = core.live_namespace(id.namespace)?;
        let slot = self.indexes.get_mut(namespace_slot).directory.find(id.sequence)?;
        (!self.is_stale(slot)).then_some(slot)
    }

    /// Slot of a message that a consequence names, also in a deleted namespace; `None`: it is gone or stale.
    pub(crate) fn find_listed(&self, id: MessageId, core: &Core) -> Option<MessageSlot> {
        let namespace_slot = core.namespace_numbers.get(u64::from(id.namespace.0))?;
        let slot = self.indexes.get(namespace_slot).directory.get(id.sequence)?;
        (!self.is_stale(slot)).then_some(slot)
    }

    /// Like `find_message`, for reads.
    pub(crate) fn message_slot(&self, id: MessageId, core: &Core) -> Option<MessageSlot> {
        let namespace_slot = core.namespace_slot(id.namespace)?;
        let slot = self.indexes.get(namespace_slot).directory.get(id.sequence)?;
        (!self.is_stale(slot)).then_some(slot)
    }

    #[inline(always)]
    pub(crate) fn is_stale(&self, slot: MessageSlot) -> bool {
        let message = self.messages.get(slot);
        self.queues.get(message.queue).is_stale(message)
    }

    pub(crate) fn id_of(&self, message: &Message, queue: &Queue, core: &Core) -> MessageId {
        let namespace = NamespaceId(core.namespaces.get(queue.namespace).number);
        MessageId { namespace, sequence: message.sequence }
    }
}

#[cold]
pub(crate) fn queue_closed(name: &str) -> Error {
    Error::QueueClosed { queue: name.to_owned() }
}

pub(crate) fn queue_not_found(name: &str) -> Error {
    Error::QueueNotFound { queue: name.to_owned() }
}
