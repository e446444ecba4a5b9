//! Transactions over several namespaces, which may live on several shards: two phases, driven by the node
//! that leads the coordinator's shard.
//!
//! ```text
//!           prepare             decide                finish              forget
//! caller ─▶ each other shard ─▶ coordinator's shard ─▶ each other shard ─▶ coordinator's shard
//! ```
//!
//! Each arrow is a record, and the caller is answered behind `finish`. Whoever drives it may stop anywhere:
//! the leaders of the shards go on with what they find (`finishing`). What is decided when stands in
//! [`driver`] and [`errands`], which the simulator runs too.

mod doubt;
pub mod driver;
pub mod errands;
mod finishing;
mod part;
mod settling;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_engine::command::{Command, Transaction, TransactionDecide, TransactionPrepare};
use sluice_engine::id::TransactionId;
use sluice_engine::{Error, NamespaceId};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

pub use crate::across::doubt::{InDoubt, NotResolved};
use crate::across::driver::{Next, Outcome, RefusedPart, unknown};
use crate::across::errands::DECIDED_WITHIN_US;
use crate::across::part::{Part, Told};
use crate::across::settling::Settled;
use crate::handle::Node;
use crate::random::random_number;
use crate::transactions::Committed;

/// Time for which the leader of a shard is awaited.
const LED_WITHIN: Duration = Duration::from_secs(5);

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
        let now_us = self.log_time_of(own.namespace).await;
        let now_us = now_us.map_err(|error| RefusedPart { part: 0, refused: error.into() })?;
        let across = self.across(own, others, now_us)?;
        // The caller may leave; what was begun goes on.
        let driven = tokio::spawn(across.run()).await;
        driven.unwrap_or_else(|_| Err(unknown()))
    }

    /// Answer to a record that another node has sent; `None`: the content is none.
    pub(crate) async fn answer_part(&self, content: &[u8]) -> Option<Bytes> {
        let part = Part::decode(content).filter(|part| part.shard() < self.leaders().len())?;
        if !self.leaders()[part.shard()].is_here() {
            return Some(Bytes::new());
        }
        let answer = match part.settles() {
            Some(_) => self.here::<Settled>(&part).await.map(|settled| settled.encode()),
            None => self.here::<Outcome>(&part).await.map(|outcome| outcome.encode()),
        };
        Some(answer.unwrap_or_default())
    }

    /// Time of the log of a namespace's shard, in microseconds since the Unix epoch: it may be far from that
    /// of the machine, whose jumps it does not follow.
    async fn log_time_of(&self, namespace: NamespaceId) -> Result<u64, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        self.stale().look(shard, |at| at.now_us).await
    }

    fn across(
        &self,
        own: Transaction<'_>,
        others: &[Transaction<'_>],
        now_us: u64,
    ) -> Result<Across, RefusedPart> {
        let of_part = |part: usize| move |error: Error| RefusedPart { part, refused: error.into() };
        let placed = |namespace| self.inner.placement.shard_of(namespace).map(|shard| (namespace, shard));
        let id = TransactionId { coordinator: own.namespace, number: random_number() };
        let until_us = now_us + DECIDED_WITHIN_US;
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
        let mut next = Next::first(self.participants.len(), !self.repeat.0.is_empty());
        loop {
            next = match next {
                Next::Prepare(step) => step.prepared(self.at_leaders(self.prepares.iter().cloned()).await),
                Next::Decide(step) => step.decided(self.node.here(&self.decide).await),
                Next::Finish(step) => {
                    let finished = self.finish(step.commit()).await;
                    step.finished(finished)
                }
                Next::LookUp(step) => {
                    let (key, digest) = &self.repeat;
                    step.looked_up(self.node.committed(self.own.0, key, *digest).await)
                }
                Next::Answer { answer, forget } => {
                    if forget {
                        self.forget();
                    }
                    return answer;
                }
            };
        }
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
    async fn forget(&self, part: &Part) -> Outcome {
        self.at_leader(part, LED_WITHIN).await
    }
}

/// The records that finish the parts of a transaction.
fn finishes(node: &Node, id: TransactionId, places: &[(NamespaceId, u32)], commit: bool) -> Vec<Part> {
    let finish = |(namespace, shard): &(NamespaceId, u32)| {
        node.part(*shard, &Command::TransactionFinish { namespace: *namespace, id, commit }).ok()
    };
    places.iter().filter_map(finish).collect()
}

#[cold]
fn overloaded() -> Error {
    Error::Overloaded { what: "bytes of transactions over several namespaces", retry_after_ms: 500 }
}
