//! From a blob back to its message, for those who have found its bytes damaged.

use super::Engine;
use crate::query::{MessageView, Page};

impl Engine {
    /// The message whose content type, headers and payload are blob `item` of record `index`, searched among `limit`
    /// slots. `cursor` is the `next` of the search before; a page without `next` is the last.
    pub fn find_blob(&self, index: u64, item: u32, cursor: Option<u64>, limit: usize) -> Page<MessageView> {
        let (mut slots, next) = self.messages.range(cursor.unwrap_or(0) as u32, limit);
        let found = slots.find(|(_, message)| message.blob_index == index && message.blob_item == item);
        Page {
            items: found.map(|(slot, _)| self.message_view(slot)).into_iter().collect(),
            next: next.map(u64::from),
        }
    }
}
