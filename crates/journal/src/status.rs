//! Figures and findings that a journal tells of itself.

use std::path::PathBuf;

/// Figures of a journal; counts are since it was opened.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Batches committed.
    pub batches: u64,
    /// Records committed.
    pub records: u64,
    /// Bytes written to the log, headers included.
    pub log_bytes: u64,
    /// Syncs of files.
    pub fsyncs: u64,
    /// Duration of the last sync of the log, in microseconds.
    pub last_fdatasync_us: u64,
    /// Bytes that the journal's files take.
    pub disk_bytes: u64,
    /// Bytes free on the disk, as last seen.
    pub disk_free_bytes: u64,
    /// Segments, of the log and of compaction.
    pub segments: u64,
    /// Snapshots taken.
    pub snapshots: u64,
    /// Whether one is being taken.
    pub snapshot_running: bool,
    /// Bytes that compaction has copied.
    pub compacted_bytes: u64,
    /// Blobs that did not verify.
    pub damaged_blobs: u64,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// Blob reads that had to go to the disk.
    pub cache_misses: u64,
    /// Whether growing batches are refused for lack of room.
    pub full: bool,
    /// Whether free space is below the low-water mark.
    pub low: bool,
    /// Segments that were not ready when the log needed them, so that it had to wait for their making.
    pub late_segments: u64,
    /// Bytes of the reserve that are left.
    pub reserve_bytes: u64,
}

/// What opening a journal found.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Whether the journal is new.
    pub fresh: bool,
    /// Number of this opening: larger than those of all before.
    pub term: u64,
    /// Index that the next record gets.
    pub next_index: u64,
    /// Time of the last batch, or of the snapshot, in microseconds since the Unix epoch; 0: none.
    pub last_time_us: u64,
    /// What was cut from the end of the log.
    pub cut: Option<Cut>,
    /// Whether the journal is new or was closed in order. Otherwise what was written since the manifest last
    /// told how far the log is durable may be missing without a trace.
    pub end_known: bool,
    /// Other things that an operator may want to know, as sentences.
    pub notes: Vec<String>,
}

/// An end of the log that was not whole, and of which nothing on the disk tells that it had been synced.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The segment.
    pub file: PathBuf,
    /// Where in it the first bad batch began.
    pub offset: u64,
    /// Index that its first record would have had.
    pub index: u64,
    /// Bytes from there to the last one that is not zero.
    pub bytes: u64,
}
