//! Protocol fronts: they turn bytes into commands for the node, and outcomes into bytes.
//!
//! What lives here: one folder per protocol, and beside them what protocols share. What does not: any rule about queues
//! and messages (that is the engine's), and waiting, ordering or durability (that is the node's).
//!
//! Map: [`access`] who may do what, [`tls`] TLS for all protocols, [`codes`] the one table from error codes to every
//! protocol's status, [`http`] the HTTP API and the listener, `grpc` the calls of gRPC, [`near`] what was
//! probably meant by an unknown name, `digest` the fingerprint of a send by which a repeat is told from a
//! misuse of its idempotency key.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod codes;
mod digest;
#[doc(hidden)]
pub mod grpc;
pub mod http;
pub mod near;
pub mod tls;
