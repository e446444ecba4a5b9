//! Runs engines on journals: shards and their threads, mailboxes, waiting receives, placement, the clock; and the async
//! handle, [`Node`], that protocol fronts call.
//!
//! What does not live here: behaviour (that is the engine's) and bytes on the wire (that is the fronts').
//!
//! Map: [`shard`] the unit of order as a step function, `driver` the threads around it, [`mailbox`] the way in,
//! [`clock`] the log's time, `start` and [`shard::recover`] from files to a running node, `handle` with `looking`, `watching`, `consumer`,
//! `namespaces`, `schedules`, `metrics`, [`bulk`], [`backup`] and [`keys`] what callers can ask, [`api`] the types that they see.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod api;
mod awaiting;
pub mod backup;
mod begun;
mod blobs;
pub mod bulk;
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
mod metrics;
mod namespaces;
mod placement;
mod pulling;
mod queue_defaults;
mod queue_limits;
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
