//! The benchmarks of Sluice, as `sluice bench` runs them: they measure the program that they are part of, on
//! this machine.
//!
//! What lives here: loads, what they measure, and what they check: each benchmark checks what it moved and
//! fails when something is missing. What does not: the server under test, which is a process of its own (this
//! program started with `serve`), and the terminal, which is the caller's. Allocations are counted where the
//! program's allocator is `sluice_alloc_count::Counting`. `docs/benchmarks.md` tells how each figure comes
//! about.
//!
//! Map: `engine` in this process; `queue`, `stream`, `single`, `idle`, `flood`, `backlog` and `crash` against
//! a server that is started as a child; `load` loops that send and work, and the ledger of every message;
//! `wire` HTTP/2 alone; `compare` two files of figures; `report`, `table`, `stats` what they print; `setup`,
//! `certificates`, `endpoint`, `server` what they start and reach, `process`, `disk`, `files` what they
//! watch.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backlog;
mod certificates;
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

use sluice_client::Credentials;

use report::Report;

/// Measures this program on this machine.
#[derive(clap::Subcommand, Debug)]
pub enum BenchVerb {
    /// The engine in this process: time, allocations and instructions of each operation
    Engine(engine::EngineArgs),
    /// A server under load: messages a second, latency, processor time, memory, syncs
    Queue(queue::QueueArgs),
    /// A server under load over sessions: messages a second, latency from send to delivery, processor time
    Stream(stream::StreamArgs),
    /// Single messages, each one send, one delivery and one ack, by many loops on few connections, with and
    /// without security
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

/// Reads the credentials for a server that `--url` names: a CA to trust, a certificate or a token to show.
pub type ReadCredentials = fn() -> Result<Credentials, String>;

/// What a benchmark came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// For people.
    pub text: String,
    /// For machines.
    pub json: Value,
    /// Whether all checks held.
    pub passed: bool,
}

impl Outcome {
    /// Counts, which people read as JSON, too, since they keep them in a file and compare.
    fn counted(counts: Value) -> Outcome {
        Outcome { text: format!("{counts:#}\n"), json: counts, passed: true }
    }
}

impl From<Report> for Outcome {
    fn from(report: Report) -> Outcome {
        Outcome { text: report.to_text(), json: report.to_json(), passed: report.passed() }
    }
}

/// Runs a benchmark.
///
/// # Errors
/// Why it could not be run or did not get to its end.
pub fn run(verb: &BenchVerb, credentials: ReadCredentials) -> Result<Outcome, String> {
    let report = match verb {
        BenchVerb::Engine(args) => return engine::run(args),
        BenchVerb::Compare(args) => return compare::run(args),
        BenchVerb::Queue(args) => queue::run(args, credentials),
        BenchVerb::Stream(args) => stream::run(args, credentials),
        BenchVerb::Single(args) => single::run(args),
        BenchVerb::Idle(args) => idle::run(args),
        BenchVerb::Flood(args) => flood::run(args),
        BenchVerb::Backlog(args) => backlog::run(args),
        BenchVerb::Crash(args) => crash::run(args),
        BenchVerb::Wire(args) => wire::run(args),
    };
    report.map(Outcome::from)
}
