//! `sluice bench stream`: a server under load over sessions, its client beside it on the same machine.
//!
//! Map: `sessions` the loops on the two kinds of session, `phases` send, work and combined, and a run at a
//! fixed rate, `pace` when its frames are due, `paced` its figures.

mod pace;
mod paced;
mod phases;
mod sessions;

use std::time::Duration;

use sluice_client::Client;

use super::ReadCredentials;
use super::load::{Amount, connection, runtime};
use super::report::Report;
use super::server::{ServerOptions, Target};
use super::setup::{AmountArgs, FolderArgs, TargetArgs};
pub(super) use pace::Rate;
use paced::tell_server_cpu;
use phases::SessionPhases;
pub(super) use phases::{combined, finish, paced, queue_name, sent, worked};
pub(super) use sessions::{SessionLoad, SessionRun, check, error_of, next};
use sluice_bench_rows::stats::Samples;

/// Default duration of a run at a constant rate, and its duration in a smoke test.
const PACED_FOR: Duration = Duration::from_secs(5);
const PACED_FOR_SMOKE: Duration = Duration::from_millis(400);

/// Measures a server under load over sessions: sends, then deliveries and acks, then both at once; or, with
/// --rate, the time from when each message is due to its delivery.
#[derive(clap::Args, Clone, Debug)]
pub struct StreamArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    amount: AmountArgs,
    /// Sessions that send, and as many that receive and ack; each has a connection of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sessions: u32,
    /// Messages in each frame that sends.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Largest number of messages in flight in a session: sent and not confirmed, or delivered and not acked
    /// (the credit of its consumer).
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    window: u32,
    /// Send this many messages per second at a constant rate instead of the phases, for 5 s or --seconds;
    /// each latency counts from the time at which the message was due. Use --batch 1 for single messages.
    #[arg(long, value_name = "PER_S", conflicts_with = "messages", value_parser = rate_parser())]
    rate: Option<u32>,
    /// Durability of the server that is started: `always` (sync before each reply), `interval:1s`, or `os`
    /// (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    /// Start the server with --memory: nothing is stored on disk.
    #[arg(long, conflicts_with = "url")]
    memory: bool,
    #[command(flatten)]
    folder: FolderArgs,
}

fn rate_parser() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=10_000_000)
}

impl StreamArgs {
    fn shape(&self) -> SessionLoad {
        SessionLoad {
            sessions: self.sessions as usize,
            batch: self.batch.min(self.window) as usize,
            window: self.window as usize,
            payload_bytes: self.amount.payload as usize,
            amount: self.amount.amount(self.folder.smoke),
        }
    }

    fn rate(&self) -> Option<Rate> {
        let duration = match self.amount.seconds {
            _ if self.folder.smoke => PACED_FOR_SMOKE,
            Some(duration) => duration,
            None => PACED_FOR,
        };
        self.rate.map(|per_s| Rate { per_s: f64::from(per_s), duration })
    }

    fn server(&self) -> ServerOptions {
        let options = ServerOptions::with_durability(&self.durability);
        self.target.secured(ServerOptions { memory: self.memory, ..options })
    }
}

pub(super) fn run(args: &StreamArgs, credentials: ReadCredentials) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let options = args.server();
    let mut report = args.target.report("stream", &folder, &options)?;
    let target = args.target.start(&folder, &options, credentials)?;
    let threads = args.amount.client_threads as usize;
    runtime(threads)?.block_on(measure(args, target, &mut report))?;
    Ok(report)
}

async fn measure(args: &StreamArgs, target: Target, report: &mut Report) -> Result<(), String> {
    let admin = connection(target.endpoint())?;
    let shape = args.shape();
    let warm = SessionLoad { amount: Amount::Messages(10_000.min(args.amount.messages)), ..shape };
    phases::run(&target, &admin, &warm).await?;
    match args.rate() {
        Some(rate) => paced::measure(&target, &admin, &shape, rate, args.amount.rounds, report).await?,
        None => measure_phases(&target, &admin, &shape, args.amount.rounds, report).await?,
    }
    target.stop()?;
    // Every run fails when one message is not acked exactly once, so to have come here is the proof.
    report.check("each message was acked exactly once, and none was left", Ok(()));
    Ok(())
}

async fn measure_phases(
    target: &Target,
    admin: &Client,
    shape: &SessionLoad,
    rounds: u32,
    report: &mut Report,
) -> Result<(), String> {
    let mut found = Vec::new();
    for _ in 0..rounds {
        found.push(phases::run(target, admin, shape).await?);
    }
    tell(&found, report);
    Ok(())
}

/// The figures under the documented names, each the median over the rounds.
fn tell(rounds: &[SessionPhases], report: &mut Report) {
    let median = |of: &dyn Fn(&SessionPhases) -> Option<f64>| {
        rounds.iter().filter_map(of).collect::<Samples>().median()
    };
    report.figure("send_per_s", median(&|phases| Some(phases.send.per_s())));
    report.figure("work_per_s", median(&|phases| Some(phases.work.per_s())));
    report.figure("combined_per_s", median(&|phases| Some(phases.combined.per_s())));
    tell_server_cpu(rounds.iter().filter_map(|phases| phases.server_cpu_us).collect(), report);
}
