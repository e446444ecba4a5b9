//! Random operations of operators: on queues, dead letters, and namespaces.

use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::settings::{QueuePatch, Quotas};

use super::Generator;
use super::Op;
use super::seen::Seen;

/// Namespaces that clients create beside `default`.
const NAMESPACES: [&str; 2] = ["red", "blue"];

impl Generator {
    pub(super) fn queue_set(&mut self, seen: &Seen<'_>) -> Op {
        let rng = &mut self.rng;
        let mut patch = QueuePatch {
            lease_ms: rng.chance(1, 2).then(|| rng.between(20, 5_000)),
            max_attempts: rng.chance(1, 2).then(|| rng.between(1, 4) as u16),
            max_deliveries: rng.chance(1, 2).then(|| rng.between(1, 8) as u16),
            ..QueuePatch::default()
        };
        // Never an empty patch: it would look like the node's own, which creates the queues of a pull.
        if patch == QueuePatch::default() || self.rng.chance(1, 2) {
            patch.backoff = Some(self.backoff());
        }
        self.retain_done(&mut patch);
        self.bound_queue(&mut patch);
        let create = self.rng.chance(2, 3);
        Op::QueueSet { namespace: self.a_namespace(seen), queue: self.a_queue(), patch, create }
    }

    pub(super) fn drop_messages(&mut self, seen: &Seen<'_>) -> Op {
        let (namespace, queue) = (self.a_namespace(seen), self.a_queue());
        if self.rng.chance(3, 4) {
            Op::QueuePurge { namespace, queue }
        } else {
            Op::QueueDelete { namespace, queue }
        }
    }

    pub(super) fn redrive(&mut self, seen: &Seen<'_>) -> Op {
        let (namespace, queue, ids) = self.some_dead(seen);
        Op::DeadRedrive { namespace, queue, ids }
    }

    pub(super) fn delete_dead(&mut self, seen: &Seen<'_>) -> Op {
        let (namespace, queue, ids) = self.some_dead(seen);
        Op::DeadDelete { namespace, queue, ids }
    }

    /// A queue, and some of its dead letters; none by name means all.
    pub(super) fn some_dead(&mut self, seen: &Seen<'_>) -> (NamespaceId, String, Vec<MessageId>) {
        let dead = seen.dead_letters();
        if dead.is_empty() || self.rng.chance(1, 8) {
            return (self.a_namespace(seen), self.a_queue(), Vec::new());
        }
        let (namespace, queue, id) = self.rng.pick(&dead).clone();
        let mut ids = if self.rng.chance(1, 3) { Vec::new() } else { vec![id] };
        if !ids.is_empty() && self.rng.chance(1, 4) {
            let other = self.rng.pick(&dead).2;
            if !ids.contains(&other) {
                ids.push(other);
            }
        }
        (namespace, queue, ids)
    }

    pub(super) fn namespace(&mut self, seen: &Seen<'_>) -> Op {
        let (narrow, rng) = (self.mixes, &mut self.rng);
        let few = if narrow { rng.between(1, 5) } else { 100 };
        let quotas = Quotas {
            queues: rng.weighted(&[(3, 0), (1, 3)]),
            messages: rng.weighted(&[(3, 0), (1, few)]),
            bytes: rng.weighted(&[(3, 0), (1, 20_000)]),
        };
        match self.rng.below(6) {
            0..=2 => {
                let name = (*self.rng.pick(&NAMESPACES)).to_owned();
                Op::NamespaceCreate { number: None, name, shard: self.shard, quotas }
            }
            3 | 4 => Op::NamespaceSet { namespace: self.a_namespace(seen), quotas },
            _ => Op::NamespaceDelete { namespace: self.a_namespace(seen), force: self.rng.chance(1, 2) },
        }
    }
}
