//! `sluice bench cluster`: three nodes that replicate, against one server and against three that do not, and
//! the time for which writes pause when the leader fails; how a node catches up; and what nodes take that
//! have nothing to do. All servers and their clients share this machine.
//!
//! Map: `servers` the servers that are compared, `rates` rates and processor time, `failover` the pauses,
//! `faults` what makes a leader fail, `idle` nodes of many shards without load, `catch_up` a node that has
//! missed a part of the log.

mod catch_up;
mod failover;
mod faults;
mod idle;
mod rates;
mod servers;

use sluice_units::parse_size;
use tempfile::TempDir;

use super::load::{Amount, NUMBER_BYTES, runtime};
use super::nodes::Nodes;
use super::report::Report;
use super::server::ServerOptions;
use super::setup::{FolderArgs, report_of};
use super::stream::SessionLoad;
use catch_up::Sizes;
use faults::{Fault, has_strace};
use servers::Servers;

/// Messages of a lone client: each takes a round trip and a sync.
const LONE_MESSAGES: u64 = 2_000;
/// Upper limit of the sizes of a store in a smoke test, in bytes.
const SMOKE_BYTES: u64 = 16 << 20;

/// Measures a cluster of three nodes beside one server and beside three independent ones, and how long writes
/// pause when its leader fails.
#[derive(clap::Args, Debug)]
pub struct ClusterArgs {
    /// Messages in each phase.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Size of each payload in bytes, at least 16: it begins with the number of the message.
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Sessions that send, and as many that receive and ack, on each server; each has a connection of its
    /// own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sessions: u32,
    /// Messages in each frame that sends.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Largest number of messages in flight in a session: sent and not confirmed, or delivered and not acked
    /// (the credit of its consumer).
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    window: u32,
    /// Rounds of the rates, in which the servers take turns; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Times that the leader fails in each way; the longest pause is reported.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tries: u32,
    /// Durability of all servers: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "always")]
    durability: String,
    /// Shards of the nodes that have nothing to do.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    idle_shards: u32,
    /// Payloads that all nodes have before one fails that is to catch up.
    #[arg(long, value_name = "SIZE", default_value = "5GiB", value_parser = parse_size)]
    store: u64,
    /// Payloads that it misses.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    missed: u64,
    /// Measurements to run.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = RowKind::ALL)]
    rows: Vec<RowKind>,
    #[command(flatten)]
    folder: FolderArgs,
}

/// A part of the measurement.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum RowKind {
    /// Sends, then deliveries and acks: rates and processor time.
    Rates,
    /// One session that sends one message at a time.
    Lone,
    /// Pauses of writes when the leader is killed.
    Kill,
    /// Pauses of writes when the leader is frozen (SIGSTOP).
    Freeze,
    /// Pauses of writes when the disk of the leader hangs; needs strace.
    Disk,
    /// Pauses of writes when the leadership is handed to another node.
    Planned,
    /// Processor time, memory and disk of three nodes of many shards without load.
    Idle,
    /// A node that missed a part of the store catches up while the load goes on.
    #[value(name = "catch_up")]
    CatchUp,
}

impl RowKind {
    const ALL: [RowKind; 8] = [
        RowKind::Idle,
        RowKind::Rates,
        RowKind::Lone,
        RowKind::Planned,
        RowKind::Kill,
        RowKind::Freeze,
        RowKind::Disk,
        RowKind::CatchUp,
    ];

    /// True when it runs on a cluster of its own.
    fn is_apart(self) -> bool {
        matches!(self, RowKind::Idle | RowKind::CatchUp)
    }

    fn fault(self) -> Option<Fault> {
        match self {
            RowKind::Rates | RowKind::Lone | RowKind::Idle | RowKind::CatchUp => None,
            RowKind::Kill => Some(Fault::Kill),
            RowKind::Freeze => Some(Fault::Freeze),
            RowKind::Disk => Some(Fault::Disk),
            RowKind::Planned => Some(Fault::Planned),
        }
    }
}

