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
//! a server that is started as a child, `coordination` its locks, documents and transactions,
//! `attachments` these, `webhooks` its pushes to an endpoint, `search` one message among many, `cluster`
//! against several; `link` a session that many loops share; `load` loops that send and work, and the ledger
//! of every message; `sends` sends at a steady rate; `wire` HTTP/2 alone; `compare` two files of figures;
//! `report`, `table` what they print; `setup`, `certificates`, `endpoint`, `server`, `nodes` what
//! they start and reach, `process`, `disk`, `files` what they watch.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod attachments;
mod backlog;
mod certificates;
mod cluster;
mod compare;
mod coordination;
mod crash;
mod disk;
mod endpoint;
mod engine;
mod files;
mod flood;
mod idle;
mod link;
mod load;
mod nodes;
mod process;
mod queue;
mod report;
mod search;
mod sends;
mod server;
mod setup;
mod single;
mod stream;
mod table;
mod webhooks;
mod wire;

use serde_json::Value;
use sluice_client::Credentials;

use report::Report;

/// Measure this program on this machine.
#[derive(clap::Subcommand, Debug)]
pub enum BenchVerb {
    /// Measure the engine in this process: time, allocations and instructions of each operation
    Engine(engine::EngineArgs),
    /// Measure a server over HTTP: messages per second, latency, processor time, memory, syncs
    Queue(queue::QueueArgs),
    /// Measure a server over gRPC sessions: messages per second, latency from send to delivery, processor
    /// time
    Stream(stream::StreamArgs),
    /// Measure single messages (one send, one delivery, one ack each) on few connections, with and without
    /// TLS and encryption
    Single(single::SingleArgs),
    /// Measure locks, documents and transactions over sessions: cycles of acquire, read, write, release;
    /// reads; ack, document and send together; one key that all want
    Coordination(coordination::CoordinationArgs),
    /// Measure large attachments in and out, the memory of the server, and sends beside them
    Attachments(attachments::AttachmentsArgs),
    /// Measure messages that the server pushes to an HTTPS endpoint over connections that are kept
    Webhooks(webhooks::WebhooksArgs),
    /// Measure how fast one message among many is found by its tag, its error and its payload, and sends
    /// beside the searches
    Search(search::SearchArgs),
    /// Measure idle sessions: memory of each, and the latency of a message to one of them
    Idle(idle::IdleArgs),
    /// Measure what thousands of bad TLS handshakes cost other clients
    Flood(flood::FloodArgs),
    /// Measure a backlog larger than the cache, and the disk that one old message keeps in use
    Backlog(backlog::BacklogArgs),
    /// Kill a server (kill -9) under full load repeatedly, and check that nothing acknowledged is lost
    Crash(crash::CrashArgs),
    /// Measure three nodes of a cluster beside one server and beside three independent ones: messages per
    /// second, processor time, pauses of writes when the leader fails
    Cluster(cluster::ClusterArgs),
    /// Serve fixed bodies over HTTP/2 from one thread, for load generators, with Sluice's HTTP/2 or hyper's
    Wire(wire::WireArgs),
    /// Compare two files of results, and fail when a figure became worse
    Compare(compare::CompareArgs),
}

/// Reads the credentials for a server that `--url` names: the CA to trust, and a client certificate or a
/// token.
pub type ReadCredentials = fn() -> Result<Credentials, String>;

/// The result of a benchmark.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The result as text, in tables.
    pub text: String,
    /// The result as a JSON object.
    pub json: Value,
    /// True when every check of the benchmark held.
    pub passed: bool,
}

impl Outcome {
    /// Counts, whose text is JSON as well: they are kept in a file and compared.
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
/// The reason, in a sentence, why the benchmark could not start or finish.
pub fn run(verb: &BenchVerb, credentials: ReadCredentials) -> Result<Outcome, String> {
    let report = match verb {
        BenchVerb::Engine(args) => return engine::run(args),
        BenchVerb::Compare(args) => return compare::run(args),
        BenchVerb::Queue(args) => queue::run(args, credentials),
        BenchVerb::Stream(args) => stream::run(args, credentials),
        BenchVerb::Single(args) => single::run(args),
        BenchVerb::Coordination(args) => coordination::run(args),
        BenchVerb::Attachments(args) => attachments::run(args),
        BenchVerb::Webhooks(args) => webhooks::run(args),
        BenchVerb::Search(args) => search::run(args),
        BenchVerb::Idle(args) => idle::run(args),
        BenchVerb::Flood(args) => flood::run(args),
        BenchVerb::Backlog(args) => backlog::run(args),
        BenchVerb::Crash(args) => crash::run(args),
        BenchVerb::Cluster(args) => cluster::run(args),
        BenchVerb::Wire(args) => wire::run(args),
    };
    report.map(Outcome::from)
}
