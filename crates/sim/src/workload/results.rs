//! Random result options of messages, and reports of workers.

use sluice_engine::command::Settlement;
use sluice_engine::id::Receipt;
use sluice_engine::item::SendOptions;
use sluice_engine::settings::QueuePatch;

use super::Generator;
use super::seen::Seen;
use super::{Op, Settled, WorkReport};

/// Queues for replies; the first reply may have to create one.
const REPLY_QUEUES: [&str; 2] = ["alpha", "gamma"];

impl Generator {
    /// Asks for the result of some messages.
    pub(super) fn ask_for_result(&mut self, options: &mut SendOptions<'static>) {
        if !self.rng.chance(1, 6) {
            return;
        }
        options.result_ttl_ms = self.rng.weighted(&[(2, 0), (1, 1), (2, 900), (1, 20_000)]);
        options.correlation_id = self.rng.weighted(&[(2, b""), (1, b"c0")]);
        if self.rng.chance(1, 2) {
            options.reply_to = *self.rng.pick::<&str>(&REPLY_QUEUES);
        }
    }

    /// Draws the end of a delivery.
    pub(super) fn settled(&mut self, receipt: Receipt) -> Settled {
        let mut settled = Settled::plain(receipt, self.settlement());
        if self.rng.chance(1, 3) {
            settled.error = "it did not work".to_owned();
        }
        if settled.settlement == Settlement::Ack && self.rng.chance(1, 3) {
            settled.result = Some(self.some_bytes());
        }
        settled.add_cost = self.add_cost();
        settled
    }

    /// Cost that a worker reports: none mostly, else a little or a long debt.
    fn add_cost(&mut self) -> u32 {
        self.rng.weighted(&[(6, 0), (1, 1), (1, 3), (1, 40)])
    }

    /// Draws a report of a worker.
    pub(super) fn report(&mut self, seen: &Seen<'_>) -> Op {
        let mut items = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            let note = if self.rng.chance(1, 2) { "half of it".to_owned() } else { String::new() };
            let progress = self.rng.chance(2, 3).then(|| (self.rng.below(101) as u8, note));
            items.push(WorkReport {
                receipt: self.a_receipt(false),
                lease_ms: self.rng.weighted(&[(2, 0), (2, 100), (1, 10_000)]),
                progress,
                checkpoint: self.rng.chance(1, 2).then(|| self.some_bytes()),
                add_cost: self.add_cost(),
            });
        }
        Op::Report { namespace: self.namespace_of(items[0].receipt, seen), items }
    }

    /// Begins or ends a queue's retention of finished messages at times.
    pub(super) fn retain_done(&mut self, patch: &mut QueuePatch) {
        if self.rng.chance(1, 4) {
            patch.retain_done_ms = Some(self.rng.weighted(&[(2, 0), (1, 300), (1, 30_000)]));
        }
        if self.rng.chance(1, 4) {
            patch.retain_done_count = Some(self.rng.weighted(&[(2, 0), (1, 1), (1, 8)]));
        }
    }

    /// Unique bytes; sometimes none.
    pub(super) fn some_bytes(&mut self) -> Vec<u8> {
        self.payloads += 1;
        if self.rng.chance(1, 10) { Vec::new() } else { self.payloads.to_le_bytes().to_vec() }
    }
}
