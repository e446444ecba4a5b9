//! `sluice bench crash`: `kill -9` under full load, again and again; and how long a start takes with much
//! waiting.
//!
//! The clients try nothing twice: a request that was answered counts as acknowledged, one that was not has an
//! unknown outcome, and both are possible then. At the end everything is received: what was acknowledged as
//! sent and never came is *lost*; what came although its ack had been acknowledged is *redelivered after
//! ack*. Neither may be.

mod clients;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sluice_client::{Backoff, BackoffKind, Client, QueueChange};

use super::load::{Amount, Ledger, Load, NUMBER_BYTES, connection, runtime};
use super::report::Report;
use super::server::{Server, ServerOptions};
use super::setup::FolderArgs;
use super::table::{Table, figure};
use clients::Crashing;
use sluice_bench_rows::stats::Samples;

/// Starts with much waiting, of which the median is told.
const RESTARTS: u32 = 3;
/// A lease that ends soon after a restart, so that the end need not wait long for what the dead had taken.
const LEASE_MS: u64 = 2_000;
/// A server runs for at least this long before it is killed.
const RUN_LEAST: Duration = Duration::from_millis(300);
/// And for up to so much longer.
const RUN_SPREAD_MS: u64 = 1_000;

/// Kills a server under full load, again and again, and looks for what it lost.
#[derive(clap::Args, Debug)]
pub struct CrashArgs {
    /// Times that the server is killed and started again.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    kills: u32,
    /// Loops that send, and as many that receive and ack.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    workers: u32,
    /// Messages in each request.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    batch: u32,
    /// Size of each payload in bytes, at least 16: it begins with the number of the message.
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(NUMBER_BYTES as i64..=1 << 20))]
    payload: u32,
    /// Durability of the server: `always`, `interval:1s`, `os`. All of them keep what a killed process has
    /// written; they differ when the machine loses power.
    #[arg(long, default_value = "always")]
    durability: String,
    /// Messages in the queue when the time of a restart is measured.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    waiting: u64,
    #[command(flatten)]
    folder: FolderArgs,
}

pub(super) fn run(args: &CrashArgs) -> Result<Report, String> {
    let folder = args.folder.make()?;
    let runtime = runtime(1)?;
    let options = ServerOptions::with_durability(&args.durability);
    let mut report = Report::new("crash", options.durability()).secured(options.security());
    let kills = if args.folder.smoke { args.kills.min(2) } else { args.kills };
    let waiting = if args.folder.smoke { args.waiting.min(20_000) } else { args.waiting };
    runtime.block_on(kill_again_and_again(
        args,
        kills,
        &options,
        &folder.path().join("kills"),
        &mut report,
    ))?;
    runtime.block_on(restart(args, waiting, &options, &folder.path().join("restart"), &mut report))?;
    Ok(report)
}

async fn kill_again_and_again(
    args: &CrashArgs,
    kills: u32,
    options: &ServerOptions,
    data: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let ledger = Arc::new(Ledger::new());
    let mut starts = Vec::new();
    for kill in 0..kills {
        let server = Server::start(data, options)?;
        if kill == 0 {
            create_queue(&connection(server.endpoint())?).await?;
        }
        starts.push(server.ready_after().as_secs_f64());
        let crashing = Crashing::new(&ledger, args.batch as usize, args.payload as usize);
        let load = crashing.start(server.endpoint(), args.workers as usize)?;
        tokio::time::sleep(run_for(kill)).await;
        crashing.server_dies();
        server.kill()?;
        load.join().await?;
    }
    let server = Server::start(data, options)?;
    starts.push(server.ready_after().as_secs_f64());
    let crashing = Crashing::new(&ledger, args.batch as usize, args.payload as usize);
    crashing.drain(server.endpoint(), args.workers as usize).await?;
    check_queue(&connection(server.endpoint())?, report).await?;
    server.stop()?;
    tell(&ledger, kills, &starts.into_iter().collect(), report);
    Ok(())
}

