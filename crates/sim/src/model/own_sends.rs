//! Messages that the engine sends by itself, as a consequence of another record.

use sluice_engine::command::Deliver;
use sluice_engine::id::{EPOCH_SHIFT, MessageId, NamespaceId};

use super::Apply;
use super::Message;

impl Apply<'_> {
    /// The id of the next message sent in a namespace.
    pub(super) fn next_id(&self, namespace: NamespaceId) -> Option<MessageId> {
        let last = self.world.namespaces.get(&namespace)?.last_sequence;
        let sequence = last.max(self.world.epoch << EPOCH_SHIFT) + 1;
        Some(MessageId { namespace, sequence })
    }

    /// Sends a complete message that has no place yet; or returns the code with which it was refused, as a
    /// client's send would be.
    pub(super) fn own_send(
        &mut self,
        namespace: NamespaceId,
        queue: &str,
        message: Message,
        deliver: Deliver,
    ) -> Result<Result<MessageId, &'static str>, String> {
        let more = (1, u64::from(message.blob.len));
        if let Some(refusal) = self.no_room(namespace, queue, more, std::iter::once(deliver)) {
            return Ok(Err(refusal));
        }
        let Some(id) = self.next_id(namespace) else { return Ok(Err("namespace_not_found")) };
        let queue = self.queue_for(namespace, queue)?;
        self.give_id(id);
        self.place_sent(id, Message { queue, ..message }, deliver);
        self.make_room(queue);
        Ok(Ok(id))
    }

    /// Notes that this id is given; no earlier one is given later.
    pub(super) fn give_id(&mut self, id: MessageId) {
        if let Some(namespace) = self.world.namespaces.get_mut(&id.namespace) {
            namespace.last_sequence = namespace.last_sequence.max(id.sequence);
        }
    }
}
