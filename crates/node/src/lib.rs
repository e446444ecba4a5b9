//! Runs engines on journals: shards and their threads, mailboxes, waiting receives, placement, the clock; and the async
//! handle, [`Node`], that protocol fronts call.
//!
//! What does not live here: behaviour (that is the engine's) and bytes on the wire (that is the fronts').
//!
//! Map, from below; nothing imports what comes after it:
//! - [`api`] the types that callers see; [`clock`] the log's time; [`mailbox`] the way into a shard; [`schedule`] instants.
//! - [`shard`] the unit of order as a step function; [`directory`] which shards there are; `driver` the threads around them.
//! - [`bulk`] one change to many messages as a state machine; `placement` which shard a namespace lives on.
//! - `handle` the handle itself. What it can be asked: `messages`, `queues`, `looking`, `awaiting`, `watching`, `consumer`,
//!   `changing`, `flows`, `schedules`, `namespaces`, `queue_defaults`, `queue_limits`, `bulk_calls`, `metrics`, [`backup`],
//!   [`keys`].
//! - `start` from files to a running node.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;
mod awaiting;
pub mod backup;
mod begun;
mod blobs;
pub mod bulk;
mod bulk_calls;
mod changing;
pub mod clock;
mod consumer;
pub mod directory;
mod driver;
mod flows;
mod handle;
pub mod keys;
mod log_limiter;
mod looking;
pub mod mailbox;
mod messages;
mod metrics;
mod namespaces;
mod placement;
mod pulling;
mod queue_defaults;
mod queue_limits;
mod queues;
pub mod schedule;
mod schedules;
pub mod shard;
mod start;
mod watching;

pub use api::{Awaited, Delivered, Duplicates, Durability, NodeMetrics, Options, Sent, StartError, Stored};
pub use begun::{Receiving, Sending, Settling};
pub use consumer::{Consumer, Event};
pub use handle::Node;
pub use log_limiter::LogLimiter;
pub use schedules::{NEXT_MAX as SCHEDULE_NEXT_MAX, Schedule};
pub use shard::channel::DetachedBy;
pub use shard::feed::{EventPosition, Gap, GapReason, Heard, Told, ToldDetail};
pub use shard::request::Reader;
