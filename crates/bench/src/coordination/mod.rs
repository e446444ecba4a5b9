//! `sluice bench coordination`: locks, documents and transactions, by workers that make one call at a time
//! over sessions that they share.
//!
//! Map: `calls` the calls of a worker, `loops` what the workers do, `queried` documents that queries find,
//! `served` the server or the cluster that they call.

mod calls;
mod loops;
mod queried;
mod served;

use std::time::Duration;

use sluice_client::{Options, QuotaChange};
use sluice_units::parse_duration;
use tokio::task::JoinSet;

use super::link::Link;
use super::load::{connection, runtime};
use super::report::Report;
use super::server::ServerOptions;
use super::setup::{FolderArgs, report_of};
use super::table::{Table, figure};
use calls::Calls;
use loops::{Done, Kind, Load, OTHER};
use queried::Queried;
use served::Served;
use sluice_bench_rows::stats::Samples;

const SMOKE: Duration = Duration::from_millis(200);
const SMOKE_DOCUMENTS: u32 = 2_000;

/// The phases, with the names of their figures and what they do.
const PHASES: [(Kind, &str, &str); 7] = [
    (Kind::Cycle, "cycle_per_s", "acquire with document, write and release together"),
    (Kind::CycleOfFour, "cycle4_per_s", "acquire, read, write, release"),
    (Kind::Read, "read_per_s", "read a document"),
    (Kind::Transaction, "txn_per_s", "ack, write and send together"),
    (Kind::TransactionAcross, "txn2_per_s", "the same over two shards"),
    (Kind::Contended, "contended_per_s", "acquire and release one key"),
    (Kind::Query, "query_index_per_s", "find 10 documents by an index"),
];

/// Measures locks, documents and transactions: by default with mutual TLS and encryption at rest.
#[derive(clap::Args, Clone, Debug)]
pub struct CoordinationArgs {
    /// Workers, each with one call in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,
    /// Sessions that they share, each on a connection of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Length of each document in bytes, at least 16.
    #[arg(long, value_name = "BYTES", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    bytes: u32,
    /// Documents that queries find 10 of by an index.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10..=10_000_000))]
    documents: u32,
    /// Duration of each phase.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    seconds: Duration,
    /// Times that the phases are run; the median is reported.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Durability of the server that is started: `always` (sync before each reply), `interval:1s`, or `os`
    /// (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    /// Start the server without TLS and without encryption of what it stores.
    #[arg(long)]
    plain: bool,
    /// Nodes on this machine: one server, or a cluster of three, whose leader the sessions call.
    #[arg(long, default_value_t = 1, value_parser = nodes, conflicts_with = "plain")]
    nodes: u32,
    /// Run these phases alone.
    #[arg(long, value_name = "PHASE", value_delimiter = ',')]
    only: Vec<Kind>,
    /// Threads of the load generator.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    client_threads: u32,
    #[command(flatten)]
    folder: FolderArgs,
}

impl CoordinationArgs {
    fn server(&self, shards: u32) -> ServerOptions {
        let options = ServerOptions::with_durability(&self.durability);
        ServerOptions { shards, tls: !self.plain, encryption: !self.plain, ..options }
    }

    /// True if a phase is to be run on a server with so many shards.
    fn wants(&self, kind: Kind, shards: u32) -> bool {
        kind.shards() == shards && (self.only.is_empty() || self.only.contains(&kind))
    }
}

fn nodes(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|nodes| [1, 3].contains(nodes)).ok_or_else(|| "use 1 or 3".to_owned())
}

/// A phase, and the processor time that all servers took for each of its rounds, in microseconds.
type Ran = (Done, f64);

pub(super) fn run(args: &CoordinationArgs) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let mut report = report_of("coordination", &folder, &args.server(1))?;
    let runtime = runtime(args.client_threads as usize)?;
    let mut ran: Vec<Vec<Ran>> = PHASES.iter().map(|_| Vec::new()).collect();
    for shards in [1, 2] {
        if PHASES.iter().any(|(kind, ..)| args.wants(*kind, shards)) {
            let data = folder.path().join(format!("shards-{shards}"));
            let served = match args.nodes {
                1 => Served::alone(&data, &args.server(shards))?,
                _ => Served::cluster(&data, &args.server(shards), &runtime)?,
            };
            runtime.block_on(measure(args, &served, shards, &mut ran))?;
            served.stop()?;
        }
    }
    drop(runtime);
    tell(args, &ran, &mut report);
    Ok(report)
}

