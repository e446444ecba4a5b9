//! Holds of the shards by a backup: while a shard is held, its leader decides no transaction over several
//! namespaces, and forgets no decision. So each transaction is decided before the ends of all copies, or
//! behind them.
//!
//! Each shard is held by its leader, one shard after the other in the order of their numbers, so that two
//! backups do not wait for each other. A hold ends by itself after [`HOLD_TIME`]. When it is released, its
//! leader tells if it has lasted: if so, and the leader is still that of the same epoch, no other node can
//! have decided in between.

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::Error;
use tokio::time::{sleep, timeout};

use crate::asks::{Answer, Question};
use crate::driving::Hold;
use crate::handle::Node;
use crate::random::random_number;
use crate::shard::request::ShardView;

/// Longest time for which a shard is held.
const HOLD_TIME: Duration = Duration::from_secs(5);
/// Time for which a hold waits for the decisions that are in flight.
const SETTLE_TIME: Duration = Duration::from_secs(2);

impl Node {
    /// Has all shards held. Returns the ticket of the hold.
    ///
    /// # Errors
    /// `no_leader` when a shard could not be held within 5 s.
    pub(crate) async fn hold_all(&self) -> Result<u64, Error> {
        let ticket = random_number();
        for shard in 0..self.shards() {
            if let Err(error) = self.ask_leader(Question::Hold { shard, ticket }).await {
                self.release_all(ticket).await;
                return Err(error);
            }
        }
        Ok(ticket)
    }

    /// Ends the hold of all shards. True if each has lasted until now, under one leader.
    pub(crate) async fn release_all(&self, ticket: u64) -> bool {
        let mut has_lasted = true;
        for shard in 0..self.shards() {
            let released = self.ask_leader(Question::Release { shard, ticket }).await;
            has_lasted &= released == Ok(Answer::Done(1));
        }
        has_lasted
    }

    /// Holds a shard that this node leads. True: it is held.
    pub(crate) async fn hold_here(&self, shard: u32, ticket: u64) -> bool {
        let driving = &self.inner.driving;
        if driving.is_held(shard, ticket) {
            return true;
        }
        let deciding = Arc::clone(&driving.deciding[shard as usize]);
        let Ok(deciding) = timeout(SETTLE_TIME, deciding.write_owned()).await else { return false };
        let Ok(epoch) = self.epoch_of(shard).await else { return false };
        driving.enter(shard, Hold { ticket, epoch, _deciding: deciding });
        let node = self.clone();
        tokio::spawn(async move {
            sleep(HOLD_TIME).await;
            if node.inner.driving.take(shard, ticket).is_some() {
                tracing::warn!(shard, "a backup has held the shard for too long: decisions go on");
            }
        });
        true
    }

    /// Ends the hold of a shard that this node leads. True if it has lasted until now, in one epoch; an
    /// error: this node does not lead.
    pub(crate) async fn release_here(&self, shard: u32, ticket: u64) -> Result<bool, Error> {
        // Confirmed by a majority while the hold lasts: no later leader was there.
        let epoch = self.epoch_of(shard).await?;
        let hold = self.inner.driving.take(shard, ticket);
        Ok(hold.is_some_and(|hold| hold.epoch == epoch))
    }

    async fn epoch_of(&self, shard: u32) -> Result<u64, Error> {
        self.look(shard, |at: &mut ShardView<'_>| at.engine.epoch()).await
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::command::{Command, LockAcquire, Transaction};
    use sluice_engine::id::NamespaceId;
    use sluice_engine::locks::LockMode;

    use super::*;
    use crate::api::{Durability, Options};

    fn two_shards() -> Node {
        Node::start(Options {
            data_dir: None,
            shards: 2,
            durability: Durability::Os,
            cache_bytes: 1 << 20,
            limits: Default::default(),
            mailbox_requests: 1_024,
            mailbox_bytes: 256 << 20,
            waiting_receives: 100,
            events: Default::default(),
            reserve_bytes: 0,
            low_water_bytes: 0,
            accept_clock_jump: false,
            movable_time: false,
            encryption: Default::default(),
            key_source: None,
        })
        .unwrap()
    }

    /// Commits a transaction that `default` decides.
    async fn commit(node: Node, other: NamespaceId) -> bool {
        let claim = LockAcquire {
            namespace: other,
            owner: "",
            keys: &["k"],
            mode: LockMode::Shared,
            ttl_ms: 60_000,
            wait_ms: 0,
            if_absent: false,
            request: [0; 2],
        };
        let of = |namespace, operations| Transaction {
            namespace,
            idempotency_key: b"",
            request_digest: 0,
            operations,
        };
        let claims = [Command::LockAcquire(claim)];
        let others = [of(other, &claims)];
        node.commit_across(of(NamespaceId::DEFAULT, &[]), &others).await.is_ok()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_decided_while_a_hold_lasts_which_ends_by_itself() {
        let node = two_shards();
        let other = node.namespace_create("b", Some(1), Default::default()).await.unwrap().id;
        let ticket = node.hold_all().await.unwrap();
        let held = tokio::spawn(commit(node.clone(), other));
        sleep(Duration::from_millis(200)).await;
        assert!(!held.is_finished() && node.hold_here(1, ticket).await, "held once more under its ticket");
        assert!(!node.release_here(0, ticket + 1).await.unwrap(), "the ticket of another");
        assert!(node.release_all(ticket).await);
        assert!(held.await.unwrap());
        assert!(!node.release_all(ticket).await, "it is over");

        let expired = node.hold_all().await.unwrap();
        assert!(commit(node.clone(), other).await, "when its time is over");
        assert!(!node.release_all(expired).await);
        node.shutdown(Duration::from_secs(10)).await.unwrap();
    }
}
