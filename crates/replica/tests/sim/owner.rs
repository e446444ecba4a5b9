//! What owners do in their own time: they apply late and in pieces, forget what they do not need, and send
//! and install states.

use sluice_replica::{Message, NodeId, Snapshot};

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
            let is_new = entry.position.index > self.checker.log.len() as u64;
            self.nodes[node].apply(node, &entry, &mut self.checker)?;
            if is_new {
                self.check_commit(&entry)?;
            }
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

    /// Lets a node keep its state, and forget entries that are older.
    pub(crate) fn compact(&mut self, node: usize) {
        let owner = &mut self.nodes[node];
        let Some(replica) = owner.replica.as_mut() else { return };
        let Some(snapshot) = replica.snapshot() else { return };
        self.checker.coverage.compactions += 1;
        let index = snapshot.position.index;
        let to = self.rng.between(1, index);
        if index == owner.applied {
            owner.disk.keep(snapshot, owner.digest);
            replica.compact(if self.rng.chance(1, 4) { u64::MAX } else { to });
        }
    }

    /// Sends a state to a follower that needs one: that of the disk, or the present one.
    pub(crate) fn serve(&mut self, node: usize, to: NodeId) {
        let owner = &mut self.nodes[node];
        let Some(replica) = owner.replica.as_mut() else { return };
        let kept = owner.disk.durable.base.clone();
        if self.rng.chance(1, 2) && replica.send_snapshot(to, &kept).is_ok() {
            return;
        }
        replica.applied(owner.applied);
        let Some(snapshot) = replica.snapshot() else { return };
        owner.disk.keep(snapshot.clone(), owner.digest);
        let _ = replica.send_snapshot(to, &snapshot);
    }

    /// Sends the message of a state with the state, slowly, and comes to know later how it has ended, not
    /// always rightly.
    pub(crate) fn transfer_state(
        &mut self,
        node: usize,
        message: &Message,
        snapshot: &Snapshot,
        bytes: &[u8],
    ) {
        let (to, life) = (message.to, self.nodes[node].life);
        let digest = self.checker.digest(snapshot.position.index);
        let Some(place) = self.place(to) else { return };
        let delays = self.network.send(node, place, &mut self.rng);
        let transfer_us = self.rng.between(0, 200_000);
        for delay in &delays {
            let (bytes, state) = (bytes.to_vec(), Some(digest));
            self.at(delay + transfer_us, Event::Arrive { node: place, bytes, state });
        }
        let is_whole = !delays.is_empty() && !self.rng.chance(1, 10);
        self.at(transfer_us + 300_000, Event::Transferred { node, life, to, is_whole });
    }

    /// Puts the state that the disk has synced in the place of the present one.
    pub(crate) fn install(&mut self, node: usize) -> Result<(), String> {
        let owner = &mut self.nodes[node];
        let index = owner.disk.durable.base.position.index;
        if index > owner.applied {
            (owner.applied, owner.digest) = (index, owner.disk.digest);
            owner.given.clear();
            // Nobody learns what became of those that the state covers.
            owner.proposals = owner.proposals.split_off(&(index + 1, 0));
            self.checker.installs(node, index, owner.digest)?;
        }
        Ok(())
    }
}
