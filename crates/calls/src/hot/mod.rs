//! The calls that move messages: send, receive, settle, extend, and those of attached consumers. They come by
//! the hundred thousand and are decoded by hand, so fronts hand over what the engine takes.
//!
//! Two steps stand before the node. A [`Permit`](crate::Permit) says that the caller may do this as far as
//! the request's name tells; [`Cleared`] says that the queues and messages in its body were checked as well,
//! and only that reaches the node.
//!
//! The requests and answers stand here as types as well: the description of the API comes from them, and
//! tests hold the decoders to them.
//!
//! Map: `cleared` the check of what a body names, `consumer` one that is attached, [`send`], [`receive`],
//! [`settle`], [`extend`] what the calls take and give, [`message`] the messages of a send, `traced` what of
//! them is told as spans of traces.

mod cleared;
mod consumer;
pub mod extend;
pub mod message;
pub mod receive;
pub mod send;
pub mod settle;
mod traced;

pub use cleared::{Attached, Cleared, Onward, Proof};
pub use consumer::Consumer;
pub use sluice_node::{Delivered, DetachedBy, Event, Sent};
pub use traced::{Sending, Settling};

/// A message id for examples.
pub(crate) const ID_EXAMPLE: &str = "00000040000000g000g0";
/// A receipt for examples.
pub(crate) const RECEIPT_EXAMPLE: &str = "00000040000000g000g00000800000100g2s3k4q5m6n8";
/// A time for examples, in milliseconds since the Unix epoch.
pub(crate) const AT_MS_EXAMPLE: u64 = 1_767_225_600_000;
