//! The journal in memory: commits at once, and keeps live blobs in the memory that they were encoded in.
//!
//! Records are kept in pages of [`PAGE`] by index. A page is dropped when it has no live blob. With each new
//! page, the next of the older ones is examined in turn: the blobs of a mostly dead page are copied out, so
//! that one message that stays keeps neither its neighbours' memory nor a page.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::log::blob::{BlobLocation, BlobRead};
use crate::seam::Journal;
use crate::seam::batch::{Batch, Records};
use crate::seam::blob::BlobKey;
use crate::seam::event::{Class, Committed, Event, Refused};

/// Number of records in a page.
const PAGE: u64 = 256;

/// Term of all batches: the journal is opened once.
const TERM: u64 = 1;

/// Number of empty pages kept for reuse.
const SPARE_PAGES: usize = 64;

/// Journal in memory; lost with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    /// Number of records; the next has this index plus one.
    records: u64,
    /// Number of batches; the next has this number plus one.
    batches: u64,
    events: VecDeque<Committed>,
    /// Number of the first page in `pages`.
    first_page: u64,
    pages: VecDeque<Option<Page>>,
    spare: Vec<Page>,
    /// Number of the next page to examine.
    hand: u64,
    /// Live blobs copied out of mostly dead pages.
    evacuated: BTreeMap<BlobKey, Bytes>,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> MemoryJournal {
        MemoryJournal::default()
    }

    /// Stores a record with `blobs` blobs.
    #[inline]
    fn keep(&mut self, index: u64, blobs: u32, bytes: Bytes) {
        if let Some(Some(page)) = self.pages.back_mut() {
            page.slots[(index % PAGE) as usize] = LiveRecord::new(bytes, blobs);
            page.live += blobs;
            page.blobs += blobs;
        }
    }

    #[cold]
    fn begin_page(&mut self, number: u64) {
        if let Some(last) = self.pages.len().checked_sub(1) {
            self.drop_if_dead(last);
        }
        if self.pages.is_empty() {
            self.first_page = number;
        }
        self.turn_hand();
        let page = self.spare.pop().unwrap_or_default();
        self.pages.push_back(Some(page));
        self.trim();
    }

    fn turn_hand(&mut self) {
        let last = self.pages.len().saturating_sub(1);
        let at = self.hand.saturating_sub(self.first_page) as usize;
        let at = if at >= last { 0 } else { at };
        self.hand = self.first_page + at as u64 + 1;
        if at < last && self.pages[at].as_ref().is_some_and(|page| page.live * 4 <= page.blobs) {
            if let Some(page) = &mut self.pages[at] {
                page.evacuate((self.first_page + at as u64) * PAGE, &mut self.evacuated);
            }
            self.drop_if_dead(at);
        }
    }

    fn drop_if_dead(&mut self, at: usize) {
        if self.pages[at].as_ref().is_some_and(|page| page.live == 0)
            && let Some(mut page) = self.pages[at].take()
            && self.spare.len() < SPARE_PAGES
        {
            page.blobs = 0;
            self.spare.push(page);
        }
    }

    fn trim(&mut self) {
        while let Some(None) = self.pages.front() {
            self.pages.pop_front();
            self.first_page += 1;
        }
    }

    fn page_at(&self, key: BlobKey) -> Option<usize> {
        let at = (key.index / PAGE).checked_sub(self.first_page)? as usize;
        (at < self.pages.len()).then_some(at)
    }
}

impl Journal for MemoryJournal {
    /// Never returned. It is the disk journal's, so that one shard type can stand on either.
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.records + 1
    }

    fn durable_index(&self) -> u64 {
        self.records
    }

    /// There is one node: what is durable is committed.
    fn committed_index(&self) -> u64 {
        self.durable_index()
    }

    fn propose(&mut self, batch: &mut Batch, time_us: u64, _class: Class) -> Result<u64, Refused> {
        let first_index = self.next_index();
        let (bytes, count) = batch.take();
        if count == 0 {
            return Ok(first_index);
        }
        let mut at = 0;
        for (index, record) in (first_index..).zip(Records::new(&bytes)) {
            let end = at + record.encoded_len();
            if self.first_page + self.pages.len() as u64 <= index / PAGE {
                self.begin_page(index / PAGE);
            }
            if record.blob_count() > 0 {
                self.keep(index, record.blob_count(), bytes.slice(at..end));
            }
            at = end;
        }
        self.records += u64::from(count);
        self.batches += 1;
        self.events.push_back(Committed { first_index, number: self.batches, term: TERM, time_us, bytes });
        Ok(first_index)
    }

    fn poll(&mut self) -> Option<Event> {
        self.events.pop_front().map(Event::Committed)
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        let slot = self.page_at(key).and_then(|at| self.pages[at].as_ref()).map(|page| page.slot(key));
        let found = match slot {
            Some(slot) if slot.is_live(key.item) => slot.blob(key.item),
            _ => self.evacuated.get(&key).cloned(),
        };
        found.map_or(BlobRead::Missing, BlobRead::Cached)
    }

    fn release(&mut self, key: BlobKey) {
        if let Some(at) = self.page_at(key)
            && let Some(page) = &mut self.pages[at]
            && page.release(key)
        {
            if page.live == 0 && at + 1 < self.pages.len() {
                self.drop_if_dead(at);
                self.trim();
            }
            return;
        }
        self.evacuated.remove(&key);
    }
}

/// Records with consecutive indexes.
#[derive(Debug)]
struct Page {
    slots: Box<[LiveRecord]>,
    /// Number of live blobs.
    live: u32,
    /// Number of blobs stored.
    blobs: u32,
}

