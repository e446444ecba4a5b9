//! State of the indexes that find messages by terms: see [`crate::search`].
//!
//! An index has its postings in blocks, each for a range of ids; a block has them by term. So a search asks
//! each block in turn, and finds messages by id; what is new comes at the end, and what has ended goes block
//! by block. A posting names the slot of its message, which is four bytes long: one that is *stale*, since
//! its message has left the queue or is dirty, may name a slot that another message has by now.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::state::{BlockSlot, MessageSlot, QueueSlot, SearchSlot};
use crate::search::{SearchKinds, SearchTerm};
use crate::setting::Setting;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Most postings of a block.
pub(crate) const BLOCK_POSTINGS_MAX: usize = 2_048;
/// One of so many postings of a block may be stale.
const STALE_SHARE: usize = 4;
/// Postings for which a block gets room at a time.
const ROOM: usize = 128;

/// The index of a queue, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct SearchIndex {
    pub(crate) queue: QueueSlot,
    pub(crate) kinds: SearchKinds,
    /// Index of the record with which it began: a fill that was made for an earlier beginning is none.
    pub(crate) began: u64,
    /// Each message of the queue up to this id has its terms here, or is dirty.
    pub(crate) until: u64,
    /// True while its postings are let go of; it finds nothing then, and is told nothing.
    pub(crate) is_clearing: bool,
    /// Sequences of messages that have changed since their terms were told, or have come from another queue.
    /// Derived.
    pub(crate) dirty: BTreeSet<u64>,
    /// Its blocks by the first sequence of their ranges, which is 0 of the first. Derived.
    pub(crate) blocks: BTreeMap<u64, BlockSlot>,
    next_vacant: Option<SearchSlot>,
}

impl SearchIndex {
    /// An index that has nothing yet.
    pub(crate) fn new(queue: QueueSlot, kinds: SearchKinds, began: u64) -> SearchIndex {
        SearchIndex {
            queue,
            kinds,
            began,
            until: 0,
            is_clearing: false,
            dirty: BTreeSet::new(),
            blocks: BTreeMap::new(),
            next_vacant: None,
        }
    }
}

impl PlainItem for SearchIndex {
    const BLOCK: usize = 64;

    fn vacant(next: SearchSlot) -> Self {
        SearchIndex { next_vacant: Some(next), ..SearchIndex::new(Slot::NIL, SearchKinds::default(), 0) }
    }

    fn next_vacant(&self) -> Option<SearchSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.queue.write(out);
        self.kinds.write(out);
        out.u64(self.began);
        out.u64(self.until);
        out.bool(self.is_clearing);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let (queue, kinds, began) = (Slot::read(reader)?, SearchKinds::read(reader)?, reader.u64()?);
        let (until, is_clearing) = (reader.u64()?, reader.bool()?);
        Some(SearchIndex { until, is_clearing, ..SearchIndex::new(queue, kinds, began) })
    }
}

/// A term, and the slot of a message that has it; in the order of terms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Posting(u64);

impl Posting {
    pub(crate) fn new(term: SearchTerm, slot: MessageSlot) -> Posting {
        Posting(u64::from(term.0) << 32 | u64::from(slot.index()))
    }

    fn term(self) -> SearchTerm {
        SearchTerm((self.0 >> 32) as u32)
    }

    pub(crate) fn slot(self) -> MessageSlot {
        Slot::new(self.0 as u32)
    }
}

/// Postings of messages whose ids follow each other, or a vacant slot.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) index: SearchSlot,
    /// First sequence of its range, which ends where the next block begins.
    pub(crate) first: u64,
    /// Number of its stale postings.
    pub(crate) stale: u32,
    /// In order, each once.
    pub(crate) postings: Vec<Posting>,
    next_vacant: Option<BlockSlot>,
}

impl Block {
    pub(crate) fn new(index: SearchSlot, first: u64, postings: Vec<Posting>) -> Block {
        Block { index, first, stale: 0, postings, next_vacant: None }
    }

