//! Entries of the replicated log, their positions, and the numbers that replicas and reads have.

use std::fmt;
use std::num::NonZeroU64;

/// Identity of a node in its cluster; never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(NonZeroU64);

impl NodeId {
    /// The identity with this number; `None`: the number is 0.
    pub const fn new(number: u64) -> Option<NodeId> {
        match NonZeroU64::new(number) {
            Some(number) => Some(NodeId(number)),
            None => None,
        }
    }

    /// The number of the identity.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// Number of a read, unique among those of one replica between two starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReadId(pub u64);

/// Place of an entry in the log. Two entries with the same position are the same entry, on all nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position {
    /// Term of the leader that made the entry; 0: before the first entry.
    pub term: u64,
    /// Number of the entry, counted from 1 without holes; 0: before the first entry.
    pub index: u64,
}

/// Description of one batch of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Index of the batch's first record in the shard's log of records.
    pub first_record: u64,
    /// Number of records.
    pub records: u32,
    /// Time of the batch, in microseconds since the Unix epoch.
    pub time_us: u64,
    /// Length of the encoded records, in bytes; at most [`crate::BATCH_BYTES_MAX`].
    pub bytes: u32,
    /// Checksum of the encoded records.
    pub checksum: u32,
}

impl Descriptor {
    /// Length of an encoded descriptor, in bytes.
    pub(crate) const LEN: usize = 28;

    /// The descriptor as bytes, little endian.
    pub(crate) fn encode(&self) -> [u8; Descriptor::LEN] {
        let mut bytes = [0; Descriptor::LEN];
        bytes[..8].copy_from_slice(&self.first_record.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.records.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.time_us.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[24..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The descriptor of these bytes.
    pub(crate) fn decode(bytes: &[u8; Descriptor::LEN]) -> Descriptor {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Descriptor {
            first_record: u64_at(0),
            records: u32_at(8),
            time_us: u64_at(12),
            bytes: u32_at(20),
            checksum: u32_at(24),
        }
    }
}

/// Entry of the replicated log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Place in the log.
    pub position: Position,
    /// Content.
    pub content: Content,
}

/// Content of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Beginning of a leader's term; no records.
    Begin,
    /// A batch of records.
    Batch(Descriptor),
    /// A change of the members; no records.
    Members(Change),
}

/// Change of the members of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A node becomes a learner. Its number is above all that were ever given.
    Add(NodeId),
    /// A learner becomes a voter.
    Promote(NodeId),
    /// A voter becomes a learner.
    Demote(NodeId),
    /// A member leaves.
    Remove(NodeId),
    /// A member that has lost its state leaves, and returns as a learner with a new number.
    Replace {
        /// The number that it had.
        old: NodeId,
        /// Its number from now on, above all that were ever given.
        new: NodeId,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Add(node) => write!(f, "add node {}", node.get()),
            Change::Promote(node) => write!(f, "promote node {}", node.get()),
            Change::Demote(node) => write!(f, "demote node {}", node.get()),
            Change::Remove(node) => write!(f, "remove node {}", node.get()),
            Change::Replace { old, new } => write!(f, "replace node {} by node {}", old.get(), new.get()),
        }
    }
}

impl Entry {
    /// Length of the entry's batch, in bytes.
    pub fn bytes(&self) -> u64 {
        self.batch().map_or(0, |batch| u64::from(batch.bytes))
    }

    /// Description of the entry's batch.
    pub fn batch(&self) -> Option<Descriptor> {
        match self.content {
            Content::Batch(batch) => Some(batch),
            Content::Begin | Content::Members(_) => None,
        }
    }

    /// The change of the members that the entry is.
    pub fn change(&self) -> Option<Change> {
        match self.content {
            Content::Members(change) => Some(change),
            Content::Begin | Content::Batch(_) => None,
        }
    }
}
