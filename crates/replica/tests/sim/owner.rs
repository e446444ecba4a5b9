//! What owners do in their own time: they apply late and in pieces, and forget what they do not need.

use super::world::{Event, World};

impl World {
    /// Applies what a node was given: at once, or later.
    pub(crate) fn apply_some(&mut self, node: usize) -> Result<(), String> {
        if self.rng.chance(2, 3) {
            return self.apply(node, usize::MAX);
        }
        let latest = if self.rng.chance(1, 20) { 400_000 } else { 10_000 };
        let life = self.nodes[node].life;
        self.at_random(100, latest, Event::Apply { node, life });
        Ok(())
    }

    /// Applies a piece of what a node was given, and tells the replica. The node may die behind any entry.
    pub(crate) fn apply(&mut self, node: usize, entries_max: usize) -> Result<(), String> {
        for _ in 0..entries_max {
            let Some(entry) = self.nodes[node].given.pop_front() else { break };
            self.nodes[node].apply(node, &entry, &mut self.checker)?;
            if self.dies(node) {
                return Ok(());
            }
        }
        let applied = self.nodes[node].applied;
        if let Some(replica) = self.nodes[node].replica.as_mut() {
            replica.applied(applied);
        }
        Ok(())
    }

    /// Applies a piece at its time, and comes back for the rest.
    pub(crate) fn apply_late(&mut self, node: usize, life: u64) -> Result<(), String> {
        let late = self.nodes[node].given.len();
        if late == 0 {
            return Ok(());
        }
        self.checker.coverage.late += 1;
        let piece = 1 + self.rng.index(late);
        self.apply(node, piece)?;
        self.at_random(100, 10_000, Event::Apply { node, life });
        self.input(node, |_| {})
    }

    /// Lets a node forget entries that it has applied and that no follower will need.
    pub(crate) fn compact(&mut self, node: usize) {
        let owner = &mut self.nodes[node];
        let Some(replica) = owner.replica.as_mut() else { return };
        let to = self.rng.between(0, self.healed.min(owner.applied));
        if let Some(entry) = self.checker.log.get((to as usize).wrapping_sub(1)) {
            self.checker.coverage.compactions += 1;
            owner.disk.compact(entry.position);
            replica.compact(to);
        }
    }
}
