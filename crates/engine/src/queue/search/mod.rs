//! Indexes of messages for searches: their beginning and end, what makes a message dirty, and what lets go of
//! postings of messages that have ended. `filling` how an index comes to terms, `lookup` reads.
//!
//! - A queue has an index as long as its setting `search_index` says so, and until its postings are gone. A
//!   setting that changes lets all of them go, in slices, and begins anew.
//! - A message that has changed, or has come from another queue, is *dirty* until its terms are told again,
//!   wherever it is; each search finds it. So is one that has changed between the reading of its terms and
//!   their telling. What was sent since the last fill is behind [`until`](SearchIndex::until), and in no
//!   index.
//! - A message knows by its marks that it has postings, or that it is dirty: a message without marks, which
//!   most are in queues without an index, pays nothing when it ends.

pub(crate) mod check;
pub(crate) mod filling;
pub(crate) mod lookup;
pub(crate) mod recount;

use std::ops::Range;

use crate::core::Core;
use crate::plant::{self, Plant};
use crate::queue::QueueModule;
use crate::queue::state::message::mark;
use crate::queue::state::search::{BLOCK_POSTINGS_MAX, SearchIndex, fit};
use crate::queue::state::work::Work;
use crate::queue::state::{BlockSlot, MessageSlot, QueueSlot, SearchSlot};
use crate::search::{SearchKind, SearchKinds};
use crate::store::slot::Slot;

/// Postings of a slice that count as one item.
const POSTINGS_PER_ITEM: usize = 16;

impl QueueModule {
    /// Begins the index of a queue as its setting says, or lets it go, if that has changed.
    pub(crate) fn follow_search_index(&mut self, queue_slot: QueueSlot, core: &Core) {
        let (search, wanted) = (self.queues.get(queue_slot).search, self.wanted_index(queue_slot));
        if search == Slot::NIL {
            if !wanted.is_empty() {
                let index = SearchIndex::new(queue_slot, wanted, core.applied_index);
                self.queues.get_mut(queue_slot).search = self.search.indexes.insert(index);
            }
            return;
        }
        let index = self.search.indexes.get(search);
        if index.kinds != wanted && !index.is_clearing {
            let index = self.search.indexes.get_mut(search);
            (index.is_clearing, index.until) = (true, 0);
            self.list_work(Work::Search(search));
        }
    }

    fn wanted_index(&self, queue_slot: QueueSlot) -> SearchKinds {
        let queue = self.queues.get(queue_slot);
        if queue.deleted { SearchKinds::default() } else { queue.settings.search_index }
    }

    /// Lets go of the postings of an index, until `budget` is used up. True when it has begun anew, or is
    /// gone.
    pub(crate) fn work_on_search(&mut self, search: SearchSlot, budget: &mut usize, core: &Core) -> bool {
        while *budget > 0 {
            let index = self.search.indexes.get(search);
            let queue = index.queue;
            if let Some((_, &block)) = index.blocks.first_key_value() {
                let range = self.range_of(block);
                let postings = self.search.remove(block).postings;
                *budget = budget.saturating_sub(1 + postings.len() / POSTINGS_PER_ITEM);
                for posting in postings {
                    if self.is_posted(posting.slot(), queue, &range) {
                        self.messages.get_mut(posting.slot()).set_posted(0);
                    }
                }
            } else if let Some(&sequence) = index.dirty.first() {
                *budget -= 1;
                self.search.indexes.get_mut(search).dirty.remove(&sequence);
                let directory = &self.indexes.get(self.queues.get(queue).namespace).directory;
                if let Some(slot) = directory.get(sequence) {
                    self.messages.get_mut(slot).set_posted(0);
                }
            } else {
                self.search.indexes.free(search);
                self.queues.get_mut(queue).search = Slot::NIL;
                self.follow_search_index(queue, core);
                return true;
            }
        }
        false
    }

    /// Terms of a message have changed.
    pub(crate) fn change_terms(&mut self, slot: MessageSlot, kind: SearchKind) {
        let search = self.queues.get(self.messages.get(slot).queue).search;
        let is_forgotten = plant::is(Plant::ForgetChangedTerms);
        if search != Slot::NIL && self.search.indexes.get(search).kinds.has(kind) && !is_forgotten {
            self.make_dirty(slot, search);
        }
    }

