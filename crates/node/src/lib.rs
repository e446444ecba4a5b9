//! Runs engines on journals: shards and their threads, mailboxes, waiting receives, placement, the clock; and
//! the async handle, [`Node`], that protocol fronts call.
//!
//! What does not live here: behaviour (that is the engine's) and bytes on the wire (that is the fronts').
//!
//! Map, from below; nothing imports what comes after it:
//! - [`api`] the types that callers see; [`clock`] the log's time; [`mailbox`] the way into a shard;
//!   [`schedule`] instants.
//! - [`shard`] the unit of order as a step function; [`directory`] which shards there are; `driver` the
//!   threads around them, `cluster` the ways to other nodes.
//! - [`search`] the messages of a queue that match a filter; [`bulk`] one change to many of them as a state
//!   machine; `placement` which shard a namespace lives on; `in_force` the limits.
//! - `handle` the handle itself. What it can be asked: `messages`, `queues`, `reads`, `results`, `events`,
//!   `consumer`, `locks`, `changes`, `flows`, `schedules`, `namespaces`, `pushes`, `queue_defaults`,
//!   `queue_limits`, `search_calls`, `message_indexes`, `bulk_calls`, `metrics`, `leaders`,
//!   `movable_time`, [`backup`], [`keys`]. `across` transactions over several namespaces and settlements at
//!   the leader, within the bounds of `driving`, and `holding`
//!   for backups. `asks` what nodes of a cluster ask each other, `following` the namespaces of its shards,
//!   `spreading` their leaders, [`steering`] their members, `raising` the behaviour version, `configuring`
//!   the limits.
//! - `start` from files to a running node; `recovery` of one whose cluster is lost. `random` numbers.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod across;
mod agreed_clock;
pub mod api;
mod asks;
mod attachments;
pub mod backup;
mod blobs;
pub mod bulk;
mod bulk_calls;
mod changes;
pub mod clock;
mod cluster;
mod configuring;
mod consumer;
pub mod directory;
mod document_indexes;
mod documents;
mod driver;
mod driving;
mod events;
mod failed;
mod flows;
mod following;
mod handle;
mod held_upload;
mod holding;
mod in_force;
pub mod keys;
mod known_indexes;
mod leaders;
mod locks;
mod log_limiter;
pub mod mailbox;
mod message_indexes;
mod messages;
mod metrics;
mod movable_time;
mod namespaces;
mod opening;
mod pace;
mod pending;
mod placement;
#[cfg(feature = "plant")]
pub mod plant;
#[cfg(not(feature = "plant"))]
mod plant;
mod pushes;
mod queue_defaults;
mod queue_limits;
mod queues;
mod raising;
mod random;
mod reads;
mod receiving;
mod recovery;
mod results;
pub mod schedule;
mod schedules;
pub mod search;
mod search_calls;
pub mod shard;
mod spreading;
mod start;
pub mod steering;
mod transactions;

pub use across::driver::RefusedPart;
pub use across::{InDoubt, NotResolved};
pub use agreed_clock::AgreedClock;
pub use api::{Awaited, Delivered, Duplicates, Durability, NodeMetrics, Options, Sent, StartError, Stored};
pub use attachments::AttachmentName;
pub use cluster::{Asking, ClusterOptions, Link, Transport};
pub use consumer::{Consumer, Event};
pub use document_indexes::IndexedDocuments;
pub use handle::Node;
pub use held_upload::HeldUpload;
pub use log_limiter::LogLimiter;
pub use movable_time::{AHEAD_MS_MAX, MovableTime};
pub use pending::{Receiving, Sending, Settling};
pub use recovery::{Recovery, ShardEnd};
pub use schedules::{NEXT_MAX as SCHEDULE_NEXT_MAX, Schedule};
pub use shard::LEADER_WAIT_MAX;
pub use shard::channel::DetachedBy;
pub use shard::feed::{EventPosition, Gap, GapReason, Heard, Told, ToldDetail};
pub use shard::lock_watches::LockChanges;
pub use shard::replicated::changes::{NotChanged, ShardMembers};
pub use shard::request::{FoundDocument, Granted, Reader};
pub use sluice_replica::Protocols;
pub use transactions::{Committed, Committing, Refused};
