//! Protocol fronts: they turn bytes into calls (`sluice-calls`), and answers into bytes.
//!
//! What lives here: the network, and one folder per protocol over it, none of which imports another. What
//! does not: any rule about queues and messages (that is the engine's), and waiting, ordering or durability
//! (that is the node's).
//!
//! Map: `net` the listener, TLS, connections and budgets; [`http`] the HTTP API; `grpc` the methods and
//! sessions of gRPC; `hot` the decoders of the calls that carry messages and receipts, `json` the JSON of
//! calls and `events` the tasks behind streams of events, for both; [`serve()`] puts network and protocols
//! together.
//!
//! Imports lead downwards: `serve`, then `http` and `grpc` (neither imports the other), then `events`,
//! then `net`, then `json`,
//! then `hot`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod changes;
mod events;
#[doc(hidden)]
pub mod grpc;
mod hot;
pub mod http;
mod json;
mod net;
mod serve;

pub use net::alpn::AlpnHandler;
pub use net::{nodes, tls};
pub use serve::serve;
