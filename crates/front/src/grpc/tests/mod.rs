//! The calls of gRPC: held against the HTTP API's description, and made through a real socket.

mod approvals;
mod attachments;
mod bounds;
mod calls;
mod contract;
mod events;
mod lost;
mod memory;
mod order;
mod session;
mod standard;
pub(super) mod support;
mod to_json;
