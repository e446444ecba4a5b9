//! Read-ahead: parts of files that were read together with a blob, since its neighbours mostly come next.
//!
//! A *span* is a decrypted part of a file in memory. Neighbouring blobs are read in one span, and a span that
//! begins where another ends is twice as long. So a backlog that is worked in order is read and decrypted
//! once, in large pieces, by however many consumers, while scattered blobs cost only the chunks that they lie
//! in. The memory of all spans has a budget; the oldest span is dropped first.
//!
//! A span only holds bytes of committed batches, which are never overwritten, so it cannot be out of date. It
//! ends before the first chunk that does not decrypt. A blob whose checksum is wrong in its span, or that no
//! span holds, is read alone, which decides whether it is damaged; so is a blob where reading a span failed.

use std::borrow::{Borrow, BorrowMut};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::{Bytes, BytesMut};

use crate::disk::File;
use crate::keys::cipher::CHUNK;
use crate::lock::lock;
use crate::log::blob::BlobSeal;
use crate::log::blob::{BlobLocation, BlobRead};
use crate::log::files::is_out_of_handles;
use crate::log::sealing;
use crate::seam::batch::{BLOB_HEAD, blob_checksum};
use crate::seam::blob::BlobError;

use unreadable::Unreadable;

mod unreadable;

/// Granularity of reading for spans, in bytes: a chunk.
const CHUNK_BYTES: u64 = CHUNK as u64;

/// Target for the largest span, in bytes. Whole chunks are read, so that a span can be a little longer.
const SPAN_BYTES_MAX: u64 = 128 << 10;
/// Shortest span that continues another, in bytes.
const SPAN_BYTES_MIN: u64 = 16 << 10;
/// Number of spans that the budget must hold; limits their length when the budget is small.
const SPANS_MIN: u64 = 4;
/// Largest gap between two blobs that are read together, in bytes: most chunks in the gap are opened in any
/// case.
const GAP_BYTES_MAX: u64 = CHUNK_BYTES;
/// Largest blob that is read by spans, in bytes.
const BLOB_BYTES_MAX: usize = 32 << 10;
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
pub(crate) struct ReadAhead {
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

/// A part of a file.
#[derive(Debug)]
struct Span {
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

    fn holds(&self, location: &BlobLocation) -> bool {
        let (number, start) = self.place;
        number == location.file.number() && start <= from(location) && end(location) <= self.end()
    }

    /// The blob at this location, if its checksum matches.
    fn blob(&self, location: &BlobLocation) -> Option<&[u8]> {
        let at = from(location).checked_sub(self.place.1)? as usize;
        let (head, rest) = self.bytes.get(at..)?.split_first_chunk::<BLOB_HEAD>()?;
        let blob = rest.get(..location.len())?;
        (blob_checksum(location.key, blob).to_le_bytes() == *head).then_some(blob)
    }

    /// Total length of the leading blobs that the span holds, in bytes.
    fn held_len<B: Borrow<BlobRead>>(&self, blobs: &[B]) -> usize {
        let len = |blob: &B| match blob.borrow() {
            BlobRead::OnDisk(location) => self.holds(location).then(|| location.len()),
            BlobRead::Cached(_) | BlobRead::Missing => Some(0),
        };
        blobs.iter().map_while(len).sum()
    }
}

/// Offset of a blob's checksum.
fn from(location: &BlobLocation) -> u64 {
    location.offset - BLOB_HEAD as u64
}

fn end(location: &BlobLocation) -> u64 {
    location.offset + u64::from(location.len)
}

impl Slots {
    /// The last span that begins at or before this place.
    fn before(&self, (number, from): SpanPlace) -> Option<(u64, &SpanSlot)> {
        let (place, slot) = self.by_place.range((number, 0)..=(number, from)).next_back()?;
        Some((place.1, slot))
    }

