//! Random changes of queue settings, default settings and redrive rates.

use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::push::PushUrl;
use sluice_engine::settings::QueuePatch;

use super::Generator;
use super::names::QUEUES;
use super::names::wrong_name;
use super::seen::Seen;
use super::{Lend, Op};

const PATTERNS: [&str; 5] = ["*", "al*", "*ta", "*a*", "gamma"];

/// An operation on default settings, or a redrive at a rate.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum QueueOp {
    DefaultsSet { namespace: NamespaceId, pattern: String, patch: Box<QueuePatch> },
    DefaultsDelete { namespace: NamespaceId, pattern: String },
    RedriveRate { namespace: NamespaceId, queue: String, per_second: u32 },
}

impl Lend for QueueOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        match self {
            QueueOp::DefaultsSet { namespace, pattern, patch } => {
                f(&Command::DefaultsSet { namespace: *namespace, pattern, patch: (**patch).clone() });
            }
            QueueOp::DefaultsDelete { namespace, pattern } => {
                f(&Command::DefaultsDelete { namespace: *namespace, pattern });
            }
            QueueOp::RedriveRate { namespace, queue, per_second } => {
                f(&Command::DeadRedriveRate { namespace: *namespace, queue, per_second: *per_second })
            }
        }
    }

    fn is_wrong(&self) -> bool {
        matches!(self, QueueOp::RedriveRate { queue, .. } if wrong_name(queue))
    }
}

impl Generator {
    /// Draws a change of a queue: pausing, closing with its endpoint, or its dead-letter queue.
    pub(super) fn rule_queue(&mut self, seen: &Seen<'_>) -> Op {
        let namespace = self.a_namespace(seen);
        let mut patch = self.rules();
        self.place(&mut patch);
        Op::QueueSet { namespace, queue: self.a_queue(), patch, create: self.rng.chance(1, 2) }
    }

    fn rules(&mut self) -> QueuePatch {
        let mut patch = QueuePatch::default();
        match self.rng.below(4) {
            0 => patch.paused = Some(self.rng.chance(1, 3)),
            1 => {
                let closed = self.rng.chance(1, 4);
                patch.closed = Some(closed);
                // Nobody pushes here: its messages are received as ever.
                patch.push_url = Some(PushUrl(if closed { "https://endpoint.test/" } else { "" }.into()));
                patch.push_paused = Some(closed);
            }
            // Such runs have no dead-letter queues: see [`Generator::bounded`].
            _ if self.bounded && !self.mixes => patch.paused = Some(false),
            _ => {
                let target = if self.rng.chance(1, 4) { "" } else { *self.rng.pick(&QUEUES) };
                patch.dead_letter_queue = Some(target.into());
            }
        }
        patch
    }

    /// Draws default settings of queues that do not exist yet.
    pub(super) fn queue_defaults(&mut self, seen: &Seen<'_>) -> Op {
        let (namespace, pattern) = (self.a_namespace(seen), (*self.rng.pick(&PATTERNS)).to_owned());
        if self.rng.chance(1, 4) {
            return Op::Queue(QueueOp::DefaultsDelete { namespace, pattern });
        }
        let mut patch = self.rules();
        patch.lease_ms = Some(self.rng.between(100, 5_000));
        if !self.fair_only && self.rng.chance(1, 3) {
            patch.limit = Some("narrow".into());
        }
        Op::Queue(QueueOp::DefaultsSet { namespace, pattern, patch: Box::new(patch) })
    }

    /// Draws a redrive at a rate.
    pub(super) fn redrive_rate(&mut self, seen: &Seen<'_>) -> Op {
        if self.bounded && !self.mixes {
            return self.redrive(seen);
        }
        let (namespace, queue, _) = self.some_dead(seen);
        let per_second = self.rng.weighted(&[(1, 0), (2, 1), (2, 20), (1, 500)]);
        Op::Queue(QueueOp::RedriveRate { namespace, queue, per_second })
    }
}
