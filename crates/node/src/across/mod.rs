//! Transactions over several namespaces, which may live on several shards: two phases, driven by the node
//! that leads the coordinator's shard.
//!
//! ```text
//!           prepare             decide                finish              forget
//! caller ─▶ each other shard ─▶ coordinator's shard ─▶ each other shard ─▶ coordinator's shard
//! ```
//!
//! Each arrow is a record, and the caller is answered behind `finish`. Whoever drives it may stop anywhere:
//! the leaders of the shards go on with what they find (`finishing`).

mod finishing;
mod part;

use std::sync::Arc;
use std::time::Duration;

use sluice_engine::command::{Command, Transaction, TransactionDecide, TransactionPrepare};
use sluice_engine::id::TransactionId;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;
use sluice_engine::{Error, NamespaceId};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use crate::across::part::{Outcome, Part};
use crate::clock::wall_us;
use crate::handle::Node;
use crate::random::random_number;
use crate::transactions::{Committed, Refused};

/// Time after which a transaction that is not decided is aborted.
const DECIDED_WITHIN: Duration = Duration::from_secs(10);
/// Time for which the leader of a shard is awaited.
const LED_WITHIN: Duration = Duration::from_secs(5);

/// The refusal of a transaction over several namespaces.
#[derive(Clone, PartialEq, Debug)]
pub struct RefusedPart {
    /// The part that is to blame: 0 is the coordinator's, then the others in order.
    pub part: usize,
    /// Why.
    pub refused: Refused,
}

/// A transaction that is about to be driven.
struct Across {
    node: Node,
    id: TransactionId,
    /// Namespaces and shards: the coordinator's, and those of the others.
    own: (NamespaceId, u32),
    participants: Vec<(NamespaceId, u32)>,
    prepares: Vec<Part>,
    decide: Part,
    /// Idempotency key and digest.
    repeat: (Vec<u8>, u64),
    /// Share of the memory of all that are driven.
    _memory: OwnedSemaphorePermit,
}

impl Node {
    /// Does all operations of a transaction over several namespaces, or none. `own`: those of the
    /// coordinator's namespace; `others`: those of each other one. All have one idempotency key and digest.
    /// Returns what came of each part, that of `own` first.
    ///
    /// # Errors
    /// As of [`Node::commit`], with the part that is to blame; `in_doubt`: another such transaction is about
    /// the same; `transaction_aborted`; `no_leader`; `outcome_unknown`.
    pub async fn commit_across(
        &self,
        own: Transaction<'_>,
        others: &[Transaction<'_>],
    ) -> Result<Vec<Committed>, RefusedPart> {
        let across = self.across(own, others)?;
        // The caller may leave; what was begun goes on.
        let driven = tokio::spawn(across.run()).await;
        driven.unwrap_or_else(|_| Err(unknown()))
    }

    fn across(&self, own: Transaction<'_>, others: &[Transaction<'_>]) -> Result<Across, RefusedPart> {
        let of_part = |part: usize| move |error: Error| RefusedPart { part, refused: error.into() };
        let placed = |namespace| self.inner.placement.shard_of(namespace).map(|shard| (namespace, shard));
        let id = TransactionId { coordinator: own.namespace, number: random_number() };
        let until_us = wall_us() + DECIDED_WITHIN.as_micros() as u64;
        let placed_own = placed(own.namespace).map_err(of_part(0))?;
        let (mut participants, mut prepares) = (Vec::new(), Vec::new());
        for (at, part) in others.iter().enumerate() {
            let (namespace, shard) = placed(part.namespace).map_err(of_part(at + 1))?;
            let prepare = TransactionPrepare { id, shard: placed_own.1, until_us, part: *part };
            let prepare = self.part(shard, &Command::TransactionPrepare(prepare));
            prepares.push(prepare.map_err(of_part(at + 1))?);
            participants.push((namespace, shard));
        }
        let decide = TransactionDecide { id, until_us, participants: &participants, part: own };
        let decide = self.part(placed_own.1, &Command::TransactionDecide(decide)).map_err(of_part(0))?;
        let bytes = prepares.iter().chain([&decide]).map(Part::len).sum::<usize>();
        let memory = Arc::clone(&self.inner.driving.bytes).try_acquire_many_owned(bytes as u32);
        let memory = memory.map_err(|_| of_part(0)(overloaded()))?;
        let repeat = (own.idempotency_key.to_vec(), own.request_digest);
        let node = self.clone();
        Ok(Across { node, id, own: placed_own, participants, prepares, decide, repeat, _memory: memory })
    }
}

