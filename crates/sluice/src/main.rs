//! The binary: `serve`, and every verb of the command line.
//!
//! What lives here: what an operator or a developer types, and what they read. What does not: behaviour of
//! queues (engine), durability (journal), the wire (front, client).
//!
//! Map: `cli` the verbs; `terminal` the errors, output and values of flags that they share; `connect` the server
//! that a verb talks to; `config` the server's settings; `serve` the server; `cert` certificates; `part` files that
//! appear when they are complete; `root_keys` where the keys of encryption are; `top` the live view; `work` the loop
//! that runs a command for each message.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cert;
mod cli;
mod config;
mod connect;
mod part;
mod root_keys;
mod serve;
mod terminal;
mod top;
mod work;

/// Counts what benchmarks and `serve --count-allocations` allocate; one load and one branch a call while it does not.
#[global_allocator]
static ALLOCATOR: sluice_alloc_count::Counting = sluice_alloc_count::Counting;

fn main() -> std::process::ExitCode {
    cli::main()
}
