//! Transactions over several namespaces that are in doubt, for operators: prepared and not finished, or
//! decided and not known to be finished everywhere.

use sluice_engine::id::TransactionId;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::{DecidedView, Decision, OperationView, PreparedView};
use sluice_engine::{Error, NamespaceId};

use super::errands::{DECIDED_WITHIN_US, Errand, Errands, Step, decision, is_overdue};
use crate::handle::Node;
use crate::shard::request::ShardView;

/// A transaction over several namespaces that is in doubt in one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InDoubt {
    /// The part of the namespace is prepared, and not finished.
    Prepared(PreparedView),
    /// The namespace is the coordinator's. The transaction is committed, and not known to be finished in the
    /// others.
    Decided(DecidedView),
}

/// The refusal to resolve a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotResolved {
    /// Not in doubt in this namespace.
    NotInDoubt,
    /// Not decided yet, and its time is not over.
    TooEarly,
    /// The coordinator's shard, or one with another part, does not answer.
    Silent,
    /// Decided otherwise than forced: true if to commit.
    Decided(bool),
    /// The node does not lead, or is stopping, or full.
    Failed(Error),
}

impl From<Error> for NotResolved {
    fn from(error: Error) -> NotResolved {
        NotResolved::Failed(error)
    }
}

impl InDoubt {
    /// The transaction.
    pub fn id(&self) -> TransactionId {
        match self {
            InDoubt::Prepared(view) => view.id,
            InDoubt::Decided(view) => view.id,
        }
    }
}

impl Node {
    /// Transactions that are in doubt in a namespace, by id after `after`, at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`; those of a node that does not lead.
    pub async fn in_doubt(
        &self,
        namespace: NamespaceId,
        after: Option<TransactionId>,
        limit: usize,
    ) -> Result<Vec<InDoubt>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let mut found = self.look(shard, move |at: &mut ShardView<'_>| of_namespace(at, namespace)).await?;
        found.sort_unstable_by_key(InDoubt::id);
        found.retain(|one| after.is_none_or(|after| one.id() > after));
        found.truncate(limit);
        Ok(found)
    }

    /// A transaction that is in doubt in a namespace, with the operations of a prepared part; `None`: it is
    /// not in doubt there.
    ///
    /// # Errors
    /// `namespace_not_found`; those of a node that does not lead.
    pub async fn in_doubt_shown(
        &self,
        namespace: NamespaceId,
        id: TransactionId,
    ) -> Result<Option<(InDoubt, Vec<OperationView>)>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let look = move |at: &mut ShardView<'_>| {
            let found = of_namespace(at, namespace).into_iter().find(|one| one.id() == id)?;
            Some((found, at.engine.prepared_operations(id, namespace).unwrap_or_default()))
        };
        self.look(shard, look).await
    }

    /// Finishes a transaction that is in doubt in a namespace, as the coordinator's shard has decided.
    /// `force`: true to commit and false to abort the part of this namespace where that shard does not
    /// answer; the others may be finished otherwise. Returns true if it was committed, and if that was
    /// forced.
    ///
    /// # Errors
    /// The reason for which nothing was done.
    pub async fn resolve_in_doubt(
        &self,
        namespace: NamespaceId,
        id: TransactionId,
        force: Option<bool>,
    ) -> Result<(bool, bool), NotResolved> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let look = move |at: &mut ShardView<'_>| (of_namespace(at, namespace), at.now_us);
        let (found, now_us) = self.look(shard, look).await?;
        let found = found.into_iter().find(|one| one.id() == id).ok_or(NotResolved::NotInDoubt)?;
        let prepared = match found {
            InDoubt::Prepared(view) => view,
            InDoubt::Decided(_) if force == Some(false) => return Err(NotResolved::Decided(true)),
            InDoubt::Decided(view) => {
                let is_finished = self.finish_decided(shard, &view).await;
                return if is_finished { Ok((true, false)) } else { Err(NotResolved::Silent) };
            }
        };
        let (commit, is_forced) = match (self.decision(&prepared).await, force) {
            (Some(Decision::Open), _) => return Err(NotResolved::TooEarly),
            (Some(decision), None) => (decision == Decision::Committed, false),
            (Some(decision), Some(commit)) if commit == (decision == Decision::Committed) => (commit, false),
            (Some(decision), Some(_)) => {
                return Err(NotResolved::Decided(decision == Decision::Committed));
            }
            (None, Some(commit)) if is_overdue(&prepared, DECIDED_WITHIN_US, now_us) => (commit, true),
            (None, Some(_)) => return Err(NotResolved::TooEarly),
            (None, None) => return Err(NotResolved::Silent),
        };
        if is_forced {
            tracing::warn!(%id, commit, "an operator finishes a part of a transaction whose decision is unknown");
        }
        let is_done = self.finish_prepared(shard, &prepared, commit).await?;
        if is_done { Ok((commit, is_forced)) } else { Err(NotResolved::NotInDoubt) }
    }

    /// Finishes all parts of what is decided on a shard, and forgets it. False: a shard has not answered.
    async fn finish_decided(&self, own: u32, decided: &DecidedView) -> bool {
        let mut errands = Errands::of_decided(own, decided);
        let mut last = None;
        while let Some(errand) = errands.current() {
            errands.told(&self.run_errand(&errand).await);
            last = Some(errand.step);
        }
        last == Some(Step::Forget)
    }

    /// Decision of the coordinator's shard on a prepared transaction; `None`: nobody knows it at present.
    async fn decision(&self, prepared: &PreparedView) -> Option<Decision> {
        let PreparedView { id, namespace, until_us, shard, .. } = *prepared;
        let ask = Errand { id, shard, step: Step::Ask { until_us, namespace } };
        decision(&self.run_errand(&ask).await)
    }

    /// Finishes a part that is prepared on a shard. False: it was finished before.
    async fn finish_prepared(&self, own: u32, prepared: &PreparedView, commit: bool) -> Result<bool, Error> {
        let PreparedView { id, namespace, .. } = *prepared;
        let finish = Errand { id, shard: own, step: Step::Finish { namespace, commit } };
        let (reply, _) = self.run_errand(&finish).await.map_err(|refused| refused.error)?;
        Ok(reply == Reply::Finished { known: true })
    }
}

fn of_namespace(at: &ShardView<'_>, namespace: NamespaceId) -> Vec<InDoubt> {
    let prepared = at.engine.prepared_transactions().into_iter();
    let prepared = prepared.filter(|view| view.namespace == namespace).map(InDoubt::Prepared);
    let decided = at.engine.decided_transactions().into_iter();
    prepared.chain(decided.filter(|view| view.id.coordinator == namespace).map(InDoubt::Decided)).collect()
}
