//! `sluice bench flood`: bad connections while others work. The load of `bench stream` runs at half its rate,
//! over mutual TLS; then it runs so again while many connections are made that never come to an end of their
//! handshake, or send what is none.
//!
//! Map: `attackers` those connections.

mod attackers;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sluice_client::Client;
use sluice_units::parse_duration;

use super::files::allow_connections;
use super::load::{Amount, Done, Ledger, connection, runtime};
use super::process::{mib, reset_peak, usage};
use super::report::Report;
use super::server::{Server, ServerOptions, counter};
use super::setup::{FolderArgs, report_of};
use super::stream::{Rate, SessionLoad, SessionRun, combined, paced};
use super::table::{Table, figure};
use attackers::{Ended, Kind};

/// The load, as `bench stream` has it.
const SESSIONS: usize = 8;
const BATCH: usize = 64;
const WINDOW: usize = 512;
const PAYLOAD_BYTES: usize = 128;
const QUEUE: &str = "flood";
/// Counts the connections that came to no TLS.
const FAILED: &str = "sluice_http_handshakes_failed_total";
/// Duration of the measurement at full rate.
const FULL_FOR: Duration = Duration::from_secs(3);
/// Time for which the load continues after the last deadline of a bad connection.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// The server closes within its deadline; a busy machine may see that a little later.
const SLACK: Duration = Duration::from_secs(2);
/// So small that it is full long before the memory is looked at: else payloads would be taken for what the
/// flood costs.
const CACHE: &str = "--cache=8MiB";

/// Measures what bad handshakes do to the work of others.
#[derive(clap::Args, Clone, Debug)]
pub struct FloodArgs {
    /// Connections with a bad handshake, opened at the same time.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    connections: u32,
    /// Time after which the server closes a connection whose handshake is not complete.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    handshake_timeout: Duration,
    /// Durability of the server: `always` (sync before each reply), `interval:1s`, or `os` (no sync).
    #[arg(long, default_value = "os")]
    durability: String,
    #[command(flatten)]
    folder: FolderArgs,
}

/// The arguments as they are used.
struct Settings {
    connections: u32,
    handshake_timeout: Duration,
    full_for: Duration,
    server: ServerOptions,
}

impl Settings {
    fn of(args: &FloodArgs) -> Settings {
        let smoke = args.folder.smoke;
        let handshake_timeout = if smoke { Duration::from_secs(1) } else { args.handshake_timeout };
        let connections = if smoke { args.connections.min(100) } else { args.connections };
        let flags = vec![
            format!("--tls-handshake-timeout={}ms", handshake_timeout.as_millis()),
            format!("--http-connections={}", connections + 128),
            CACHE.to_owned(),
        ];
        let server = ServerOptions { tls: true, flags, ..ServerOptions::with_durability(&args.durability) };
        let full_for = if smoke { FULL_FOR / 10 } else { FULL_FOR };
        Settings { connections, handshake_timeout, full_for, server }
    }

    /// Duration of each part at a constant rate: as long as a bad connection can last.
    fn paced_for(&self) -> Duration {
        self.handshake_timeout + AFTERWARDS
    }
}

pub(super) fn run(args: &FloodArgs) -> Result<Report, String> {
    let settings = Settings::of(args);
    allow_connections(u64::from(settings.connections))?;
    let folder = args.folder.make()?;
    let mut report = report_of("flood", &folder, &settings.server)?;
    let server = Server::start(&folder.path().join("data"), &settings.server)?;
    runtime(1)?.block_on(measure(&settings, &server, &mut report))?;
    server.stop()?;
    Ok(report)
}

/// The load and its queue.
struct FloodLoad<'c> {
    client: &'c Client,
    ledger: Arc<Ledger>,
}

