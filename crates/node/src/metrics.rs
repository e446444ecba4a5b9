//! Figures of a node, for `/metrics` and `/v1/status`.

use crate::api::{NodeMetrics, ShardMetrics};
use crate::handle::Node;
use crate::shard::request::Looking;

impl Node {
    /// Figures of every shard; a shard that is stopping is left out.
    pub async fn metrics(&self) -> NodeMetrics {
        let mut shards = Vec::new();
        for (number, mailbox) in self.inner.mailboxes.iter().enumerate() {
            if let Ok(mut figures) = self.look(number as u32, figures).await {
                figures.mailbox = mailbox.len() as u64;
                shards.push(figures);
            }
        }
        NodeMetrics { shards }
    }
}

fn figures(at: &mut Looking<'_>) -> ShardMetrics {
    let status = at.journal.status();
    ShardMetrics {
        counters: at.engine.totals(),
        queues: at.engine.queue_count(),
        waiting_receives: at.waiting as u64,
        mailbox: 0,
        records: at.figures.records,
        batches: at.figures.batches,
        log_bytes: status.log_bytes,
        fsyncs: status.fsyncs,
        disk_bytes: status.disk_bytes,
        disk_free_bytes: status.disk_free_bytes,
        segments: status.segments,
        snapshots: status.snapshots,
        snapshot_running: status.snapshot_running,
        compacted_bytes: status.compacted_bytes,
        damaged_blobs: status.damaged_blobs,
        cache_bytes: status.cache_bytes,
        cache_misses: status.cache_misses,
        epoch: at.engine.epoch(),
        disk_full: status.full,
        disk_low: status.low,
    }
}
