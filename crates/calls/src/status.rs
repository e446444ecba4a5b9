//! The status of the server and its shards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_node::api::ShardMetrics;

use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::queues::Counts;
use crate::time::now_ms;

/// The status to show.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "StatusRequest")]
pub struct Show {}

/// The status of the server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "version": "0.1.0", "started_at_ms": AT_MS_EXAMPLE, "uptime_ms": 5, "durability": "always", "ready": true,
    "shards": [],
}))]
pub struct Status {
    /// Version of the program.
    version: String,
    /// When it started, in milliseconds since the Unix epoch.
    started_at_ms: u64,
    /// Time since it started, in milliseconds.
    uptime_ms: u64,
    /// The durability setting that it runs with.
    durability: String,
    /// True when requests are served.
    ready: bool,
    /// Figures of each shard; a shard that is stopping is left out.
    shards: Vec<Shard>,
}

/// Figures of a shard; totals count from its start.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Shard {
    /// Its number.
    shard: u64,
    /// Number of its start: one more with each.
    epoch: u64,
    /// True when this node leads the shard; else its figures may be behind those of the node that does.
    leads: bool,
    /// Queues, without those that the server keeps for itself.
    queues: u64,
    /// Messages by state, without those that the server keeps for itself.
    counts: Counts,
    /// Bytes of content types, headers and payloads of these messages.
    bytes: u64,
    /// Receives that wait for a message.
    waiting_receives: u64,
    /// Transactions over several namespaces that are in doubt: prepared or decided, and not finished.
    in_doubt: u64,
    /// Age of the oldest of them, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_doubt_oldest_age_ms: Option<u64>,
    /// Requests that wait for the shard.
    mailbox: u64,
    /// Records committed to the journal.
    records: u64,
    /// Batches of records committed to the journal.
    batches: u64,
    /// Bytes written to the log of the journal, headers included.
    log_bytes: u64,
    /// Syncs of the journal's files.
    fsyncs: u64,
    /// Bytes that the journal's files take.
    disk_bytes: u64,
    /// Bytes free on the disk, as last seen.
    disk_free_bytes: u64,
    /// True when what would take more room on the disk is refused.
    disk_full: bool,
    /// True when the free space is below the low-water mark.
    disk_low: bool,
    /// Segments that were not ready when the log needed them, so that it had to wait for them.
    late_segments: u64,
    /// Segments of the journal, those of compaction included.
    segments: u64,
    /// Snapshots taken.
    snapshots: u64,
    /// True when a snapshot is being taken.
    snapshot_running: bool,
    /// Bytes that compaction has copied.
    compacted_bytes: u64,
    /// Stored payloads whose checksum was wrong when they were read.
    damaged_blobs: u64,
    /// Bytes in the cache of stored payloads.
    cache_bytes: u64,
    /// Reads of stored payloads that had to go to the disk.
    cache_misses: u64,
}

impl Shard {
    fn new(shard: usize, figures: &ShardMetrics) -> Shard {
        let journal = &figures.journal;
        Shard {
            shard: shard as u64,
            epoch: figures.epoch,
            leads: figures.leads,
            queues: figures.queues,
            counts: Counts::from(&figures.counters),
            bytes: figures.counters.bytes,
            waiting_receives: figures.waiting_receives,
            in_doubt: figures.in_doubt.count,
            in_doubt_oldest_age_ms: figures.in_doubt_oldest_ms(),
            mailbox: figures.mailbox,
            records: journal.records,
            batches: journal.batches,
            log_bytes: journal.log_bytes,
            fsyncs: journal.fsyncs,
            disk_bytes: journal.disk_bytes,
            disk_free_bytes: journal.disk_free_bytes,
            disk_full: journal.full,
            disk_low: journal.low,
            late_segments: journal.late_segments,
            segments: journal.segments,
            snapshots: journal.snapshots,
            snapshot_running: journal.snapshot_running,
            compacted_bytes: journal.compacted_bytes,
            damaged_blobs: journal.damaged_blobs,
            cache_bytes: journal.cache_bytes,
            cache_misses: journal.cache_misses,
        }
    }
}

impl Unary for Show {
    type Answer = Status;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Status>, CallError> {
        let metrics = permit.node().metrics().await;
        let (calls, started_at_ms) = (permit.calls(), permit.calls().started_at_ms());
        let status = Status {
            version: calls.about().version.clone(),
            started_at_ms,
            uptime_ms: now_ms().saturating_sub(started_at_ms),
            durability: calls.about().durability.clone(),
            ready: permit.node().ready(),
            shards: metrics.shards.iter().enumerate().map(|(shard, of)| Shard::new(shard, of)).collect(),
        };
        Ok(status.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::to_value;

    use super::*;
    use crate::operation::Operation;
    use crate::testing::Open;

    #[tokio::test]
    async fn the_status_has_figures_of_each_shard() {
        let server = Open::new();
        let permit = server.permit(Operation::Status, "");
        let status = to_value(Show {}.run(&permit).await.unwrap().answer).unwrap();
        assert_eq!((status["ready"].as_bool(), status["shards"].as_array().unwrap().len()), (Some(true), 1));
        assert_eq!(status["shards"][0]["counts"]["ready"], 0);
        assert_eq!(status["shards"][0]["leads"], true);
    }
}
