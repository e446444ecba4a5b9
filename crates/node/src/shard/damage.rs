//! Holding of messages with damaged bytes, as the scrub finds them. A blob does not know its message, so that
//! the shard searches all messages, a part in each step, for all damaged blobs at once.

use rustc_hash::FxHashSet;
use sluice_engine::command::Command;
use sluice_engine::query::State;
use sluice_journal::BlobKey;

use super::Shard;
use super::store::Store;
use crate::clock::Clock;

/// Number of messages that one step examines.
const STEP_MESSAGES: usize = 2_000;

/// Damaged blobs whose messages are not known yet.
#[derive(Debug, Default)]
pub(super) struct Damaged {
    /// Blobs of the running search.
    sought: FxHashSet<BlobKey>,
    /// Position of the running search.
    cursor: Option<u64>,
    /// Blobs found meanwhile, for the next search.
    told: FxHashSet<BlobKey>,
}

impl Damaged {
    pub(super) fn push(&mut self, key: BlobKey) {
        self.told.insert(key);
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Continues the search; true when there is more to do.
    pub(super) fn hold_damaged(&mut self) -> bool {
        if self.damaged.sought.is_empty() {
            self.damaged.sought = std::mem::take(&mut self.damaged.told);
            self.damaged.cursor = None;
        }
        if self.damaged.sought.is_empty() {
            return false;
        }
        let mut sought = std::mem::take(&mut self.damaged.sought);
        let is_sought = |index, item| sought.contains(&BlobKey { index, item });
        let found = self.engine.find_blobs(is_sought, self.damaged.cursor, STEP_MESSAGES);
        let mut held = 0;
        for view in &found.items {
            sought.remove(&BlobKey { index: view.blob.index, item: view.blob.item });
            if view.state != State::Held {
                held += 1;
                self.owe(&Command::HoldDamaged { id: view.id, blob: view.blob });
            }
        }
        if let (Some(view), 1..) = (found.items.first(), held) {
            tracing::error!(messages = held, first = %view.id, "stored payloads are damaged: their messages are held");
        }
        self.damaged.cursor = found.next;
        if found.next.is_some() {
            self.damaged.sought = sought;
        }
        true
    }
}
