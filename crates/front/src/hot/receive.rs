//! Receiving: its bounds, and the wait for messages.

use std::future::Future;

use sluice_calls::{CallError, Fault, Read};
use sluice_engine::limits::NAME_BYTES_MAX;
use sluice_node::{Delivered, Receiving};

use super::permission::Standing;

/// Longest wait for a first message, in milliseconds.
pub(crate) const WAIT_MS_MAX: u64 = 60_000;
/// Largest weight of a queue.
pub const WEIGHT_MAX: u16 = 1_000;

/// What a receive comes to. One that waits says who for: they are asked again before they are given anything.
/// Its wait ends empty when `stopping` resolves: the server stops.
pub(crate) async fn done(
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
pub(crate) fn check_consumer(name: &str) -> Read<()> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Fault::invalid(format!("at most {NAME_BYTES_MAX} bytes, got {}", name.len())));
    }
    Ok(())
}

/// The headers of a message, and those that the server adds instead of the message's own with the same names.
pub(crate) fn with_added<'m>(
    own: impl Iterator<Item = (&'m str, &'m str)>,
    added: &'m [(Box<str>, Box<str>)],
) -> impl Iterator<Item = (&'m str, &'m str)> {
    own.filter(|(name, _)| !added.iter().any(|(other, _)| **other == **name))
        .chain(added.iter().map(|(name, value)| (&**name, &**value)))
}
