//! Disks that are full, while nothing else goes wrong: with a few of them everything goes on, with a majority
//! settling does, and sends are refused.

use std::cell::Cell;

use sluice_node::shard::store::Store;

use super::{ClusterWorld, SECOND_US};
use crate::model::Checked;

/// Time for which disks are full, in microseconds: reserves last for it.
const FULL_US: u64 = 8 * SECOND_US;
/// Part of it, at its end, in which everything has found its way, in microseconds.
const SETTLED_US: u64 = 2 * SECOND_US;
/// Time after which nobody hears of a full disk any more, in microseconds.
const AFTERWARDS_US: u64 = SECOND_US;

impl ClusterWorld {
    /// Fills the disks of some nodes, mostly that of the leader among them, and makes room again.
    pub(super) fn fill_disks(&mut self, step: &Cell<u64>) -> Checked {
        if !self.nodes.iter().all(|node| node.has_reserve()) || self.rng.chance(1, 2) {
            return Ok(());
        }
        let count = self.nodes.len();
        let full = self.rng.between(1, count as u64) as usize;
        let first = self.leader().filter(|_| self.rng.chance(2, 3)).unwrap_or(self.rng.index(count));
        for node in (first..first + full).map(|node| node % count) {
            self.nodes[node].leave(Some(self.rng.index(100 << 10)));
        }
        self.trace(|| format!("  {full} disks are full, from that of node {first}"));
        (self.is_filling, self.judge.may_be_full) = (true, true);
        self.pass(FULL_US - SETTLED_US, step)?;
        let (sends, settled) = (self.judge.sends(), self.judge.settled);
        self.pass(SETTLED_US, step)?;
        let is_minority = 2 * full < count;
        if self.judge.settled == settled || is_minority && self.judge.sends() == sends {
            let rooms = self.rooms();
            return Err(format!("nothing goes on, with {full} of {count} disks full: {rooms:?} bytes free"));
        }
        self.is_filling = false;
        (0..count).for_each(|node| self.nodes[node].leave(None));
        self.watch_healing(step)?;
        self.pass(AFTERWARDS_US, step)?;
        self.judge.may_be_full = false;
        Ok(())
    }

    /// Free space of each node, with its reserve, in bytes.
    fn rooms(&mut self) -> Vec<u64> {
        let servers = self.nodes.iter_mut().filter_map(|node| node.server.as_mut());
        let status = servers.map(|server| server.shard.store().status());
        status.map(|status| status.disk_free_bytes + status.reserve_bytes).collect()
    }

    /// Lets time pass.
    fn pass(&mut self, us: u64, step: &Cell<u64>) -> Checked {
        let end = self.now_us + us;
        while self.now_us < end {
            self.next(step)?;
        }
        Ok(())
    }
}
