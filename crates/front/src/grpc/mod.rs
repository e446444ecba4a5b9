//! gRPC: the package `sluice.v1` of `proto/`, on the same listener as the HTTP API, with the same guards.
//!
//! `methods` finds the operation of a method. A call with one answer goes through `unary`: once `bounds` has
//! found no list in its message too long, the message is read into the request's type (`de`) and the answer
//! written from its type (`ser`), by the descriptors of the package (`schema`, `wire`, `rows`). The requests
//! of calls that move messages become JSON (`to_json`) for the decoders of the HTTP API, and their answers
//! come from JSON (`from_json`), so that both protocols have the same rules, limits and errors. `watching`
//! are calls that answer with a stream; a `session` moves messages fast. `status` tells how a call ended.
//!
//! Fault model: as that of the HTTP API.

mod bounds;
mod de;
mod from_json;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod methods;
mod rows;
mod schema;
mod ser;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod to_json;
mod unary;
mod watching;
mod wire;

pub(crate) use unary::{handle, is_call};