impl Across {
    async fn run(self) -> Result<Vec<Committed>, RefusedPart> {
        let prepared = self.at_leaders(self.prepares.iter().cloned()).await;
        let is_repeat = |outcome: &Outcome| matches!(outcome, Ok((Reply::Committed { .. }, _)));
        if prepared.iter().any(is_repeat) {
            self.finish(false).await;
            return self.done_before(prepared).await;
        }
        if let Some(part) = prepared.iter().position(Result::is_err) {
            self.finish(false).await;
            let refused = prepared.into_iter().find_map(Result::err);
            let refused = refused.unwrap_or_else(|| unknown().refused);
            return Err(self.refused(part + 1, refused).await);
        }
        // Proposed here alone, and once: a second record could be behind what the first has led to.
        let decided = {
            let _deciding = self.node.inner.driving.deciding.read().await;
            self.node.here(&self.decide).await
        };
        let own = match decided {
            Some(Ok((Reply::Committed { duplicate: false }, done))) => done,
            Some(Ok((Reply::Committed { duplicate: true }, _))) => {
                // The others have forgotten what they did.
                self.finish(false).await;
                return Err(unknown());
            }
            // The record may be in the log.
            Some(Err(Refused { error: Error::OutcomeUnknown {} | Error::JournalFailed { .. }, .. })) => {
                return Err(unknown());
            }
            Some(Ok(_)) => return Err(unknown()),
            Some(Err(refused)) => {
                self.finish(false).await;
                return Err(RefusedPart { part: 0, refused });
            }
            None => {
                self.finish(false).await;
                return Err(RefusedPart { part: 0, refused: Error::NoLeader {}.into() });
            }
        };
        let mut parts = vec![own];
        for finished in self.finish(true).await {
            match finished {
                Ok((Reply::Finished { known: true }, done)) => parts.push(done),
                // It is committed, and will be finished.
                Ok(_) | Err(_) => return Err(unknown()),
            }
        }
        self.forget();
        Ok(committed(parts, false))
    }

    /// The refusal of a part; unknown if the first request with this idempotency key was done meanwhile.
    async fn refused(&self, part: usize, refused: Refused) -> RefusedPart {
        let (key, digest) = &self.repeat;
        let is_unknown = refused.error == Error::OutcomeUnknown {};
        if key.is_empty() {
            // It is not decided, so nothing is done.
            let refused = if is_unknown { Error::NoLeader {}.into() } else { refused };
            return RefusedPart { part, refused };
        }
        match self.node.committed(self.own.0, key, *digest).await {
            Ok(None) | Err(Error::IdempotencyMismatch { .. }) if !is_unknown => RefusedPart { part, refused },
            Ok(_) | Err(_) => unknown(),
        }
    }

    /// The outcomes of the first request with this idempotency key.
    async fn done_before(&self, prepared: Vec<Outcome>) -> Result<Vec<Committed>, RefusedPart> {
        let (key, digest) = &self.repeat;
        let own = self.node.committed(self.own.0, key, *digest).await;
        let own = own.map_err(|error| RefusedPart { part: 0, refused: error.into() })?;
        let mut parts: Vec<_> = own.into_iter().map(|own| own.operations).collect();
        for outcome in prepared {
            if let Ok((Reply::Committed { .. }, done)) = outcome {
                parts.push(done);
            }
        }
        let are_all = parts.len() == 1 + self.participants.len();
        if are_all { Ok(committed(parts, true)) } else { Err(unknown()) }
    }

    /// Finishes all prepared parts.
    async fn finish(&self, commit: bool) -> Vec<Outcome> {
        let parts = finishes(&self.node, self.id, &self.participants, commit);
        self.at_leaders(parts.into_iter()).await
    }

    /// Proposes parts at the same time.
    async fn at_leaders(&self, parts: impl Iterator<Item = Part>) -> Vec<Outcome> {
        let asked: Vec<JoinHandle<Outcome>> = parts
            .map(|part| {
                let node = self.node.clone();
                tokio::spawn(async move { node.at_leader(&part, LED_WITHIN).await })
            })
            .collect();
        let mut outcomes = Vec::with_capacity(asked.len());
        for outcome in asked {
            outcomes.push(outcome.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown {}.into())));
        }
        outcomes
    }

    /// Lets the coordinator's shard forget the decision, which nobody asks for any more.
    fn forget(self) {
        for part in finishes(&self.node, self.id, &[self.own], true) {
            let node = self.node.clone();
            tokio::spawn(async move { node.forget(&part).await });
        }
    }
}

impl Node {
    /// Finishes the part of a coordinator. Where that fails, all is finished once more.
    async fn forget(&self, part: &Part) {
        let _deciding = self.inner.driving.deciding.read().await;
        let _ = self.at_leader(part, LED_WITHIN).await;
    }
}

/// The records that finish the parts of a transaction.
fn finishes(node: &Node, id: TransactionId, places: &[(NamespaceId, u32)], commit: bool) -> Vec<Part> {
    let finish = |(namespace, shard): &(NamespaceId, u32)| {
        node.part(*shard, &Command::TransactionFinish { namespace: *namespace, id, commit }).ok()
    };
    places.iter().filter_map(finish).collect()
}

fn committed(parts: Vec<Vec<OperationDone>>, duplicate: bool) -> Vec<Committed> {
    parts.into_iter().map(|operations| Committed { operations, duplicate }).collect()
}

fn unknown() -> RefusedPart {
    RefusedPart { part: 0, refused: Error::OutcomeUnknown {}.into() }
}

#[cold]
fn overloaded() -> Error {
    Error::Overloaded { what: "bytes of transactions over several namespaces", retry_after_ms: 500 }
}
