//! Bounds of the transactions over several namespaces that a node drives at a time, and what holds them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedRwLockWriteGuard, RwLock, Semaphore};

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
    /// One per shard: held by those who decide or forget a transaction there, and alone by a [`Hold`].
    pub(crate) deciding: Vec<Arc<RwLock<()>>>,
    /// Shards that are held, by their numbers.
    holds: Mutex<BTreeMap<u32, Hold>>,
}

/// A hold of a shard: while it lasts, this node decides and forgets nothing there.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Number by which the holder names it.
    pub(crate) ticket: u64,
    /// Epoch of the shard when it began.
    pub(crate) epoch: u64,
    /// Ends the hold when it is dropped.
    pub(crate) _deciding: OwnedRwLockWriteGuard<()>,
}

impl Driving {
    pub(crate) fn new(shards: u32) -> Driving {
        Driving {
            bytes: Arc::new(Semaphore::new(BYTES_MAX)),
            asking: Mutex::default(),
            deciding: (0..shards).map(|_| Arc::default()).collect(),
            holds: Mutex::default(),
        }
    }

    /// Turns of records that a node is asked to propose; each holds one until it is answered. A silent node
    /// holds up those for itself alone.
    pub(crate) fn turns_at(&self, node: u64) -> Arc<Semaphore> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(asking.entry(node).or_insert_with(|| Arc::new(Semaphore::new(ASKING_MAX))))
    }

    /// True if the shard is held under a ticket.
    pub(crate) fn is_held(&self, shard: u32, ticket: u64) -> bool {
        self.holds().get(&shard).is_some_and(|hold| hold.ticket == ticket)
    }

    /// Enters a hold.
    pub(crate) fn enter(&self, shard: u32, hold: Hold) {
        self.holds().insert(shard, hold);
    }

    /// Removes the hold of a shard with a ticket; `None`: it has ended.
    pub(crate) fn take(&self, shard: u32, ticket: u64) -> Option<Hold> {
        let mut holds = self.holds();
        let hold = holds.remove(&shard)?;
        if hold.ticket == ticket {
            return Some(hold);
        }
        holds.insert(shard, hold);
        None
    }

    fn holds(&self) -> MutexGuard<'_, BTreeMap<u32, Hold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_node_holds_up_no_other() {
        let driving = Driving::new(1);
        let of_silent = driving.turns_at(2);
        let held: Vec<_> = (0..ASKING_MAX).map(|_| of_silent.try_acquire().unwrap()).collect();
        assert!(driving.turns_at(2).try_acquire().is_err());
        assert!(driving.turns_at(3).try_acquire().is_ok());
        drop(held);
        assert!(driving.turns_at(2).try_acquire().is_ok());
    }
}
