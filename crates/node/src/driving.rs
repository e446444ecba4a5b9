//! Bounds of the transactions over several namespaces that a node drives at a time.

use std::sync::Arc;

use tokio::sync::{RwLock, Semaphore};

/// Bytes of their operations.
const BYTES_MAX: usize = 64 << 20;
/// Records that other nodes are asked to propose; each connection has room for a few more questions.
const ASKING_MAX: usize = 6;

#[derive(Debug)]
pub(crate) struct Driving {
    /// Bytes of their operations.
    pub(crate) bytes: Arc<Semaphore>,
    /// Records that other nodes are asked to propose.
    pub(crate) asking: Semaphore,
    /// Held by those who decide or forget one, and alone by a backup while it fixes the end of each shard.
    pub(crate) deciding: RwLock<()>,
}

impl Default for Driving {
    fn default() -> Driving {
        let bytes = Arc::new(Semaphore::new(BYTES_MAX));
        Driving { bytes, asking: Semaphore::new(ASKING_MAX), deciding: RwLock::new(()) }
    }
}