    /// A message that has terms has come into its queue.
    pub(crate) fn arrive_with_terms(&mut self, slot: MessageSlot) {
        let search = self.queues.get(self.messages.get(slot).queue).search;
        if search != Slot::NIL {
            self.make_dirty(slot, search);
        }
    }

    /// The terms of a message are to be told again.
    pub(super) fn make_dirty(&mut self, slot: MessageSlot, search: SearchSlot) {
        let message = self.messages.get(slot);
        let (sequence, marks) = (message.sequence, message.marks);
        if message.is_marked(mark::DIRTY) || self.search.indexes.get(search).is_clearing {
            return;
        }
        self.messages.get_mut(slot).set_posted(mark::DIRTY);
        self.search.indexes.get_mut(search).dirty.insert(sequence);
        if marks & mark::POSTED != 0 {
            self.count_stale(search, slot, sequence);
        }
    }

    /// A message with these marks leaves its queue.
    pub(crate) fn leave_search(
        &mut self,
        queue_slot: QueueSlot,
        slot: MessageSlot,
        sequence: u64,
        marks: u8,
    ) {
        let search = self.queues.get(queue_slot).search;
        if marks & mark::DIRTY != 0 {
            self.search.indexes.get_mut(search).dirty.remove(&sequence);
        } else {
            self.count_stale(search, slot, sequence);
        }
    }

    /// The postings of a message are stale from now on.
    fn count_stale(&mut self, search: SearchSlot, slot: MessageSlot, sequence: u64) {
        let Some(place) = self.search.block_of(search, sequence) else { return };
        let block = self.search.blocks.get_mut(place);
        let of_it = block.postings.iter().filter(|posting| posting.slot() == slot).count();
        block.stale += of_it as u32;
        if block.is_stale() {
            self.tidy(place);
        }
    }

    /// Drops the stale postings of a block, and joins it with one beside it if it has become small.
    fn tidy(&mut self, block: BlockSlot) {
        self.drop_stale(block);
        let len = |slot: BlockSlot| self.search.blocks.get(slot).postings.len();
        let own = len(block);
        if own >= BLOCK_POSTINGS_MAX / 4 {
            return;
        }
        let fits = |other: &BlockSlot| own == 0 || own + len(*other) <= BLOCK_POSTINGS_MAX / 2;
        if let Some(before) = self.search.before(block).filter(fits) {
            self.drop_stale(before);
            self.join(before, block);
        } else if let Some(behind) = self.search.behind(block).filter(fits) {
            self.drop_stale(behind);
            self.join(block, behind);
        } else if own == 0 {
            self.search.remove(block);
        }
    }

    fn drop_stale(&mut self, block: BlockSlot) {
        let (range, at) = (self.range_of(block), self.search.blocks.get_mut(block));
        let (queue, before) = (self.search.indexes.get(at.index).queue, at.postings.len());
        let mut postings = std::mem::take(&mut at.postings);
        postings.retain(|posting| self.is_posted(posting.slot(), queue, &range));
        fit(&mut postings);
        self.search.postings -= (before - postings.len()) as u64;
        let at = self.search.blocks.get_mut(block);
        (at.postings, at.stale) = (postings, 0);
    }

    /// Gives the postings of a block to the one before it; none of both are stale.
    fn join(&mut self, before: BlockSlot, block: BlockSlot) {
        let postings = self.search.remove(block).postings;
        self.search.postings += postings.len() as u64;
        self.search.blocks.get_mut(before).add(&postings);
    }

    /// Sequences of the messages whose postings are in a block.
    fn range_of(&self, block: BlockSlot) -> Range<u64> {
        self.search.blocks.get(block).first..self.search.end_of(block)
    }

    /// True if the postings with a slot, in a block with this range, are those of the message that has it.
    fn is_posted(&self, slot: MessageSlot, queue: QueueSlot, range: &Range<u64>) -> bool {
        let message = self.messages.get(slot);
        message.queue == queue && message.is_marked(mark::POSTED) && range.contains(&message.sequence)
    }
}