/// Spread evenly and the same each time; where in its work the server is hit differs by itself.
fn run_for(kill: u32) -> Duration {
    RUN_LEAST + Duration::from_millis(u64::from(kill) * 617 % RUN_SPREAD_MS)
}

async fn create_queue(client: &Client) -> Result<(), String> {
    let change = QueueChange {
        lease_ms: Some(LEASE_MS),
        max_attempts: Some(10_000),
        max_deliveries: Some(10_000),
        backoff: Some(Backoff { kind: BackoffKind::None, base_ms: 0, cap_ms: 0, jitter_percent: 0 }),
        ..QueueChange::default()
    };
    let created = client.queue_set(clients::QUEUE, &change, true).await;
    created.map(drop).map_err(|error| format!("cannot create a queue: {error}"))
}

async fn check_queue(client: &Client, report: &mut Report) -> Result<(), String> {
    let queue =
        client.queue(clients::QUEUE).await.map_err(|error| format!("cannot look at the queue: {error}"))?;
    let counts = queue.counts;
    let left = counts.ready + counts.delayed + counts.leased + counts.held + counts.dead;
    report.check_equal("messages left, or dead, after all were received", 0, left);
    Ok(())
}

fn tell(ledger: &Ledger, kills: u32, starts: &Samples, report: &mut Report) {
    let (lost, redelivered) = (ledger.lost(), ledger.given_after_ack());
    let mut table = Table::new(&["kills", "sends acknowledged", "acks acknowledged", "start s (median)"]);
    table.row(vec![
        figure(f64::from(kills)),
        figure(ledger.sent_count() as f64),
        figure(ledger.acked_count() as f64),
        figure(starts.median()),
    ]);
    report.table("kill -9 under full load", table);
    report.row(
        "kills",
        json!({
            "kills": kills, "sends_acknowledged": ledger.sent_count(), "acks_acknowledged": ledger.acked_count(),
            "start_s": starts.median(),
        }),
    );
    if ledger.acked_count() > ledger.sent_count() {
        report.note(
            "more acks than sends were acknowledged: a send whose answer a kill took may have been stored, and is \
             received and acked, too",
        );
    }
    report.figure("lost", lost as f64);
    report.figure("redelivered_after_ack", redelivered as f64);
    report.check_equal("acknowledged messages lost", 0, lost);
    report.check_equal("messages redelivered after an acknowledged ack", 0, redelivered);
    report.check_equal("messages that nobody sent", 0, ledger.foreign());
    let moved = if ledger.sent_count() > 0 { Ok(()) } else { Err("no send was acknowledged".to_owned()) };
    report.check("there was a load", moved);
}

/// The time from starting the program until it serves, with messages waiting and the process before it
/// killed.
async fn restart(
    args: &CrashArgs,
    waiting: u64,
    options: &ServerOptions,
    data: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let mut server = Server::start(data, options)?;
    let ledger = Arc::new(Ledger::new());
    let queues = [clients::QUEUE.to_owned()];
    let load = Load::new(server.endpoint(), &[], &queues, args.workers as usize, 500, args.payload as usize)?;
    load.send(&ledger, Amount::Messages(waiting)).await?;
    let mut starts = Vec::new();
    for _ in 0..RESTARTS {
        server.kill()?;
        server = Server::start(data, options)?;
        starts.push(server.ready_after().as_secs_f64());
    }
    let client = connection(server.endpoint())?;
    let queue =
        client.queue(clients::QUEUE).await.map_err(|error| format!("cannot look at the queue: {error}"))?;
    report.check_equal("messages waiting after a restart", waiting, queue.counts.ready);
    server.stop()?;
    let starts: Samples = starts.into_iter().collect();
    report.figure("restart_s_1e6", starts.median());
    if waiting != 1_000_000 {
        report.note(format!("restart_s_1e6 is with {waiting} messages waiting instead of 1,000,000"));
    }
    Ok(())
}
