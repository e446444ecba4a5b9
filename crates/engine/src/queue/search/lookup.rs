//! Reads of indexes, each in bounded time.

use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::id::{MessageId, NamespaceId, QueueId};
use crate::query::{SearchPage, State};
use crate::queue::QueueModule;
use crate::queue::state::message::mark;
use crate::queue::state::queue::Queue;
use crate::queue::state::search::SearchIndex;
use crate::queue::state::{MessageSlot, SearchSlot};
use crate::search::{SearchKind, SearchMessage, SearchTerm, SearchWork};
use crate::store::slot::Slot;

/// Blocks that one page looks into, for each of its terms.
const PROBES_MAX: usize = 512;
/// Messages that it looks at, in whatever state they are.
const EXAMINED_MAX: usize = 2_000;
/// Indexes that one look for work goes through.
const INDEXES_LOOKED_AT: usize = 64;
/// Messages that it goes through.
const MESSAGES_LOOKED_AT: usize = 1_000;

impl QueueModule {
    /// Messages of a queue behind a cursor that may have one of some terms of a kind, in one state or in all,
    /// by id: at most `limit`. `None`: the queue has no index of this kind, or that ends before.
    pub(crate) fn search_page(
        &self,
        queue: QueueId,
        (kind, terms): (SearchKind, &[SearchTerm]),
        state: Option<State>,
        cursor: Option<u64>,
        limit: usize,
        core: &Core,
    ) -> Option<SearchPage> {
        let queue = self.queues.get(self.queue_slot(queue, core)?);
        let search = queue.search.some()?;
        let index = self.search.indexes.get(search);
        let mut after = cursor.unwrap_or(0);
        if index.is_clearing || !index.kinds.has(kind) || after >= index.until {
            return None;
        }
        let terms: Vec<SearchTerm> = terms.iter().copied().chain([SearchTerm::any(kind)]).collect();
        let limit = limit.clamp(1, PAGE_ITEMS_MAX);
        let (mut items, mut probes, mut examined) = (Vec::new(), 0, 0);
        while after < index.until
            && items.len() < limit
            && examined < EXAMINED_MAX
            && (probes == 0 || probes + terms.len() <= PROBES_MAX)
        {
            probes += terms.len();
            let (found, last) = self.found_next(search, &terms, after, EXAMINED_MAX - examined);
            let mut found = found.into_iter();
            while items.len() < limit
                && let Some((sequence, slot)) = found.next()
            {
                (after, examined) = (sequence, examined + 1);
                let is_wanted = state.is_none() || state == self.messages.get(slot).state;
                if is_wanted && !self.is_stale(slot) {
                    items.push(self.message_view(slot, core));
                }
            }
            if found.len() == 0 {
                after = last;
            }
        }
        let is_last = after >= index.until && !self.has_behind(queue, index.until);
        Some(SearchPage { items, next: (!is_last).then_some(after), until: index.until })
    }

    /// The first messages behind `after`, in the range of one block, that may have one of some terms, each
    /// with its sequence; at most `most`. Tells up to which sequence those are all.
    fn found_next(
        &self,
        search: SearchSlot,
        terms: &[SearchTerm],
        after: u64,
        most: usize,
    ) -> (Vec<(u64, MessageSlot)>, u64) {
        let index = self.search.indexes.get(search);
        let block = self.search.block_of(search, after + 1);
        let end = block.map_or(u64::MAX, |block| self.search.end_of(block)).min(index.until + 1);
        let mut found: Vec<(u64, MessageSlot)> = Vec::new();
        if let Some(block) = block {
            let at = self.search.blocks.get(block);
            let first = at.first.max(after + 1);
            let slots = terms.iter().flat_map(|term| at.with_term(*term));
            let posted = slots.filter(|slot| self.is_posted(*slot, index.queue, &(first..end)));
            found.extend(posted.map(|slot| (self.messages.get(slot).sequence, slot)));
        }
        let directory = &self.indexes.get(self.queues.get(index.queue).namespace).directory;
        let dirty = index.dirty.range(after + 1..end).take(most + 1);
        found.extend(dirty.filter_map(|sequence| Some((*sequence, directory.get(*sequence)?))));
        found.sort_unstable();
        found.dedup();
        let mut last = end - 1;
        if found.len() > most {
            found.truncate(most);
            last = found.last().map_or(last, |(sequence, _)| *sequence);
        }
        (found, last)
    }

