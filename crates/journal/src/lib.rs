//! The journal of Sluice: one ordered log of records per shard, and the snapshots of state that shorten its
//! replay.
//!
//! Contents: encoding and checksums of records, group commit, segments, manifest, recovery, snapshots,
//! compaction, reading blobs back, scrubbing, backup, encryption at rest. The meaning of a record is not
//! known here. A record is a body, which replay needs, and blobs, which stay on disk until they are released.
//!
//! Modules: [`seam`] the interface that users of a journal stand on; `memory` the journal in memory; `log`
//! the journal on disk, on [`disk`] the file system, `space` its room, and [`keys`] the encryption; `open`,
//! `rotation`, `backup`, `check` what is done with a journal on disk as a whole; `options`, `status`,
//! `open_error` their types; `plant` bugs on purpose.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backup;
mod check;
mod codec;
pub mod disk;
mod file_kind;
mod key_id;
pub mod keys;
mod lock;
mod log;
mod memory;
mod open;
mod open_error;
mod options;
#[cfg(feature = "plant")]
pub mod plant;
#[cfg(not(feature = "plant"))]
mod plant;
mod rotation;
pub mod seam;
mod space;
mod status;

pub use backup::{Backup, Backups, Incoming, RestoreError, restore, restore_on};
pub use check::{CheckReport, CheckedFile, check};
pub use disk::{Disk, FsDisk, Overlay};
pub use key_id::KeyId;
pub use keys::{Encryption, Random, RootKey, RootKeys, SealError, sealed_with};
pub use log::blob::{BlobLocation, BlobRead};
pub use log::file_keys::keys_needed;
pub use log::read_ahead::{read_together, take_ahead};
pub use log::repairs::BlobCopy;
pub use log::{DiskJournal, Entry, LogGone, LogReader, Maintenance, Notice, Replay, SnapshotReader, Writer};
pub use log::{Received, Receiving, StateHead, StatePart, StateReader};
pub use log::{has_hard_state, holds_journal, journal_file, owner_of};
pub use memory::MemoryJournal;
pub use open::Opened;
pub use open_error::{Damage, OpenError};
pub use options::Owner;
pub use options::{Commit, Durability, Knows, Options};
pub use rotation::{KeyStatus, KeyUse, Keyring};
pub use seam::Journal;
pub use seam::batch::{Batch, Record, RecordWriter, Records};
pub use seam::blob::{BlobError, BlobKey};
pub use seam::event::{Class, Committed, DiskRoom, Event, InstallError, Refused, TailError};
pub use seam::sealed::SealedBatch;
pub use space::Space;
pub use status::{Cut, RecoveryReport, Status};
