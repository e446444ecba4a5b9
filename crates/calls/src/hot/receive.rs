//! Receiving: its bounds, and the wait for messages.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluice_engine::limits::NAME_BYTES_MAX;
pub use sluice_node::api::Room;
use sluice_node::{Delivered, Receiving};

use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::standing::Standing;

/// Longest wait for a first message, in milliseconds.
pub const WAIT_MS_MAX: u64 = 60_000;
/// Largest weight of a queue.
pub const WEIGHT_MAX: u16 = 1_000;

/// A receive.
#[derive(Debug)]
pub struct Receive<'a> {
    /// The queues, each with its weight; 0: in the order given.
    pub queues: &'a [(&'a str, u16)],
    /// Most messages.
    pub max_messages: u32,
    /// Their leases, in milliseconds; 0: those of each queue.
    pub lease_ms: u64,
    /// The wait for a first message.
    pub wait: Duration,
    /// The receiver's name, for those who look.
    pub consumer: &'a str,
    /// The memory for the answer.
    pub room: Option<Arc<dyn Room>>,
}

/// Waits for the messages of a receive. The standing of one that waits is looked at again before it is given anything; its wait
/// ends empty when `stopping` resolves: the server stops.
///
/// # Errors
/// Those of the node; why the caller may not have messages any more.
pub async fn done(
    receiving: Receiving,
    waiting: Option<Standing>,
    stopping: impl Future<Output = ()>,
) -> Result<Vec<Delivered>, CallError> {
    let Some(standing) = waiting else { return Ok(receiving.done().await?) };
    tokio::select! {
        biased;
        denied = standing.lost() => Err(denied.into()),
        delivered = receiving.done() => Ok(delivered?),
        () = stopping => Ok(Vec::new()),
    }
}

/// Refuses the name of a consumer that is too long to keep.
///
/// # Errors
/// `invalid_argument`.
pub fn check_consumer(name: &str) -> Read<()> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Fault::invalid(format!("at most {NAME_BYTES_MAX} bytes, got {}", name.len())));
    }
    Ok(())
}

/// The headers of a message, with those that the server adds in place of the message's own of the same names.
pub fn with_added<'m>(
    own: impl Iterator<Item = (&'m str, &'m str)>,
    added: &'m [(Box<str>, Box<str>)],
) -> impl Iterator<Item = (&'m str, &'m str)> {
    own.filter(|(name, _)| !added.iter().any(|(other, _)| **other == **name))
        .chain(added.iter().map(|(name, value)| (&**name, &**value)))
}
