//! Settle and report records without their texts and results, for a full disk: they take effect all the
//! same.

use crate::engine::Engine;
use crate::queue::record::report::report_without_notes;
use crate::record::decode;
use crate::record::decode::{Kind, kind_of};
use crate::record::table::RareRecord;

impl Engine {
    /// The body of a settle record without its error texts and results, or of a report without its notes, so
    /// that it brings nothing that stays. `None`: it is another record, or has what must not be lost: a
    /// result that somebody wants, or a checkpoint.
    pub fn without_texts(&self, body: &[u8]) -> Option<Vec<u8>> {
        match kind_of(body).ok()? {
            Kind::Settle => {
                let settle = decode::settle(body).ok()?;
                self.queue.settle_without_texts(body, &settle, &self.core)
            }
            Kind::Rare if matches!(decode::rare(body), Ok(RareRecord::Report(_))) => {
                report_without_notes(body)
            }
            Kind::Tick | Kind::Send | Kind::Receive | Kind::Extend | Kind::Rare => None,
        }
    }
}
