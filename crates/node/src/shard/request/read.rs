//! Reads of a shard's state between two batches.

use std::sync::Arc;

use sluice_engine::documents::DocumentView;
use sluice_engine::outcome::Delivery;
use sluice_engine::{Engine, Error};
use sluice_journal::BlobRead;
use tokio::sync::watch;

use crate::shard::ShardFigures;
use crate::shard::delivery::{Given, read_given};
use crate::shard::lock_watches::LockWatches;
use crate::shard::store::Store;

type ReadFn = dyn FnOnce(Result<&mut ShardView<'_>, Error>) + Send;

/// The parts of a shard that a read can see.
pub struct ShardView<'a> {
    /// The state.
    pub engine: &'a Engine,
    /// The log's time, in microseconds since the Unix epoch.
    pub now_us: u64,
    /// The journal, for looking up blobs.
    pub journal: &'a mut dyn Store,
    /// Number of waiting pulls.
    pub waiting: usize,
    /// Number of readers of events.
    pub event_readers: usize,
    /// Revision of the last change of a document, to wait for the next one.
    pub changes: &'a watch::Sender<u64>,
    /// Watchers of locks.
    pub lock_watches: &'a Arc<LockWatches>,
    /// Records and batches since start.
    pub figures: ShardFigures,
}

/// A read of the state, which must take bounded time. It gets an error instead when too many reads are
/// waiting, or the shard ends.
pub struct Read(pub Box<ReadFn>);

impl std::fmt::Debug for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Read")
    }
}

/// A version of a document, with its bytes or their location on disk.
#[derive(Debug)]
pub struct FoundDocument {
    /// The version.
    pub view: DocumentView,
    /// Its bytes.
    pub blob: BlobRead,
}

impl ShardView<'_> {
    /// Looks up the bytes of a delivery that was handed over without them; `None`: its lease is over.
    pub(crate) fn fetch(&mut self, delivery: Delivery) -> Option<Given> {
        if !self.engine.is_held(&delivery.receipt, self.now_us) {
            return None;
        }
        let queue = self.engine.queue_name(delivery.queue).unwrap_or_default().into();
        Some(read_given(self.engine, self.journal, delivery, queue))
    }
}
