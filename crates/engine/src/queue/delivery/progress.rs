//! Reports: progress, checkpoints and costs that the holder of a lease tells of.

use crate::core::Core;
use crate::error::Error;
use crate::id::BlobRef;
use crate::outcome::Outcome;
use crate::queue::QueueModule;
use crate::queue::limit::COSTS_SINCE;
use crate::queue::record::report::{ReportItemRecord, ReportRecord};
use crate::queue::state::MessageSlot;
use crate::queue::state::results::Progress;

impl QueueModule {
    /// Extends leases, and takes down what their holders report.
    pub(crate) fn report(
        &mut self,
        report: &ReportRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let index = core.applied_index;
        if core.live_namespace(report.namespace).is_none() {
            out.released.extend(report.blobs(index));
            return Err(report.namespace.not_found());
        }
        for item in report.items(index) {
            let counts = if item.add_cost > 0 { core.expect_behaviour(COSTS_SINCE) } else { Ok(()) };
            let extended = counts.and_then(|()| self.extendable_slot(report.namespace, &item.receipt, core));
            match extended {
                Ok(slot) => {
                    self.extend_lease(slot, item.lease_ms, core);
                    if item.add_cost > 0 {
                        self.add_cost(slot, item.add_cost, core);
                    }
                    self.take_down(slot, &item, core, out);
                }
                Err(_) => out.released.extend(item.blobs()),
            }
            out.results.push(extended.map(|_| ()));
        }
        Ok(())
    }

    fn take_down(&mut self, slot: MessageSlot, item: &ReportItemRecord, core: &mut Core, out: &mut Outcome) {
        if item.percent.is_none() && item.checkpoint.is_none() {
            return;
        }
        let results = self.results_slot(slot);
        let results = self.extras.results.get_mut(results);
        let mut replaced: [Option<BlobRef>; 2] = [None; 2];
        if let Some(percent) = item.percent {
            let progress = Progress { percent, note: item.note, at_us: core.now_us };
            replaced[0] = results.progress.replace(progress).and_then(|earlier| earlier.note);
        }
        if item.checkpoint.is_some() {
            replaced[1] = std::mem::replace(&mut results.checkpoint, item.checkpoint);
        }
        for blob in replaced.into_iter().flatten() {
            core.release_blob(blob, out);
        }
    }
}
