//! Protocol fronts: they turn bytes into commands for the node, and outcomes into bytes.
//!
//! What lives here: one folder per protocol, and beside them what protocols share. What does not: any rule about queues
//! and messages (that is the engine's), and waiting, ordering or durability (that is the node's).
//!
//! Map: [`tls`] TLS for all protocols, [`http`] the HTTP API and the listener, `grpc` the calls of gRPC.

#![cfg_attr(test, allow(clippy::unwrap_used))]

#[doc(hidden)]
pub mod grpc;
pub mod http;
pub mod tls;