/// All phases for a server with so many shards in turn, as often as told.
async fn measure(
    args: &CoordinationArgs,
    served: &Served,
    shards: u32,
    ran: &mut [Vec<Ran>],
) -> Result<(), String> {
    let (duration, documents) =
        if args.folder.smoke { (SMOKE, SMOKE_DOCUMENTS) } else { (args.seconds, args.documents) };
    let queried = Queried::of(documents);
    let load = Load { workers: args.workers, bytes: args.bytes as usize, queried, duration };
    let mut is_made = false;
    if shards > 1 {
        let admin = connection(served.endpoint())?;
        let made = admin.namespace_create(OTHER, QuotaChange::default(), Some(shards - 1)).await;
        made.map_err(|error| format!("cannot create the namespace {OTHER}: {error}"))?;
    }
    for _ in 0..args.rounds {
        let phases = PHASES.iter().zip(ran.iter_mut());
        for ((kind, name, _), ran) in phases.filter(|((kind, ..), _)| args.wants(*kind, shards)) {
            let mut tasks = JoinSet::new();
            let links = open(served, args.connections, &mut tasks).await?;
            if *kind == Kind::Query && !std::mem::replace(&mut is_made, true) {
                queried.make(&links, &connection(served.endpoint())?).await?;
            }
            let before = served.cpu()?;
            let done = loops::run(*kind, &links, load).await;
            let done = done.map_err(|error| format!("{name}: {error}"))?;
            let cpu = served.cpu()?.saturating_sub(before);
            let cpu_us = cpu.as_secs_f64() * 1e6 / done.count.max(1) as f64;
            ran.push((done, cpu_us));
            tasks.shutdown().await;
            drop(links);
            clean(served).await?;
        }
    }
    Ok(())
}

/// Opens sessions on connections of their own, and lets tasks hand on what comes.
async fn open(
    served: &Served,
    connections: u32,
    tasks: &mut JoinSet<Result<(), String>>,
) -> Result<Vec<Calls>, String> {
    let mut links = Vec::new();
    for _ in 0..connections {
        let client = served.endpoint().client(Options::default())?;
        let (link, frames) = Link::open(&client).await?;
        tasks.spawn(std::sync::Arc::clone(&link).hand_on(frames));
        links.push(Calls(link));
    }
    Ok(links)
}

/// Deletes the queue of a phase, whose messages are those of the workers.
async fn clean(served: &Served) -> Result<(), String> {
    let admin = connection(served.endpoint())?;
    match admin.queue_delete("coordination").await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("queue_not_found") => Ok(()),
        Err(error) => Err(format!("cannot delete the queue: {error}")),
    }
}

fn tell(args: &CoordinationArgs, ran: &[Vec<Ran>], report: &mut Report) {
    let mut table = Table::new(&["phase", "per s", "from", "to", "server CPU µs"]);
    for ((kind, name, what), ran) in PHASES.iter().zip(ran).filter(|(_, ran)| !ran.is_empty()) {
        let rates: Samples = ran.iter().map(|(done, _)| done.per_s()).collect();
        let cpu_us: Samples = ran.iter().map(|(_, cpu_us)| *cpu_us).collect();
        let of = |pick: fn(f64, f64) -> f64, first: f64| {
            ran.iter().map(|(done, _)| done.per_s()).fold(first, pick)
        };
        let figures = [rates.median(), of(f64::min, f64::MAX), of(f64::max, 0.0), cpu_us.median()];
        table.row([vec![(*what).to_owned()], figures.map(figure).to_vec()].concat());
        report.figure(name, rates.median());
        report.figure(&name.replace("per_s", "server_cpu_us"), cpu_us.median());
        if *kind == Kind::Contended {
            let quantile = |at: f64| -> f64 {
                let times = ran.iter().map(|(done, _)| done.handovers.value_at_quantile(at) as f64 / 1_000.0);
                times.collect::<Samples>().median()
            };
            report.figure("handover_p50_us", quantile(0.5));
            report.figure("handover_p99_us", quantile(0.99));
        }
    }
    let title = format!(
        "{} workers on {} connections, one call each in flight, documents of {} B, {}",
        args.workers,
        args.connections,
        args.bytes,
        if args.nodes == 1 { "one server" } else { "three nodes" }
    );
    report.figure("nodes", f64::from(args.nodes));
    report.table(&title, table);
    // A worker fails when its document is not as it has left it.
    report.check("each read gave the content that was written last, and each query what it should", Ok(()));
}
