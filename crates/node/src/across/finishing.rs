//! Transactions over several namespaces whose driver has stopped: the leader of a shard
//! finishes what was decided there, and asks for the decision on what is prepared there for too long.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::command::Command;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::{DecidedView, Decision, PreparedView};

use super::{LED_WITHIN, finishes};
use crate::handle::Node;
use crate::shard::request::ShardView;

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time for which a driver is left alone with what it has decided, in microseconds.
const DRIVEN_US: u64 = 2_000_000;

impl Node {
    /// Finishes transactions over several namespaces that nobody drives any more, on the shards that this
    /// node leads, until it stops. A task of each server runs it.
    pub async fn finish_transactions(&self) {
        while !self.inner.stopping.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK_EVERY).await;
            for (shard, leader) in (0..).zip(self.leaders()) {
                if leader.is_here() {
                    self.finish_on(shard).await;
                }
            }
        }
    }

    async fn finish_on(&self, shard: u32) {
        let look = |at: &mut ShardView<'_>| {
            let decided = at.engine.decided_transactions();
            let prepared = at.engine.prepared_transactions();
            (decided, prepared, at.now_us)
        };
        let Ok((decided, prepared, now_us)) = self.look(shard, look).await else { return };
        // Shards that have not answered in this round.
        let mut silent = BTreeSet::new();
        for decided in decided.iter().filter(|it| it.decided_at_us + DRIVEN_US <= now_us) {
            self.finish_decided(shard, decided, &mut silent).await;
        }
        for prepared in prepared.iter().filter(|it| it.until_us <= now_us) {
            self.resolve(shard, prepared, &mut silent).await;
        }
    }

    async fn finish_decided(&self, own: u32, decided: &DecidedView, silent: &mut BTreeSet<u32>) {
        if decided.participants.iter().any(|(_, shard)| silent.contains(shard)) {
            return;
        }
        let parts = finishes(self, decided.id, &decided.participants, true);
        for (part, (_, shard)) in parts.iter().zip(&decided.participants) {
            if let Err(refused) = self.at_leader(part, LED_WITHIN).await {
                tracing::debug!(id = %decided.id, error = %refused.error, "a transaction is not finished yet");
                silent.insert(*shard);
                return;
            }
        }
        for part in finishes(self, decided.id, &[(decided.id.coordinator, own)], true) {
            self.forget(&part).await;
        }
    }

    async fn resolve(&self, own: u32, prepared: &PreparedView, silent: &mut BTreeSet<u32>) {
        let PreparedView { id, namespace, until_us, shard, .. } = *prepared;
        if silent.contains(&shard) {
            return;
        }
        let commit = match self.decision(shard, &Command::TransactionAsk { id, until_us }).await {
            Some(Decision::Committed) => true,
            Some(Decision::Aborted) => false,
            Some(Decision::Open) => return,
            None => {
                silent.insert(shard);
                return;
            }
        };
        for part in finishes(self, id, &[(namespace, own)], commit) {
            let finished = self.at_leader(&part, LED_WITHIN).await;
            tracing::info!(%id, commit, is_finished = finished.is_ok(), "a transaction was resolved");
        }
    }

    /// Decision on a transaction; `None`: nobody knows it at present.
    async fn decision(&self, shard: u32, ask: &Command<'_>) -> Option<Decision> {
        let part = self.part(shard, ask).ok()?;
        match self.at_leader(&part, LED_WITHIN).await {
            Ok((Reply::Decided { decision }, _)) => Some(decision),
            Ok(_) | Err(_) => None,
        }
    }
}
