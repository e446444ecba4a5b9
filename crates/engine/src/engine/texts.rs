//! Settling and extending on a full disk: what they bring along is left out, and they take effect all the
//! same.

use crate::engine::Engine;
use crate::id::Receipt;
use crate::record::{Kind, RareRecord, decode, kind_of, report_without_notes, settle_without_blobs};

impl Engine {
    /// The body of a settle record without its error texts and results, or of a report without its notes, so
    /// that it brings nothing that stays. `None`: it is another record, or has what must not be lost: a
    /// result that somebody wants, or a checkpoint.
    pub fn without_texts(&self, body: &[u8]) -> Option<Vec<u8>> {
        match kind_of(body).ok()? {
            Kind::Settle => self.settle_without_texts(body),
            Kind::Rare if matches!(decode::rare(body), Ok(RareRecord::Report(_))) => {
                report_without_notes(body)
            }
            _ => None,
        }
    }

    fn settle_without_texts(&self, body: &[u8]) -> Option<Vec<u8>> {
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
                || self.hands_on_result(slot)
                || self.queues.get(message.queue).settings.retains_done())
    }
}