    /// The span that holds this blob, or will.
    fn with(&self, location: &BlobLocation) -> Option<&Arc<Reading>> {
        let (_, slot) = self.before((location.file.number(), from(location)))?;
        (slot.end >= end(location)).then_some(&slot.reading)
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

impl ReadAhead {
    pub(crate) fn new(budget: u64) -> ReadAhead {
        ReadAhead { budget, slots: Mutex::default() }
    }

    /// Memory of all spans, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.slots).bytes
    }

    /// The span with this blob, if it is in memory.
    fn find(&self, location: &BlobLocation) -> Option<Arc<Span>> {
        lock(&self.slots).with(location)?.span.get().cloned()
    }

    /// The span with this blob; otherwise reads one that extends to `until` at least. Blocks. `None`: reading
    /// failed.
    fn read(&self, location: &BlobLocation, until: u64) -> Option<Arc<Span>> {
        let mut slots = lock(&self.slots);
        if let Some(reading) = slots.with(location).cloned() {
            drop(slots);
            return reading.wait();
        }
        let planned = (location.file.number(), from(location));
        let until = until.max(planned.1 + slots.length_at(planned, self.budget)).min(location.committed);
        let until = slots.unreadable.limit(planned, until);
        if until < end(location) {
            return None;
        }
        let reading = Arc::<Reading>::default();
        // Before anybody knows of it, so that everybody waits for it who does.
        let under_way = lock(&reading.under_way);
        slots.insert(planned, until, until - planned.1, &reading, self.budget);
        drop(slots);
        let read = read_span(location, until);
        let failed = read.as_ref().is_err_and(|error| !is_out_of_handles(error));
        let found = read.unwrap_or_default();
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

/// For a reader of its own, which reads blobs in their order on disk.
impl ReadAhead {
    /// An empty cache of spans for one reader.
    pub(crate) fn own() -> ReadAhead {
        ReadAhead::new(SPANS_MIN * SPAN_BYTES_MAX)
    }

    /// As [`BlobLocation::fetch`].
    pub(crate) fn fetch(&self, location: &BlobLocation, bytes: &mut [u8]) -> Result<usize, BlobError> {
        let copy = |span: &Arc<Span>| {
            span.blob(location).map(|blob| {
                let (head, rest) = bytes.split_at_mut(BLOB_HEAD);
                head.copy_from_slice(&blob_checksum(location.key, blob).to_le_bytes());
                rest.copy_from_slice(blob);
            })
        };
        match self.next(location).as_ref().and_then(copy) {
            Some(()) => Ok(BLOB_HEAD + location.len()),
            None => location.fetch(bytes),
        }
    }

    /// Reads and verifies a blob. Blocks.
    pub(crate) fn verify(&self, location: &BlobLocation) -> Result<(), BlobError> {
        match self.next(location) {
            Some(span) if span.blob(location).is_some() => Ok(()),
            _ => location.read_now().map(|_| ()),
        }
    }

    /// The span with this blob; `None`: it is to be read alone.
    fn next(&self, location: &BlobLocation) -> Option<Arc<Span>> {
        let small = location.len() <= BLOB_BYTES_MAX;
        small.then(|| self.read(location, end(location))).flatten().filter(|span| span.holds(location))
    }
}

/// Reads a span that begins with this blob or its chunk. `None`: nothing decrypts there.
fn read_span(location: &BlobLocation, until: u64) -> io::Result<Option<Arc<Span>>> {
    let (file, from) = (&*location.file, from(location));
    let read = match &location.seal {
        BlobSeal::Plain => {
            let mut bytes = vec![0; until.saturating_sub(from) as usize];
            let read = file.read_at(&mut bytes, from)?;
            bytes.truncate(read);
            Some((from, bytes))
        }
        BlobSeal::Batch(cipher, head) => {
            sealing::read_ahead(cipher, file, *head, from, until, location.committed)?
        }
        BlobSeal::Chunks(cipher) => Some(cipher.read_ahead(file, from, until)?),
    };
    let found = read.filter(|(_, bytes)| !bytes.is_empty());
    Ok(found.map(|(start, bytes)| Span::new((file.number(), start), bytes)))
}

/// End offset of the leading run of blobs that lie close together.
fn run<B: Borrow<BlobRead>>(blobs: &[B]) -> u64 {
    let mut last: Option<&BlobLocation> = None;
    for blob in blobs {
        let BlobRead::OnDisk(next) = blob.borrow() else { continue };
        let Some(before) = last else {
            last = Some(next);
            continue;
        };
        let distance = from(next).checked_sub(end(before));
        let is_close = before.file.number() == next.file.number()
            && distance.is_some_and(|distance| distance <= GAP_BYTES_MAX);
        if !is_close || next.len() > BLOB_BYTES_MAX {
            break;
        }
        last = Some(next);
    }
    last.map_or(0, end)
}

/// Replaces blobs on disk by those that were read ahead, up to the first that was not. True when none is left
/// on disk. Never blocks.
pub fn take_ahead<B: BorrowMut<BlobRead>>(blobs: &mut [B]) -> bool {
    take(blobs, AtMiss::End, |location, _| location.file.ahead().find(location))
}

/// Reads blobs on disk, neighbours together. Blocks. Those still on disk afterwards have to be read alone:
/// they are large or damaged, or reading failed.
pub fn read_together<B: BorrowMut<BlobRead>>(blobs: &mut [B]) {
    take(blobs, AtMiss::GoOn, |location, rest| {
        let until = run(rest).min(from(location) + SPAN_BYTES_MAX);
        location.file.ahead().read(location, until.max(end(location)))
    });
}

/// Handling of the blobs after one that no span holds.
#[derive(Clone, Copy, PartialEq)]
enum AtMiss {
    /// Look them up too.
    GoOn,
    /// Leave them: whoever reads that one reads them too.
    End,
}

/// Copies blobs out of their spans, so that a few bytes in use do not keep a span in memory.
fn take<B: BorrowMut<BlobRead>>(
    blobs: &mut [B],
    at_miss: AtMiss,
    span_of: impl Fn(&BlobLocation, &[B]) -> Option<Arc<Span>>,
) -> bool {
    let (mut span, mut copies): (Option<Arc<Span>>, Copies) = (None, Copies::default());
    let mut all = true;
    for at in 0..blobs.len() {
        let BlobRead::OnDisk(location) = blobs[at].borrow() else { continue };
        let is_small = location.len() <= BLOB_BYTES_MAX;
        if is_small && span.as_ref().is_none_or(|span| !span.holds(location)) {
            span = span_of(location, &blobs[at..]);
            copies.finish();
        }
        let held = span.as_ref().filter(|span| is_small && span.holds(location));
        let Some((span, blob)) = held.and_then(|span| Some((span, span.blob(location)?))) else {
            all = false;
            if at_miss == AtMiss::End {
                break;
            }
            continue;
        };
        if copies.found.is_empty() {
            copies.bytes.reserve(span.held_len(&blobs[at..]));
        }
        copies.found.push((at, copies.bytes.len()));
        copies.bytes.extend_from_slice(blob);
    }
    copies.finish();
    for (at, bytes) in copies.finished {
        *blobs[at].borrow_mut() = BlobRead::Cached(bytes);
    }
    all
}

/// Copies out of spans; those out of one span share a buffer of exactly their size.
#[derive(Default)]
struct Copies {
    finished: Vec<(usize, Bytes)>,
    /// Copies out of the current span.
    bytes: BytesMut,
    /// Blob, and offset in `bytes`, of each copy out of the current span.
    found: Vec<(usize, usize)>,
}

impl Copies {
    /// Ends the copies out of the current span.
    fn finish(&mut self) {
        let copies = std::mem::take(&mut self.bytes).freeze();
        let mut end = copies.len();
        for (at, start) in self.found.drain(..).rev() {
            self.finished.push((at, copies.slice(start..end)));
            end = start;
        }
    }
}
