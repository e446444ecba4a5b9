//! HTTP/2 for servers (RFC 9113), with header compression (RFC 7541) and priorities (RFC 9218).
//!
//! What lives here: the protocol as a pure state machine, which takes bytes and gives events, and takes responses and
//! gives bytes. It has no sockets, no clock (whoever drives it passes the time), no locks and no threads. Around it: a driver
//! that has all of those, and an adapter for services. What does not: what a request means; that is the front's.
//!
//! | module | |
//! |---|---|
//! | [`adapter`] | runs services of `http` and `tower` on a connection |
//! | [`connection`] | the state machine of one connection: streams, flow control, what is wrong and what ends |
//! | [`drive`] | drives a connection over a transport, with TLS or without |
//! | [`emit`] | what goes out: priorities, and the plan of each tick |
//! | [`error`] | the codes with which streams and connections end |
//! | [`frame`] | frames: reading them without a copy, writing them |
//! | `fuzzing` | whole sessions from arbitrary bytes, with the feature of that name |
//! | [`hpack`] | header blocks: decoding and encoding them |
//! | [`limits`] | everything that a peer could make large or frequent |

pub mod adapter;
pub mod connection;
pub mod drive;
pub mod emit;
pub mod error;
pub mod frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod hpack;
pub mod limits;

pub use connection::{Connection, Event, StreamKey};
pub use error::{ErrorCode, Fault};
pub use limits::Limits;
