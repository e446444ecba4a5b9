//! The calls that move messages: send, receive, settle, extend, and those of attached consumers. They come by the hundred
//! thousand and are decoded by hand, so fronts hand over what the engine takes.
//!
//! Two steps stand before the node. A [`Permit`](crate::Permit) says that the caller may do this as far as the request's name
//! tells; [`Cleared`] says that the queues and messages in its body were checked as well, and only that reaches the node.
//!
//! Map: `cleared` the check of what a body names, [`send`], [`receive`], [`settle`] what the calls take and give.

mod cleared;
pub mod receive;
pub mod send;
pub mod settle;

pub use cleared::{Attached, Cleared, Onward, Proof};
pub use sluice_node::{Consumer, Delivered, DetachedBy, Event, Sending, Sent};
