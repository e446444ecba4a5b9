//! Word to the operator of damage on this node's disk, and of what has come of it.

use sluice_replica::RepairCounts;

use crate::log_limiter::LogLimiter;

static REPAIRS: LogLimiter = LogLimiter::new();

/// Counts of which the operator was told.
#[derive(Debug, Default)]
pub(super) struct Told(RepairCounts);

impl Told {
    /// Tells of what has been counted since; what comes too fast is told together with what comes later.
    pub(super) fn tell(&mut self, counts: RepairCounts) {
        // That others were asked says nothing yet.
        let counts = RepairCounts { asked: 0, ..counts };
        if counts == self.0 || REPAIRS.due().is_none() {
            return;
        }
        let before = std::mem::replace(&mut self.0, counts);
        let (done, lost) = (counts.done - before.done, counts.lost - before.lost);
        let unanswered = counts.unanswered - before.unanswered;
        if done > 0 {
            tracing::warn!(
                blobs = done,
                "blobs were damaged here and came from other nodes: look for disk errors"
            );
        }
        if lost > 0 {
            tracing::error!(blobs = lost, "blobs are damaged on all nodes");
        }
        if unanswered > 0 {
            tracing::warn!(
                blobs = unanswered,
                "blobs are damaged here, and not all nodes that may have them answer"
            );
        }
    }
}
