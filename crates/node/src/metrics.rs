//! Figures of a node, for `/metrics` and `/v1/status`.

use crate::api::{JournalStatus, NodeMetrics, ShardMetrics};
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
    ShardMetrics {
        counters: at.engine.totals(),
        queues: at.engine.queue_count(),
        waiting_receives: at.waiting as u64,
        consumers: at.engine.consumer_totals(),
        event_readers: at.event_readers as u64,
        mailbox: 0,
        epoch: at.engine.epoch(),
        // A journal in memory counts nothing itself.
        journal: JournalStatus {
            records: at.figures.records,
            batches: at.figures.batches,
            ..at.journal.status()
        },
    }
}