    /// True if a queue has messages behind a sequence.
    fn has_behind(&self, queue: &Queue, sequence: u64) -> bool {
        let tail = queue.all.tail;
        tail != Slot::NIL && self.messages.get(tail).sequence > sequence
            || queue.arrived.last().is_some_and(|last| *last > sequence)
    }

    /// Messages whose terms an index does not know, at most `most`, of the first of some indexes from the one
    /// with number `from` on; and the number to go on from, `None`: all were looked at.
    pub(crate) fn search_work(
        &self,
        from: u32,
        most: usize,
        core: &Core,
    ) -> (Option<SearchWork>, Option<u32>) {
        let (indexes, behind) = self.search.indexes.range(from, INDEXES_LOOKED_AT);
        for (search, index) in indexes {
            if let Some(work) = self.work_of(search, index, most, core) {
                let next = search.index() + 1;
                return (Some(work), (next < self.search.indexes.slots()).then_some(next));
            }
        }
        (None, behind)
    }

    fn work_of(
        &self,
        search: SearchSlot,
        index: &SearchIndex,
        most: usize,
        core: &Core,
    ) -> Option<SearchWork> {
        let queue = self.queues.get(index.queue);
        let has_dirty = index.dirty.first().is_some_and(|first| *first <= index.until);
        if index.is_clearing || queue.deleted || !(has_dirty || self.has_behind(queue, index.until)) {
            return None;
        }
        let namespace = NamespaceId(core.namespaces.get(queue.namespace).number);
        let message = |slot: MessageSlot| {
            let message = self.messages.get(slot);
            let (tags, error, source) = self.places_of_terms(search, slot);
            let id = MessageId { namespace, sequence: message.sequence };
            SearchMessage { id, is_dirty: message.is_marked(mark::DIRTY), tags, error, source }
        };
        let directory = &self.indexes.get(queue.namespace).directory;
        let dirty = index.dirty.range(..=index.until).take(MESSAGES_LOOKED_AT);
        let dirty = dirty.filter_map(|sequence| directory.get(*sequence));
        let dirty = dirty.filter(|slot| !self.is_stale(*slot)).take(most.div_ceil(2));
        let mut messages: Vec<SearchMessage> = dirty.map(message).collect();
        let mut until = index.until;
        let (at, looked) = match self.place_of(index.queue, Some(index.until)) {
            Ok(slot) => (slot, None),
            Err(looked) => (Slot::NIL, Some(looked)),
        };
        let mut is_whole = true;
        for (examined, slot) in self.by_id(index.queue, at, Some(index.until), looked).enumerate() {
            if messages.len() >= most || examined >= MESSAGES_LOOKED_AT {
                is_whole = false;
                break;
            }
            until = self.messages.get(slot).sequence;
            if !self.is_stale(slot) {
                messages.push(message(slot));
            }
        }
        if is_whole {
            until = until.max(looked.unwrap_or(0));
        }
        let (queue, began, kinds, from) = (QueueId(queue.number), index.began, index.kinds, index.until);
        let is_any = !messages.is_empty() || until > from;
        is_any.then_some(SearchWork { namespace, queue, began, kinds, from, until, messages })
    }

    /// Number of postings of all indexes, and the bytes that they take.
    pub(crate) fn search_postings(&self) -> (u64, u64) {
        let room: usize = self.search.blocks.iter().map(|(_, block)| block.bytes()).sum();
        (self.search.postings, room as u64)
    }
}
