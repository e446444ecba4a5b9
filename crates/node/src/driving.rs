//! Bounds of the transactions over several namespaces that a node drives at a time, and what holds them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_engine::limits::TRANSACTION_PART_BYTES_MAX;
use tokio::sync::{OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock, Semaphore};

/// Bytes of their operations.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of records that another node is asked to propose; each connection has room for a few more questions.
const ASKING_BYTES_MAX: usize = 6 * TRANSACTION_PART_BYTES_MAX as usize;
/// Bytes for which a record counts at least, so that no more than 96 are asked for.
const ASKING_BYTES_MIN: usize = ASKING_BYTES_MAX / 96;

#[derive(Debug)]
pub(crate) struct Driving {
    /// Bytes of their operations.
    pub(crate) bytes: Arc<Semaphore>,
    /// Bytes of records that each other node is asked to propose, by the number of the node.
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

    /// Waits for the turn of a record of a length, in bytes, that a node is asked to propose; the record
    /// holds it until it is answered. A silent node holds up those for itself alone.
    pub(crate) async fn turn_at(&self, node: u64, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(asking.entry(node).or_insert_with(|| Arc::new(Semaphore::new(ASKING_BYTES_MAX))))
        };
        let bytes = bytes.clamp(ASKING_BYTES_MIN, ASKING_BYTES_MAX);
        turns.acquire_many_owned(bytes as u32).await.ok()
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
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// The turn at a node, if it is there at once.
    fn turn(driving: &Driving, node: u64, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let turn = pin!(driving.turn_at(node, bytes));
        match turn.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn,
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_silent_node_holds_up_no_other() {
        let driving = Driving::new(1);
        for (bytes, turns) in [(0, 96), (1 << 10, 96), (TRANSACTION_PART_BYTES_MAX as usize, 6)] {
            let held: Vec<_> = (0..turns).map(|_| turn(&driving, 2, bytes).unwrap()).collect();
            assert!(turn(&driving, 2, 1).is_none());
            assert!(turn(&driving, 3, 1).is_some());
            drop(held);
        }
        assert!(turn(&driving, 2, 1).is_some());
    }
}
