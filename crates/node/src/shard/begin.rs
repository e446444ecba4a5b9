//! The first records of a start: the epoch, which makes ids and tokens of this start unlike any before, the limits,
//! and the namespaces that shard 0 has placed here.

use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::Limits;
use sluice_engine::query::NamespaceView;
use sluice_journal::Class;

use super::store::Store;
use super::{Pending, Shard};
use crate::clock::Clock;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Proposes the first records and tells the epoch that they begin. They have to be durable and applied before
    /// anything is served, whatever the durability. `placed`: all namespaces as shard 0 knows them; not used on shard 0
    /// itself.
    pub fn begin(&mut self, limits: &Limits, placed: &[NamespaceView]) -> u32 {
        self.look_at_the_clock();
        let number = self.engine.epoch() + 1;
        self.propose(
            &Command::Epoch { number, behaviour: sluice_engine::BEHAVIOUR_VERSION },
            Pending::Internal,
        );
        if self.engine.limits() != limits {
            self.propose(&Command::Configure(limits.clone()), Pending::Internal);
        }
        if self.number != 0 {
            self.follow_placement(placed);
        }
        // A full disk must not keep a server from starting, for only a server can drain it.
        for (class, _) in &mut self.batch_pending {
            *class = Class::Draining;
        }
        self.propose_batch();
        number
    }

    /// Ends what a stop in the middle of creating or deleting a namespace has left: shard 0 is right.
    fn follow_placement(&mut self, placed: &[NamespaceView]) {
        let here: Vec<_> = placed.iter().filter(|view| view.shard == self.number).collect();
        for view in &here {
            if self.engine.namespace(view.id).is_none() {
                let create = Command::NamespaceCreate {
                    number: Some(view.id),
                    name: &view.name,
                    shard: view.shard,
                    quotas: view.quotas,
                };
                self.propose(&create, Pending::Internal);
            }
        }
        for view in self.engine.namespaces() {
            let built_in = view.id == NamespaceId::SYS || view.id == NamespaceId::DEFAULT;
            if !built_in && !here.iter().any(|placed| placed.id == view.id) {
                self.propose(
                    &Command::NamespaceDelete { namespace: view.id, force: true },
                    Pending::Internal,
                );
            }
        }
    }
}
