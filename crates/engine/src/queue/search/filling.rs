//! The way in which an index comes to the terms of messages.

use std::collections::BTreeSet;

use crate::core::Core;
use crate::error::Error;
use crate::hash::mix;
use crate::id::BlobRef;
use crate::limits::POSTINGS_MAX;
use crate::queue::QueueModule;
use crate::queue::record::search::{FillRecord, FilledRecord};
use crate::queue::state::message::mark;
use crate::queue::state::search::{BLOCK_POSTINGS_MAX, Block, Posting, fit};
use crate::queue::state::{BlockSlot, MessageSlot, QueueSlot, SearchSlot};
use crate::search::SearchKind;
use crate::settings::SEARCH_SINCE;
use crate::store::slot::Slot;

/// A message whose terms are told, with its postings.
struct Told {
    slot: MessageSlot,
    sequence: u64,
    postings: Vec<Posting>,
}

impl Told {
    fn new(slot: MessageSlot, message: &FilledRecord<'_>) -> Told {
        let mut postings: Vec<Posting> = message.terms().map(|term| Posting::new(term, slot)).collect();
        postings.sort_unstable();
        postings.dedup();
        Told { slot, sequence: message.sequence, postings }
    }
}

impl QueueModule {
    /// Takes over the terms of messages.
    pub(crate) fn search_fill(&mut self, fill: &FillRecord<'_>, core: &mut Core) -> Result<(), Error> {
        core.expect_behaviour(SEARCH_SINCE)?;
        let namespace = core.find_namespace(fill.namespace)?;
        let found = self.queue_slot(fill.queue, core).map(|slot| self.queues.get(slot));
        let search =
            found.filter(|queue| queue.namespace == namespace).map_or(Slot::NIL, |queue| queue.search);
        if search == Slot::NIL {
            return Ok(());
        }
        let index = self.search.indexes.get(search);
        if index.is_clearing || index.began != fill.began {
            return Ok(());
        }
        let queue_slot = index.queue;
        let (mut told, mut changed) = (Vec::new(), Vec::new());
        for message in fill.messages() {
            let Some(slot) = self.slot_in(queue_slot, message.sequence) else { continue };
            if self.places_of_terms(search, slot).2 == message.source {
                told.push(Told::new(slot, &message));
            } else {
                changed.push(slot);
            }
        }
        let more: usize = told.iter().map(|message| message.postings.len()).sum();
        if more > 0 && self.search.postings + more as u64 > POSTINGS_MAX {
            return Err(Error::LimitExceeded { what: "postings of messages", limit: POSTINGS_MAX });
        }
        // Not each of them is dirty: an attempt that ends without an error takes the error before away.
        changed.into_iter().for_each(|slot| self.make_dirty(slot, search));
        let mut rest = &told[..];
        while let Some(first) = rest.first() {
            let block = self.search.block_of(search, first.sequence);
            let block = block.unwrap_or_else(|| self.search.insert(Block::new(search, 0, Vec::new())));
            let end = self.search.end_of(block);
            let (here, behind) = rest.split_at(rest.partition_point(|message| message.sequence < end));
            self.fill_block(block, here);
            rest = behind;
        }
        let index = self.search.indexes.get_mut(search);
        if fill.from <= index.until {
            // No message has a later one yet.
            let last = core.namespaces.get(namespace).last_sequence;
            index.until = index.until.max(fill.until.min(last));
        }
        Ok(())
    }

    /// The message of a queue that has a sequence.
    fn slot_in(&self, queue_slot: QueueSlot, sequence: u64) -> Option<MessageSlot> {
        let directory = &self.indexes.get(self.queues.get(queue_slot).namespace).directory;
        directory.get(sequence).filter(|slot| self.messages.get(*slot).queue == queue_slot)
    }

    /// The places of the tags of a message, and of its last error, as far as an index has such terms, and a
    /// number of both.
    pub(super) fn places_of_terms(
        &self,
        search: SearchSlot,
        slot: MessageSlot,
    ) -> (Option<BlobRef>, Option<BlobRef>, u64) {
        let kinds = self.search.indexes.get(search).kinds;
        let message = self.messages.get(slot);
        let changed = self.extras.changed(message.extras).and_then(|changed| changed.tags);
        let tags = kinds.has(SearchKind::Tags).then(|| changed.unwrap_or(message.blob()));
        let last = || self.extras.last_attempt(message.extras).and_then(|attempt| attempt.error);
        let error = if kinds.has(SearchKind::Errors) { last() } else { None };
        let number = |place: Option<BlobRef>| place.map_or(1, |blob| mix(blob.index ^ mix(blob.item.into())));
        (tags, error, mix(number(tags) ^ mix(number(error))))
    }

    /// Puts the postings of messages, which are in the range of a block, in the place of those before.
    fn fill_block(&mut self, block: BlockSlot, told: &[Told]) {
        let search = self.search.blocks.get(block).index;
        let slots: BTreeSet<MessageSlot> = told.iter().map(|message| message.slot).collect();
        let (messages, at) = (&self.messages, self.search.blocks.get_mut(block));
        let before = at.postings.len();
        let mut stale = 0;
        at.postings.retain(|posting| {
            let is_told = slots.contains(&posting.slot());
            stale += u32::from(is_told && !messages.get(posting.slot()).is_marked(mark::POSTED));
            !is_told
        });
        at.stale -= stale;
        let more: Vec<Posting> = told.iter().flat_map(|message| message.postings.iter().copied()).collect();
        at.add(&more);
        self.search.postings = self.search.postings + at.postings.len() as u64 - before as u64;
        for Told { slot, sequence, postings } in told {
            let marks = self.messages.get(*slot).marks;
            if marks & mark::DIRTY != 0 {
                self.search.indexes.get_mut(search).dirty.remove(sequence);
            }
            let posted = if postings.is_empty() { 0 } else { mark::POSTED };
            if marks & (mark::POSTED | mark::DIRTY) != posted {
                self.messages.get_mut(*slot).set_posted(posted);
            }
        }
        self.divide(block);
    }

    /// Cuts a block that has become too large, until none is: the last at its end, so that blocks that are
    /// filled in the order of ids are full; another one in halves.
    fn divide(&mut self, mut block: BlockSlot) {
        while self.search.blocks.get(block).postings.len() > BLOCK_POSTINGS_MAX {
            self.drop_stale(block);
            let Block { index, ref postings, .. } = *self.search.blocks.get(block);
            if postings.len() <= BLOCK_POSTINGS_MAX {
                return;
            }
            let is_last = self.search.behind(block).is_none();
            let sequence = |posting: &Posting| self.messages.get(posting.slot()).sequence;
            let mut sequences: Vec<u64> = postings.iter().map(sequence).collect();
            let cut = if is_last { BLOCK_POSTINGS_MAX } else { sequences.len() / 2 };
            let first = *sequences.select_nth_unstable(cut).1;
            let (mut low, mut high): (Vec<Posting>, Vec<Posting>) =
                postings.iter().partition(|posting| sequence(posting) < first);
            fit(&mut low);
            fit(&mut high);
            self.search.postings -= high.len() as u64;
            self.search.blocks.get_mut(block).postings = low;
            block = self.search.insert(Block::new(index, first, high));
        }
        let at = self.search.blocks.get(block);
        if at.postings.is_empty() || at.is_stale() {
            self.tidy(block);
        }
    }
}
