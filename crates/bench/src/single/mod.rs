//! `sluice bench single`: every message by itself. Many producers and consumers, as independent loops on few
//! connections, send, get and ack one message a request; nothing that a client could put together is put
//! together.
//!
//! Map: `loops` the producers and consumers, `modes` how the server is secured, `collector` where its
//! telemetry goes.

mod collector;
mod loops;
mod modes;

use std::path::Path;

use serde_json::json;

use super::load::{NUMBER_BYTES, runtime};
use super::report::Report;
use super::setup::{FolderArgs, report_of};
use super::table::{Table, figure};
use loops::{Moved, SingleLoad};
use modes::{Mode, Ran};
use sluice_bench_rows::stats::Samples;

/// Messages of the short run, of whose time the handshakes are a part.
const SHORT: u64 = 2_000;
/// Messages of the run in which the server counts what it takes from its allocator.
const COUNTED_MAX: u64 = 50_000;

/// Measures single messages: each one send, one delivery and one ack, by many loops on few connections.
#[derive(clap::Args, Clone, Debug)]
pub struct SingleArgs {
    /// Messages in the long run, which follows a short one of 2,000.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Size of each payload in bytes, at least 16: it begins with the number of the message.
    #[arg(long, value_name = "BYTES", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Loops that send one message at a time.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    producers: u32,
    /// Consumers, each of which acks one message at a time.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    consumers: u32,
    /// Messages delivered to a consumer ahead of its acks (its credit).
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    prefetch: u32,
    /// Connections that all loops share.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Security settings of the server to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::USUAL)]
    modes: Vec<Mode>,
    /// Durability of the server: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    /// Times that each mode is run, alternating; the median is reported.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Threads of the load generator.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    client_threads: u32,
    #[command(flatten)]
    folder: FolderArgs,
}

impl SingleArgs {
    fn shape(&self) -> SingleLoad {
        SingleLoad {
            producers: self.producers,
            consumers: self.consumers,
            connections: self.connections,
            prefetch: self.prefetch,
            payload_bytes: self.payload as usize,
        }
    }

    /// Messages of the short run and of the long one.
    fn amounts(&self) -> (u64, u64) {
        match self.folder.smoke {
            true => (SHORT / 10, self.messages.min(SHORT)),
            false => (SHORT, self.messages),
        }
    }
}

pub(super) fn run(args: &SingleArgs) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let mut report = report_of("single", &folder, &Mode::Both.server(&args.durability))?;
    report = report.secured("each mode as told below");
    let runtime = runtime(args.client_threads as usize)?;
    let ran = runtime.block_on(measure(args, folder.path()))?;
    tell(args, &ran, &mut report);
    if args.modes.contains(&Mode::Both) {
        let messages = args.amounts().1.min(COUNTED_MAX);
        let shape = args.shape();
        let counted = modes::count_allocations(folder.path(), &args.durability, &shape, messages);
        report.figure("server_allocs_per_message", runtime.block_on(counted)?);
    }
    Ok(report)
}

/// Every mode in turn, as often as told.
async fn measure(args: &SingleArgs, folder: &Path) -> Result<Vec<Ran>, String> {
    let mut ran = Vec::new();
    for _ in 0..args.rounds {
        for mode in &args.modes {
            ran.push(modes::run(*mode, folder, &args.durability, &args.shape(), args.amounts()).await?);
        }
    }
    Ok(ran)
}

/// The price of telemetry, beside the same without it.
fn tell_telemetry(
    of: &impl Fn(Mode, fn(&Ran) -> f64) -> f64,
    args: &SingleArgs,
    ran: &[Ran],
    report: &mut Report,
) {
    if !args.modes.contains(&Mode::Telemetry) {
        return;
    }
    if args.modes.contains(&Mode::Both) {
        let (without, with) =
            (of(Mode::Both, |ran| ran.long.per_s()), of(Mode::Telemetry, |ran| ran.long.per_s()));
        report.figure("telemetry_share", 1.0 - with / without.max(1e-9));
    }
    let silent = ran.iter().filter(|ran| ran.mode == Mode::Telemetry && ran.traces == 0).count();
    report.check_equal("runs whose collector got no traces", 0, silent as u64);
}

fn tell(args: &SingleArgs, ran: &[Ran], report: &mut Report) {
    let of = |mode: Mode, figure: fn(&Ran) -> f64| -> f64 {
        ran.iter().filter(|ran| ran.mode == mode).map(figure).collect::<Samples>().median()
    };
    let (short, long) = args.amounts();
    let columns = [format!("{short} messages, per s"), format!("{long} messages, per s")];
    let mut table = Table::new(&["security", &columns[0], &columns[1], "server CPU µs a message"]);
    for mode in &args.modes {
        let figures = [
            of(*mode, |ran| ran.short.per_s()),
            of(*mode, |ran| ran.long.per_s()),
            of(*mode, |ran| ran.server_cpu_us),
        ];
        table.row([vec![mode.name().to_owned()], figures.map(figure).to_vec()].concat());
        report.row(
            mode.key(),
            json!({ "short_per_s": figures[0], "per_s": figures[1], "server_cpu_us_per_message": figures[2] }),
        );
        report.figure(mode.key(), figures[1]);
    }
    let shape = args.shape();
    let title = format!(
        "{} producers, {} consumers with prefetch {}, {} connections, {} B",
        shape.producers, shape.consumers, shape.prefetch, shape.connections, shape.payload_bytes
    );
    report.table(&title, table);
    if args.modes.contains(&Mode::Both) {
        report.figure("per_s_2000", of(Mode::Both, |ran| ran.short.per_s()));
        report.figure("server_cpu_us_per_message", of(Mode::Both, |ran| ran.server_cpu_us));
    }
    if args.modes.contains(&Mode::Both) && args.modes.contains(&Mode::Plain) {
        let (plain, both) = (of(Mode::Plain, |ran| ran.long.per_s()), of(Mode::Both, |ran| ran.long.per_s()));
        report.figure("security_share", 1.0 - both / plain.max(1e-9));
    }
    tell_telemetry(&of, args, ran, report);
    let sum =
        |count: fn(&Moved) -> u64| ran.iter().map(|ran| count(&ran.short) + count(&ran.long)).sum::<u64>();
    let lost = sum(|moved| moved.lease_lost);
    report.figure("lease_lost", lost as f64);
    report.check_equal("leases lost", 0, lost);
    report.check_equal("messages delivered twice", 0, sum(|moved| moved.duplicates));
    // A run fails when one message is not acked exactly once, so to have come here is the proof.
    report.check("each message was acked exactly once, and none was left", Ok(()));
}
