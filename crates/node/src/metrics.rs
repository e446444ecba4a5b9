//! Metrics of a node, for `/metrics` and `/v1/status`.

use sluice_engine::NamespaceId;

use crate::api::{JournalStatus, NodeMetrics, ShardDamage, ShardMetrics};
use crate::directory::aside_dir;
use crate::handle::Node;
use crate::shard::request::ShardView;

impl Node {
    /// Metrics of every shard, as this node has its state; a shard that is stopping is left out.
    pub async fn metrics(&self) -> NodeMetrics {
        let (node, mut shards) = (self.stale(), Vec::new());
        for (number, (mailbox, leader)) in self.inner.mailboxes.iter().zip(self.leaders()).enumerate() {
            if let Ok(mut figures) = node.look_in_turn(number as u32, figures).await {
                figures.leads = leader.is_here();
                figures.mailbox = mailbox.len() as u64;
                figures.damage = self.damage_of(number as u32);
                shards.push(figures);
            }
        }
        NodeMetrics { shards }
    }

    /// Damage of a shard that the other nodes have yet to make good.
    fn damage_of(&self, shard: u32) -> Option<ShardDamage> {
        if let Some(what) = self.inner.damaged.get(&shard) {
            return Some(ShardDamage::Found(what.clone()));
        }
        let data_dir = self.inner.data_dir.as_deref().filter(|_| self.inner.cluster.is_some())?;
        Some(aside_dir(data_dir, shard)).filter(|aside| aside.exists()).map(ShardDamage::SetAside)
    }
}

/// Upper limit of the server's own queues on a shard.
const OWN_QUEUES_MAX: usize = 16;

/// Metrics of a shard, without the server's own queues (tokens and the audit log).
fn figures(at: &mut ShardView<'_>) -> ShardMetrics {
    let own = at.engine.queues(NamespaceId::SYS, "", None, OWN_QUEUES_MAX);
    let mut counters = at.engine.totals();
    for of_queue in own.iter().map(|queue| &queue.counters) {
        for (all, of_queue) in counters.states.iter_mut().zip(of_queue.states) {
            *all = all.saturating_sub(of_queue);
        }
        counters.bytes = counters.bytes.saturating_sub(of_queue.bytes);
    }
    ShardMetrics {
        time_us: at.now_us,
        counters,
        queues: at.engine.queue_count().saturating_sub(own.len() as u64),
        waiting_receives: at.waiting as u64,
        consumers: at.engine.consumer_totals(),
        event_readers: at.event_readers as u64,
        in_doubt: at.engine.in_doubt_totals(),
        leads: false,
        mailbox: 0,
        epoch: at.engine.epoch(),
        behaviour: at.engine.behaviour(),
        // A journal in memory counts nothing itself.
        journal: JournalStatus {
            records: at.figures.records,
            batches: at.figures.batches,
            ..at.journal.status()
        },
        replicas: at.journal.replicas(),
        damage: None,
    }
}