    /// Slots of the messages that have a term, stale ones among them.
    pub(crate) fn with_term(&self, term: SearchTerm) -> impl Iterator<Item = MessageSlot> + '_ {
        let from = self.postings.partition_point(|posting| posting.term() < term);
        let of_it = self.postings[from..].iter().take_while(move |posting| posting.term() == term);
        of_it.map(|posting| posting.slot())
    }

    /// Bytes that it takes, its place in the order of blocks included.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Block>() + size_of::<(u64, BlockSlot)>() + self.postings.capacity() * size_of::<Posting>()
    }

    /// True if more of its postings are stale than should be.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale as usize * STALE_SHARE > self.postings.len()
    }

    /// Adds postings.
    pub(crate) fn add(&mut self, more: &[Posting]) {
        let len = self.postings.len();
        self.postings.reserve_exact((len + more.len()).next_multiple_of(ROOM) - len);
        self.postings.extend_from_slice(more);
        // Two rows in order: what sorts rows that are in order does no more than join them.
        self.postings.sort();
    }
}

/// Gives back room that is not needed.
pub(crate) fn fit(postings: &mut Vec<Posting>) {
    postings.shrink_to(postings.len().next_multiple_of(ROOM));
}

impl PlainItem for Block {
    const BLOCK: usize = 1;

    fn vacant(next: BlockSlot) -> Self {
        Block { next_vacant: Some(next), ..Block::new(Slot::NIL, 0, Vec::new()) }
    }

    fn next_vacant(&self) -> Option<BlockSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.index.write(out);
        out.u64(self.first);
        out.u32(self.stale);
        out.u32(self.postings.len() as u32);
        self.postings.iter().for_each(|posting| out.u64(posting.0));
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let (index, first, stale, count) = (Slot::read(reader)?, reader.u64()?, reader.u32()?, reader.u32()?);
        let (words, _) = reader.raw(usize::try_from(count).ok()?.checked_mul(8)?)?.as_chunks::<8>();
        let mut postings = Vec::with_capacity(words.len().next_multiple_of(ROOM));
        postings.extend(words.iter().map(|word| Posting(u64::from_le_bytes(*word))));
        Some(Block { stale, ..Block::new(index, first, postings) })
    }
}

/// All indexes of messages.
#[derive(Debug, Default)]
pub(crate) struct AllSearch {
    pub(crate) indexes: Slab<SearchIndex, 64>,
    pub(crate) blocks: Slab<Block, 64>,
    /// Number of postings. Derived.
    pub(crate) postings: u64,
}

impl AllSearch {
    /// The block in whose range a sequence is; `None`: the index has no blocks.
    pub(crate) fn block_of(&self, search: SearchSlot, sequence: u64) -> Option<BlockSlot> {
        self.indexes.get(search).blocks.range(..=sequence).next_back().map(|(_, block)| *block)
    }

    /// The block behind another one.
    pub(crate) fn behind(&self, block: BlockSlot) -> Option<BlockSlot> {
        let Block { index, first, .. } = *self.blocks.get(block);
        self.indexes.get(index).blocks.range(first + 1..).next().map(|(_, block)| *block)
    }

    /// The block before another one.
    pub(crate) fn before(&self, block: BlockSlot) -> Option<BlockSlot> {
        let Block { index, first, .. } = *self.blocks.get(block);
        self.indexes.get(index).blocks.range(..first).next_back().map(|(_, block)| *block)
    }

    /// The first sequence behind the range of a block.
    pub(crate) fn end_of(&self, block: BlockSlot) -> u64 {
        self.behind(block).map_or(u64::MAX, |behind| self.blocks.get(behind).first)
    }

    /// Adds a block.
    pub(crate) fn insert(&mut self, block: Block) -> BlockSlot {
        let (index, first) = (block.index, block.first);
        self.postings += block.postings.len() as u64;
        let slot = self.blocks.insert(block);
        self.indexes.get_mut(index).blocks.insert(first, slot);
        slot
    }

    /// Takes a block out.
    pub(crate) fn remove(&mut self, block: BlockSlot) -> Block {
        let block = self.blocks.remove(block);
        self.postings -= block.postings.len() as u64;
        self.indexes.get_mut(block.index).blocks.remove(&block.first);
        block
    }

    /// Derives what a snapshot leaves out, after all blocks were read.
    pub(crate) fn rebuild(&mut self) {
        for (slot, block) in self.blocks.iter() {
            self.postings += block.postings.len() as u64;
            self.indexes.get_mut(block.index).blocks.insert(block.first, slot);
        }
    }
}
