//! How a disk journal runs.

use std::path::PathBuf;
use std::time::Duration;

use crate::keys::Encryption;

/// Where a journal belongs among others, and how recent it is. The journal keeps it and makes nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    /// Identity of the server.
    pub server: u64,
    /// Number of the shard.
    pub shard: u32,
    /// Number of the server's last start that opened this journal; 0: none.
    pub start: u64,
}

/// When a batch counts as committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// After fdatasync has returned.
    #[default]
    Always,
    /// After the write; [`crate::Maintenance`] syncs once per interval. A power loss may take the last interval.
    Interval(Duration),
    /// After the write; synced when the operating system likes, and when a segment is sealed.
    Os,
}

/// What the state machine above can replay: asked when opening, before anything is written.
#[derive(Clone, Copy, Debug)]
pub struct Knows {
    /// Whether what follows a snapshot of this behaviour version can be applied; an error says why not.
    pub behaviour: fn(u32) -> Result<(), String>,
    /// Whether a record with this body can be applied; an error says what in it is not known.
    pub record: fn(&[u8]) -> Result<(), String>,
}

impl Default for Knows {
    /// Everything.
    fn default() -> Knows {
        Knows { behaviour: |_| Ok(()), record: |_| Ok(()) }
    }
}

/// Which part of a disk the reserve, and the log between two snapshots, take at most ...
const DISK_PART: u64 = 8;
/// ... and which part a segment, and the margin.
const SEGMENT_PART: u64 = 16;
/// No disk makes a segment smaller than this.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// Settings of a disk journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; made when missing.
    pub dir: PathBuf,
    /// When a batch counts as committed.
    pub durability: Durability,
    /// Most bytes that are kept in memory to read blobs from: recent batches, and what was read ahead of older ones.
    pub cache_bytes: u64,
    /// Bytes kept on the disk for draining when it is full; 0: none.
    pub reserve_bytes: u64,
    /// Free bytes below which [`crate::Status::low`] is set.
    pub low_water_bytes: u64,
    /// Free bytes, beyond the batch itself, below which growing batches are refused.
    pub full_margin_bytes: u64,
    /// Most files that are kept open only to read them; those that are written, and a few for a moment, come on top.
    pub open_files: usize,
    /// Bytes after which the next segment is begun (4 KiB to 1 GiB). A larger batch gets a segment of its own.
    pub segment_bytes: u64,
    /// Log since the last snapshot from which on the next is wanted (or the last one's size, if that is more).
    pub snapshot_log_bytes: u64,
    /// How fast the scrub reads sealed segments, in bytes per second; 0: no scrub.
    pub scrub_bytes_per_s: u64,
    /// Names a new journal, so that bytes of another are never taken for its own; 0: picked at random. Of use to
    /// simulators, which need the same bytes each time.
    pub identity: u64,
    /// Where the journal belongs from this opening on; `None`: as before.
    pub owner: Option<Owner>,
    /// The term of this opening, if it is larger than the last one's; 0: leave it to the journal. A copy of
    /// the journal gets other terms than the original when both are given the time.
    pub term_min: u64,
    /// Whether and how it is encrypted.
    pub encryption: Encryption,
    /// What the state machine above can replay.
    pub knows: Knows,
}

impl Options {
    /// The defaults, for this directory; nothing is encrypted.
    pub fn new(dir: impl Into<PathBuf>) -> Options {
        Options {
            dir: dir.into(),
            durability: Durability::Always,
            cache_bytes: 256 << 20,
            reserve_bytes: 64 << 20,
            low_water_bytes: 1 << 30,
            full_margin_bytes: 32 << 20,
            open_files: 128,
            segment_bytes: 64 << 20,
            snapshot_log_bytes: 64 << 20,
            scrub_bytes_per_s: 4 << 20,
            identity: 0,
            owner: None,
            term_min: 0,
            encryption: Encryption::default(),
            knows: Knows::default(),
        }
    }

    /// The same for a journal to which this many bytes of a disk belong. On a small one the reserve, the
    /// margin, segments and the log between two snapshots are smaller, so that most of it is for data and
    /// what is dead makes room.
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
