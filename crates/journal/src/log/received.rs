//! A state of another node that is here as a whole, in files that no manifest names yet.

use std::sync::Arc;

use crate::log::blob_holder::BlobHolder;
use crate::log::files::Handle;
use crate::log::manifest::BlobFile;
use crate::log::snapshot::StateHead;
use crate::log::state_reader::PlacedSnapshot;

/// File that no manifest names, which is removed with this value.
#[derive(Debug)]
pub(crate) struct Unplaced {
    handle: Handle,
    /// True when a manifest may name it.
    is_kept: bool,
}

impl Unplaced {
    pub(crate) fn new(handle: &Handle) -> Unplaced {
        Unplaced { handle: handle.clone(), is_kept: false }
    }
}

impl Drop for Unplaced {
    fn drop(&mut self) {
        if !self.is_kept {
            self.handle.discard();
        }
    }
}

/// State of another node that is here as a whole, and synced. Dropping it removes it.
#[derive(Debug)]
pub struct Received {
    files: Vec<Unplaced>,
    pub(crate) snapshot: PlacedSnapshot,
    pub(crate) blobs: Vec<ReceivedBlobs>,
}

/// File of blobs that were received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedBlobs {
    pub(crate) holder: Arc<BlobHolder>,
    /// Entry of the manifest for it.
    pub(crate) named: BlobFile,
}

impl Received {
    pub(crate) fn new(files: Vec<Unplaced>, snapshot: PlacedSnapshot, blobs: Vec<ReceivedBlobs>) -> Received {
        Received { files, snapshot, blobs }
    }

    /// Head of the state.
    pub fn head(&self) -> StateHead {
        self.snapshot.head()
    }

    /// Leaves out the blobs of records before `first` and from `end` on.
    pub(crate) fn limit(&mut self, first: u64, end: u64) {
        for file in &mut self.blobs {
            let within = file.named.ranges.iter().map(|range| (range.0.max(first), range.1.min(end)));
            file.named.ranges = within.filter(|range| range.0 < range.1).collect();
        }
        self.blobs.retain(|file| !file.named.ranges.is_empty());
    }

    /// Keeps the files with these numbers, which a manifest names or may name, and no others.
    pub(crate) fn keep(&mut self, is_named: impl Fn(u64) -> bool) {
        for file in &mut self.files {
            file.is_kept = is_named(file.handle.number);
        }
    }
}
