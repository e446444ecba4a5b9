//! `sluice bench engine`: the engine in this process, without network and disk.
//!
//! The path that is measured is encode → memory journal → apply, with the payload copied in, as a shard does
//! it; a receive also reads the payloads of what it was given. Time (`now`) is a counter, not a clock.
//!
//! Map: `sluice_bench_rows` has the path, the rows and their counts; `backlog` cost against what waits,
//! `expiry` many leases at once, `features` what optional features cost, `kept` the memory of documents and
//! locks, `sustained` threads through the node.

mod backlog;
mod expiry;
mod features;
mod kept;
mod sustained;

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use sluice_bench_rows::counts;
use sluice_bench_rows::measure::{Measured, measure, step_times};
use sluice_bench_rows::rows::{self, ROWS, Row};

use super::Outcome;
use super::process::this_program;
use super::report::Report;
use super::table::{Table, figure};
use sluice_bench_rows::stats::percentile;

/// Threads that send in the parallel row.
const PARALLEL: u64 = 4;
/// Steps of the run that times each one.
const TIMED_STEPS: u64 = 1_000_000;
/// Messages that are blocked or delayed beside the ones that are measured.
const FEATURES: u64 = 1_000_000;
/// A smoke run does a part of everything.
const SMOKE_DIVISOR: u64 = 50;

/// A measurement beside the rows of single operations; --rows selects these as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    SendParallel,
    Sustained,
    Backlog,
    Expiry,
    Blocked,
    Fair,
    Delayed,
    FeatureBytes,
    KeptBytes,
}

impl Part {
    const ALL: [(&str, Part); 9] = [
        ("send_parallel", Part::SendParallel),
        ("sustained", Part::Sustained),
        ("backlog", Part::Backlog),
        ("expiry", Part::Expiry),
        ("blocked", Part::Blocked),
        ("fair", Part::Fair),
        ("delayed", Part::Delayed),
        ("feature_bytes", Part::FeatureBytes),
        ("kept_bytes", Part::KeptBytes),
    ];
}

/// Measures the engine in this process: rows of single operations, cost against backlog, threads through the
/// node.
#[derive(clap::Args, Debug)]
pub struct EngineArgs {
    /// Measure only these operations, by their names in the JSON output, or these parts: send_parallel,
    /// sustained, backlog, expiry, blocked, fair, delayed, feature_bytes, kept_bytes.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    rows: Vec<String>,
    /// Times that each operation is measured; the median is reported.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Largest backlog of the part `backlog`, in messages.
    #[arg(long, value_name = "MESSAGES", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    backlog: u64,
    /// Leases that end at the same moment in the part `expiry`.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    leases: u64,
    /// Duration of the part `sustained`, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Count instructions (under valgrind), allocations and allocated bytes of each operation instead of
    /// measuring time.
    #[arg(long)]
    counts: bool,
    /// Take so many steps of the one row named by --rows and print what they took from the allocator. What
    /// --counts runs under valgrind.
    #[arg(long, requires = "rows", conflicts_with = "counts", hide = true)]
    steps: Option<u64>,
    /// Run a small part in a few seconds, to check that the benchmark works; the figures mean nothing.
    #[arg(long)]
    smoke: bool,
}

pub(super) fn run(args: &EngineArgs) -> Result<Outcome, String> {
    match (args.steps, args.rows.as_slice()) {
        (Some(steps), [row]) => counts::run_row(row, steps).map(Outcome::counted),
        (Some(_), _) => Err("--steps: name one row with --rows".to_owned()),
        (None, rows) if args.counts => count(rows).map(Outcome::counted),
        (None, _) => measure_all(args).map(Outcome::from),
    }
}

/// Instructions and allocations of rows, each counted in this program once more.
fn count(rows: &[String]) -> Result<Value, String> {
    let program = this_program()?;
    counts::run(rows, |row, steps| {
        let mut child = Command::new(program.get_program());
        child.args(["bench", "engine", "--rows", row, "--steps", &steps.to_string()]);
        child
    })
}

fn measure_all(args: &EngineArgs) -> Result<Report, String> {
    let mut report = Report::new("engine", "none (memory journal)");
    let (rows, parts) = chosen(&args.rows)?;
    let scale = Scale::of(args)?;
    let measured = measure_rows(&rows, &scale, &mut report)?;
    if rows.len() == ROWS.len() {
        report_allocator_share(&measured, &mut report);
    }
    for part in parts {
        match part {
            Part::SendParallel => measure_parallel(&scale, &mut report)?,
            Part::Sustained => measure_sustained(&scale, &mut report)?,
            Part::Backlog => backlog::run(scale.backlog, &mut report),
            Part::Expiry => expiry::run(scale.leases, &mut report)?,
            Part::Blocked => features::blocked(scale.features, &mut report),
            Part::Fair => features::fair(scale.features / 10, &mut report),
            Part::Delayed => features::delayed(scale.features, &mut report),
            Part::FeatureBytes => features::index_bytes(scale.features / 10, &mut report),
            Part::KeptBytes => kept::index_bytes(scale.features / 10, &mut report),
        }
    }
    Ok(report)
}

/// Everything, unless something is named.
fn chosen(names: &[String]) -> Result<(Vec<Row>, Vec<Part>), String> {
    if names.is_empty() {
        return Ok((ROWS.to_vec(), Part::ALL.map(|(_, part)| part).to_vec()));
    }
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    for name in names {
        match Part::ALL.iter().find(|(part, _)| part == name) {
            Some((_, part)) => parts.push(*part),
            None => rows.push(rows::find(name)?),
        }
    }
    Ok((rows, parts))
}

