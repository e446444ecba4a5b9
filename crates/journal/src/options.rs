//! Settings of a disk journal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::keys::Encryption;
use crate::space::Space;

/// Identity of the place that a journal belongs to, and the start that opened it last. The journal stores it
/// and does not interpret it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    /// Identity of the server.
    pub server: u64,
    /// Number of the shard.
    pub shard: u32,
    /// Number of the last start of the server that opened this journal; 0: none.
    pub start: u64,
}

/// Point at which a batch is durable for this journal (see [`crate::Journal`]); on one node it is committed
/// then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// When fdatasync has returned.
    #[default]
    Always,
    /// When it is written. [`crate::Maintenance`] syncs once per interval: a power loss may lose the last
    /// interval.
    Interval(Duration),
    /// When it is written. The operating system syncs at its own times, and sealing a segment does.
    Os,
}

/// Rule by which batches are committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Commit {
    /// Commits every batch that is durable: one node needs no other.
    #[default]
    Own,
    /// Commits the batches named by [`crate::DiskJournal::commit`]. The rest is the *tail*, which can
    /// be read by index, and cut. A journal that was last opened under [`Commit::Own`] has no tail.
    Told,
}

/// Checks of what the state machine can replay, made before anything is written.
#[derive(Clone, Copy, Debug)]
pub struct Knows {
    /// Checks the behaviour version of a snapshot. An error says why records after it cannot be applied.
    pub behaviour: fn(u32) -> Result<(), String>,
    /// Checks the body of a record. An error says what in it is unknown.
    pub record: fn(&[u8]) -> Result<(), String>,
}

impl Default for Knows {
    /// Accepts everything.
    fn default() -> Knows {
        Knows { behaviour: |_| Ok(()), record: |_| Ok(()) }
    }
}

/// Divisor of the disk's size: upper limit of the reserve, and of the log between two snapshots.
const DISK_PART: u64 = 8;
/// Divisor of the disk's size: upper limit of a segment, and of the margin.
const SEGMENT_PART: u64 = 16;
/// Lower limit of that for a segment, in bytes.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// Number of zeros written ahead of the batches in the first segment of a run, and in that of a journal at
/// rest.
const FIRST_PREFILL: u64 = 4 << 20;

/// Settings of a disk journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Data directory; created when missing.
    pub dir: PathBuf,
    /// Point at which a batch is durable.
    pub durability: Durability,
    /// Rule by which batches are committed.
    pub commit: Commit,
    /// Budget of the memory for reading blobs, in bytes: recent batches, and what was read ahead.
    pub cache_bytes: u64,
    /// Size of the reserve for draining a full disk, in bytes; 0: none.
    pub reserve_bytes: u64,
    /// Room on the disk, with its reserve and margin, shared with other journals; `None`: its own, by
    /// `reserve_bytes` and `full_margin_bytes`, in `dir`.
    pub space: Option<Arc<Space>>,
    /// Free space below which [`crate::Status::low`] is set, in bytes.
    pub low_water_bytes: u64,
    /// Free space beyond the batch itself below which growing batches are refused, in bytes.
    pub full_margin_bytes: u64,
    /// Upper limit of files kept open for reading alone; files being written are not counted.
    pub open_files: usize,
    /// Size at which the next segment begins, in bytes (4 KiB to 1 GiB). A larger batch gets a segment of its
    /// own.
    pub segment_bytes: u64,
    /// Log since the last snapshot at which the next is due, in bytes; the last snapshot's size if that is
    /// larger.
    pub snapshot_log_bytes: u64,
    /// Time without batches after which the journal rests: it gives back the room that it has taken ahead,
    /// but for what it takes at its opening, and keeps little that is dead.
    pub rest_after: Duration,
    /// Rate at which the scrub reads sealed segments, in bytes per second; 0: no scrub.
    pub scrub_bytes_per_s: u64,
    /// Identity of a new journal, which tells its bytes from another's; 0: random. Simulators set it, to get
    /// the same bytes each time.
    pub identity: u64,
    /// Owner from this opening on; `None`: unchanged.
    pub owner: Option<Owner>,
    /// Lower limit of the term of this opening; 0: none. With the time as limit, a copy of a journal gets
    /// other terms than the original. Under [`Commit::Told`] openings have no term of their own.
    pub term_min: u64,
    /// Encryption at rest.
    pub encryption: Encryption,
    /// Checks of what the state machine can replay.
    pub knows: Knows,
}

impl Options {
    /// Default settings for this directory, without encryption.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            durability: Durability::Always,
            commit: Commit::Own,
            cache_bytes: 256 << 20,
            reserve_bytes: 64 << 20,
            space: None,
            low_water_bytes: 1 << 30,
            full_margin_bytes: 32 << 20,
            open_files: 128,
            segment_bytes: 64 << 20,
            snapshot_log_bytes: 64 << 20,
            rest_after: Duration::from_secs(60),
            scrub_bytes_per_s: 4 << 20,
            identity: 0,
            owner: None,
            term_min: 0,
            encryption: Encryption::default(),
            knows: Knows::default(),
        }
    }

    /// Settings reduced to fit `disk_bytes` of disk: on a small disk the reserve, the margin, segments and
    /// the log between two snapshots are smaller, so that most of it is for data.
    pub fn fitting(self, disk_bytes: u64) -> Options {
        let segment_bytes = (disk_bytes / SEGMENT_PART).max(SEGMENT_BYTES_MIN);
        Options {
            reserve_bytes: self.reserve_bytes.min(disk_bytes / DISK_PART),
            full_margin_bytes: self.full_margin_bytes.min(disk_bytes / SEGMENT_PART),
            segment_bytes: self.segment_bytes.min(segment_bytes),
            snapshot_log_bytes: self.snapshot_log_bytes.min(disk_bytes / DISK_PART),
            ..self
        }
    }

    /// Number of zeros to write ahead into the first segment of a run, and into that of a journal at rest.
    pub(crate) fn first_prefill(&self) -> u64 {
        self.prefill(FIRST_PREFILL)
    }

    /// Number of zeros to write ahead into a segment of a run that goes on.
    pub(crate) fn next_prefill(&self) -> u64 {
        self.prefill(u64::MAX)
    }

    /// Number of zeros by the durability, at most this: only syncs of single batches gain by them.
    fn prefill(&self, most: u64) -> u64 {
        match self.durability {
            Durability::Always => self.segment_bytes.min(most),
            Durability::Interval(_) | Durability::Os => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_disk_is_mostly_for_data_and_a_usual_one_changes_nothing() {
        let fitted = |bytes| {
            let fitted = Options::new("").fitting(bytes);
            [fitted.reserve_bytes, fitted.full_margin_bytes, fitted.segment_bytes, fitted.snapshot_log_bytes]
        };
        assert_eq!(fitted(64 << 20), [8 << 20, 4 << 20, 4 << 20, 8 << 20]);
        assert_eq!(fitted(1 << 20), [128 << 10, 64 << 10, 1 << 20, 128 << 10]);
        assert_eq!(fitted(4 << 30), [64 << 20, 32 << 20, 64 << 20, 64 << 20]);
    }
}
