//! Metrics of a journal, and the findings of opening one.

use std::path::PathBuf;

/// Metrics of a journal. Counts are since it was opened.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Number of batches committed.
    pub batches: u64,
    /// Number of records committed.
    pub records: u64,
    /// Bytes written to the log, heads included.
    pub log_bytes: u64,
    /// Number of syncs of files and directories.
    pub fsyncs: u64,
    /// Duration of the last sync of the log, in microseconds.
    pub last_fdatasync_us: u64,
    /// Disk space of the journal's files, without the reserve, in bytes.
    pub disk_bytes: u64,
    /// Free disk space at the last look, in bytes.
    pub disk_free_bytes: u64,
    /// Number of files with records or blobs: segments, and files of compaction.
    pub segments: u64,
    /// Number of snapshots taken.
    pub snapshots: u64,
    /// True while a snapshot is being written.
    pub snapshot_running: bool,
    /// Bytes copied by compaction.
    pub compacted_bytes: u64,
    /// Number of blobs found damaged.
    pub damaged_blobs: u64,
    /// Number of damaged blobs that were replaced on the disk by whole copies.
    pub repaired_blobs: u64,
    /// Memory used by the cache, in bytes.
    pub cache_bytes: u64,
    /// Number of blob reads that missed the cache.
    pub cache_misses: u64,
    /// True while growing batches are refused for lack of disk space.
    pub full: bool,
    /// True while free space is below the low-water mark.
    pub low: bool,
    /// Number of segments that were created only when the log needed them, which delays it.
    pub late_segments: u64,
    /// Size of the reserve at present, in bytes; of that of all journals that share it.
    pub reserve_bytes: u64,
}

/// Findings of opening a journal.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// True when the journal was created.
    pub fresh: bool,
    /// Term of this opening, larger than those of all before; under [`crate::Commit::Told`] the last term in
    /// the log, or given to it before.
    pub term: u64,
    /// Index of the next record.
    pub next_index: u64,
    /// Time of the last batch, or of the snapshot, in microseconds since the Unix epoch; 0: none.
    pub last_time_us: u64,
    /// The end of the log that was cut off, if any.
    pub cut: Option<Cut>,
    /// True when the end of the log is known: the journal is new or was closed in order. Otherwise records
    /// written after the manifest last noted the durable position may be missing without a trace.
    pub end_known: bool,
    /// Notes for the operator, as sentences.
    pub notes: Vec<String>,
}

/// An incomplete end of the log that nothing on disk shows to have been synced.
#[derive(Clone, Debug)]
pub struct Cut {
    /// File of the segment.
    pub file: PathBuf,
    /// Offset of the first bad batch in it, in bytes.
    pub offset: u64,
    /// Index of that batch's first record.
    pub index: u64,
    /// Length from there to the last byte that is not zero.
    pub bytes: u64,
}
