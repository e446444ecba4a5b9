//! Reads the batches of a segment in order.

use std::io;
use std::sync::Arc;

use crate::disk::File;
use crate::log::files::{Handle, Seal};
use crate::log::header::{HEADER, Header, MAGIC, Position, next_sector};
use crate::log::manifest::Link;
use crate::log::sealing::open_batch;
use crate::seam::batch::Records;

/// Bytes read from the file at once.
const WINDOW: usize = 256 << 10;

/// A file seen through a buffer.
#[derive(Debug)]
pub(crate) struct Window {
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    /// Number of bytes at the beginning of the buffer that were read, and their place in the file.
    filled: usize,
    start: u64,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn File>) -> Window {
        Window { file, buffer: Vec::new(), filled: 0, start: 0 }
    }

    /// The bytes at this place; fewer at the end of the file.
    pub(crate) fn get(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let held = self.start..=self.start + self.filled as u64;
        if !held.contains(&offset) || !held.contains(&(offset + len as u64)) {
            let wanted = len.max(WINDOW);
            if self.buffer.len() < wanted {
                self.buffer = vec![0; wanted];
            }
            // A reader may try again after a failure.
            (self.filled, self.start) = (0, offset);
            self.filled = self.file.read_at(&mut self.buffer, offset)?;
        }
        let from = (offset - self.start) as usize;
        let to = (from + len).min(self.filled);
        Ok(&self.buffer[from.min(to)..to])
    }
}

/// One batch as found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) records: Vec<u8>,
}

/// Follows the chain of batches through a segment.
#[derive(Debug)]
pub(crate) struct Scanner {
    window: Window,
    seal: Seal,
    identity: u64,
    newest_term: u64,
    /// Where the next batch may begin.
    pub(crate) at: Position,
    /// State of the chain that the next batch must continue.
    pub(crate) link: Link,
    /// Bytes of the file that may be looked at.
    end: u64,
}

impl Scanner {
    /// Begins at the start of a segment.
    pub(crate) fn new(handle: &Handle, identity: u64, newest_term: u64, link: Link, end: u64) -> Scanner {
        let at = Position { segment: handle.number, offset: 0 };
        let (window, seal) = (Window::new(handle.file.clone()), handle.seal.clone());
        Scanner { window, seal, identity, newest_term, at, link, end }
    }

    /// Looks at the file up to this offset from now on, where it may have other bytes than before.
    pub(crate) fn extend(&mut self, end: u64) {
        self.window.filled = 0;
        self.end = end;
    }

    /// The next batch; `None` when what follows does not continue the log.
    pub(crate) fn next_batch(&mut self) -> io::Result<Option<Found>> {
        if let Some(found) = self.read_at(self.at.offset)? {
            return Ok(Some(found));
        }
        let sector = next_sector(self.at.offset);
        if sector == self.at.offset { Ok(None) } else { self.read_at(sector) }
    }

    fn read_at(&mut self, offset: u64) -> io::Result<Option<Found>> {
        let at = Position { offset, ..self.at };
        let Some(header) = Header::decode(self.identity, at, self.window.get(offset, HEADER)?) else {
            return Ok(None);
        };
        if header.end() > self.end || !self.continues(&header) {
            return Ok(None);
        }
        let bytes = self.window.get(offset + HEADER as u64, header.front() - HEADER + header.len as usize)?;
        let records = open_batch(&self.seal, self.identity, &header, bytes);
        let Some(records) = records.filter(|records| is_whole(&header, records)) else { return Ok(None) };
        self.at.offset = header.end();
        self.link = Link::after(&header);
        Ok(Some(Found { header, records }))
    }

    fn continues(&self, header: &Header) -> bool {
        (header.first_index, header.number) == (self.link.next_index, self.link.next_number)
            && header.previous == self.link.previous
            && (self.link.term..=self.newest_term).contains(&header.term)
            && header.time_us >= self.link.time_us
    }
}

/// True when there are as many records as the head tells.
fn is_whole(header: &Header, records: &[u8]) -> bool {
    let mut reader = Records::new(records);
    reader.by_ref().count() == header.records as usize && reader.rest().is_empty()
}

/// The highest `synced_to` of any head in a file from this offset on, whole batch or not.
pub(crate) fn highest_synced(
    file: Arc<dyn File>,
    number: u64,
    identity: u64,
    from: u64,
) -> io::Result<Option<Position>> {
    let mut window = Window::new(file);
    let mut highest = None;
    let mut offset = from;
    loop {
        let bytes = window.get(offset, WINDOW)?;
        if bytes.len() < HEADER {
            return Ok(highest);
        }
        for at in memchr::memmem::find_iter(bytes, &MAGIC) {
            let position = Position { segment: number, offset: offset + at as u64 };
            if let Some(header) = Header::decode(identity, position, &bytes[at..]) {
                highest = highest.max(Some(header.synced_to));
            }
        }
        offset += (bytes.len() - HEADER + 1) as u64;
    }
}

/// Where the last byte that is not zero ends, from this offset on; `from` when there is none.
pub(crate) fn content_end(file: Arc<dyn File>, from: u64) -> io::Result<u64> {
    let mut window = Window::new(file);
    let (mut end, mut offset) = (from, from);
    loop {
        let bytes = window.get(offset, WINDOW)?;
        if bytes.is_empty() {
            return Ok(end);
        }
        if let Some(at) = bytes.iter().rposition(|byte| *byte != 0) {
            end = offset + at as u64 + 1;
        }
        offset += bytes.len() as u64;
    }
}
