//! What goes wrong, by chance.

use super::world::{LIFETIME, World};

impl World {
    /// Lets one thing go wrong, or be repaired.
    pub(crate) fn fault(&mut self) {
        self.checker.coverage.faults += 1;
        let count = self.nodes.len();
        let node = match self.leader() {
            Some(leader) if self.rng.chance(1, 2) => leader,
            _ => self.any_node(),
        };
        match self.rng.below(19) {
            0..4 => self.crash(node),
            4 => (0..count).for_each(|node| self.crash(node)),
            5 => (0..count).for_each(|node| {
                if self.rng.chance(1, 2) {
                    self.crash(node);
                }
            }),
            6..9 => {
                let way = self.rng.below(3);
                self.network.cut(&[node], way != 1, way != 2);
            }
            9 | 10 => {
                let side: Vec<usize> = (0..count).filter(|_| self.rng.chance(1, 2)).collect();
                self.network.cut(&side, true, self.rng.chance(2, 3));
            }
            11 => {
                let until = self.now_us + self.rng.between(20_000, 2_500_000);
                self.nodes[node].paused_until_us = until;
            }
            12 => {
                self.network.lost = self.rng.below(300);
                self.network.repeated = self.rng.below(300);
                self.network.late = self.rng.below(300);
                self.network.delay_us =
                    if self.rng.chance(1, 2) { self.rng.between(1_000, 200_000) } else { 2_000 };
            }
            13 => {
                self.slow_sync_us = if self.rng.chance(1, 2) { self.rng.between(5_000, 400_000) } else { 0 }
            }
            14 => self.lifetime = if self.rng.chance(1, 2) { self.rng.between(20, 200) } else { LIFETIME },
            15 if self.can_lose(node) => self.lose(node),
            16 => self.wanted = [1, 2, 3, 3, 5][self.rng.index(5)],
            _ => self.network.join(),
        }
        // A cluster that is never whole gets nothing done.
        if self.rng.chance(1, 3) {
            self.network.join();
            self.lifetime = LIFETIME;
        }
    }

    /// A node, mostly a member.
    fn any_node(&mut self) -> usize {
        let is_member = |node: &usize| self.checker.members().contains(self.nodes[*node].id);
        let members: Vec<usize> = (0..self.nodes.len()).filter(is_member).collect();
        match members.as_slice() {
            members if self.rng.chance(5, 6) && !members.is_empty() => members[self.rng.index(members.len())],
            _ => self.rng.index(self.nodes.len()),
        }
    }

    /// Ends everything that goes wrong.
    pub(crate) fn heal(&mut self) -> Result<(), String> {
        self.network.heal();
        self.slow_sync_us = 0;
        for node in 0..self.nodes.len() {
            self.nodes[node].paused_until_us = 0;
            if self.nodes[node].replica.is_none() {
                self.start(node)?;
            }
        }
        Ok(())
    }
}
