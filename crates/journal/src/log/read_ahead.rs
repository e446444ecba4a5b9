//! Read-ahead: blobs out of [spans](super::spans), in which their neighbours are read with them.
//!
//! A blob whose checksum is wrong in its span, or that no span holds, is read alone, which decides whether it
//! is damaged; so is a blob where reading a span failed.

use std::borrow::{Borrow, BorrowMut};
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::disk::File;
use crate::log::blob::{BlobLocation, BlobRead, BlobSeal};
use crate::log::sealing;
use crate::log::spans::{Extent, GAP_BYTES_MAX, SPAN_BYTES_MAX, Span, Spans};
use crate::seam::batch::{BLOB_HEAD, blob_checksum};
use crate::seam::blob::BlobError;

/// Largest blob that is read by spans, in bytes.
const BLOB_BYTES_MAX: usize = 32 << 10;

/// Where a blob lies, with its checksum.
fn extent(location: &BlobLocation) -> Extent {
    let (file, offset) = (location.file.number(), location.offset);
    Extent { file, from: offset - BLOB_HEAD as u64, end: offset + u64::from(location.len) }
}

/// The blob at this location, if its checksum matches.
fn blob_in<'s>(span: &'s Span, location: &BlobLocation) -> Option<&'s [u8]> {
    let (head, rest) = span.bytes_from(extent(location).from)?.split_first_chunk::<BLOB_HEAD>()?;
    let blob = rest.get(..location.len())?;
    (blob_checksum(location.key, blob).to_le_bytes() == *head).then_some(blob)
}

/// Total length of the leading blobs that the span holds, in bytes.
fn held_len<B: Borrow<BlobRead>>(span: &Span, blobs: &[B]) -> usize {
    let len = |blob: &B| match blob.borrow() {
        BlobRead::OnDisk(location) => span.holds(extent(location)).then(|| location.len()),
        BlobRead::Cached(_) | BlobRead::Missing => Some(0),
    };
    blobs.iter().map_while(len).sum()
}

/// The span with this blob; otherwise reads one that extends to `until` at least. Blocks. `None`: reading
/// failed.
fn read(spans: &Spans, location: &BlobLocation, until: u64) -> Option<Arc<Span>> {
    spans.read(extent(location), until, location.committed, |until| read_span(location, until))
}

/// Reads a span that begins with this blob or its chunk. `None`: nothing decrypts there.
fn read_span(location: &BlobLocation, until: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let (file, Extent { from, .. }) = (&*location.file, extent(location));
    Ok(match &location.seal {
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
    })
}

/// A reader with spans of its own, which reads blobs in their order on disk.
#[derive(Debug)]
pub(crate) struct ReadAhead(Spans);

impl ReadAhead {
    pub(crate) fn new() -> ReadAhead {
        ReadAhead(Spans::of_one_reader())
    }

    /// As [`BlobLocation::fetch`].
    pub(crate) fn fetch(&self, location: &BlobLocation, bytes: &mut [u8]) -> Result<usize, BlobError> {
        let copy = |span: &Arc<Span>| {
            blob_in(span, location).map(|blob| {
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
            Some(span) if blob_in(&span, location).is_some() => Ok(()),
            _ => location.read_now().map(|_| ()),
        }
    }

    /// The span with this blob; `None`: it is to be read alone.
    fn next(&self, location: &BlobLocation) -> Option<Arc<Span>> {
        let small = location.len() <= BLOB_BYTES_MAX;
        let part = extent(location);
        small.then(|| read(&self.0, location, part.end)).flatten().filter(|span| span.holds(part))
    }
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
        let distance = extent(next).from.checked_sub(extent(before).end);
        let is_close = before.file.number() == next.file.number()
            && distance.is_some_and(|distance| distance <= GAP_BYTES_MAX);
        if !is_close || next.len() > BLOB_BYTES_MAX {
            break;
        }
        last = Some(next);
    }
    last.map_or(0, |last| extent(last).end)
}

/// Replaces blobs on disk by those that were read ahead, up to the first that was not. True when none is left
/// on disk. Never blocks.
pub fn take_ahead<B: BorrowMut<BlobRead>>(blobs: &mut [B]) -> bool {
    take(blobs, AtMiss::End, |location, _| location.file.spans().find(extent(location)))
}

/// Reads blobs on disk, neighbours together. Blocks. Those still on disk afterwards have to be read alone:
/// they are large or damaged, or reading failed.
pub fn read_together<B: BorrowMut<BlobRead>>(blobs: &mut [B]) {
    take(blobs, AtMiss::GoOn, |location, rest| {
        let part = extent(location);
        let until = run(rest).min(part.from + SPAN_BYTES_MAX);
        read(location.file.spans(), location, until.max(part.end))
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
        if is_small && span.as_ref().is_none_or(|span| !span.holds(extent(location))) {
            span = span_of(location, &blobs[at..]);
            copies.finish();
        }
        let held = span.as_ref().filter(|span| is_small && span.holds(extent(location)));
        let Some((span, blob)) = held.and_then(|span| Some((span, blob_in(span, location)?))) else {
            all = false;
            if at_miss == AtMiss::End {
                break;
            }
            continue;
        };
        if copies.found.is_empty() {
            copies.bytes.reserve(held_len(span, &blobs[at..]));
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
