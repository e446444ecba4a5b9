//! The binary: `serve`, and every verb of the command line.
//!
//! What lives here: what an operator or a developer types, and what they read. What does not: behaviour of
//! queues (engine), durability (journal), the wire (front, client).
//!
//! Map: `cli` the verbs and what they share, `config` the server's settings, `serve` the server, `cert`
//! certificates, `part` files that appear when they are complete, `root_keys` where the keys of encryption
//! are, `work` the loop that runs a command for each message, `bench` the benchmarks.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bench;
mod cert;
mod cli;
mod config;
mod part;
mod root_keys;
mod serve;
mod top;
mod work;

fn main() -> std::process::ExitCode {
    cli::main()
}
