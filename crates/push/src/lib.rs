//! Webhooks: the messages of a queue with an endpoint are pushed to it, a POST for each, signed as Standard
//! Webhooks says (<https://www.standardwebhooks.com>).
//!
//! What lives here: who pushes, to which addresses, how a push looks, what its answer means, and the log of
//! pushes. What does not: retries, backoff, dead letters and leases, which are those of the queue (the
//! engine); and who may set an endpoint (`sluice-calls`).
//!
//! The node that leads a queue's shard pushes its messages, as a consumer that is attached and settles by
//! receipts. So there is one such node at a time, and what it holds when it is lost goes back by the rules of
//! consumers. A message is pushed at least once.
//!
//! Fault model: an endpoint may be away, hang, answer with anything and any amount, redirect, and resolve to
//! another address each time. A push has an end in time; of an answer a few KiB are read; redirects are not
//! followed; the address that a connection goes to is the one that was checked. Memory is bounded by the
//! number of pushes at a time, by [`HELD_BYTES_MAX`] for each queue, and by [`HELD_BYTES_OF_ALL_MAX`].
//!
//! Map, from below: [`address`] ranges that nobody is pushed to, [`target`] addresses of endpoints,
//! [`secret`] signatures, [`resolve`] names, `options` settings; [`answer`] what an answer means, `client`
//! kept connections, `request` a message as a request; [`log`] attempts and counts, `shared` what all pushers
//! share; `budget` bytes that are held, `held` deliveries until they are settled, `hold` endpoints that want
//! nothing for a while; `pusher` the pushes of one queue, `session` those of a consumer; `pushes` those of a
//! node.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod address;
pub mod answer;
mod budget;
mod client;
mod held;
mod hold;
pub mod log;
mod options;
mod pusher;
mod pushes;
mod request;
pub mod resolve;
pub mod secret;
mod session;
mod shared;
pub mod target;
#[cfg(test)]
mod tests;

pub use budget::{HELD_BYTES_ALWAYS, HELD_BYTES_MAX, HELD_BYTES_OF_ALL_MAX};
pub use options::{Auditor, Options};
pub use pushes::{Pushes, Pushing};
