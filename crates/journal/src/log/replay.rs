//! Committed batches after the snapshot, read back at a start.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::disk::File;
use crate::log::files::Handle;
use crate::log::header::{HEADER, Header, Position};
use crate::log::manifest::Link;
use crate::log::scan::{Found, Scanner};
use crate::open_error::OpenError;
use crate::seam::batch::Records;
use crate::seam::event::Committed;

/// The batches of one segment, from its first one on.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) handle: Handle,
    pub(crate) start: Link,
    pub(crate) end: Link,
    pub(crate) len: u64,
}

/// Committed batches after the snapshot, in order.
#[derive(Debug)]
pub struct Replay {
    identity: u64,
    term: u64,
    applied_index: u64,
    stretches: VecDeque<Stretch>,
    scanner: Option<Scanner>,
}

impl Replay {
    pub(crate) fn new(identity: u64, term: u64, applied_index: u64, stretches: Vec<Stretch>) -> Replay {
        let stretches = stretches.into_iter().filter(|s| s.end.next_index > applied_index + 1).collect();
        Replay { identity, term, applied_index, stretches, scanner: None }
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// A batch that must be there is missing or damaged, or the file cannot be read.
    pub fn next_batch(&mut self) -> Result<Option<Committed>, OpenError> {
        while let Some(stretch) = self.stretches.front() {
            let scanner = self.scanner.get_or_insert_with(|| stretch.scanner(self.identity, self.term));
            if scanner.link == stretch.end {
                self.scanner = None;
                self.stretches.pop_front();
                continue;
            }
            let found = stretch.next_batch(scanner)?;
            if let Some(committed) = after(found, self.applied_index) {
                return Ok(Some(committed));
            }
        }
        Ok(None)
    }
}

impl Stretch {
    pub(crate) fn scanner(&self, identity: u64, term: u64) -> Scanner {
        Scanner::new(&self.handle, identity, term, self.start, self.len)
    }

    /// Reads the next batch, which must be there.
    pub(crate) fn next_batch(&self, scanner: &mut Scanner) -> Result<Found, OpenError> {
        let found = scanner.next_batch().map_err(OpenError::io(&self.handle.path, "read"))?;
        found.ok_or_else(|| {
            let what = "the batch here is not whole, or does not continue the one before it";
            OpenError::damaged(&self.handle.path, scanner.at.offset, Some(scanner.link.next_index), what)
        })
    }

    /// Checks that the file begins with the head of its first batch.
    pub(crate) fn verify_head(&self, identity: u64) -> Result<(), OpenError> {
        let path = &self.handle.path;
        let mut bytes = [0; HEADER];
        let read = self.handle.file.read_at(&mut bytes, 0).map_err(OpenError::io(path, "read"))?;
        let at = Position { segment: self.handle.number, offset: 0 };
        let head = Header::decode(identity, at, &bytes[..read]);
        let Link { next_index: first, next_number, previous, .. } = self.start;
        let begins = (first, next_number, previous);
        if head.is_some_and(|head| (head.first_index, head.number, head.previous) == begins) {
            return Ok(());
        }
        let what = "the segment does not begin with the batch that the manifest names";
        Err(OpenError::damaged(path, 0, Some(first), what))
    }

    /// Reads all batches, each of which must be whole, and passes them to `each`.
    pub(crate) fn verify(
        &self,
        identity: u64,
        term: u64,
        mut each: impl FnMut(&Found),
    ) -> Result<(), OpenError> {
        let mut scanner = self.scanner(identity, term);
        while scanner.link != self.end {
            each(&self.next_batch(&mut scanner)?);
        }
        Ok(())
    }
}

/// The part of a batch with records after `applied_index`; `None`: there are none.
fn after(found: Found, applied_index: u64) -> Option<Committed> {
    let Found { header, records } = found;
    let skip = (applied_index + 1).saturating_sub(header.first_index);
    if skip >= u64::from(header.records) {
        return None;
    }
    let skipped: usize = Records::new(&records).take(skip as usize).map(|record| record.encoded_len()).sum();
    Some(Committed {
        first_index: header.first_index + skip,
        number: header.number,
        term: header.term,
        time_us: header.time_us,
        bytes: Bytes::from(records).slice(skipped..),
    })
}
