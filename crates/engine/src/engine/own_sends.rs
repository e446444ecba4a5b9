//! Messages that the engine itself sends, as a consequence of another record: replies.

use super::Engine;
use super::send::Place;
use crate::error::Error;
use crate::id::{BlobRef, MessageId, NamespaceId};
use crate::options::SendOptions;
use crate::outcome::Outcome;

impl Engine {
    /// Sends one message, ready at once, whose blob lies in the log already; the blob is the message's from then on. All
    /// limits and quotas hold as for a caller's send, and nothing is changed when one refuses it.
    pub(super) fn send_of_engine(
        &mut self,
        namespace: NamespaceId,
        queue: &str,
        blob: BlobRef,
        options: &SendOptions<'_>,
        out: &mut Outcome,
    ) -> Result<MessageId, Error> {
        let namespace_slot = self.find_namespace(namespace)?;
        let found = self.find_queue(namespace_slot, queue);
        self.admit_to_queue(found)?;
        let bytes = u64::from(blob.len);
        self.admit_messages(1)?;
        self.admit_to_namespace(namespace_slot, 1, bytes)?;
        let sequence = self.next_sequence(namespace_slot, 1)?;
        let queue_slot = match found {
            Some(slot) => slot,
            None => self.create_by_use(namespace_slot, queue.as_bytes())?,
        };
        let message = self.new_message(queue_slot, sequence, blob, 0, 0);
        let slot = self.place_message(Place { namespace_slot, queue_slot, sequence }, message);
        if let Some(options) = options.given() {
            self.add_extras(slot, None, Some(options));
        }
        self.admit(slot, 0, out);
        self.count_sent(namespace_slot, queue_slot, 1, bytes);
        Ok(MessageId { namespace, sequence })
    }
}
