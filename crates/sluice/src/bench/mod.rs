//! `sluice bench`: measures this program on this machine, and compares what was measured.
//!
//! Each benchmark checks what it moved and fails when something is missing. `docs/benchmarks.md` tells how each figure
//! comes about.
//!
//! Map: `engine` in this process; `queue`, `stream`, `single`, `idle`, `flood`, `backlog` and `crash` against a server that is
//! started as a child;
//! `load` loops that send and work, and the ledger of every message; `wire` HTTP/2 alone; `compare` two files of figures;
//! `report`, `table`, `stats` what they print; `setup`, `endpoint`, `server` what they start and reach, `process`, `disk`, `files`
//! what they watch.

mod backlog;
mod compare;
mod crash;
mod disk;
mod endpoint;
mod engine;
mod files;
mod flood;
mod idle;
mod load;
mod process;
mod queue;
mod report;
mod server;
mod setup;
mod single;
mod stats;
mod stream;
mod table;
mod wire;

use serde_json::Value;

use crate::cli::error::FAILED;
use crate::cli::{self, CliError, Out};
use report::Report;

/// Counts what the benchmarks allocate; one load and one branch a call while it does not.
#[global_allocator]
static ALLOCATOR: sluice_alloc_count::Counting = sluice_alloc_count::Counting;

/// Measures this program on this machine.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum BenchVerb {
    /// The engine in this process: time, allocations and instructions of each operation
    Engine(engine::EngineArgs),
    /// A server under load: messages a second, latency, processor time, memory, syncs
    Queue(queue::QueueArgs),
    /// A server under load over sessions: messages a second, latency from send to delivery, processor time
    Stream(stream::StreamArgs),
    /// Single messages, each one send, one delivery and one ack, by many loops on few connections, with and without security
    Single(single::SingleArgs),
    /// Many sessions that wait: memory of each, and how soon a message is there
    Idle(idle::IdleArgs),
    /// Bad handshakes by the thousand while others work
    Flood(flood::FloodArgs),
    /// A large backlog in and out, and one old message that stays
    Backlog(backlog::BacklogArgs),
    /// kill -9 under full load, again and again: nothing acknowledged may be lost
    Crash(crash::CrashArgs),
    /// Bodies over HTTP/2 from one thread, on our stack or hyper's, for load generators
    Wire(wire::WireArgs),
    /// What changed between two files of figures
    Compare(compare::CompareArgs),
}

/// Runs a benchmark. Exit code 0: done, and all checks held; 1: not.
pub(crate) fn run(verb: &BenchVerb, out: Out) -> cli::Result<u8> {
    let done = match verb {
        BenchVerb::Engine(args) => engine::run(args, out),
        BenchVerb::Queue(args) => queue::run(args, out),
        BenchVerb::Stream(args) => stream::run(args, out),
        BenchVerb::Single(args) => single::run(args, out),
        BenchVerb::Idle(args) => idle::run(args, out),
        BenchVerb::Flood(args) => flood::run(args, out),
        BenchVerb::Backlog(args) => backlog::run(args, out),
        BenchVerb::Crash(args) => crash::run(args, out),
        BenchVerb::Wire(args) => wire::run(args, out),
        BenchVerb::Compare(args) => compare::run(args, out),
    };
    done.map(|passed| if passed { 0 } else { FAILED })
}

/// Prints a report and tells whether its checks held.
fn print(report: Result<Report, String>, out: Out) -> cli::Result<bool> {
    let report = report.map_err(CliError::failed)?;
    if out.json {
        write(&report.to_json(), out)?;
    } else {
        out.text(&report.to_text())?;
    }
    Ok(report.passed())
}

/// Writes JSON that people may keep in a repository and compare.
fn write(value: &Value, out: Out) -> cli::Result<()> {
    out.line(&format!("{value:#}"))
}