/// Sizes and repetitions of the measurements.
struct Scale {
    divisor: u64,
    rounds: u32,
    backlog: u64,
    leases: u64,
    /// Messages that are blocked or delayed; ten times the fair keys.
    features: u64,
    sustained: Duration,
}

impl Scale {
    fn of(args: &EngineArgs) -> Result<Scale, String> {
        let sustained =
            Duration::try_from_secs_f64(args.seconds).map_err(|error| format!("--seconds: {error}"))?;
        let full = Scale {
            divisor: 1,
            rounds: args.rounds,
            backlog: args.backlog,
            leases: args.leases,
            features: FEATURES,
            sustained,
        };
        Ok(if args.smoke {
            Scale {
                divisor: SMOKE_DIVISOR,
                rounds: 2,
                backlog: full.backlog.min(100_000),
                leases: full.leases.min(20_000),
                features: FEATURES / SMOKE_DIVISOR,
                sustained: Duration::from_millis(300),
            }
        } else {
            full
        })
    }
}

fn measure_rows(rows: &[Row], scale: &Scale, report: &mut Report) -> Result<Vec<(Row, Measured)>, String> {
    let mut table = Table::new(&["row", "ns/message", "spread %", "allocs", "bytes", "allocator %"]);
    let mut all = Vec::new();
    for row in rows {
        let measured = measure(row, row.steps(scale.divisor), scale.rounds)?;
        table.row(vec![
            row.title.to_owned(),
            figure(measured.ns),
            figure(measured.spread_percent),
            figure(measured.allocs),
            figure(measured.bytes),
            figure(measured.allocator_percent()),
        ]);
        report.row(
            row.name,
            json!({
                "ns": measured.ns, "spread_percent": measured.spread_percent, "allocs": measured.allocs,
                "bytes": measured.bytes, "allocator_percent": measured.allocator_percent(),
            }),
        );
        all.push((*row, measured));
    }
    report.table("one thread, per message", table);
    if let Some((_, send)) = all.iter().find(|(row, _)| row.name == "send") {
        report.figure("send_ns", send.ns);
        report.figure("send_allocs", send.allocs);
        report.figure("send_bytes", send.bytes);
    }
    if let Some((row, e2e)) = all.iter().find(|(row, _)| row.name == "e2e") {
        report_end_to_end(row, e2e, scale, report)?;
    }
    if let Some((_, full)) = all.iter().find(|(row, _)| row.name == "e2e_full") {
        report.figure("e2e_full_ns", full.ns);
        report.figure("e2e_full_allocs", full.allocs);
    }
    Ok(all)
}

fn report_end_to_end(row: &Row, e2e: &Measured, scale: &Scale, report: &mut Report) -> Result<(), String> {
    let times = step_times(row, TIMED_STEPS / scale.divisor)?;
    let at = |percent| percentile(&times, percent) as f64;
    let mut table = Table::new(&["mean ns", "p50", "p95", "p99", "p99.9", "largest"]);
    table.row([e2e.ns, at(50.0), at(95.0), at(99.0), at(99.9), at(100.0)].map(figure).to_vec());
    report.table("send, receive, ack, one at a time: every iteration", table);
    report.figure("e2e_ns", e2e.ns);
    report.figure("e2e_p50_ns", at(50.0));
    report.figure("e2e_p99_ns", at(99.0));
    report.figure("e2e_allocs", e2e.allocs);
    report.figure("e2e_bytes", e2e.bytes);
    report.row("e2e_times", json!({ "p95_ns": at(95.0), "p99_9_ns": at(99.9), "largest_ns": at(100.0) }));
    Ok(())
}

fn report_allocator_share(rows: &[(Row, Measured)], report: &mut Report) {
    let time: f64 = rows.iter().map(|(_, measured)| measured.ns).sum();
    let allocator: f64 = rows.iter().map(|(_, measured)| measured.allocator_ns).sum();
    report.figure("allocator_share", if time > 0.0 { allocator / time } else { 0.0 });
}

fn measure_parallel(scale: &Scale, report: &mut Report) -> Result<(), String> {
    let ns = sustained::send_in_parallel(PARALLEL, 1_000_000 / scale.divisor)?;
    let title = format!("send from {PARALLEL} threads at once, {} in flight each", sustained::IN_FLIGHT);
    report.table(&format!("through the node: {title}"), through_node(ns));
    report.row("send_parallel", json!({ "ns": ns, "threads": PARALLEL }));
    Ok(())
}

fn measure_sustained(scale: &Scale, report: &mut Report) -> Result<(), String> {
    let sustained = sustained::run(scale.sustained)?;
    let title = format!("a producer and a consumer thread, {} in flight", sustained::IN_FLIGHT);
    report.table(
        &format!("through the node, sustained: {title}"),
        through_node(1e9 / sustained.per_s.max(1e-9)),
    );
    report.figure("sustained_per_s", sustained.per_s);
    report.check_equal("sustained: messages sent and acked", sustained.sent, sustained.acked);
    Ok(())
}

fn through_node(ns: f64) -> Table {
    let mut table = Table::new(&["messages/s", "ns/message"]);
    table.row(vec![figure(1e9 / ns), figure(ns)]);
    table
}
