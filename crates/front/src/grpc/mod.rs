//! gRPC: the package `sluice.v1` of `proto/`, on the same listener as the HTTP API, with the same guards.
//!
//! `methods` finds the operation of a method. A call with one answer comes through `unary` or a `session`,
//! and is run by `call`: once `bounds` has found no list in its message too long, the message is read into
//! the request's type (`de`) and the answer written from its type (`ser`), by the descriptors of the package
//! (`schema`, `wire`, `rows`). The calls that carry messages and receipts have the decoders that HTTP has for
//! them, which read a message as a `source`; `answers` writes what they give. `watching` are calls that
//! answer with a stream, whose events come from their JSON (`from_json`); `attachments` streams of bytes, in
//! and out; a `session` moves messages fast. `messages` are those of a body, `streaming` is an answer in
//! pieces. `by` is who calls, `status` tells how a call ended. `standard` are the services that gRPC itself
//! defines: health and reflection.
//!
//! Fault model: as that of the HTTP API.

mod answers;
mod attachments;
mod bounds;
mod by;
mod call;
mod de;
mod from_json;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod messages;
mod methods;
mod rows;
mod schema;
mod ser;
mod session;
mod source;
mod standard;
mod status;
mod streaming;
#[cfg(test)]
mod tests;
mod unary;
mod watching;
mod wire;

pub(crate) use unary::{handle, is_call};
