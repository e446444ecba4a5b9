//! The binary against a server of its own, as a person at two terminals would use it, or a program with the
//! client library.
#![allow(clippy::unwrap_used)]

mod attach;
mod backup;
mod change;
mod check;
mod config;
mod conformance;
mod context;
mod dead;
mod doc;
mod doctor;
mod errors;
mod events;
mod exits;
mod flow;
mod globals;
mod message;
mod namespace;
mod queue;
mod receive;
mod recipes;
mod results;
mod schedule;
mod secure;
mod send;
mod serve;
mod settle;
mod status;
mod support;
mod test_server;
mod transactional;
mod txn;
mod work;
