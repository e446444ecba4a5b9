//! `sluice bench stream`: a server under load over sessions, its client beside it on the same machine.
//!
//! Map: `sessions` the loops on the two kinds of session, `phases` send, work and combined, and the time from send to delivery.

mod phases;
mod sessions;

use std::path::PathBuf;
use std::time::Duration;

use super::disk::{fdatasync_us, is_in_memory};
use super::load::{Amount, NUMBER_BYTES, connection, runtime};
use super::report::Report;
use super::server::{Server, ServerOptions, Target};
use super::stats::Samples;
use crate::cli::{self, Out};
use crate::config::units::parse_duration;
use phases::{Phases, Shape};

/// Measures a server under load over sessions: sends, then deliveries and acks, then both at once, then latency.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StreamArgs {
    /// A server that runs already; by default one is started, with its data in a temporary folder.
    #[arg(long)]
    url: Option<String>,
    /// Messages of each phase.
    #[arg(long, default_value_t = 200_000, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,
    /// Send for so long instead, as in 30s.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    seconds: Option<Duration>,
    /// Bytes of a payload (at least 16: the number of the message stands in it).
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Sessions that send, and sessions that work; each has a connection.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sessions: u32,
    /// Messages of a frame that sends.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Messages in flight in a session: sent and not confirmed, or credit.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    window: u32,
    /// Durability of the server that is started: always, interval:1s, os.
    #[arg(long, default_value = "os")]
    durability: String,
    /// Start the server without a disk.
    #[arg(long)]
    memory: bool,
    /// Times that the phases are run; the median is told.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Threads of the client's side.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    client_threads: u32,
    /// Where the temporary folder is made, to choose the disk.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A small part of everything, in a few seconds: to see that it works, not for figures.
    #[arg(long)]
    smoke: bool,
}

impl StreamArgs {
    fn shape(&self) -> Shape {
        let amount = match self.seconds {
            Some(_) if self.smoke => Amount::For(Duration::from_millis(300)),
            Some(duration) => Amount::For(duration),
            None if self.smoke => Amount::Messages(self.messages.min(5_000)),
            None => Amount::Messages(self.messages),
        };
        Shape {
            sessions: self.sessions as usize,
            batch: self.batch.min(self.window) as usize,
            window: self.window as usize,
            payload_bytes: self.payload as usize,
            amount,
        }
    }

    fn target(&self, folder: &std::path::Path) -> Result<Target, String> {
        if let Some(url) = &self.url {
            return Ok(Target::Url(url.clone()));
        }
        let flags = if self.memory { vec!["--memory".to_owned()] } else { Vec::new() };
        let options = ServerOptions { flags, ..ServerOptions::with_durability(&self.durability) };
        Ok(Target::Child(Server::start(&folder.join("data"), &options)?))
    }
}

pub(super) fn run(args: &StreamArgs, out: Out) -> cli::Result<bool> {
    super::print(report(args), out)
}

fn report(args: &StreamArgs) -> Result<Report, String> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("sluice-bench-")
        .tempdir_in(&dir)
        .map_err(|error| format!("cannot make a folder in {}: {error}", dir.display()))?;
    let durability = match (&args.url, args.memory) {
        (Some(_), _) => "as the server has it",
        (None, true) => "none: in memory",
        (None, false) => &args.durability,
    };
    let mut report = Report::new("stream", durability);
    if args.url.is_none() && !args.memory {
        report.figure("fdatasync_us", fdatasync_us(folder.path())?);
        if is_in_memory(folder.path()) {
            report.note(
                "the data is on a disk in memory, where a sync costs nothing: choose another with --dir",
            );
        }
    }
    runtime(args.client_threads as usize)?.block_on(measure(args, folder.path(), &mut report))?;
    Ok(report)
}

async fn measure(args: &StreamArgs, folder: &std::path::Path, report: &mut Report) -> Result<(), String> {
    let target = args.target(folder)?;
    let admin = connection(target.url())?;
    let shape = args.shape();
    let warm = Shape { amount: Amount::Messages(10_000.min(args.messages)), ..shape };
    phases::run(&target, &admin, &warm).await?;
    let mut rounds = Vec::new();
    for _ in 0..args.rounds {
        rounds.push(phases::run(&target, &admin, &shape).await?);
    }
    target.stop()?;
    tell(&rounds, report);
    // Every phase fails when one message is not acked exactly once, so to have come here is the proof.
    report.check("each message was acked exactly once, and none was left", Ok(()));
    Ok(())
}

/// The figures under the documented names, each the median over the rounds.
fn tell(rounds: &[Phases], report: &mut Report) {
    let median =
        |of: &dyn Fn(&Phases) -> Option<f64>| rounds.iter().filter_map(of).collect::<Samples>().median();
    report.figure("send_per_s", median(&|phases| Some(phases.send.per_s())));
    report.figure("work_per_s", median(&|phases| Some(phases.work.per_s())));
    report.figure("combined_per_s", median(&|phases| Some(phases.combined.per_s())));
    report.figure("p50_us", median(&|phases| Some(phases.delivery.ms(50.0) * 1e3)));
    report.figure("p99_us", median(&|phases| Some(phases.delivery.ms(99.0) * 1e3)));
    report.figure("paced_per_s", median(&|phases| Some(phases.delivery.per_s())));
    if rounds.iter().any(|phases| phases.server_cpu_us.is_some()) {
        report.figure("server_cpu_us_per_message", median(&|phases| phases.server_cpu_us));
    } else {
        report.note("the server is not ours: its processor time is not known");
    }
}
