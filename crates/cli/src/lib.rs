//! The command line: `serve`, and every other verb.
//!
//! What lives here: the command line with its output, and the configuration. What does not: behaviour of
//! queues (engine), durability (journal), protocols (front, client).
//!
//! Map: `cli` the verbs and what they share, `config` the server's settings, `serve` the server, `cert`
//! certificates, `atomic_file` files that appear when they are complete, `root_keys` the sources of root
//! keys, `work` runs a command for each message, `top` the live view, `doctor` looks what could be wrong with
//! a machine, a configuration and a server, `mcp` tools for agents, `dev_cluster` a cluster on one
//! machine, `bench` the benchmarks.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod atomic_file;
mod cert;
mod cli;
mod config;
mod connect;
mod dev_cluster;
mod doctor;
mod lock_run;
mod mcp;
mod root_keys;
mod serve;
mod terminal;
mod top;
mod work;

pub use cli::main;
