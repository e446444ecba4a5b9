//! `sluice bench queue`: a server under load over HTTP, its client beside it on the same machine.
//!
//! Map: `args` what it can be told, `phases` send, work and combined on one server, `rows` other shapes of
//! load, `during` sends while snapshots and compaction run, `during_bulk` while many messages are moved.

mod args;
mod during;
mod during_bulk;
mod phases;
mod rows;

use sluice_client::Client;
use tempfile::TempDir;

use super::ReadCredentials;
use super::load::{Amount, connection, runtime};
use super::report::Report;
use super::server::Target;
pub(crate) use args::QueueArgs;
use args::{During, RowKind, Settings};
use phases::{QueueLoad, QueuePhases};
use sluice_bench_rows::stats::Samples;

pub(super) fn run(args: &QueueArgs, credentials: ReadCredentials) -> Result<Report, String> {
    let settings = Settings::of(args, credentials);
    let folder = settings.folder.make()?;
    let mut report = settings.target.report("queue", &folder, &settings.server(settings.shards))?;
    let runtime = runtime(settings.client_threads)?;
    runtime.block_on(measure(&settings, &folder, &mut report))?;
    Ok(report)
}

async fn measure(settings: &Settings, folder: &TempDir, report: &mut Report) -> Result<(), String> {
    if settings.during.is_some() && settings.target.is_elsewhere() {
        return Err("--during needs a server of its own, and goes not with --url".to_owned());
    }
    match settings.during {
        Some(During::Snapshot) => return during::run(settings, folder, report).await,
        Some(During::Bulk) => return during_bulk::run(settings, folder, report).await,
        None => {}
    }
    let target = settings.start(folder, settings.shards)?;
    let admin = connection(target.endpoint())?;
    let mut main = None;
    if settings.rows.contains(&RowKind::Main) {
        main = Some(measure_main(&target, &admin, settings, report).await?);
    }
    for kind in &settings.rows {
        rows::on_same_server(*kind, &target, folder.path(), &admin, settings, main.as_ref(), report).await?;
    }
    target.stop()?;
    if settings.rows.contains(&RowKind::Shards) {
        if settings.target.is_elsewhere() {
            report.note("the row with several shards needs servers of its own and was left out");
        } else {
            rows::shards(folder.path(), settings, report).await?;
        }
    }
    // Every phase fails when one message is not acked exactly once, so to have come here is the proof.
    report.check("each message was acked exactly once, and none was left", Ok(()));
    Ok(())
}

async fn measure_main(
    target: &Target,
    admin: &Client,
    settings: &Settings,
    report: &mut Report,
) -> Result<QueuePhases, String> {
    let shards = if settings.target.is_elsewhere() { 1 } else { settings.shards };
    let shape = QueueLoad { namespaces: rows::namespaces(admin, shards).await?, ..QueueLoad::of(settings) };
    if settings.warmup > 0 {
        let warm = QueueLoad { amount: Amount::Messages(settings.warmup), ..shape.clone() };
        phases::run(target, admin, &warm, settings.payload_bytes).await?;
    }
    let mut rounds = Vec::new();
    for _ in 0..settings.rounds {
        rounds.push(phases::run(target, admin, &shape, settings.payload_bytes).await?);
    }
    tell_main(&rounds, report);
    rounds.sort_by(|a, b| a.send.per_s().total_cmp(&b.send.per_s()));
    let median = rounds.swap_remove(rounds.len() / 2);
    let title = format!(
        "{} B, {} workers, batch {}, {} queue(s), {shards} shard(s)",
        settings.payload_bytes, settings.workers, settings.batch, settings.queues
    );
    rows::tell("main", &title, &median, report);
    Ok(median)
}

/// The figures under the documented names, each the median over the rounds.
fn tell_main(rounds: &[QueuePhases], report: &mut Report) {
    let median =
        |of: &dyn Fn(&QueuePhases) -> Option<f64>| rounds.iter().filter_map(of).collect::<Samples>().median();
    let combined = |of: fn(&super::load::Done) -> f64| median(&|phases| phases.combined.as_ref().map(of));
    report.figure("send_per_s", median(&|phases| Some(phases.send.per_s())));
    report.figure("work_per_s", median(&|phases| Some(phases.work.per_s())));
    report.figure("combined_per_s", combined(|done| done.per_s()));
    report.figure("p50_ms", combined(|done| done.ms(50.0)));
    report.figure("p99_ms", combined(|done| done.ms(99.0)));
    if rounds.iter().any(|phases| phases.server.is_some()) {
        report.figure("server_cpu_s", median(&|phases| Some(phases.server.as_ref()?.cpu_s)));
        report.figure("server_rss_mb", median(&|phases| Some(phases.server.as_ref()?.peak_rss_mb)));
        report.figure("fsyncs", median(&|phases| Some(phases.server.as_ref()?.journal.fsyncs as f64)));
        report.figure("log_bytes", median(&|phases| Some(phases.server.as_ref()?.journal.log_bytes as f64)));
    } else {
        report.note("the server is not ours: its processor time and memory are not known");
    }
}
