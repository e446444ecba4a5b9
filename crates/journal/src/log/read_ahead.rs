//! What was read from the disk together with blobs that were asked for: their neighbours mostly come next.
//!
//! A *span* is a part of a file in memory, decrypted. Blobs that lie side by side are read in one, and one that begins where
//! another ends is twice as long, so that a backlog that is worked in order is read and decrypted once, in large pieces,
//! by however many consumers, while blobs here and there cost the chunks that they lie in. Spans are kept within a budget of
//! what they take of memory; those read first go first.
//!
//! A span only ever has bytes that a committed batch has put there, and nothing is written there again, so that it cannot be
//! out of date. It ends before the first chunk that does not open. A blob whose checksum is wrong in it, or that no span
//! has, is read by itself, which decides whether it is damaged. So is what lies where the disk failed to give a span.

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

/// Reading for a span begins and ends with a chunk.
const CHUNK_BYTES: u64 = CHUNK as u64;

/// Most bytes that one span is meant to have. Chunks are read as a whole, so that some more may come along.
const SPAN_BYTES_MAX: u64 = 128 << 10;
/// Least bytes of a span that continues another ...
const SPAN_BYTES_MIN: u64 = 16 << 10;
/// ... unless the budget is smaller: so many are to be there at a time.
const SPANS_MIN: u64 = 4;
/// Two blobs that are no further apart are read together: most chunks between them are opened in any case.
const GAP_BYTES_MAX: u64 = CHUNK_BYTES;
/// Larger blobs are read by themselves.
const BLOB_BYTES_MAX: usize = 32 << 10;
/// What a span takes besides its bytes, at most: its places in the maps, and what is shared of it.
const SLOT_BYTES: u64 = 320;
/// Most bytes of all spans ...
const BYTES_MAX: u64 = 8 << 20;
/// ... and which part of the cache's budget they may have.
const CACHE_PART: u64 = 8;

/// Which part of the budget of a journal's cache is for spans.
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
    /// Under the numbers of the slots, as they came.
    order: BTreeMap<u64, SpanPlace>,
    next_number: u64,
    /// What all take of memory.
    bytes: u64,
    unreadable: Unreadable,
}

/// Number of the file, and where the span begins in it.
type SpanPlace = (u64, u64);

/// A span, or one that somebody is reading.
#[derive(Debug)]
struct SpanSlot {
    /// Which in the order.
    number: u64,
    /// Where it ends, or is meant to.
    end: u64,
    /// What it takes of memory, or is meant to.
    bytes: u64,
    reading: Arc<Reading>,
}

/// A span that may still be read.
#[derive(Debug, Default)]
struct Reading {
    /// Held as long as it is being read.
    under_way: Mutex<()>,
    /// Whoever wants it once it is here waits for nobody. Unset afterwards: it could not be read.
    span: OnceLock<Arc<Span>>,
}

impl Reading {
    /// The span, once it is read.
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
    /// What is kept of a read that began here and gave these bytes. A small part of a large read does not keep that in memory.
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

    /// A blob that it holds, if that has its checksum.
    fn blob(&self, location: &BlobLocation) -> Option<&[u8]> {
        let at = from(location).checked_sub(self.place.1)? as usize;
        let (head, rest) = self.bytes.get(at..)?.split_first_chunk::<BLOB_HEAD>()?;
        let blob = rest.get(..location.len())?;
        (blob_checksum(location.key, blob).to_le_bytes() == *head).then_some(blob)
    }

    /// How many bytes it has to give for these blobs, up to the first that it does not hold.
    fn held_len<B: Borrow<BlobRead>>(&self, blobs: &[B]) -> usize {
        let len = |blob: &B| match blob.borrow() {
            BlobRead::OnDisk(location) => self.holds(location).then(|| location.len()),
            BlobRead::Cached(_) | BlobRead::Missing => Some(0),
        };
        blobs.iter().map_while(len).sum()
    }
}

/// Where a blob begins with its checksum.
fn from(location: &BlobLocation) -> u64 {
    location.offset - BLOB_HEAD as u64
}

