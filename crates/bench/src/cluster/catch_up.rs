//! A node that missed a part of a store catches up while the load goes on: at which rate, how much is sent
//! for that, and what it does to the load.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::json;
use sluice_client::Client;
use tokio::task::spawn_blocking;

use crate::load::{Amount, Ledger, Load, connection, histogram};
use crate::nodes::Nodes;
use crate::report::Report;
use crate::server::JournalFigures;
use crate::stream::queue_name;
use crate::table::{Table, figure};

/// Size of the payloads of the store, in bytes.
const PAYLOAD_BYTES: usize = 16 << 10;
/// Messages of the store in one send.
const BATCH: usize = 64;
/// Clients that fill the store.
const FILLERS: usize = 2;
/// Size of the payloads of the load, and messages in one of its sends.
const LOAD_PAYLOAD_BYTES: usize = 128;
const LOAD_BATCH: usize = 64;
/// Time of the load before the node fails.
const BEFORE: Duration = Duration::from_secs(20);
/// Time after which the load looks whether it is to end.
const LOAD_TURN: Duration = Duration::from_millis(500);
/// Pause between two looks at how far the node is behind.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Log that a node is behind at most when it has caught up, in bytes: what the load has on its way.
const BEHIND_BYTES: u64 = 1 << 20;
/// Time within which a node must catch up.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(600);

/// Sizes of a run, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Payloads that all nodes have before one fails.
    pub(super) store: u64,
    /// Payloads that it misses.
    pub(super) missed: u64,
}

/// Measurements of one run.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Log that the leader wrote while the node was away, in bytes.
    missed_bytes: u64,
    /// Bytes sent to it until it had caught up.
    sent_bytes: f64,
    seconds: f64,
    p99_before_ms: f64,
    p99_ms: f64,
}

/// A load of sends: its times, the messages, and the bytes that this machine sent to itself meanwhile.
#[derive(Debug)]
struct Loaded {
    times: Histogram<u64>,
    messages: u64,
    bytes: u64,
}

/// Fills a cluster in a folder that does not exist, kills a follower while more is sent, and starts it again
/// under load. Tells how it catches up.
pub(super) async fn measure(
    folder: &Path,
    durability: &str,
    sizes: Sizes,
    smoke: bool,
    report: &mut Report,
) -> Result<(), String> {
    let mut nodes = Nodes::start(folder, durability, 1)?;
    let leader = nodes.leader().await?;
    let (away, number) = (nodes.after(leader), nodes.number_after(leader));
    let to = nodes.endpoint(leader).clone();
    let admin = connection(&to)?;
    let (queues, ledger) = ([queue_name()], Arc::new(Ledger::new()));
    let filler = Load::new(&to, &[], &queues, FILLERS, BATCH, PAYLOAD_BYTES)?;
    let load = Load::new(&to, &[], &queues, 1, LOAD_BATCH, LOAD_PAYLOAD_BYTES)?;

    fill(&filler, &ledger, sizes.store).await?;
    let before = loaded(&load, &ledger, &AtomicBool::new(false), BEFORE / if smoke { 20 } else { 1 }).await?;
    let log_before = JournalFigures::of(&admin).await?;
    nodes.kill(away)?;
    fill(&filler, &ledger, sizes.missed).await?;
    let missed_bytes = JournalFigures::of(&admin).await?.since(&log_before).log_bytes;

    let started = spawn_blocking(move || nodes.start_missing().map(|()| nodes));
    let nodes = started.await.map_err(|error| format!("the start of a node failed: {error}"))??;
    let caught_up = AtomicBool::new(false);
    let catching = async {
        let seconds = catch_up(&admin, number).await;
        caught_up.store(true, Ordering::Relaxed);
        seconds
    };
    let (seconds, under) = tokio::join!(catching, loaded(&load, &ledger, &caught_up, CAUGHT_UP_WITHIN));
    let (seconds, under) = (seconds?, under?);
    let of_load = before.bytes as f64 / before.messages.max(1) as f64 * under.messages as f64;
    let found = Found {
        missed_bytes,
        sent_bytes: under.bytes as f64 - of_load,
        seconds,
        p99_before_ms: p99_ms(&before.times),
        p99_ms: p99_ms(&under.times),
    };
    tell(&found, report);
    let left = admin.queue_delete(&queues[0]).await.map_err(|error| error.to_string())?;
    report.check_equal("messages that were acknowledged, and are in the queue", ledger.sent_count(), left);
    nodes.stop()
}

