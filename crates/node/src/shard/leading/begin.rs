//! The first records of a start: the epoch, which makes ids and tokens of this start unlike any before, the
//! limits, and what brings the namespaces here into line with shard 0. Each later leadership begins with an
//! epoch of its own.

use std::collections::BTreeSet;

use sluice_engine::BEHAVIOUR_VERSION;
use sluice_engine::command::Command;
use sluice_engine::id::{NamespaceId, ReceiptKey};
use sluice_engine::limits::Limits;
use sluice_engine::query::NamespaceView;
use sluice_journal::Class;

use super::proposals::Pending;
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::store::Store;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Proposes the first records and tells the epoch that they begin. They have to be durable and applied
    /// before anything is served, whatever the durability.
    ///
    /// `term` is that of the journal's opening, or [`crate::clock::term_min`] where it has none. An epoch has
    /// at least its number: a flipped bit in the record of the last epoch looks like a torn write, and with
    /// it the number would be given again.
    ///
    /// `key`: for the receipts of a log that has none yet.
    pub fn begin(&mut self, limits: &Limits, term: u64, key: ReceiptKey) -> u64 {
        let number = self.propose_epoch(term);
        if !self.engine.has_receipt_key() {
            self.propose(&Command::ReceiptKey(key), Pending::Internal);
        }
        if self.engine.limits() != limits {
            self.propose(&Command::Configure(limits.clone()), Pending::Internal);
        }
        self.propose_first();
        number
    }

    /// Proposes the first record of a leadership, and tells the epoch that it begins. Limits and the key of
    /// receipts are in the log since it had one node, from which every cluster grows; the limits are the
    /// cluster's from then on, whatever the settings of its leader are.
    pub(in crate::shard) fn begin_leadership(&mut self) -> u64 {
        self.take_over_time();
        let number = self.propose_epoch(self.term());
        self.propose_first();
        number
    }

    fn propose_epoch(&mut self, term: u64) -> u64 {
        self.look_at_the_clock();
        let number = self.engine.next_epoch().max(term);
        let behaviour = match self.engine.behaviour() {
            0 => BEHAVIOUR_VERSION,
            in_force => in_force,
        };
        self.propose(&Command::Epoch { number, behaviour }, Pending::Internal);
        number
    }

    /// Namespaces here that are to be adopted, before [`Shard::follow_placement`] would delete them.
    pub fn adoptions(&self, placed: &[NamespaceView], next: NamespaceId) -> Vec<Adoption> {
        Adoption::all(self.engine.namespaces(), placed, next)
    }

    /// Ends what a stop in the middle of changing a namespace has left: shard 0 is right. `placed`: all
    /// namespaces as shard 0 knows them. True when nothing differs; otherwise it proposes what is missing and
    /// is to be asked again once that is applied, which may take more than one try: the number of a deleted
    /// namespace becomes free when all that it held is swept.
    pub fn follow_placement(&mut self, placed: &[NamespaceView]) -> bool {
        if self.number == 0 {
            return true;
        }
        let here: Vec<_> = placed.iter().filter(|view| view.shard == self.number).collect();
        for view in &here {
            match self.engine.namespace(view.id) {
                None => self.propose(&creation_of(view), Pending::Internal),
                Some(own) if own.quotas != view.quotas => {
                    let set = Command::NamespaceSet { namespace: view.id, quotas: view.quotas };
                    self.propose(&set, Pending::Internal);
                }
                Some(_) => {}
            }
        }
        let wanted: BTreeSet<NamespaceId> = here.iter().map(|view| view.id).collect();
        for view in self.engine.namespaces() {
            let built_in = view.id == NamespaceId::SYS || view.id == NamespaceId::DEFAULT;
            if !built_in && !wanted.contains(&view.id) {
                let delete = Command::NamespaceDelete { namespace: view.id, force: true };
                self.propose(&delete, Pending::Internal);
            }
        }
        let follows = self.leading.proposals.batch.is_empty();
        self.propose_first();
        follows
    }

    /// A full disk must not keep a server from starting, for only a server can drain it.
    fn propose_first(&mut self) {
        for (class, _) in &mut self.leading.proposals.batch_pending {
            *class = Class::Draining;
        }
        self.propose_batch();
    }
}

/// A namespace that shard 0 does not know, and has to be told of.
#[derive(Clone, Debug)]
pub struct Adoption {
    /// The namespace as its shard knows it.
    pub namespace: NamespaceView,
    /// A namespace of the same name that shard 0 knows. It was deleted before the other could get its name.
    pub replaced: Option<NamespaceView>,
}

impl Adoption {
    /// Adoptions of a shard that has the namespaces `own`, of which some were created after all that shard 0
    /// knows of: `next` is the number that it would give next, `placed` are all namespaces as it knows them.
    /// It has lost its newest records, or is from an earlier moment of a backup than that shard.
    pub fn all(own: Vec<NamespaceView>, placed: &[NamespaceView], next: NamespaceId) -> Vec<Adoption> {
        let unknown = own.into_iter().filter(|view| view.id >= next);
        let adoption = |view: NamespaceView| {
            let replaced = placed.iter().find(|other| other.name == view.name).cloned();
            Adoption { namespace: view, replaced }
        };
        unknown.map(adoption).collect()
    }

    /// Commands with the shards that they go to, in order. A shard with a greater number than the namespace's
    /// has not started yet and follows by itself.
    pub fn steps(&self) -> Vec<(u32, Command<'_>)> {
        let mut steps = Vec::new();
        if let Some(view) = &self.replaced {
            let delete = || Command::NamespaceDelete { namespace: view.id, force: true };
            steps.push((0, delete()));
            if (1..self.namespace.shard).contains(&view.shard) {
                steps.push((view.shard, delete()));
            }
        }
        steps.push((0, creation_of(&self.namespace)));
        steps
    }

    /// Adds it to the namespaces of shard 0.
    pub fn enter(self, placed: &mut Vec<NamespaceView>) {
        placed.retain(|view| view.name != self.namespace.name);
        placed.push(self.namespace);
    }
}

fn creation_of(view: &NamespaceView) -> Command<'_> {
    Command::NamespaceCreate {
        number: Some(view.id),
        name: &view.name,
        shard: view.shard,
        quotas: view.quotas,
    }
}
