//! Sends while snapshots and compaction run, against sends while they do not.
//!
//! The server is filled first, so that a snapshot takes a while. Then the load of the combined phase runs,
//! and every send is noted with its time. Beside it the server is asked all the while whether a snapshot is
//! running and how much compaction has copied; a send that overlaps a moment in which either was so counts as
//! disturbed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use sluice_client::Client;
use tempfile::TempDir;

use super::args::Settings;
use super::phases::queue_name;
use crate::load::{Amount, Ledger, Load, SendTime, connection};
use crate::process::mib;
use crate::report::Report;
use crate::server::{JournalFigures, Target};
use crate::table::{Table, figure};
use sluice_bench_rows::stats::{Samples, percentile};

/// Messages that wait while it is measured.
const FILL: u64 = 500_000;
/// Interval at which the server is asked for its state.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Sends of a kind that are needed to tell its p99.9.
const SENDS_MIN: usize = 2_000;

/// The state of the server at one moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    figures: JournalFigures,
    rss_bytes: u64,
}

/// A stretch of time in which the server was busy with itself, or not.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Window {
    from_ns: u64,
    to_ns: u64,
    busy: bool,
    rss_bytes: u64,
}

pub(super) async fn run(settings: &Settings, folder: &TempDir, report: &mut Report) -> Result<(), String> {
    let target = settings.start(folder, 1)?;
    let admin = connection(target.endpoint())?;
    let fill = if settings.folder.smoke { FILL / 50 } else { FILL };
    fill_aside(&target, settings, fill).await?;
    let ledger = Arc::new(Ledger::new());
    let stop = Arc::new(AtomicBool::new(false));
    let (sends, looks) =
        tokio::try_join!(load(&target, settings, &ledger, &stop), look(&target, &admin, &ledger, &stop))?;
    ledger.verify()?;
    report.check("each message was acked exactly once", Ok(()));
    target.stop()?;
    tell(&sends, &windows(&looks), &looks, report);
    Ok(())
}

/// Messages in a queue of their own that nobody works on.
pub(super) async fn fill_aside(target: &Target, settings: &Settings, messages: u64) -> Result<(), String> {
    let queue = vec![queue_name("waiting")];
    let load = Load::new(target.endpoint(), &[], &queue, settings.workers, 500, settings.payload_bytes)?;
    load.send(&Arc::new(Ledger::new()), Amount::Messages(messages)).await.map(drop)
}

pub(super) async fn load(
    target: &Target,
    settings: &Settings,
    ledger: &Arc<Ledger>,
    stop: &AtomicBool,
) -> Result<Vec<SendTime>, String> {
    let queue = vec![queue_name("load")];
    let load = || {
        Load::new(target.endpoint(), &[], &queue, settings.workers, settings.batch, settings.payload_bytes)
    };
    let (senders, workers) = (load()?, load()?);
    ledger.note_sends();
    let done = senders.combined(&workers, ledger, settings.amount, settings.in_flight).await;
    stop.store(true, Ordering::Relaxed);
    done.map(|_| ledger.noted_sends())
}

async fn look(
    target: &Target,
    admin: &Client,
    ledger: &Ledger,
    stop: &AtomicBool,
) -> Result<Vec<Look>, String> {
    let mut looks = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let figures = JournalFigures::of(admin).await?;
        let rss_bytes = target.usage()?.map_or(0, |usage| usage.rss_bytes);
        looks.push(Look { at_ns: ledger.now_ns(), figures, rss_bytes });
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(looks)
}

/// The time between two looks is busy when a snapshot was seen running at either, or was finished between
/// them, or compaction copied something between them.
fn windows(looks: &[Look]) -> Vec<Window> {
    let window = |pair: &[Look]| {
        let (before, after) = (&pair[0], &pair[1]);
        let moved = after.figures.since(&before.figures);
        Window {
            from_ns: before.at_ns,
            to_ns: after.at_ns,
            busy: before.figures.snapshot_running
                || after.figures.snapshot_running
                || moved.snapshots > 0
                || moved.compacted_bytes > 0,
            rss_bytes: before.rss_bytes.max(after.rss_bytes),
        }
    };
    looks.windows(2).map(window).collect()
}

