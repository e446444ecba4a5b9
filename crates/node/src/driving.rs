//! Bounds of the transactions over several namespaces that a node drives at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{RwLock, Semaphore};

/// Bytes of their operations.
const BYTES_MAX: usize = 64 << 20;
/// Records that another node is asked to propose; each connection has room for a few more questions.
const ASKING_MAX: usize = 6;

#[derive(Debug)]
pub(crate) struct Driving {
    /// Bytes of their operations.
    pub(crate) bytes: Arc<Semaphore>,
    /// Records that each other node is asked to propose, by the number of the node.
    asking: Mutex<BTreeMap<u64, Arc<Semaphore>>>,
    /// Held by those who decide or forget one, and alone by a backup while it fixes the end of each shard.
    pub(crate) deciding: RwLock<()>,
}

impl Default for Driving {
    fn default() -> Driving {
        let bytes = Arc::new(Semaphore::new(BYTES_MAX));
        Driving { bytes, asking: Mutex::default(), deciding: RwLock::new(()) }
    }
}

impl Driving {
    /// Turns of records that a node is asked to propose; each holds one until it is answered. A silent node
    /// holds up those for itself alone.
    pub(crate) fn turns_at(&self, node: u64) -> Arc<Semaphore> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(asking.entry(node).or_insert_with(|| Arc::new(Semaphore::new(ASKING_MAX))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_node_holds_up_no_other() {
        let driving = Driving::default();
        let of_silent = driving.turns_at(2);
        let held: Vec<_> = (0..ASKING_MAX).map(|_| of_silent.try_acquire().unwrap()).collect();
        assert!(driving.turns_at(2).try_acquire().is_err());
        assert!(driving.turns_at(3).try_acquire().is_ok());
        drop(held);
        assert!(driving.turns_at(2).try_acquire().is_ok());
    }
}
