//! Everything that goes wrong, by chance.

use super::{ClusterWorld, Event, SECOND_US};
use crate::disk::{Call, CallFailure, Crash};
use crate::model::Checked;

impl ClusterWorld {
    /// Lets one thing go wrong, or be repaired.
    pub(super) fn fault(&mut self) -> Checked {
        let count = self.nodes.len();
        let node = match self.leader() {
            Some(leader) if self.rng.chance(1, 2) => leader,
            _ => self.rng.index(count),
        };
        match self.rng.below(25) {
            0..3 => self.crash(node),
            3 | 4 => self.halt(node),
            5 => (0..count).for_each(|node| self.crash(node)),
            6 => (0..count).for_each(|node| self.halt(node)),
            7..9 => {
                let way = self.rng.below(3);
                self.network.cut(&[node], way != 1, way != 2);
            }
            9 | 10 => {
                let side: Vec<usize> = (0..count).filter(|_| self.rng.chance(1, 2)).collect();
                self.network.cut(&side, true, self.rng.chance(2, 3));
            }
            11 | 12 => {
                self.nodes[node].paused_until_us = self.now_us + self.rng.between(20_000, 2_500_000);
            }
            13 => self.worsen_network(),
            14 => {
                self.slow_write_us = if self.rng.chance(1, 2) { self.rng.between(5_000, 400_000) } else { 0 };
            }
            15 => {
                let call = *self.rng.pick(&[Call::Open, Call::Write, Call::Sync, Call::SyncDirectory]);
                let nth = self.rng.below(8);
                if self.may_lose(node) {
                    self.nodes[node].fail_call(call, nth, CallFailure::Io);
                }
            }
            16 => {
                let by_us = self.rng.below(2_000 * SECOND_US) as i64;
                // Of two clocks of which one is behind nobody knows that the other is right.
                let is_behind = self.rng.chance(1, 2) && self.first_count > 3;
                self.nodes[self.wrong_clock].jump(if is_behind { -by_us } else { by_us });
            }
            17..20 => self.network.cut(&[node], true, self.rng.chance(1, 2)),
            20 => self.lose(node),
            23 | 24 => self.damage()?,
            _ => self.network.join(),
        }
        // A cluster that is never whole gets nothing done.
        if self.rng.chance(1, 4) {
            self.network.join();
        }
        Ok(())
    }

    fn worsen_network(&mut self) {
        self.network.lost = self.rng.below(300);
        self.network.repeated = self.rng.below(300);
        self.network.late = self.rng.below(300);
        self.network.delay_us = if self.rng.chance(1, 2) { self.rng.between(1_000, 200_000) } else { 2_000 };
    }

    /// Ends a process: it is killed, or loses power, and starts again later.
    pub(super) fn crash(&mut self, node: usize) {
        let how = *self.rng.pick(&[Crash::Kill, Crash::Power]);
        self.crash_by(node, how);
    }

    pub(super) fn crash_by(&mut self, node: usize, how: Crash) {
        if self.nodes[node].server.is_none() {
            return;
        }
        let how = self.ending(node, how);
        self.trace(|| format!("  node {node} ends: {how:?}"));
        self.stats.restarts += 1;
        self.forget_calls(node);
        self.nodes[node].stop(how);
        let life = self.nodes[node].life;
        let longest = *self.rng.pick(&[30_000, 30_000, 30_000, 1_500_000, 1_500_000, 8 * SECOND_US]);
        self.at_random(1_000, longest, Event::Start { node, life });
        self.lose(node);
    }

    /// Tells some of the others that their connections with a node are lost, each at its time.
    fn lose(&mut self, peer: usize) {
        for node in (0..self.nodes.len()).filter(|node| *node != peer) {
            if self.rng.chance(2, 3) {
                self.at_random(100, 60_000, Event::Lost { node, peer });
            }
        }
    }

    /// Lets a process die in the middle of its next calls to the disk.
    fn halt(&mut self, node: usize) {
        let calls = self.rng.below(24);
        self.nodes[node].halt_after(calls);
    }

    /// Ends everything that goes wrong.
    pub(super) fn heal(&mut self) -> Checked {
        self.network.heal();
        self.slow_write_us = 0;
        self.free_disks();
        for node in 0..self.nodes.len() {
            self.nodes[node].heal();
            if self.nodes[node].is_halted() {
                self.crash(node);
            }
            if self.nodes[node].server.is_none() && self.nodes[node].away.is_none() {
                self.start(node)?;
            }
        }
        Ok(())
    }
}
