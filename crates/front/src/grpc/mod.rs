//! gRPC: the package `sluice.v1` of `proto/`, on the same listener as the HTTP API, with the same guards.
//!
//! A call with one answer is a call of the HTTP API in another spelling. `methods` says which; `unary`
//! translates its message into that call's path, parameters and JSON (`to_json`), and its answer back
//! (`from_json`), as the descriptors of the package say (`schema`, `wire`), once `bounds` has found no list
//! in it too long; `watching` are those that answer with a stream. So both have the same rules, limits and
//! errors, and whatever is asked before a call is asked in one place. What has to be fast goes through a
//! `session`. `status` tells how a call ended.
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
