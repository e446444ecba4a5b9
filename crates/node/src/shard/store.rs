//! Interface of a shard to its journal, beyond [`Journal`]: snapshots and metrics.

use bytes::Bytes;
use sluice_engine::{BlobRef, Engine};
use sluice_journal::{BlobKey, BlobLocation, BlobRead, DiskJournal, Journal, MemoryJournal, Status};
use sluice_replica::{Clocks, NodeId};

use crate::api::ReplicaMetrics;

/// Place of a node among the replicas of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// There is no other replica: the node leads for ever and needs nobody's consent.
    Alone,
    /// The node leads. [`Journal::poll`] has given the first batch of the term, which replicas add by
    /// themselves, and with it everything of earlier terms.
    Leader {
        /// Term of the leadership: that of each batch proposed in it. Grows from one leadership to the next.
        term: u64,
    },
    /// Another node leads, or nobody.
    Follower {
        /// Number of the node that leads, if it is known.
        leader: Option<u64>,
    },
}

/// Clocks of another replica, as it has told them.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// The replica.
    pub from: NodeId,
    /// True: it leads, and the time of the log is that of its leadership.
    pub is_of_leader: bool,
    /// Its clocks when it sent the message.
    pub clocks: Clocks,
}

/// The journal of a shard. Nothing here blocks.
///
/// With replicas a leader's proposal gets an index and the term of the leadership. It is in the log when the
/// batch that [`Journal::poll`] gives at that index has the same term; when a batch of a later term comes
/// first, it is not and never will be. Terms never shrink along the log. Batches that replicas add by
/// themselves have the time of the batch before them, for who adds them has no clock of the log.
pub trait Store: Journal<Location = BlobLocation> {
    /// Present place among the replicas. A change wakes the shard. One that comes with a call of
    /// [`Journal::poll`] is seen before a later call gives another batch: that gives nothing once.
    fn standing(&self) -> Standing {
        Standing::Alone
    }

    /// Takes the clocks of this replica, which the others are told with each message from now on.
    fn tell_clocks(&mut self, clocks: Clocks) {
        let _ = clocks;
    }

    /// Takes the clocks that another replica has told with a message which was taken in since the last call;
    /// `None`: there are no more.
    fn hear_clocks(&mut self) -> Option<Heard> {
        None
    }

    /// True while the store of a leader takes proposals: not while the leadership is handed over, nor while
    /// the disk hangs.
    fn takes_proposals(&self) -> bool {
        true
    }

    /// Index up to which the state has to be applied so that it shows everything that was acknowledged
    /// anywhere before the first call with this `round`; for a leader only. `None`: not known yet. Rounds
    /// count up from 1. One may be lost for ever, after which the shard asks for the next. An answer wakes
    /// the shard.
    fn confirm(&mut self, round: u64) -> Option<u64> {
        let _ = round;
        Some(self.committed_index())
    }

    /// Takes the state that another node has sent and that the journal goes on behind, if the last call of
    /// [`Journal::poll`], which gave nothing, has put one in the place of the present one.
    fn take_state(&mut self) -> Option<Box<Engine>> {
        None
    }

    /// True when a snapshot is due and none is running.
    fn wants_snapshot(&self) -> bool;
    /// Begins a snapshot of the state after record `applied_index`, which ends the batch that was given last,
    /// at the logged time `time_us` in microseconds, made by the rules of version `behaviour`.
    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32);
    /// Takes the next piece. `Err` gives it back while the journal is behind.
    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>>;
    /// Ends the snapshot after its last piece.
    fn snapshot_finish(&mut self);
    /// Metrics of the journal.
    fn status(&self) -> Status;

    /// Metrics of the replicas; `None`: there is no other.
    fn replicas(&self) -> Option<ReplicaMetrics> {
        None
    }
}

/// Looks up a blob of the engine.
pub fn read(journal: &mut (impl Store + ?Sized), blob: BlobRef) -> BlobRead {
    if blob == BlobRef::EMPTY {
        return BlobRead::Cached(Bytes::from_static(BlobRef::EMPTY_BYTES));
    }
    journal.read(BlobKey { index: blob.index, item: blob.item })
}

impl Store for DiskJournal {
    fn wants_snapshot(&self) -> bool {
        self.wants_snapshot()
    }

    fn snapshot_begin(&mut self, applied_index: u64, time_us: u64, behaviour: u32) {
        self.snapshot_begin(applied_index, time_us, behaviour);
    }

    fn snapshot_piece(&mut self, piece: Vec<u8>) -> Result<(), Vec<u8>> {
        self.snapshot_piece(piece)
    }

    fn snapshot_finish(&mut self) {
        self.snapshot_finish();
    }

    fn status(&self) -> Status {
        self.status()
    }
}

/// A store that keeps nothing across restarts, so that it never needs a snapshot.
impl Store for MemoryJournal {
    fn wants_snapshot(&self) -> bool {
        false
    }

    fn snapshot_begin(&mut self, _applied_index: u64, _time_us: u64, _behaviour: u32) {}

    fn snapshot_piece(&mut self, _piece: Vec<u8>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn snapshot_finish(&mut self) {}

    fn status(&self) -> Status {
        Status::default()
    }
}
