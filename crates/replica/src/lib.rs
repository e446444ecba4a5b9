//! Consensus over the log of one shard.
//!
//! A [`Replica`] is a pure state machine: no thread, socket, file or clock. An entry of its log describes one
//! batch of records; the bytes never reach it. Its owner gives it inputs (ticks, messages of other nodes,
//! proposals, reads, word of what the disk has synced) and takes from [`Replica::ready`] what to write, send,
//! apply and answer. The algorithm is Raft by the library `raft`, which is named in the folder `driver` and
//! nowhere else; what comes from other nodes is checked there against everything that the library asserts.
//!
//! A [`Member`] is such an owner: it joins a replica to the journal that holds the batches.
//!
//! Map: [`config`] the start of a replica, [`entry`] entries and their positions, [`members`] the members of
//! a cluster, [`message`] messages between replicas, [`wire`] their bytes, [`protocol`] versions of these,
//! [`ready`] work for the owner, [`driver`] the state machine, [`member`] the replica over its journal,
//! [`transfer`] messages about states on their way, [`plant`] bugs on purpose.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod config;
mod driver;
pub mod entry;
pub mod member;
pub mod members;
pub mod message;
#[cfg(feature = "plant")]
pub mod plant;
#[cfg(not(feature = "plant"))]
mod plant;
pub mod protocol;
pub mod ready;
pub mod report;
pub mod transfer;
pub mod wire;

pub use config::{Config, Durable, StartError};
pub use driver::Replica;
pub use driver::check::Rejected;
pub use entry::{Change, Content, Descriptor, Entry, NodeId, Position, ReadId};
pub use member::entries::OwnRecords;
pub use member::envelope::{Envelope, Unattached};
pub use member::fetch::{Fetch, Fetched};
pub use member::memory::{BootId, Memory};
pub use member::recovery::Remains;
pub use member::repairs::RepairCounts;
pub use member::start::Start;
pub use member::work::{Work, Worked};
pub use member::{Dropped, Member, MemberEvent, NotProposed, StateCounts};
pub use members::{Members, Snapshot};
pub use message::{Body, Campaign, Message};
pub use protocol::{PROTOCOL_NEWEST, PROTOCOL_OLDEST, Protocols};
pub use ready::{Append, Follower, HardState, Read, Ready, Refused, Role, Standing, Write};
pub use report::{Clocks, LogTime, Report};
pub use sluice_journal::StateHead;
pub use transfer::{SentBlob, StateBody, StateMessage};

/// Length of the largest record, in bytes.
pub const RECORD_BYTES_MAX: u64 = 24 << 20;

/// Length from which a batch gets no further record, and from which a message gets no further batch, in
/// bytes.
pub const GROUP_BYTES: u64 = 4 << 20;

/// Length of the largest batch, in bytes: a group that was not full, and one more record.
pub const BATCH_BYTES_MAX: u64 = GROUP_BYTES + RECORD_BYTES_MAX;

/// Length of the batches that belong to one message, in bytes: entries of that much, and one that was just
/// proposed.
pub const MESSAGE_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX;

/// Length of the batches that are on their way to one follower, in bytes, from which it gets no further
/// message.
pub const IN_FLIGHT_BYTES: u64 = 16 << 20;

/// Length of the committed batches that a follower lacks, in bytes, beyond which it is far behind.
pub const FAR_BYTES: u64 = GROUP_BYTES;

/// Length from which a message to a follower that is far behind gets no further batch, in bytes.
pub const FAR_GROUP_BYTES: u64 = 1 << 20;

/// Length of the batches that are proposed and not committed, in bytes.
pub const UNCOMMITTED_BYTES_MAX: u64 = 64 << 20;

/// Number of entries in one message.
pub const MESSAGE_ENTRIES_MAX: usize = 1024;

/// Number of reads that wait for their index.
pub const READS_MAX: usize = 64;

/// Number of members of a cluster.
pub const MEMBERS_MAX: usize = 7;

/// Highest term. A higher one is refused: terms count elections, from the time in microseconds at which the
/// journal of the first member was opened last, and none of a real cluster comes near.
pub const TERM_MAX: u64 = 1 << 56;

/// Highest index of an entry.
pub const INDEX_MAX: u64 = 1 << 56;

const _: () = assert!(IN_FLIGHT_BYTES >= 4 * GROUP_BYTES);
const _: () = assert!(UNCOMMITTED_BYTES_MAX >= IN_FLIGHT_BYTES && UNCOMMITTED_BYTES_MAX >= BATCH_BYTES_MAX);
