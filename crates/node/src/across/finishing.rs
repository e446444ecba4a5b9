//! Transactions over several namespaces whose driver has stopped: the leader of a shard
//! finishes what was decided there, and asks for the decision on what is prepared there for too long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::LED_WITHIN;
use super::driver::Outcome;
use super::errands::{Errand, Errands, Step};
use crate::handle::Node;
use crate::shard::request::ShardView;

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
        let look = move |at: &mut ShardView<'_>| {
            let decided = at.engine.decided_transactions();
            Errands::new(shard, &decided, &at.engine.prepared_transactions(), at.now_us)
        };
        let Ok(mut errands) = self.look(shard, look).await else { return };
        while let Some(errand) = errands.current() {
            let outcome = self.run_errand(&errand).await;
            tracing::debug!(?errand, is_done = outcome.is_ok(), "a transaction that nobody drives");
            errands.told(&outcome);
        }
    }

    pub(super) async fn run_errand(&self, errand: &Errand) -> Outcome {
        let part = self.part(errand.shard, &errand.command())?;
        match errand.step {
            Step::Forget => self.forget(&part).await,
            Step::Finish { .. } | Step::Ask { .. } => self.at_leader(&part, LED_WITHIN).await,
        }
    }
}