async fn fill(filler: &Load, ledger: &Arc<Ledger>, bytes: u64) -> Result<(), String> {
    filler.send(ledger, Amount::Messages(bytes.div_ceil(PAYLOAD_BYTES as u64))).await.map(drop)
}

/// Sends until told to end, or for this time.
async fn loaded(
    load: &Load,
    ledger: &Arc<Ledger>,
    ends: &AtomicBool,
    at_most: Duration,
) -> Result<Loaded, String> {
    let (began, bytes) = (Instant::now(), loopback_bytes()?);
    let (mut times, mut messages) = (histogram()?, 0);
    while !ends.load(Ordering::Relaxed) && began.elapsed() < at_most {
        let done = load.send(ledger, Amount::For(LOAD_TURN.min(at_most))).await?;
        times.add(done.times).map_err(|error| error.to_string())?;
        messages += done.messages;
    }
    Ok(Loaded { times, messages, bytes: loopback_bytes()? - bytes })
}

/// Waits until the leader knows that a node has nearly all of its log. The time in seconds.
async fn catch_up(leader: &Client, node: u64) -> Result<f64, String> {
    let began = Instant::now();
    while began.elapsed() < CAUGHT_UP_WITHIN {
        let page = leader.metrics().await.map_err(|error| format!("cannot ask for /metrics: {error}"))?;
        if behind_bytes(&page, node).is_some_and(|behind| behind <= BEHIND_BYTES) {
            return Ok(began.elapsed().as_secs_f64());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(format!("node {node} has not caught up within {CAUGHT_UP_WITHIN:?}"))
}

/// Bytes that a follower is behind, as a page of figures tells; `None`: it does not tell.
fn behind_bytes(page: &str, node: u64) -> Option<u64> {
    let label = format!("node=\"{node}\"");
    let lines = page.lines().filter_map(|line| line.strip_prefix("sluice_replica_behind_bytes{"));
    let (_, value) = lines.filter(|line| line.contains(&label)).find_map(|line| line.split_once("} "))?;
    value.trim().parse().ok()
}

/// Bytes that this machine has sent to itself since it started.
fn loopback_bytes() -> Result<u64, String> {
    let path = "/proc/self/net/dev";
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    received_by("lo", &text).ok_or_else(|| format!("{path} does not tell of the interface lo"))
}

/// The first figure of an interface: the bytes that it has received.
fn received_by(interface: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn p99_ms(times: &Histogram<u64>) -> f64 {
    times.value_at_percentile(99.0) as f64 / 1e6
}

fn tell(found: &Found, report: &mut Report) {
    let mb = |bytes: f64| bytes / 1e6;
    let missed = found.missed_bytes as f64;
    let (mb_per_s, ratio) = (mb(missed) / found.seconds.max(1e-9), found.sent_bytes / missed.max(1.0));
    let mut table = Table::new(&["missed MB", "sent MB", "seconds", "p99 of sends before, ms", "p99, ms"]);
    let cells = [mb(missed), mb(found.sent_bytes), found.seconds, found.p99_before_ms, found.p99_ms];
    table.row(cells.map(figure).to_vec());
    report.table("a node that missed a part of the store catches up under load", table);
    report.row(
        "catch_up",
        json!({ "missed_bytes": found.missed_bytes, "sent_bytes": found.sent_bytes, "seconds": found.seconds,
            "p99_before_ms": found.p99_before_ms, "p99_ms": found.p99_ms }),
    );
    report.figure("catch_up_mb_per_s", mb_per_s);
    report.figure("catch_up_sent_ratio", ratio);
    report.figure("catch_up_p99_ratio", found.p99_ms / found.p99_before_ms.max(1e-9));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_is_found_among_the_figures() {
        let page = "# TYPE sluice_replica_behind_bytes gauge\n\
            sluice_replica_behind_bytes{shard=\"0\",node=\"2\"} 0\n\
            sluice_replica_behind_bytes{shard=\"0\",node=\"3\"} 1234\n";
        assert_eq!((behind_bytes(page, 3), behind_bytes(page, 2)), (Some(1234), Some(0)));
        assert_eq!(behind_bytes(page, 1), None);
    }

    #[test]
    fn an_interface_is_found_by_its_whole_name() {
        let text = "Inter-|   Receive\n face |bytes    packets\n  lo0: 5 1\n    lo: 77021 3 0\n  eth0: 9 1\n";
        assert_eq!(received_by("lo", text), Some(77_021));
        assert_eq!(received_by("wlan", text), None);
    }
}
