//! Spans: decrypted parts of files in memory, which were read together with a blob, since its neighbours
//! mostly come next.
//!
//! Neighbouring blobs are read in one span, and a span that begins where another ends is twice as long. So a
//! backlog that is worked in order is read and decrypted once, in large pieces, by however many consumers,
//! while scattered blobs cost only the chunks that they lie in. The memory of all spans has a budget; the
//! oldest span is dropped first.
//!
//! A span only holds bytes of committed batches, which are never overwritten, so it cannot be out of date. It
//! ends before the first chunk that does not decrypt.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use crate::disk::shortage::is_out_of_handles;
use crate::keys::cipher::CHUNK;
use crate::lock::lock;

use unreadable::Unreadable;

mod unreadable;

/// Granularity of reading for spans, in bytes: a chunk.
const CHUNK_BYTES: u64 = CHUNK as u64;

/// Target for the largest span, in bytes. Whole chunks are read, so that a span can be a little longer.
pub(crate) const SPAN_BYTES_MAX: u64 = 128 << 10;
/// Shortest span that continues another, in bytes.
const SPAN_BYTES_MIN: u64 = 16 << 10;
/// Number of spans that the budget must hold; limits their length when the budget is small.
const SPANS_MIN: u64 = 4;
/// Largest gap between two blobs that are read together, in bytes: most chunks in the gap are opened in any
/// case.
pub(crate) const GAP_BYTES_MAX: u64 = CHUNK_BYTES;
/// Upper limit of the memory of a span besides its bytes: entries in maps and shared state, in bytes.
const SLOT_BYTES: u64 = 320;
/// Upper limit of the memory of all spans, in bytes.
const BYTES_MAX: u64 = 8 << 20;
/// Divisor of the cache's budget: upper limit of the memory of all spans.
const CACHE_PART: u64 = 8;

/// Memory for spans out of a cache's budget, in bytes.
pub(crate) fn budget_of(cache_bytes: u64) -> u64 {
    (cache_bytes / CACHE_PART).min(BYTES_MAX)
}

/// The spans of a journal.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    budget: u64,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_place: BTreeMap<SpanPlace, SpanSlot>,
    /// Spans by age.
    order: BTreeMap<u64, SpanPlace>,
    next_number: u64,
    /// Memory of all spans, in bytes.
    bytes: u64,
    unreadable: Unreadable,
}

/// Number of the file, and offset of the span in it.
type SpanPlace = (u64, u64);

/// A part of a file that is wanted in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Number of the file.
    pub(crate) file: u64,
    /// Offset of its first byte.
    pub(crate) from: u64,
    /// Offset after its last byte.
    pub(crate) end: u64,
}

impl Extent {
    fn place(self) -> SpanPlace {
        (self.file, self.from)
    }
}

/// A span, present or being read.
#[derive(Debug)]
struct SpanSlot {
    /// Number by age.
    number: u64,
    /// End offset, actual or planned.
    end: u64,
    /// Memory, actual or planned, in bytes.
    bytes: u64,
    reading: Arc<Reading>,
}

/// A read of a span, shared by all who wait for it.
#[derive(Debug, Default)]
struct Reading {
    /// Held while the span is being read.
    under_way: Mutex<()>,
    /// The span, once read. Unset after the read: it failed.
    span: OnceLock<Arc<Span>>,
}

impl Reading {
    /// Waits for the read; `None`: it failed.
    fn wait(&self) -> Option<Arc<Span>> {
        drop(lock(&self.under_way));
        self.span.get().cloned()
    }
}

/// A part of a file in memory.
#[derive(Debug)]
pub(crate) struct Span {
    place: SpanPlace,
    bytes: Vec<u8>,
}

impl Span {
    /// The span of a read. Shrinks the memory when the read was much larger.
    fn new(place: SpanPlace, mut bytes: Vec<u8>) -> Arc<Span> {
        if bytes.capacity() > 2 * bytes.len() {
            bytes.shrink_to_fit();
        }
        Arc::new(Span { place, bytes })
    }

    fn end(&self) -> u64 {
        self.place.1 + self.bytes.len() as u64
    }

    pub(crate) fn holds(&self, part: Extent) -> bool {
        let (file, start) = self.place;
        file == part.file && start <= part.from && part.end <= self.end()
    }

