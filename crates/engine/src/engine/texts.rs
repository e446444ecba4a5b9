//! Settle and report records without their texts and results, for a full disk: they take effect all the
//! same.

use crate::engine::Engine;
use crate::queue::record::report::report_without_notes;
use crate::record::decode;
use crate::record::decode::{Kind, kind_of};
use crate::record::table::RareRecord;
use crate::transaction::record::{OperationRecord, TransactionRecord};

impl Engine {
    /// The body of a settle record without its error texts and results, alone or in a transaction, or of a
    /// report without its notes, so that it brings nothing that stays. `None`: it is another record, or has
    /// what must not be lost: a result that somebody wants, or a checkpoint.
    pub fn without_texts(&self, body: &[u8]) -> Option<Vec<u8>> {
        match kind_of(body).ok()? {
            Kind::Settle => {
                let settle = decode::settle(body).ok()?;
                self.queue.settle_without_texts(body, &settle, &self.core)
            }
            Kind::Rare => {
                let record = decode::rare(body).ok()?;
                if let RareRecord::Transaction(transaction) = record {
                    return self.transaction_without_texts(body, &transaction);
                }
                if let RareRecord::Report(_) = record { report_without_notes(body) } else { None }
            }
            Kind::Tick | Kind::Send | Kind::Receive | Kind::Extend => None,
        }
    }

    /// The same of a transaction; `None` also for one that brings anything else.
    fn transaction_without_texts(&self, body: &[u8], transaction: &TransactionRecord<'_>) -> Option<Vec<u8>> {
        let may_be_bare = |operation: OperationRecord<'_>| match operation {
            OperationRecord::Settle(item) => !self.queue.wants_result_of(&item, &self.core),
            OperationRecord::Delete(_)
            | OperationRecord::Detach(_)
            | OperationRecord::Check(_)
            | OperationRecord::Release(_) => true,
            OperationRecord::Send(..)
            | OperationRecord::Put(_)
            | OperationRecord::Attach(_)
            | OperationRecord::Acquire(_) => false,
        };
        transaction.operations().all(may_be_bare).then(|| transaction.without_blobs(body))
    }
}
