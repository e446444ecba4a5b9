//! `sluice bench idle`: many sessions that wait, each attached to a queue of its own: what one costs the
//! server in memory, and how soon a message to any of them is there.
//!
//! Map: `waiting` the sessions.

mod waiting;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::files::allow_connections;
use super::load::{connection, histogram, runtime};
use super::process::{Usage, mib, usage};
use super::report::Report;
use super::server::{Server, ServerOptions};
use super::setup::{FolderArgs, report_of};
use waiting::Waiting;

/// Connections and requests of the server besides those of the sessions.
const BESIDE: u32 = 64;
/// Pause after the sessions are open, in which the server frees what opening took, before its memory is
/// measured.
const SETTLE: Duration = Duration::from_secs(3);
/// Time over which the processor time of idle sessions is measured.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// Measures what idle sessions cost, and how soon a message reaches one.
#[derive(clap::Args, Clone, Debug)]
pub struct IdleArgs {
    /// Idle sessions, each with a connection and a queue of its own.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sessions: u32,
    /// Durability of the server: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    /// Use clear text instead of mutual TLS with certificates made for this run.
    #[arg(long)]
    no_tls: bool,
    #[command(flatten)]
    folder: FolderArgs,
}

impl IdleArgs {
    fn sessions(&self) -> u32 {
        if self.folder.smoke { self.sessions.min(200) } else { self.sessions }
    }

    fn server(&self) -> ServerOptions {
        let connections = self.sessions() + BESIDE;
        ServerOptions {
            tls: !self.no_tls,
            flags: vec![
                format!("--http-connections={connections}"),
                format!("--http-requests={connections}"),
            ],
            ..ServerOptions::with_durability(&self.durability)
        }
    }

    /// A time; for a smoke test a part of it.
    fn time(&self, whole: Duration) -> Duration {
        if self.folder.smoke { whole / 10 } else { whole }
    }
}

pub(super) fn run(args: &IdleArgs) -> Result<Report, String> {
    allow_connections(u64::from(args.sessions() + BESIDE))?;
    let folder = args.folder.make()?;
    let options = args.server();
    let mut report = report_of("idle", &folder, &options)?;
    let server = Server::start(&folder.path().join("data"), &options)?;
    runtime(1)?.block_on(measure(args, &server, &mut report))?;
    server.stop()?;
    Ok(report)
}

async fn measure(args: &IdleArgs, server: &Server, report: &mut Report) -> Result<(), String> {
    let sessions = args.sessions();
    // One session and its queue before anything is measured: what the first of all costs is not what each
    // does.
    let client = connection(server.endpoint())?;
    let mut first = Waiting::open(&client, 1).await?;
    first.deliver(0).await?;
    drop(first);
    tokio::time::sleep(args.time(SETTLE)).await;
    let without = usage(server.pid())?;
    let began = Instant::now();
    let mut waiting = Waiting::open(&client, sessions).await?;
    report.figure("open_s", began.elapsed().as_secs_f64());
    tokio::time::sleep(args.time(SETTLE)).await;
    let with = usage(server.pid())?;
    tell_memory(sessions, &without, &with, report);
    let alone = args.time(LEFT_ALONE);
    tokio::time::sleep(alone).await;
    let cpu = usage(server.pid())?.cpu.saturating_sub(with.cpu);
    report.figure("server_cpu_share", cpu.as_secs_f64() / alone.as_secs_f64());
    tell_deliveries(&deliver_to_all(&mut waiting, sessions).await?, report);
    let delivered = waiting.close().await?;
    report.check_equal("messages delivered, each to the session of its queue", sessions.into(), delivered);
    Ok(())
}

fn tell_memory(sessions: u32, without: &Usage, with: &Usage, report: &mut Report) {
    let grown = with.rss_bytes.saturating_sub(without.rss_bytes);
    report.figure("memory_kib_per_session", grown as f64 / 1_024.0 / f64::from(sessions));
    report.figure("server_rss_mb", mib(with.rss_bytes));
    report.figure("peak_rss_mb", mib(with.peak_rss_bytes));
}

/// A message to each, one after the other, in an order in which neighbours do not follow each other.
async fn deliver_to_all(waiting: &mut Waiting, sessions: u32) -> Result<Histogram<u64>, String> {
    let mut times = histogram()?;
    // All numbers of so many bits in the order of their reversed bits, those left out that there are no
    // sessions for.
    let bits = sessions.next_power_of_two().trailing_zeros();
    let reversed = |number: u32| number.reverse_bits().checked_shr(u32::BITS - bits).unwrap_or(0);
    for session in (0..1 << bits).map(reversed).filter(|session| *session < sessions) {
        times.saturating_record(waiting.deliver(session).await?.as_nanos() as u64);
    }
    Ok(times)
}

fn tell_deliveries(times: &Histogram<u64>, report: &mut Report) {
    let us = |percent: f64| times.value_at_percentile(percent) as f64 / 1e3;
    report.figure("p50_us", us(50.0));
    report.figure("p99_us", us(99.0));
    report.figure("p99_9_us", us(99.9));
    report.figure("max_ms", times.max() as f64 / 1e6);
}
