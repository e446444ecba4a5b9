//! Look-up from blobs to their messages, for blobs whose bytes were found damaged.

use crate::core::Core;
use crate::query::{MessageView, Page};
use crate::queue::QueueModule;

impl QueueModule {
    pub(crate) fn find_blobs(
        &self,
        is_sought: impl Fn(u64, u32) -> bool,
        cursor: Option<u64>,
        limit: usize,
        core: &Core,
    ) -> Page<MessageView> {
        let (slots, next) = self.messages.range(cursor.unwrap_or(0) as u32, limit);
        let found = slots.filter(|(_, message)| is_sought(message.blob_index, message.blob_item));
        Page {
            items: found.map(|(slot, _)| self.message_view(slot, core)).collect(),
            next: next.map(u64::from),
        }
    }
}