    /// The bytes from this offset of the file to the end of the span; `None`: it lies outside.
    pub(crate) fn bytes_from(&self, offset: u64) -> Option<&[u8]> {
        self.bytes.get(offset.checked_sub(self.place.1)? as usize..)
    }
}

impl Slots {
    /// The last span that begins at or before this place.
    fn before(&self, (number, from): SpanPlace) -> Option<(u64, &SpanSlot)> {
        let (place, slot) = self.by_place.range((number, 0)..=(number, from)).next_back()?;
        Some((place.1, slot))
    }

    /// The span that holds this part, or will.
    fn with(&self, part: Extent) -> Option<&Arc<Reading>> {
        let (_, slot) = self.before(part.place())?;
        (slot.end >= part.end).then_some(&slot.reading)
    }

    /// Minimum length of a span that begins here, in bytes.
    fn length_at(&self, (number, from): SpanPlace, budget: u64) -> u64 {
        match self.before((number, from)) {
            Some((start, slot)) if slot.end + GAP_BYTES_MAX >= from => {
                let twice = (2 * (slot.end - start)).clamp(SPAN_BYTES_MIN, SPAN_BYTES_MAX);
                twice.min(budget / SPANS_MIN)
            }
            _ => 0,
        }
    }

    /// Inserts a span, in place of the one at the same offset, and drops the oldest beyond the budget.
    fn insert(&mut self, place: SpanPlace, end: u64, bytes: u64, reading: &Arc<Reading>, budget: u64) {
        self.remove(place);
        let (number, bytes) = (self.next_number, bytes + SLOT_BYTES);
        self.next_number += 1;
        self.bytes += bytes;
        self.by_place.insert(place, SpanSlot { number, end, bytes, reading: Arc::clone(reading) });
        self.order.insert(number, place);
        while self.bytes > budget
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, place: SpanPlace) {
        if let Some(slot) = self.by_place.remove(&place) {
            self.bytes -= slot.bytes;
            self.order.remove(&slot.number);
        }
    }
}

impl Spans {
    pub(crate) fn new(budget: u64) -> Spans {
        Spans { budget, slots: Mutex::default() }
    }

    /// For a reader of its own, which reads a file from its beginning to its end.
    pub(crate) fn of_one_reader() -> Spans {
        Spans::new(SPANS_MIN * SPAN_BYTES_MAX)
    }

    /// Memory of all spans, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.slots).bytes
    }

    /// The span with this part, if it is in memory.
    pub(crate) fn find(&self, part: Extent) -> Option<Arc<Span>> {
        lock(&self.slots).with(part)?.span.get().cloned()
    }

    /// The span with this part; otherwise calls `fetch` to read one that extends to `until` at least, where
    /// the file does not change before `committed`. Blocks. `None`: reading failed.
    ///
    /// `fetch` gets the offset to which it is to read, and gives the offset at which its bytes begin.
    pub(crate) fn read(
        &self,
        part: Extent,
        until: u64,
        committed: u64,
        fetch: impl FnOnce(u64) -> io::Result<Option<(u64, Vec<u8>)>>,
    ) -> Option<Arc<Span>> {
        let mut slots = lock(&self.slots);
        if let Some(reading) = slots.with(part).cloned() {
            drop(slots);
            return reading.wait();
        }
        let planned = part.place();
        let until = until.max(part.from + slots.length_at(planned, self.budget)).min(committed);
        let until = slots.unreadable.limit(planned, until);
        if until < part.end {
            return None;
        }
        let reading = Arc::<Reading>::default();
        // Before anybody knows of it, so that everybody waits for it who does.
        let under_way = lock(&reading.under_way);
        slots.insert(planned, until, until - part.from, &reading, self.budget);
        drop(slots);
        let read = fetch(until);
        let failed = read.as_ref().is_err_and(|error| !is_out_of_handles(error));
        let found = read.unwrap_or_default().filter(|(_, bytes)| !bytes.is_empty());
        let found = found.map(|(start, bytes)| Span::new((part.file, start), bytes));
        if let Some(found) = &found {
            reading.span.get_or_init(|| Arc::clone(found));
        }
        drop(under_way);
        let mut slots = lock(&self.slots);
        slots.remove(planned);
        if let Some(found) = &found {
            slots.insert(found.place, found.end(), found.bytes.capacity() as u64, &reading, self.budget);
        }
        if failed {
            slots.unreadable.note(planned, until);
        }
        found
    }
}
