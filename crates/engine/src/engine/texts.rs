//! Settling on a full disk: what a settlement brings along is left out, and it takes effect all the same.

use super::Engine;
use crate::id::Receipt;
use crate::record::{Kind, decode, kind_of, settle_without_blobs};

impl Engine {
    /// The body of a settle record without its error texts and results, so that it brings nothing that stays.
    /// `None`: it is another record, or somebody wants one of its results, which must not be lost.
    pub fn without_texts(&self, body: &[u8]) -> Option<Vec<u8>> {
        if !matches!(kind_of(body), Ok(Kind::Settle)) {
            return None;
        }
        let settle = decode::settle(body).ok()?;
        let wanted = settle.items().any(|item| item.result.is_some() && self.wants_result(&item.receipt));
        (!wanted).then(|| settle_without_blobs(body))
    }

    /// Whether the result of a message would be kept, sent as a reply, or handed to a next step.
    fn wants_result(&self, receipt: &Receipt) -> bool {
        let Some(slot) = self.message_slot(receipt.id) else { return false };
        let message = self.messages.get(slot);
        let asked = self.extras.results(message.extras);
        message.token == receipt.token
            && (asked.is_some_and(|asked| asked.ttl_ms > 0 || !asked.reply_to.is_empty())
                || self.flow_of(slot).is_some()
                || self.queues.get(message.queue).settings.retains_done())
    }
}
