//! Caller's side of transactions.

use sluice_engine::command::{Command, Transaction};
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;
use sluice_engine::{Error, NamespaceId};
use tokio::sync::oneshot;

use crate::clock::monotonic_us;
use crate::handle::Node;
use crate::shard::leader::Leader;
use crate::shard::request::{Answer, ShardView, unexpected};

/// A transaction that is done.
#[derive(Clone, PartialEq, Debug)]
pub struct Committed {
    /// Outcomes of the operations, in order.
    pub operations: Vec<OperationDone>,
    /// True if this was a repeat.
    pub duplicate: bool,
}

/// The refusal of a transaction: nothing was done.
#[derive(Clone, PartialEq, Debug)]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// The place of the operation that is to blame, if it is one of them.
    pub operation: Option<u32>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused { error, operation: None }
    }
}

/// A transaction in flight: proposed, and not yet answered. Dropping it does not undo it.
#[derive(Debug)]
pub struct Committing(oneshot::Receiver<Answer>);

impl Committing {
    /// Waits for the outcome, which is given once. A wait that is given up can be begun again.
    ///
    /// # Errors
    /// As of [`Node::commit`].
    pub async fn done(&mut self) -> Result<Committed, Refused> {
        let answer = (&mut self.0).await.map_err(|_| Error::OutcomeUnknown {})?;
        let operations = answer.operations.unwrap_or_default();
        match answer.result {
            Ok(Reply::Committed { duplicate }) => Ok(Committed { operations: operations.done, duplicate }),
            Ok(other) => Err(unexpected(&other).into()),
            Err(error) => Err(Refused { error, operation: operations.refused_at }),
        }
    }
}

impl Node {
    /// Does all operations of a transaction, or none.
    ///
    /// # Errors
    /// What the operation that is to blame would have been refused with alone; `idempotency_mismatch`;
    /// `quota_exceeded`, `limit_exceeded`; `outcome_unknown`: it may have been done, or not.
    pub async fn commit(&self, transaction: Transaction<'_>) -> Result<Committed, Refused> {
        self.begin_commit(transaction)?.done().await
    }

    /// Proposes a transaction.
    ///
    /// # Errors
    /// `namespace_not_found`, `overloaded`, `shutting_down`; what can be said of its operations alone.
    pub fn begin_commit(&self, transaction: Transaction<'_>) -> Result<Committing, Error> {
        let shard = self.inner.placement.shard_of(transaction.namespace)?;
        let command = Command::Transaction(transaction);
        command.check(&self.limits())?;
        Ok(Committing(self.begin_proposal(shard, &command)?))
    }

    /// Number of the epoch of the shard on which a namespace lives: another one with each start, and with
    /// each leadership.
    ///
    /// # Errors
    /// `namespace_not_found`; those of a node that does not lead.
    pub async fn epoch(&self, namespace: NamespaceId) -> Result<u64, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        match self.leaders()[shard as usize].only_epoch() {
            Some(epoch) => Ok(epoch),
            None => self.look(shard, |at: &mut ShardView<'_>| at.engine.epoch()).await,
        }
    }

    /// True while this node leads a namespace in an epoch, as far as its shard has told: [`Node::epoch`]
    /// without a wait. False for good, once the leadership has ended or the namespace is gone.
    pub fn leads_in(&self, namespace: NamespaceId, epoch: u64) -> bool {
        self.leader_of_id(namespace).is_ok_and(|leader| leader.leads_in(epoch))
    }

    /// Time of the log of a namespace's shard, in microseconds since the Unix epoch, without a wait: the wall
    /// clock of the machine may be far from it.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn log_us(&self, namespace: NamespaceId) -> Result<u64, Error> {
        Ok(self.leader_of_id(namespace)?.log_us(monotonic_us()))
    }

    fn leader_of_id(&self, namespace: NamespaceId) -> Result<&Leader, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        Ok(&self.leaders()[shard as usize])
    }

    /// The transaction that was committed with an idempotency key by the same request; `None`: none was, as
    /// far as is remembered.
    ///
    /// # Errors
    /// `idempotency_mismatch`: another request had the key.
    pub async fn committed(
        &self,
        namespace: NamespaceId,
        idempotency_key: &[u8],
        request_digest: u64,
    ) -> Result<Option<Committed>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let key = idempotency_key.to_vec();
        let look =
            move |at: &mut ShardView<'_>| at.engine.committed(namespace, &key, request_digest, at.now_us);
        let found = self.look(shard, look).await?;
        Ok(found?.map(|operations| Committed { operations, duplicate: true }))
    }
}