impl Default for Page {
    fn default() -> Page {
        Page { slots: (0..PAGE).map(|_| LiveRecord::default()).collect(), live: 0, blobs: 0 }
    }
}

impl Page {
    fn slot(&self, key: BlobKey) -> &LiveRecord {
        &self.slots[(key.index % PAGE) as usize]
    }

    /// Releases a blob. True when it was live.
    fn release(&mut self, key: BlobKey) -> bool {
        let released = self.slots[(key.index % PAGE) as usize].release(key.item);
        self.live -= u32::from(released);
        released
    }

    fn evacuate(&mut self, first_index: u64, into: &mut BTreeMap<BlobKey, Bytes>) {
        for (index, slot) in (first_index..).zip(&mut self.slots) {
            for item in 0..slot.blob_count() {
                if let Some(blob) = slot.is_live(item).then(|| slot.blob(item)).flatten() {
                    into.insert(BlobKey { index, item }, Bytes::copy_from_slice(&blob));
                }
            }
            *slot = LiveRecord::default();
        }
        self.live = 0;
    }
}

/// A record with live blobs. The default has none.
#[derive(Debug, Default)]
struct LiveRecord {
    record: Bytes,
    /// One bit per live blob; with more than 64 blobs, how many are live.
    live: u64,
    /// One bit per live blob, for records with more than 64.
    many: Option<Box<[u64]>>,
}

impl LiveRecord {
    #[inline]
    fn new(record: Bytes, blobs: u32) -> LiveRecord {
        if blobs <= 64 {
            return LiveRecord { record, live: u64::MAX >> (64 - blobs), many: None };
        }
        LiveRecord::of_many(record, blobs)
    }

    #[cold]
    fn of_many(record: Bytes, blobs: u32) -> LiveRecord {
        let many = vec![u64::MAX; blobs.div_ceil(64) as usize].into_boxed_slice();
        LiveRecord { record, live: u64::from(blobs), many: Some(many) }
    }

    fn blob_count(&self) -> u32 {
        Records::new(&self.record).next().map_or(0, |record| record.blob_count())
    }

    fn is_live(&self, item: u32) -> bool {
        match &self.many {
            None => item < 64 && self.live >> item & 1 == 1,
            Some(bits) => bits.get(item as usize / 64).is_some_and(|word| word >> (item % 64) & 1 == 1),
        }
    }

    fn blob(&self, item: u32) -> Option<Bytes> {
        let (start, end) = Records::new(&self.record).next()?.encoded_blob_range(item)?;
        Some(self.record.slice(start..end))
    }

    fn release(&mut self, item: u32) -> bool {
        if !self.is_live(item) {
            return false;
        }
        match &mut self.many {
            None => self.live &= !(1 << item),
            Some(bits) => {
                bits[item as usize / 64] &= !(1 << (item % 64));
                self.live -= 1;
            }
        }
        if self.live == 0 {
            *self = LiveRecord::default();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(journal: &mut MemoryJournal, blobs: &[&[u8]]) -> u64 {
        let mut batch = Batch::new();
        let mut record = batch.record(blobs.len() as u32);
        record.body(b"send");
        for blob in blobs {
            record.blob(&[blob]);
        }
        drop(record);
        let index = journal.propose(&mut batch, 1, Class::Growing).unwrap();
        assert_eq!((journal.durable_index(), journal.committed_index()), (index, index));
        assert!(matches!(journal.poll(), Some(Event::Committed(c)) if c.first_index == index));
        index
    }

    fn read(journal: &mut MemoryJournal, index: u64, item: u32) -> Option<Bytes> {
        match journal.read(BlobKey { index, item }) {
            BlobRead::Cached(blob) => Some(blob),
            _ => None,
        }
    }

    #[test]
    fn blobs_live_until_released() {
        let mut journal = MemoryJournal::new();
        let index = send(&mut journal, &[b"a", b"", b"c"]);
        assert_eq!(index, 1);
        assert_eq!(read(&mut journal, index, 2).unwrap(), "c");
        journal.release(BlobKey { index, item: 2 });
        journal.release(BlobKey { index, item: 2 });
        assert_eq!(read(&mut journal, index, 2), None);
        assert_eq!(read(&mut journal, index, 1).unwrap(), "");
        assert_eq!(read(&mut journal, index, 3), None);
        assert_eq!(read(&mut journal, 99, 0), None);
    }

    #[test]
    fn a_record_of_many_blobs() {
        let mut journal = MemoryJournal::new();
        let blobs: Vec<Vec<u8>> = (0..1000u32).map(|i| i.to_string().into_bytes()).collect();
        let refs: Vec<&[u8]> = blobs.iter().map(Vec::as_slice).collect();
        let index = send(&mut journal, &refs);
        for item in 0..999 {
            journal.release(BlobKey { index, item });
        }
        assert_eq!(read(&mut journal, index, 998), None);
        assert_eq!(read(&mut journal, index, 999).unwrap(), "999");
    }

    #[test]
    fn one_old_blob_keeps_neither_pages_nor_chunks() {
        let mut journal = MemoryJournal::new();
        let old = send(&mut journal, &[b"old"]);
        for _ in 0..100 * PAGE {
            let index = send(&mut journal, &[b"new"]);
            journal.release(BlobKey { index, item: 0 });
        }
        assert!(journal.pages.len() <= 2, "{} pages", journal.pages.len());
        assert_eq!(journal.evacuated.len(), 1);
        assert_eq!(read(&mut journal, old, 0).unwrap(), "old");
        journal.release(BlobKey { index: old, item: 0 });
        assert!(journal.evacuated.is_empty());
    }
}
