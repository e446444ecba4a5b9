//! Random keys for messages, and limits for queues.

use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::item::SendOptions;
use sluice_engine::limit::{Cost, LimitRules, Rate};
use sluice_engine::settings::{FairWeights, OrderingRetry, QueuePatch};

use super::Generator;
use super::seen::Seen;
use super::{Lend, Op};
use crate::rng::Rng;

/// Queues to which messages with keys are sent, and which may follow limits.
pub(super) const KEYED_QUEUES: [&str; 2] = ["gamma", "delta"];
const LIMITS: [&str; 2] = ["narrow", "slow"];

/// An operation on a limit.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // The fields are those of the command of the same name.
pub enum LimitOp {
    Set { namespace: NamespaceId, limit: String, rules: LimitRules },
    Delete { namespace: NamespaceId, limit: String },
}

impl Lend for LimitOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        match self {
            LimitOp::Set { namespace, limit, rules } => {
                f(&Command::LimitSet { namespace: *namespace, limit, rules: *rules });
            }
            LimitOp::Delete { namespace, limit } => {
                f(&Command::LimitDelete { namespace: *namespace, limit });
            }
        }
    }
}

impl Generator {
    /// Gives keys to most messages of queues with keys.
    pub(super) fn give_keys(&mut self, options: &mut SendOptions<'static>) {
        if self.fair_only {
            options.fair_key = *self.rng.pick::<&[u8]>(&[b"", b"k0", b"k0", b"k1", b"k2"]);
        } else if self.rng.chance(3, 4) {
            let keys: [&[u8]; 4] = [b"", b"", b"k0", b"k1"];
            let mut key = || keys[self.rng.index(keys.len())];
            *options = SendOptions { ordering_key: key(), fair_key: key(), limit_key: key(), ..*options };
        }
        if !self.fair_only {
            options.cost = self.a_cost();
        }
    }

    /// Draws a cost of a message: one mostly.
    pub(super) fn a_cost(&mut self) -> Cost {
        Cost(self.rng.weighted(&[(6, 1), (1, 0), (2, 2), (1, 30)]))
    }

    /// Draws an operation that creates or changes a limit, or makes a queue follow or leave one.
    pub(super) fn limit(&mut self, seen: &Seen<'_>) -> Op {
        let namespace = self.a_namespace(seen);
        let limit = (*self.rng.pick(&LIMITS)).to_owned();
        let rng = &mut self.rng;
        match rng.below(6) {
            0 => Op::Limit(LimitOp::Delete { namespace, limit }),
            1..=2 => {
                let count = |rng: &mut Rng| rng.chance(1, 2).then(|| rng.between(1, 4) as u32);
                let rules = LimitRules {
                    in_flight: count(rng),
                    in_flight_per_key: count(rng),
                    rate: a_rate(rng),
                    rate_per_key: a_rate(rng),
                };
                Op::Limit(LimitOp::Set { namespace, limit, rules })
            }
            _ => {
                let weights = [(Box::from(&b"k0"[..]), rng.between(1, 3) as u16)];
                let patch = QueuePatch {
                    limit: Some(if self.fair_only || rng.chance(1, 4) { "".into() } else { limit.into() }),
                    fair_weights: Some(FairWeights::new(weights.into())),
                    ordering_retry: Some(*rng.pick(&[OrderingRetry::Block, OrderingRetry::StepAside])),
                    ..QueuePatch::default()
                };
                let queue = (*self.rng.pick(&KEYED_QUEUES)).to_owned();
                Op::QueueSet { namespace, queue, patch, create: true }
            }
        }
    }
}

/// Draws a rate, or none: slow enough that what was spent is there when it changes, and with bursts below and
/// above what deliveries and reports cost.
fn a_rate(rng: &mut Rng) -> Option<Rate> {
    let (count, period_ms) = (rng.between(20, 200) as u32, *rng.pick(&[1_000, 1_000, 4_000, 20_000]));
    let (least, most) = if rng.chance(1, 2) { (1, 5) } else { (20, 200) };
    let burst = rng.between(least, most) as u32;
    rng.chance(1, 2).then_some(Rate { count, period_ms, burst })
}