fn end(location: &BlobLocation) -> u64 {
    location.offset + u64::from(location.len)
}

impl Slots {
    /// The span with the latest beginning that is not behind this place.
    fn before(&self, (number, from): SpanPlace) -> Option<(u64, &SpanSlot)> {
        let (place, slot) = self.by_place.range((number, 0)..=(number, from)).next_back()?;
        Some((place.1, slot))
    }

    /// The span that has this blob, or is meant to.
    fn with(&self, location: &BlobLocation) -> Option<&Arc<Reading>> {
        let (_, slot) = self.before((location.file.number(), from(location)))?;
        (slot.end >= end(location)).then_some(&slot.reading)
    }

    /// How long a span is to be at least that begins here.
    fn length_at(&self, (number, from): SpanPlace, budget: u64) -> u64 {
        match self.before((number, from)) {
            Some((start, slot)) if slot.end + GAP_BYTES_MAX >= from => {
                let twice = (2 * (slot.end - start)).clamp(SPAN_BYTES_MIN, SPAN_BYTES_MAX);
                twice.min(budget / SPANS_MIN)
            }
            _ => 0,
        }
    }

    /// Puts a span there that ends at `end` and takes so many bytes of memory, instead of what began at this place.
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

    /// What all spans take of memory.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.slots).bytes
    }

    /// The span with this blob, if nobody has to wait for it.
    fn find(&self, location: &BlobLocation) -> Option<Arc<Span>> {
        lock(&self.slots).with(location)?.span.get().cloned()
    }

    /// The span with this blob. If there is none, one is read that goes to `until` at least. Blocks. `None`: it could not be.
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

/// By one who reads blobs in the order in which they lie, and shares nothing with others.
impl ReadAhead {
    /// Spans of one's own.
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

    /// The span with this blob, unless the blob is to be read by itself.
    fn next(&self, location: &BlobLocation) -> Option<Arc<Span>> {
        let small = location.len() <= BLOB_BYTES_MAX;
        small.then(|| self.read(location, end(location))).flatten().filter(|span| span.holds(location))
    }
}

/// Reads a span that begins with this blob, or with the chunk that it begins in. `None`: nothing opens there.
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

/// How far a span is to go that has the first of these blobs and those after it that lie close by.
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

/// Takes blobs that are on disk from what was read ahead and is in memory, up to the first that is not there.
/// Whether none is left that is on disk.
pub fn take_ahead<B: BorrowMut<BlobRead>>(blobs: &mut [B]) -> bool {
    take(blobs, AtMiss::End, |location, _| location.file.ahead().find(location))
}

/// Reads blobs that are on disk, those together that lie together. Blocks. What is on disk still afterwards has to be read by
/// itself: it is large, or damaged, or could not be read.
pub fn read_together<B: BorrowMut<BlobRead>>(blobs: &mut [B]) {
    take(blobs, AtMiss::GoOn, |location, rest| {
        let until = run(rest).min(from(location) + SPAN_BYTES_MAX);
        location.file.ahead().read(location, until.max(end(location)))
    });
}

/// What becomes of the blobs behind one that no span has.
#[derive(Clone, Copy, PartialEq)]
enum AtMiss {
    /// They are looked for as well.
    GoOn,
    /// They are left as they are: whoever reads that one reads them, too.
    End,
}

/// Copies what `span_of` gives for a blob and those that follow it: so a few bytes that are kept do not keep a span.
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

/// Copies from spans: those from one share a buffer that has room for them and no more.
#[derive(Default)]
struct Copies {
    finished: Vec<(usize, Bytes)>,
    /// From the span at hand.
    bytes: BytesMut,
    /// Of which blob each is, and where it begins.
    found: Vec<(usize, usize)>,
}

impl Copies {
    /// Nothing more comes from the span at hand.
    fn finish(&mut self) {
        let copies = std::mem::take(&mut self.bytes).freeze();
        let mut end = copies.len();
        for (at, start) in self.found.drain(..).rev() {
            self.finished.push((at, copies.slice(start..end)));
            end = start;
        }
    }
}
