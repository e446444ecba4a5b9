//! The journal in memory.

use crate::{Batch, BlobKey, BlobRead, Class, Event, Journal, Refused};

/// A journal that commits at once and keeps live blobs in memory; gone with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {}

#[allow(clippy::unimplemented, unused_variables)]
impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> MemoryJournal {
        MemoryJournal::default()
    }
}

#[allow(clippy::unimplemented, unused_variables)]
impl Journal for MemoryJournal {
    fn next_index(&self) -> u64 {
        unimplemented!()
    }
    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        unimplemented!()
    }
    fn poll(&mut self) -> Option<Event> {
        unimplemented!()
    }
    fn read(&mut self, key: BlobKey) -> BlobRead {
        unimplemented!()
    }
    fn release(&mut self, key: BlobKey) {
        unimplemented!()
    }
}
