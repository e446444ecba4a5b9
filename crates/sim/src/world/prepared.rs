//! Parts that are prepared, by the log: with them those who know nothing of two phases see a transaction in
//! each record that does a part of one.

use std::collections::BTreeMap;

use sluice_engine::Outcome;
use sluice_engine::id::{NamespaceId, TransactionId};
use sluice_engine::outcome::Reply;

use crate::workload::{Op, TransactionOp, TwoPhaseOp};

/// Parts that are prepared; see the module.
#[derive(Debug, Default)]
pub(super) struct Prepared(BTreeMap<(TransactionId, NamespaceId), TransactionOp>);

impl Prepared {
    /// The transaction that a record has done, or that was refused with it; `None`: it has done none.
    pub(super) fn done(&mut self, op: &Op, outcome: &Outcome) -> Option<Op> {
        if let Op::NamespaceDelete { namespace, .. } = op
            && outcome.error.is_none()
        {
            self.0.retain(|(_, of), _| of != namespace);
        }
        let Op::TwoPhase(op) = op else { return None };
        match op {
            TwoPhaseOp::Prepare { id, part, .. } => {
                if outcome.error.is_none() && outcome.reply == Reply::Prepared {
                    self.0.entry((*id, part.namespace)).or_insert_with(|| part.clone());
                }
                None
            }
            TwoPhaseOp::Decide { part, .. } => {
                let is_known = matches!(outcome.reply, Reply::Decided { .. });
                (!is_known).then(|| Op::Transaction(part.clone()))
            }
            TwoPhaseOp::Finish { namespace, id, commit } => {
                let part = self.0.remove(&(*id, *namespace))?;
                commit.then_some(Op::Transaction(part))
            }
            TwoPhaseOp::Ask { .. } => None,
        }
    }
}
