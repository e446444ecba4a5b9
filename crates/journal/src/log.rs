//! The journal on disk.
//!
//! Files of a data directory, all named by the [manifest](manifest) but for the last two:
//!
//! | name | what |
//! |---|---|
//! | `manifest` | which of the others belong to the journal |
//! | `keyring` | the key of each of them, [wrapped](crate::keys) |
//! | `N.log` | a segment: batches, each behind a [head](header), in a chain of checksums |
//! | `N.table` | where the blobs of a sealed segment lie ([table]) |
//! | `N.blobs` | live blobs that compaction has copied, and their table |
//! | `N.snapshot` | the latest [snapshot] |
//! | `reserve` | room for draining a full disk ([space](crate::space)); above, if it is shared |
//! | `lock` | held by the process that uses the directory |
//!
//! Numbers `N` are never used twice, and those of segments grow in the order of the log. A table is a file
//! beside its segment, and not a footer in it, so that sealing after a crash need not write to an old
//! segment.
//!
//! Three parties share the work, none of which waits for another: [`DiskJournal`] on the shard's thread, the
//! [`Writer`], and [`Maintenance`]. Each is a set of steps; threads are somebody else's.

pub(crate) mod blob;
mod blob_file;
pub(crate) mod blob_holder;
mod cache;
pub(crate) mod file_keys;
pub(crate) mod files;
pub(crate) mod header;
mod index;
mod journal;
mod maintenance;
pub(crate) mod manifest;
pub(crate) mod read_ahead;
mod read_back;
mod received;
mod receiving;
pub(crate) mod recovery;
pub(crate) mod repairs;
pub(crate) mod replay;
pub(crate) mod scan;
mod sealed_file;
pub(crate) mod sealing;
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod snapshot;
mod snapshot_writer;
pub(crate) mod spans;
mod state_reader;
pub(crate) mod table;
mod uncommitted;
mod writer;

pub use journal::DiskJournal;
pub use maintenance::{Maintenance, Notice};
pub use manifest::{has_hard_state, holds_journal, journal_file, owner_of};
pub use read_back::{LogGone, LogReader};
pub use received::Received;
pub use receiving::Receiving;
pub use replay::Replay;
pub use snapshot::{SnapshotReader, StateHead};
pub use state_reader::{StatePart, StateReader};
pub use uncommitted::Entry;
pub use writer::Writer;
