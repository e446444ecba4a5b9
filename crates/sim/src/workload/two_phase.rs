//! Records of transactions over several namespaces, which the node makes of a request.

use sluice_engine::command::{Command, Transaction, TransactionDecide, TransactionPrepare};
use sluice_engine::id::{NamespaceId, TransactionId};

use super::{Lend, SentBlob, TransactionOp};

/// A record of a transaction over several namespaces.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum TwoPhaseOp {
    Prepare { id: TransactionId, shard: u32, until_us: u64, part: TransactionOp },
    Decide { id: TransactionId, until_us: u64, participants: Vec<(NamespaceId, u32)>, part: TransactionOp },
    Finish { namespace: NamespaceId, id: TransactionId, commit: bool },
    Ask { id: TransactionId, until_us: u64 },
}

impl TwoPhaseOp {
    /// The part that it brings.
    pub fn part(&self) -> Option<&TransactionOp> {
        match self {
            TwoPhaseOp::Prepare { part, .. } | TwoPhaseOp::Decide { part, .. } => Some(part),
            TwoPhaseOp::Finish { .. } | TwoPhaseOp::Ask { .. } => None,
        }
    }
}

impl Lend for TwoPhaseOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        match self {
            TwoPhaseOp::Prepare { id, shard, until_us, part } => lend_part(part, &mut |part| {
                let (id, shard, until_us) = (*id, *shard, *until_us);
                f(&Command::TransactionPrepare(TransactionPrepare { id, shard, until_us, part }));
            }),
            TwoPhaseOp::Decide { id, until_us, participants, part } => lend_part(part, &mut |part| {
                let (id, until_us) = (*id, *until_us);
                f(&Command::TransactionDecide(TransactionDecide { id, until_us, participants, part }));
            }),
            TwoPhaseOp::Finish { namespace, id, commit } => {
                f(&Command::TransactionFinish { namespace: *namespace, id: *id, commit: *commit });
            }
            TwoPhaseOp::Ask { id, until_us } => {
                f(&Command::TransactionAsk { id: *id, until_us: *until_us });
            }
        }
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        self.part().and_then(|part| part.blob(number))
    }
}

fn lend_part(part: &TransactionOp, f: &mut dyn FnMut(Transaction<'_>)) {
    part.lend(&mut |command| {
        if let Command::Transaction(part) = command {
            f(*part);
        }
    });
}
