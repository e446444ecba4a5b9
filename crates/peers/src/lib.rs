//! Connections between the nodes of a cluster.
//!
//! One connection a pair of nodes carries the messages of all shards, with their batches, and requests of one
//! node to another with their answers. It is TLS 1.3 with both certificates, on the port on which a server
//! serves its clients: ALPN tells the two apart. Of each pair the node with the higher number connects, and
//! the other one only after some seconds without a connection, so that two connections hardly ever cross.
//!
//! Messages may be lost, when a connection breaks or a peer is slower than its messages come; the replicas
//! repeat what matters. [`Peers::send`] never blocks, and memory is bounded whatever a peer does. A request
//! has a deadline.
//!
//! What lives here: who a peer is, frames, queues, connecting again. What does not: what a message means,
//! which is for `sluice-replica`, and what a request asks, which is for the [`Receiver`].
//!
//! Map: [`identity`] nodes and their certificates, [`tls`] checks of both certificates, [`hello`] greetings
//! and reasons to refuse one, [`frame`] frames, [`decoder`] frames out of bytes, `writer` frames into bytes,
//! `outbox` frames that wait, `outbound` the direction to a peer, `calls` requests that wait for answers,
//! `link` a live connection and the table of all, `connection` its life, `shared` its beginning, `dial`
//! connecting, `log` the log of refusals, [`table`] the nodes of the cluster, [`peers`] all connections of a
//! node.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod calls;
mod connection;
pub mod decoder;
mod dial;
pub mod frame;
pub mod hello;
pub mod identity;
mod link;
mod log;
mod outbound;
mod outbox;
pub mod peers;
mod shared;
pub mod table;
pub mod tls;
mod writer;

pub use identity::{ClusterId, Identity};
pub use peers::{Answering, Local, PeerState, Peers, PeersOptions, Receiver, RequestError};
pub use table::NodeTable;
pub use tls::PeerFiles;

use std::time::Duration;

use sluice_replica::MESSAGE_BYTES_MAX;

/// Protocol's name in ALPN (RFC 7301).
pub const ALPN: &[u8] = b"sluice-peers/1";

/// Length of the content of a request or an answer, in bytes.
pub const CONTENT_BYTES_MAX: usize = (4 << 20) + (64 << 10);

/// Number of requests of one node to another that wait for answers.
pub const REQUESTS_MAX: usize = 128;

/// Length of the contents of these requests, in bytes; as much for the answers that wait to be written.
pub const REQUESTS_BYTES_MAX: usize = 8 * CONTENT_BYTES_MAX;

/// Length of the messages with entries that wait to be written to one peer, in bytes. Beyond it the oldest
/// are dropped.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// Number of other messages that wait to be written to one peer. Beyond it the oldest are dropped.
pub const WAITING_MESSAGES_MAX: usize = 8192;

/// Time without a frame after which a node sends one that says only that it is alive.
const ALIVE_EVERY: Duration = Duration::from_millis(250);

/// Time without a frame after which a receiver is told to doubt.
const SILENT_AFTER: Duration = Duration::from_millis(750);

/// Time without a frame after which a connection is over.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Longest time for connecting, the handshake of TLS, and greetings, each.
const GREETING_MAX: Duration = Duration::from_secs(3);

const _: () = assert!(WAITING_BYTES_MAX as u64 >= MESSAGE_BYTES_MAX);
const _: () = assert!(SILENCE_MAX.as_millis() >= 4 * ALIVE_EVERY.as_millis());
