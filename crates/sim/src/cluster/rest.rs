//! Rest: where nobody asks and nothing goes wrong all members become quiet, and the loss of the leader's node
//! wakes them.

use super::{ClusterWorld, SECOND_US};
use crate::disk::Crash;
use crate::model::Checked;

/// Time in which all members vote and become quiet when nobody asks any more, in microseconds: leases and
/// delays end meanwhile.
const RESTING_US: u64 = 60 * SECOND_US;

/// Time in which another node leads when that of a quiet leader is lost, in microseconds.
const WAKING_US: u64 = 10 * SECOND_US;

impl ClusterWorld {
    /// Waits until all members are quiet, takes the leader away, and waits until another leads.
    pub(super) fn watch_rest(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        self.is_closing = true;
        self.run_until(step, RESTING_US, "the members do not rest", ClusterWorld::are_all_quiet)?;
        let Some(leader) = self.leader() else { return Err("quiet members have no leader".to_owned()) };
        let term = self.nodes[leader].term_led().unwrap_or_default();
        match self.rng.below(3) {
            0 => self.crash_by(leader, Crash::Power),
            1 => self.nodes[leader].paused_until_us = self.now_us + 2 * WAKING_US,
            _ => self.network.cut(&[leader], true, true),
        }
        let is_replaced =
            |world: &mut ClusterWorld| world.nodes.iter().any(|node| node.term_led() > Some(term));
        self.run_until(step, WAKING_US, "nobody leads instead of a quiet leader that is lost", is_replaced)?;
        self.is_closing = false;
        self.heal()
    }

    fn are_all_quiet(&mut self) -> bool {
        self.clients.open.is_empty()
            && self.has_power()
            && self.present().collect::<Vec<_>>().into_iter().all(|node| {
                let server = self.nodes[node].server.as_mut();
                server.is_some_and(|server| server.shard.store().store.member().is_quiet())
            })
    }

    /// Lets everything go on until it is so.
    pub(super) fn run_until(
        &mut self,
        step: &std::cell::Cell<u64>,
        within_us: u64,
        failure: &str,
        is_so: impl Fn(&mut ClusterWorld) -> bool,
    ) -> Checked {
        let end_us = self.now_us + within_us;
        while !is_so(self) {
            if self.now_us > end_us {
                return Err(failure.to_owned());
            }
            self.next(step)?;
        }
        Ok(())
    }
}