impl ClusterArgs {
    fn shape(&self) -> SessionLoad {
        let messages = if self.folder.smoke { self.messages.min(5_000) } else { self.messages };
        SessionLoad {
            sessions: self.sessions as usize,
            batch: self.batch.min(self.window) as usize,
            window: self.window as usize,
            payload_bytes: self.payload as usize,
            amount: Amount::Messages(messages),
        }
    }

    fn lone(&self) -> SessionLoad {
        let messages = if self.folder.smoke { LONE_MESSAGES / 20 } else { LONE_MESSAGES };
        SessionLoad { sessions: 1, batch: 1, window: 1, amount: Amount::Messages(messages), ..self.shape() }
    }

    fn sizes(&self) -> Sizes {
        let most = if self.folder.smoke { SMOKE_BYTES } else { u64::MAX };
        Sizes { store: self.store.min(most), missed: self.missed.min(most) }
    }

    fn idle_shards(&self) -> u32 {
        if self.folder.smoke { self.idle_shards.min(4) } else { self.idle_shards }
    }

    fn rounds(&self) -> u32 {
        if self.folder.smoke { 1 } else { self.rounds }
    }

    fn tries(&self) -> u32 {
        if self.folder.smoke { 1 } else { self.tries }
    }
}

pub(super) fn run(args: &ClusterArgs) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let options = ServerOptions { tls: true, ..ServerOptions::with_durability(&args.durability) };
    let mut report = report_of("cluster", &folder, &options)?;
    runtime(1)?.block_on(measure(args, &options, &folder, &mut report))?;
    Ok(report)
}

async fn measure(
    args: &ClusterArgs,
    options: &ServerOptions,
    folder: &TempDir,
    report: &mut Report,
) -> Result<(), String> {
    if args.rows.contains(&RowKind::Idle) {
        let folder = folder.path().join("idle");
        idle::measure(&folder, args.idle_shards(), &args.durability, args.folder.smoke, report).await?;
    }
    if args.rows.iter().any(|row| !row.is_apart()) {
        measure_loads(args, options, folder, report).await?;
    }
    if args.rows.contains(&RowKind::CatchUp) {
        let folder = folder.path().join("catch-up");
        catch_up::measure(&folder, &args.durability, args.sizes(), args.folder.smoke, report).await?;
    }
    Ok(())
}

/// The measurements under load, on one cluster.
async fn measure_loads(
    args: &ClusterArgs,
    options: &ServerOptions,
    folder: &TempDir,
    report: &mut Report,
) -> Result<(), String> {
    let mut nodes = Nodes::start(&folder.path().join("cluster"), &args.durability, 1)?;
    let has = |row| args.rows.contains(&row);
    if has(RowKind::Rates) || has(RowKind::Lone) {
        let servers = Servers::start(folder.path(), options, nodes)?;
        if has(RowKind::Rates) {
            rates::measure(&servers, &args.shape(), args.rounds(), report).await?;
        }
        if has(RowKind::Lone) {
            rates::measure_lone(&servers, &args.lone(), args.rounds(), report).await?;
        }
        nodes = servers.stop_others()?;
    }
    let mut pauses = failover::table();
    for fault in args.rows.iter().filter_map(|row| row.fault()) {
        if fault == Fault::Disk && !has_strace() {
            report.note("the row of a hung disk needs strace and was left out");
            continue;
        }
        let (tries, payload_bytes) = (args.tries(), args.payload as usize);
        failover::measure(&mut nodes, fault, tries, payload_bytes, &mut pauses, report).await?;
    }
    report.table("pause of writes when the leader fails or hands over", pauses);
    nodes.stop()?;
    // Every run fails when one message is not acked exactly once, so to have come here is the proof.
    report.check("each acknowledged message was received and acked exactly once, and none was left", Ok(()));
    Ok(())
}