impl FloodLoad<'_> {
    fn run(&self, duration: Duration) -> Arc<SessionRun> {
        let amount = Amount::For(duration);
        let shape = SessionLoad {
            sessions: SESSIONS,
            batch: BATCH,
            window: WINDOW,
            payload_bytes: PAYLOAD_BYTES,
            amount,
        };
        SessionRun::new(self.client, QUEUE, &self.ledger, &shape, amount)
    }
}

async fn measure(settings: &Settings, server: &Server, report: &mut Report) -> Result<(), String> {
    let client = connection(server.endpoint())?;
    let load = FloodLoad { client: &client, ledger: Arc::new(Ledger::new()) };
    let half = combined(&load.run(settings.full_for)).await?.per_s() / 2.0;
    let rate = Rate { per_s: half, duration: settings.paced_for() };
    let quiet = paced(&load.run(rate.duration), rate).await?.delivery;
    let (failed_before, before) = (counter(&client, FAILED).await?, usage(server.pid())?);
    reset_peak(server.pid())?;
    let flooding =
        attackers::start(server.endpoint(), settings.connections, settings.handshake_timeout + SLACK)?;
    let flooded = paced(&load.run(rate.duration), rate).await?.delivery;
    let ended = flooding.join()?;
    let after = usage(server.pid())?;
    let failed = counter(&client, FAILED).await? - failed_before;
    load.ledger.verify()?;
    report.check("each message was acked exactly once", Ok(()));
    tell_rates(half, &quiet, &flooded, report);
    let grown = after.peak_rss_bytes.saturating_sub(before.rss_bytes);
    report.figure("memory_mb", mib(grown));
    report.figure("memory_kib_per_connection", grown as f64 / 1_024.0 / f64::from(settings.connections));
    tell_ended(settings, &ended, report);
    report.check_equal("handshakes that failed, by the server's count", settings.connections.into(), failed);
    Ok(())
}

fn tell_rates(half: f64, quiet: &Done, flooded: &Done, report: &mut Report) {
    let mut table = Table::new(&["the load at half its rate", "messages/s", "p50 ms", "p99 ms", "p99.9 ms"]);
    for (name, key, done) in [("alone", "alone", quiet), ("beside the flood", "flooded", flooded)] {
        let times = [50.0, 99.0, 99.9].map(|percent| done.ms(percent));
        table.row([vec![name.to_owned(), figure(done.per_s())], times.map(figure).to_vec()].concat());
        report.row(
            key,
            json!({ "per_s": done.per_s(), "p50_ms": times[0], "p99_ms": times[1], "p99_9_ms": times[2] }),
        );
    }
    report.table("times from send to delivery", table);
    report.figure("half_rate_per_s", half);
    report.figure("alone_per_s", quiet.per_s());
    report.figure("per_s", flooded.per_s());
    report.figure("rate_ratio", flooded.per_s() / quiet.per_s().max(1e-9));
    report.figure("p99_us", flooded.ms(99.0) * 1e3);
}

fn tell_ended(settings: &Settings, ended: &[Ended], report: &mut Report) {
    let mut table = Table::new(&["bad connections", "number", "closed after s, at most"]);
    for kind in Kind::ALL {
        let of_kind = ended.iter().filter(|ended| ended.kind == kind);
        let closed = of_kind.clone().filter_map(|ended| ended.closed_after).max().unwrap_or_default();
        let seconds = closed.as_secs_f64();
        table.row(vec![kind.name().to_owned(), figure(of_kind.count() as f64), figure(seconds)]);
        report.row(kind.name(), json!({ "closed_after_s_max": seconds }));
    }
    report.table(&format!("closed by the server, whose deadline is {:?}", settings.handshake_timeout), table);
    let closed: Vec<Duration> = ended.iter().filter_map(|ended| ended.closed_after).collect();
    report.figure("closed_after_s_max", closed.iter().max().map_or(0.0, Duration::as_secs_f64));
    report.check_equal(
        "bad connections closed by their deadline",
        settings.connections.into(),
        closed.len() as u64,
    );
}
