//! The state machine of Sluice: namespaces, queues, messages and everything that may happen to them.
//!
//! What lives here: all behaviour. What does not: I/O, threads, clocks, randomness, hash order. `apply` is a
//! pure function of the state, the time and the record, so that the same log gives the same state everywhere.
//!
//! The state lies in slabs of fixed chunks (`store`): a message is one slot of 96 bytes, linked into the list
//! or timer that its state puts it on, and found by id through a sparse directory; a plain waiting
//! message takes about 101 bytes of index in all. A history entry takes 56 bytes more, the first optional
//! field of a message another 48.
//!
//! Words that all folders share: [`command`] what can be asked of the engine, [`outcome`] and [`event`] what
//! an apply gives, [`query`] and [`flow`] what reads give, [`blob`] content type, headers and payload as one
//! blob, [`item`] a message to send, [`change`] changes to messages, [`locks`] locks,
//! [`attachments`] attachments of documents, [`indexes`] of documents and [`search`] of messages,
//! [`settings`] (`setting` their values), [`push`], [`limit`] and
//! [`limits`], [`error`] every error, [`id`] ids, numbers and receipts.
//!
//! Folders, each using only those before it: `store` containers, `core` what modules share, `queue` the
//! module of queues, `lock` that of locks, `record` commands as bytes, `engine` the whole ([`Engine`]).
//! Behaviour is told by `tests/golden`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod attachments;
pub mod blob;
mod carried;
pub mod change;
pub mod command;
mod core;
mod document;
pub mod documents;
mod engine;
pub mod error;
pub mod event;
mod fingerprint;
pub mod flow;
mod hash;
pub mod id;
pub mod indexes;
pub mod item;
mod layout;
pub mod limit;
pub mod limits;
mod lock;
pub mod locks;
pub mod outcome;
pub mod pace;
#[cfg(feature = "plant")]
pub mod plant;
#[cfg(not(feature = "plant"))]
mod plant;
pub mod push;
pub mod query;
mod queue;
mod record;
mod rules;
pub mod search;
mod setting;
pub mod settings;
mod settling;
mod state;
mod store;
mod transaction;
pub mod transactions;
mod wire;

pub use crate::core::PAGE_ITEMS_MAX;
pub use command::Command;
pub use engine::Engine;
pub use error::Error;
pub use fingerprint::error_fingerprint;
pub use id::{BlobRef, MessageId, NamespaceId, QueueId, Receipt, ReceiptKey};
pub use limits::Limits;
pub use outcome::Outcome;
pub use record::{
    changed_namespace, changes_decisions, check_behaviour, check_known, consensus_entry, is_two_phase,
    sets_limits, settled,
};
pub use transaction::remembered::{decode_outcomes, encode_outcomes};

/// Newest version of the rules by which records apply, and of the formats that go with them. A new log
/// follows it; another one follows its own version until [`Command::Raise`].
pub const BEHAVIOUR_VERSION: u16 = 18;

/// Oldest version that a log may follow; an older log is refused.
///
/// | version | what it brings |
/// |---|---|
/// | 11 | consumers are attached with their grace period, which a new epoch gives them |
/// | 12 | snapshots tell the version in force |
/// | 13 | locks, documents, attachments and transactions |
/// | 14 | costs of messages, and those that their holders report |
/// | 16 | queues push to endpoints |
/// | 17 | what was spent under a rate stays so under another one; what dies held stays in its queue |
/// | 18 | queues have indexes of their messages; the version of a held message tells its time |
pub const BEHAVIOUR_OLDEST: u16 = 11;