/// True when a send overlaps a busy window. Windows follow one another without gaps.
fn is_disturbed(send: &SendTime, windows: &[Window]) -> bool {
    let first = windows.partition_point(|window| window.to_ns <= send.from_ns);
    windows[first..].iter().take_while(|window| window.from_ns < send.to_ns).any(|window| window.busy)
}

fn tell(sends: &[SendTime], windows: &[Window], looks: &[Look], report: &mut Report) {
    let (mut during, mut without) = (Vec::new(), Vec::new());
    for send in sends {
        let times = if is_disturbed(send, windows) { &mut during } else { &mut without };
        times.push(send.to_ns - send.from_ns);
    }
    during.sort_unstable();
    without.sort_unstable();
    let mut table = Table::new(&["sends", "count", "p50 ms", "p99 ms", "p99.9 ms", "largest ms"]);
    for (name, times) in [("during snapshots and compaction", &during), ("without", &without)] {
        let cells = [50.0, 99.0, 99.9, 100.0].map(|percent| figure(percentile(times, percent) as f64 / 1e6));
        table.row([name.to_owned(), figure(times.len() as f64)].into_iter().chain(cells).collect());
    }
    report.table("sends, each a request", table);
    let ms = |times: &[u64]| percentile(times, 99.9) as f64 / 1e6;
    report.figure("send_p99_9_ms_during_snapshot", ms(&during));
    report.figure("send_p99_9_ms_without_snapshot", ms(&without));
    if during.len().min(without.len()) < SENDS_MIN {
        report.note(format!(
            "fewer than {SENDS_MIN} sends of a kind: its p99.9 says little; run for longer with --seconds"
        ));
    } else {
        report.figure("send_p99_9_ratio", ms(&during) / ms(&without).max(1e-9));
    }
    let rss = |busy: bool| windows.iter().filter(move |window| window.busy == busy).map(|w| mib(w.rss_bytes));
    let (steady, peak) = (rss(false).collect::<Samples>().median(), rss(true).fold(0.0, f64::max));
    if let (Some(first), Some(last)) = (looks.first(), looks.last()) {
        let moved = last.figures.since(&first.figures);
        report.row(
            "during_snapshot",
            json!({
                "snapshots": moved.snapshots, "compacted_bytes": moved.compacted_bytes,
                "rss_mb_without": steady, "peak_rss_mb_during": peak,
                "rss_ratio": if steady > 0.0 { peak / steady } else { 0.0 },
            }),
        );
        report.note(format!(
            "{} snapshots, {} bytes copied by compaction; memory {} MiB without (median), at most {} MiB during",
            moved.snapshots,
            figure(moved.compacted_bytes as f64),
            figure(steady),
            figure(peak)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at_ns: u64, snapshot_running: bool, compacted_bytes: u64) -> Look {
        let figures = JournalFigures { snapshot_running, compacted_bytes, ..JournalFigures::default() };
        Look { at_ns, figures, rss_bytes: 1 }
    }

    #[test]
    fn a_send_is_disturbed_by_what_it_overlaps() {
        let looks = [
            look(0, false, 0),
            look(10, false, 0),
            look(20, true, 0),
            look(30, false, 0),
            look(40, false, 5),
        ];
        let windows = windows(&looks);
        assert_eq!(windows.iter().map(|w| w.busy).collect::<Vec<_>>(), [false, true, true, true]);
        let disturbed = |from_ns, to_ns| is_disturbed(&SendTime { from_ns, to_ns }, &windows);
        assert!(!disturbed(1, 10));
        assert!(disturbed(1, 11));
        assert!(disturbed(12, 13));
        assert!(!disturbed(50, 60));
    }
}
