//! Random operations on consumers: attach, change of credit, resumption, detach.

use sluice_engine::command::{Attach, Command, DETACH_GRACE_MS};
use sluice_engine::id::{ConsumerId, NamespaceId, Receipt};
use sluice_engine::settings::{Placement, QueuePatch};

use super::Generator;
use super::names::QUEUES;
use super::seen::Seen;
use super::{Lend, Op};

/// Approximate upper limit of attached consumers.
const ATTACHED_MAX: usize = 3;
/// Grace periods with which clients detach consumers, in milliseconds. The node uses none of them, so that a
/// record shows who has detached a consumer.
const GRACES_MS: [u64; 3] = [1, 500, 20_000];
/// Grace periods with which consumers are attached, in milliseconds.
const OWN_GRACES_MS: [u64; 4] = [0, 2_000, DETACH_GRACE_MS, 300_000];

/// An operation on a consumer.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum ConsumerOp {
    Attach { namespace: NamespaceId, queues: Vec<String>, credit: u32, lease_ms: u64, grace_ms: u64 },
    Credit { namespace: NamespaceId, consumer: ConsumerId, credit: u32 },
    Resume { namespace: NamespaceId, consumer: ConsumerId, receipts: Vec<Receipt> },
    Detach { namespace: NamespaceId, consumer: ConsumerId, grace_ms: u64, reached: u64 },
}

impl ConsumerOp {
    /// Calls `f` with the attach command, if this is one.
    pub fn attach<R>(&self, f: impl FnOnce(&Attach<'_>) -> R) -> Option<R> {
        let ConsumerOp::Attach { namespace, ref queues, credit, lease_ms, grace_ms } = *self else {
            return None;
        };
        let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
        Some(f(&Attach { namespace, name: "worker", queues: &queues, credit, lease_ms, grace_ms }))
    }
}

impl Lend for ConsumerOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        match *self {
            ConsumerOp::Attach { .. } => {
                self.attach(|attach| f(&Command::Attach(*attach)));
            }
            ConsumerOp::Credit { namespace, consumer, credit } => {
                f(&Command::Credit { namespace, consumer, credit });
            }
            ConsumerOp::Resume { namespace, consumer, ref receipts } => {
                f(&Command::Resume { namespace, consumer, receipts });
            }
            ConsumerOp::Detach { namespace, consumer, grace_ms, reached } => {
                f(&Command::Detach { namespace, consumer, grace_ms, reached });
            }
        }
    }
}

impl Generator {
    /// Draws an operation on a consumer; some name consumers that do not exist.
    pub(super) fn consumer(&mut self, seen: &Seen<'_>) -> Op {
        let attached = seen.attached();
        if attached.is_empty() || (attached.len() < ATTACHED_MAX && self.rng.chance(1, 2)) {
            return Op::Consumer(self.attach(seen));
        }
        let (namespace, consumer) = *self.rng.pick(&attached);
        let consumer = if self.rng.chance(1, 20) { ConsumerId(consumer.0 + 1_000) } else { consumer };
        Op::Consumer(match self.rng.below(6) {
            0..=2 => ConsumerOp::Credit { namespace, consumer, credit: self.credit() },
            3 => {
                let receipts = (0..self.rng.between(1, 4)).map(|_| self.a_receipt(false)).collect();
                ConsumerOp::Resume { namespace, consumer, receipts }
            }
            _ => {
                let reached = if self.rng.chance(1, 2) { self.a_receipt(false).token } else { 0 };
                let grace_ms = *self.rng.pick(&GRACES_MS);
                ConsumerOp::Detach { namespace, consumer, grace_ms, reached }
            }
        })
    }

    /// Changes a queue's placement at times.
    pub(super) fn place(&mut self, patch: &mut QueuePatch) {
        if self.attaches && self.rng.chance(1, 2) {
            patch.placement =
                Some(*self.rng.pick(&[Placement::Fair, Placement::LeastLoaded, Placement::Sticky]));
        }
    }

    fn credit(&mut self) -> u32 {
        self.rng.weighted(&[(1, 0), (3, 1), (3, 4), (1, 40)])
    }

    fn attach(&mut self, seen: &Seen<'_>) -> ConsumerOp {
        let mut queues: Vec<String> = QUEUES.iter().map(|queue| (*queue).to_owned()).collect();
        queues.retain(|_| self.rng.chance(1, 2));
        if queues.is_empty() {
            queues.push("later".to_owned());
        }
        let lease_ms = self.rng.weighted(&[(3, 0), (1, 1_000), (1, 60_000)]);
        let grace_ms = *self.rng.pick(&OWN_GRACES_MS);
        let (namespace, credit) = (self.a_namespace(seen), self.credit());
        ConsumerOp::Attach { namespace, queues, credit, lease_ms, grace_ms }
    }
}
