//! Protocol fronts: they turn bytes into commands for the node, and outcomes into bytes.
//!
//! What lives here: the network, and one folder per protocol over it, none of which imports another. What
//! does not: any rule about queues and messages (that is the engine's), and waiting, ordering or durability
//! (that is the node's).
//!
//! Map: `net` the listener, TLS, connections and budgets; `hot` what sends, receives and settles have in
//! common over all protocols; [`http`] the HTTP API; `grpc` the calls and sessions of gRPC; `json` the codec
//! of JSON; `serve` puts network and protocols together.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[doc(hidden)]
pub mod grpc;
mod hot;
pub mod http;
mod json;
mod net;
mod serve;

pub use net::tls;
