//! The journal of Sluice: one ordered log of records per shard, and the state snapshots that shorten its replay.
//!
//! What lives here: records and checksums, group commit, segments, manifest, recovery, snapshots, compaction, reading
//! blobs back, scrubbing, backup. What does not: what a record means. A record is a body, which replay needs, and
//! blobs, which stay where they are until released.

pub mod batch;
pub mod seam;

pub use batch::{Batch, Record, RecordWriter, Records};
pub use seam::{BlobKey, BlobLocation, BlobRead, Class, Committed, Event, Journal, Refused};
