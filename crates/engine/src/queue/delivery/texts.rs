//! Settling on a full disk: error texts and results are left out.

use crate::core::Core;
use crate::id::Receipt;
use crate::queue::QueueModule;
use crate::queue::record::delivery::{SettleItemRecord, SettleRecord, settle_without_blobs};

impl QueueModule {
    /// The body of a settle record without its error texts and results; `None`: a result is wanted.
    pub(crate) fn settle_without_texts(
        &self,
        body: &[u8],
        settle: &SettleRecord<'_>,
        core: &Core,
    ) -> Option<Vec<u8>> {
        let wanted = settle.items().any(|item| self.wants_result_of(&item, core));
        (!wanted).then(|| settle_without_blobs(body))
    }

    /// True if a settlement brings a result that somebody wants.
    pub(crate) fn wants_result_of(&self, item: &SettleItemRecord, core: &Core) -> bool {
        item.result.is_some() && self.wants_result(&item.receipt, core)
    }

    /// True if the result of a message would be kept, sent as a reply, or handed to a next step.
    fn wants_result(&self, receipt: &Receipt, core: &Core) -> bool {
        let Some(slot) = self.message_slot(receipt.id, core) else { return false };
        let message = self.messages.get(slot);
        let asked = self.extras.results(message.extras);
        message.token == receipt.token
            && (asked.is_some_and(|asked| asked.ttl_ms > 0 || !asked.reply_to.is_empty())
                || self.hands_on_result(slot)
                || self.queues.get(message.queue).settings.retains_done())
    }
}
