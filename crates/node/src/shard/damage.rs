//! Messages whose bytes the scrub found damaged wait for a person from then on. A blob does not know its message, so
//! the shard looks for it among all messages, a little in each step.

use sluice_engine::command::Command;

use super::store::Store;
use super::{Pending, Shard};
use crate::clock::Clock;

/// Messages that one step looks at.
const STEP_MESSAGES: usize = 2_000;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Takes the search for the oldest damaged blob's message a step further; tells whether there is more to do.
    pub(super) fn hold_damaged(&mut self) -> bool {
        let Some(key) = self.damaged.front().copied() else { return false };
        let found = self.engine.find_blob(key.index, key.item, self.damaged_cursor, STEP_MESSAGES);
        self.damaged_cursor = found.next;
        if let Some(view) = found.items.first() {
            tracing::error!(message = %view.id, "the stored payload is damaged: the message is held");
            self.propose(&Command::HoldDamaged { id: view.id, blob: view.blob }, Pending::Internal);
            self.damaged_cursor = None;
        }
        if self.damaged_cursor.is_none() {
            self.damaged.pop_front();
        }
        true
    }
}
