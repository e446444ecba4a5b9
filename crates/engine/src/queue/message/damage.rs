//! From blobs back to their messages, for those who have found their bytes damaged.

use crate::engine::Engine;
use crate::query::{MessageView, Page};

impl Engine {
    /// The messages whose content type, headers and payload are a blob, named by record index and item, of which
    /// `is_sought` says so, searched among `limit` slots. `cursor` is the `next` of the search before; a page without
    /// `next` is the last.
    pub fn find_blobs(
        &self,
        is_sought: impl Fn(u64, u32) -> bool,
        cursor: Option<u64>,
        limit: usize,
    ) -> Page<MessageView> {
        let (slots, next) = self.messages.range(cursor.unwrap_or(0) as u32, limit);
        let found = slots.filter(|(_, message)| is_sought(message.blob_index, message.blob_item));
        Page { items: found.map(|(slot, _)| self.message_view(slot)).collect(), next: next.map(u64::from) }
    }
}
