//! Transactions, as clients see them: what comes of one is what would have come of each of its operations
//! alone; nothing comes of one that is refused; a repeat gets what the first one gave.

use std::collections::BTreeMap;

use sluice_engine::command::{Command, Transaction};
use sluice_engine::id::{NamespaceId, Receipt};
use sluice_engine::locks::LockNotice;
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::transactions::OperationDone;
use sluice_engine::{Engine, Error};

use super::Record;
use crate::model::{Checked, ensure};

/// A transaction that was committed with a key.
#[derive(Clone, Debug)]
struct Known {
    digest: u64,
    at_us: u64,
    done: Vec<OperationDone>,
    /// True once its window was over, which may have become longer since.
    may_be_gone: bool,
}

/// Transactions by their idempotency keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Transactions(BTreeMap<(NamespaceId, Vec<u8>), Known>);

impl Transactions {
    pub(super) fn follow(&mut self, record: &Record<'_>, transaction: &Transaction<'_>) -> Checked {
        let limits = record.engine.limits();
        let window_us = limits.idempotency_window_ms * 1_000;
        for known in self.0.values_mut() {
            // More keys than there are places push out the oldest.
            known.may_be_gone |= record.now_us - known.at_us >= window_us || limits.idempotency_keys < 1_000;
        }
        let of = (transaction.namespace, transaction.idempotency_key.to_vec());
        let known = self.0.get(&of);
        let Outcome { error, reply, operations, .. } = record.outcome;
        match (error, reply) {
            (None, Reply::Committed { duplicate: true }) => {
                let first = known.map(|known| (known.digest, &known.done));
                ensure!(
                    first == Some((transaction.request_digest, operations)),
                    "a repeat of {known:?} got {operations:?}"
                );
                Ok(())
            }
            (None, Reply::Committed { duplicate: false }) => {
                ensure!(known.is_none_or(|known| known.may_be_gone), "{known:?} is done again");
                ensure!(
                    operations.len() == transaction.operations.len(),
                    "{operations:?} came of {transaction:?}"
                );
                if !transaction.idempotency_key.is_empty() {
                    let (digest, at_us) = (transaction.request_digest, record.now_us);
                    let known = Known { digest, at_us, done: operations.clone(), may_be_gone: false };
                    self.0.insert(of, known);
                }
                Ok(())
            }
            (Some(Error::IdempotencyMismatch { .. }), _) => {
                let is_other = known.is_some_and(|known| known.digest != transaction.request_digest);
                ensure!(is_other, "{transaction:?} is taken for another than {known:?}");
                Ok(())
            }
            (Some(_), _) => {
                ensure!(operations.is_empty(), "{operations:?} came of what was refused");
                Ok(())
            }
            other => Err(format!("{transaction:?} got {other:?}")),
        }
    }

    pub(super) fn forget(&mut self, namespace: NamespaceId) {
        self.0.retain(|(of, _), _| *of != namespace);
    }
}

/// The receipts that a transaction has settled.
pub(super) fn settled(transaction: &Transaction<'_>, outcome: &Outcome) -> Vec<Receipt> {
    if outcome.error.is_some() || outcome.reply != (Reply::Committed { duplicate: false }) {
        return Vec::new();
    }
    let items = transaction.operations.iter().filter_map(|operation| match operation {
        Command::Settle { items, .. } => Some(items.iter().map(|item| item.receipt)),
        _ => None,
    });
    items.flatten().collect()
}

/// Outcomes of the operations, as if each had been alone: first of locks that others waited for, then of the
/// operations, releases last, then again of such locks. Of one that was refused, the operation to blame.
pub(super) fn one_by_one<'c>(
    transaction: &Transaction<'c>,
    outcome: &Outcome,
) -> Vec<(Command<'c>, Outcome)> {
    let told = |locks| (Command::Consensus { entry: b"" }, Outcome { locks, ..Outcome::default() });
    if let Some(error) = &outcome.error {
        let refused = outcome.refused_at.map(|at| transaction.operations[at as usize].clone());
        let refused = refused
            .map(|operation| (operation, Outcome { error: Some(error.clone()), ..Outcome::default() }));
        return std::iter::once(told(outcome.locks.clone())).chain(refused).collect();
    }
    let first = outcome.operations.iter().find_map(OperationDone::grant).map(|grant| grant.token.number);
    let is_before = |notice: &LockNotice| match (notice.grant, first) {
        (Some(grant), Some(first)) => grant.token.number < first,
        (None, _) => true,
        (Some(_), None) => false,
    };
    let (before, after): (Vec<_>, Vec<_>) = outcome.locks.iter().copied().partition(is_before);
    let each = transaction.operations.iter().zip(&outcome.operations);
    let each = each.map(|(operation, done)| (operation.clone(), alone(done)));
    let is_release =
        |(operation, _): &(Command<'_>, Outcome)| matches!(operation, Command::LockRelease { .. });
    let (releases, others): (Vec<_>, Vec<_>) = each.partition(is_release);
    std::iter::once(told(before)).chain(others).chain(releases).chain([told(after)]).collect()
}

fn alone(done: &OperationDone) -> Outcome {
    let reply = match *done {
        OperationDone::Sent { id } => Reply::Sent { first: id, count: 1, duplicate: false },
        OperationDone::Written { version, created } => Reply::DocumentWritten { version, created },
        OperationDone::Deleted { version } => Reply::DocumentWritten { version, created: false },
        OperationDone::Granted { grant } => Reply::LockGranted { grant },
        OperationDone::Settled | OperationDone::Checked | OperationDone::Released => Reply::None,
    };
    Outcome { reply, ..Outcome::default() }
}

impl Record<'_> {
    /// The transaction and what came of it, unless it is a repeat or another command.
    pub(super) fn done_together(&self) -> Option<&Transaction<'_>> {
        match self.command {
            Command::Transaction(transaction)
                if self.outcome.reply != (Reply::Committed { duplicate: true }) =>
            {
                Some(transaction)
            }
            _ => None,
        }
    }

    /// The same engine after a command that it was led through.
    pub(super) fn of<'o>(&'o self, command: &'o Command<'o>, outcome: &'o Outcome) -> Record<'o> {
        let engine: &Engine = self.engine;
        Record { index: self.index, now_us: self.now_us, command, outcome, engine }
    }
}
