//! Sends while a bulk moves many messages, against sends on the same server before it.
//!
//! The server is filled with messages that nobody works on. The load of the combined phase runs once, then
//! the bulk begins, and the load runs again; of that run those sends count that ended before the bulk did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use sluice_client::{Bulk, BulkFilter, Change, Client, Note, QueueChange};
use tempfile::TempDir;

use super::args::Settings;
use super::during::{fill_aside, load};
use super::phases::queue_name;
use crate::load::{Ledger, SendTime, connection};
use crate::report::Report;
use crate::server::Target;
use crate::table::{Table, figure};
use sluice_bench_rows::stats::percentile;

/// Messages that are moved.
const MOVED: u64 = 1_000_000;
/// Interval at which the server is asked whether the bulk change still runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Sends of a kind that are needed to tell its p99.
const SENDS_MIN: usize = 1_000;

pub(super) async fn run(settings: &Settings, folder: &TempDir, report: &mut Report) -> Result<(), String> {
    let target = settings.start(folder, 1)?;
    let admin = connection(target.endpoint())?;
    let messages = if settings.folder.smoke { MOVED / 100 } else { MOVED };
    fill_aside(&target, settings, messages).await?;
    let without = sends(&target, settings, &Arc::new(Ledger::new())).await?;
    let ledger = Arc::new(Ledger::new());
    let ended_ns = AtomicU64::new(u64::MAX);
    let (during, bulk) =
        tokio::try_join!(sends(&target, settings, &ledger), move_all(&admin, &ledger, &ended_ns))?;
    report.check("each message was acked exactly once", Ok(()));
    target.stop()?;
    if bulk.state != "done" || bulk.changed != messages {
        return Err(format!("the bulk is {} and has moved {} of {messages}", bulk.state, bulk.changed));
    }
    let ended_ns = ended_ns.load(Ordering::Relaxed);
    let during = during.into_iter().filter(|send| send.to_ns <= ended_ns).collect();
    tell(during, without, &bulk, report);
    Ok(())
}

/// The sends of one run of the load, each of whose messages was acked exactly once.
async fn sends(target: &Target, settings: &Settings, ledger: &Arc<Ledger>) -> Result<Vec<SendTime>, String> {
    let sends = load(target, settings, ledger, &Default::default()).await?;
    ledger.verify()?;
    Ok(sends)
}

/// Moves what waits to another queue, and notes when that has ended.
async fn move_all(admin: &Client, ledger: &Ledger, ended_ns: &AtomicU64) -> Result<Bulk, String> {
    let to = queue_name("moved");
    let told = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}");
    admin.queue_set(&to, &QueueChange::default(), true).await.map_err(|e| told("make a queue", &e))?;
    let filter = BulkFilter { queue: queue_name("waiting"), ..BulkFilter::default() };
    let id = admin.bulk_start(&Change::Move { to }, &filter, &Note::default(), false, None).await;
    let id = id.map_err(|e| told("begin a bulk", &e))?;
    loop {
        let bulk = admin.bulk(&id).await.map_err(|e| told("look at the bulk", &e))?;
        if !bulk.is_running() {
            ended_ns.store(ledger.now_ns(), Ordering::Relaxed);
            return Ok(bulk);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn tell(during: Vec<SendTime>, without: Vec<SendTime>, bulk: &Bulk, report: &mut Report) {
    let sorted = |sends: Vec<SendTime>| {
        let mut times: Vec<u64> = sends.iter().map(|send| send.to_ns - send.from_ns).collect();
        times.sort_unstable();
        times
    };
    let (during, without) = (sorted(during), sorted(without));
    let mut table = Table::new(&["sends", "count", "p50 ms", "p99 ms", "p99.9 ms", "largest ms"]);
    for (name, times) in [("during the bulk", &during), ("without", &without)] {
        let cells = [50.0, 99.0, 99.9, 100.0].map(|percent| figure(percentile(times, percent) as f64 / 1e6));
        table.row([name.to_owned(), figure(times.len() as f64)].into_iter().chain(cells).collect());
    }
    report.table("sends, each a request", table);
    let ms = |times: &[u64]| percentile(times, 99.0) as f64 / 1e6;
    report.figure("send_p99_ms_during_bulk", ms(&during));
    report.figure("send_p99_ms_without_bulk", ms(&without));
    if during.len().min(without.len()) < SENDS_MIN {
        report.note(format!(
            "fewer than {SENDS_MIN} sends of a kind: its p99 says little; run for longer with --seconds"
        ));
    } else {
        report.figure("send_p99_bulk_ratio", ms(&during) / ms(&without).max(1e-9));
    }
    let took_ms = bulk.ended_at_ms.unwrap_or(bulk.started_at_ms).saturating_sub(bulk.started_at_ms);
    report.row("during_bulk", json!({ "moved": bulk.changed, "took_ms": took_ms }));
    report.note(format!("{} messages moved in {} ms", figure(bulk.changed as f64), figure(took_ms as f64)));
}
