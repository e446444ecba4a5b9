//! Requests of clients.

use sluice_journal::Class;
use sluice_replica::NotProposed;

use super::{ClusterWorld, batch, node};
use crate::model::Checked;

impl ClusterWorld {
    /// Lets a client ask one of those who say that they lead.
    pub(super) fn client(&mut self) -> Checked {
        let leading: Vec<usize> = (0..self.nodes.len())
            .filter(|node| self.nodes[*node].leads() && self.pause(*node).is_none())
            .collect();
        if leading.is_empty() {
            return Ok(());
        }
        let node = *self.rng.pick(&leading);
        match self.rng.below(200) {
            0 if self.faulty => self.transfer(node),
            1..60 => self.read(node),
            _ => self.propose(node)?,
        }
        self.input(node, |_| {})
    }

    fn transfer(&mut self, node: usize) {
        let to = node::id(self.rng.index(self.nodes.len()));
        let Some(server) = &mut self.nodes[node].server else { return };
        if server.member.transfer_leader(to).is_ok() {
            self.stats.transfers += 1;
        }
    }

    fn read(&mut self, node: usize) {
        let floor = self.checker.acknowledged_index();
        let owner = &mut self.nodes[node];
        let asked = owner.server.as_mut().and_then(|server| server.member.read_index().ok());
        owner.reads.extend(asked.map(|id| (id, floor)));
    }

    fn propose(&mut self, node: usize) -> Checked {
        self.next_operation += 1;
        let operation = self.next_operation;
        let mut batch = batch::of_operation(operation, &mut self.rng);
        let owner = &mut self.nodes[node];
        let Some(server) = &mut owner.server else { return Ok(()) };
        match server.member.propose(&mut batch, self.now_us, Class::Growing) {
            Ok(at) => {
                owner.proposals.insert(at, operation);
                Ok(())
            }
            Err(NotProposed::Replica(_)) => Ok(()),
            Err(NotProposed::Journal(sluice_journal::Refused::Failed(_))) => Ok(()),
            Err(NotProposed::Journal(refused)) => Err(format!("a batch was refused: {refused:?}")),
        }
    }
}
