//! Runs engines on journals: shards and their threads, mailboxes, waiting receives, placement, the clock; and the async
//! handle, [`Node`], that protocol fronts call.
//!
//! What does not live here: behaviour (that is the engine's) and bytes on the wire (that is the fronts').

pub mod api;
mod handle;

pub use api::{Delivered, Durability, NodeMetrics, Options, Sent, StartError, Stored};
pub use handle::Node;
