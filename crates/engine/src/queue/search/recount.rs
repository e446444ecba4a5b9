//! A full count of the indexes of messages.

use std::collections::BTreeSet;

use crate::core::agree;
use crate::queue::QueueModule;
use crate::queue::state::message::mark;
use crate::queue::state::search::{BLOCK_POSTINGS_MAX, SearchIndex};
use crate::queue::state::{MessageSlot, SearchSlot};
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn recount_search(&self) -> Result<(), String> {
        let mut by_message = BTreeSet::new();
        let (mut blocks, mut dirty) = (0, 0);
        for (slot, index) in self.search.indexes.iter() {
            let queue = self.queues.get(index.queue);
            let told = |why| format!("index of queue {:?}: {why}", queue.name);
            if queue.search != slot {
                return Err(told("its queue has another one".to_owned()));
            }
            self.recount_index(slot, index, &mut by_message).map_err(told)?;
            blocks += index.blocks.len() as u64;
            dirty += index.dirty.len() as u64;
        }
        let with_index = self.queues.iter().filter(|(_, queue)| queue.search != Slot::NIL).count();
        agree("queues with indexes", with_index as u64, self.search.indexes.used().into())?;
        agree("blocks of postings", blocks, self.search.blocks.used().into())?;
        let postings = self.search.blocks.iter().map(|(_, block)| block.postings.len() as u64).sum();
        agree("postings", postings, self.search.postings)?;
        for (slot, message) in self.messages.iter() {
            let is_posted = by_message.contains(&slot);
            let (posted, dirty) = (message.is_marked(mark::POSTED), message.is_marked(mark::DIRTY));
            if is_posted != posted || posted && dirty {
                return Err(format!(
                    "message {} has not the postings that it is marked with",
                    message.sequence
                ));
            }
        }
        let marked = self.messages.iter().filter(|(_, message)| message.is_marked(mark::DIRTY)).count();
        agree("dirty messages", dirty, marked as u64)
    }

    /// Adds the messages that have postings in an index.
    fn recount_index(
        &self,
        slot: SearchSlot,
        index: &SearchIndex,
        by_message: &mut BTreeSet<MessageSlot>,
    ) -> Result<(), String> {
        for (first, block_slot) in &index.blocks {
            let (block, range) = (self.search.blocks.get(*block_slot), self.range_of(*block_slot));
            if block.index != slot || block.first != *first {
                return Err(format!("the block at {first} is another one"));
            }
            if !block.postings.is_sorted_by(|one, next| one < next)
                || block.postings.len() > BLOCK_POSTINGS_MAX
            {
                return Err(format!("the postings of the block at {first} are not in order, or too many"));
            }
            let mut stale = 0;
            for posting in &block.postings {
                if self.is_posted(posting.slot(), index.queue, &range) {
                    by_message.insert(posting.slot());
                } else {
                    stale += 1;
                }
            }
            agree("stale postings", stale, block.stale.into())?;
            if block.is_stale() || block.postings.is_empty() && index.blocks.len() == 1 {
                return Err(format!("the block at {first} should have been tidied"));
            }
        }
        if !index.is_clearing && index.blocks.first_key_value().is_some_and(|(first, _)| *first > 0) {
            return Err("the first block does not begin at 0".to_owned());
        }
        let directory = &self.indexes.get(self.queues.get(index.queue).namespace).directory;
        let is_dirty = |sequence: &u64| {
            let message = directory.get(*sequence).map(|slot| self.messages.get(slot));
            message.is_some_and(|message| message.queue == index.queue && message.is_marked(mark::DIRTY))
        };
        let wrong: BTreeSet<_> = index.dirty.iter().filter(|sequence| !is_dirty(sequence)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:?} are not dirty")) }
    }
}
