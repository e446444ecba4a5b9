//! What consumers that pull do, at random.

use sluice_engine::Command;
use sluice_engine::command::{Content, Progress, Receive, ReportItem, SettleItem, Settlement};
use sluice_engine::id::Receipt;

use super::Run;

impl Run {
    pub(super) fn receive(&mut self) {
        let weight = self.numbers.below(2) as u16;
        let queues: Vec<(&str, u16)> = (0..1 + self.numbers.below(3))
            .map(|_| (self.queue(), weight * (1 + self.numbers.below(5) as u16)))
            .collect();
        let command = Command::Receive(Receive {
            namespace: self.numbers.pick(&self.namespaces.clone()),
            queues: &queues,
            max_messages: 1 + self.numbers.below(30) as u32,
            max_bytes: self.numbers.below(2_000) as u32,
            lease_ms: self.numbers.below(2) * (1 + self.numbers.below(40_000)),
            consumer: self.numbers.pick(&["", "", "p0", "p1"]),
        });
        self.apply(&command);
    }

    pub(super) fn receipt(&mut self) -> Option<Receipt> {
        let at = self.numbers.below(self.receipts.len().max(1) as u64) as usize;
        let mut receipt = *self.receipts.get(at)?;
        match self.numbers.below(40) {
            0 => receipt.token += 1,
            1 => receipt.id.sequence += 1_000_000,
            _ => {}
        }
        Some(receipt)
    }

    pub(super) fn settle(&mut self) {
        let count = 1 + self.numbers.below(12);
        let mut items = Vec::new();
        for _ in 0..count {
            let Some(receipt) = self.receipt() else { return };
            let delay_ms = self.numbers.below(3) * 500;
            let settlement = match self.numbers.below(8) {
                0 => Settlement::Nack { delay_ms: None },
                1 => Settlement::Nack { delay_ms: Some(delay_ms) },
                2 => Settlement::Release { delay_ms },
                3 => Settlement::Reject,
                4 => Settlement::GiveBack { delay_ms },
                _ => Settlement::Ack,
            };
            let error = if self.numbers.one_in(3) { "it failed" } else { "" };
            let ack = settlement == Settlement::Ack;
            let result =
                (ack && self.numbers.one_in(3)).then_some(Content { content_type: "", bytes: b"42" });
            items.push(SettleItem { receipt, settlement, error, result, add_cost: self.add_cost() });
        }
        let namespace = items[0].receipt.id.namespace;
        self.apply(&Command::Settle { namespace, items: &items });
    }

    pub(super) fn extend(&mut self) {
        let Some(receipt) = self.receipt() else { return };
        let lease_ms = self.numbers.below(90_000);
        self.apply(&Command::Extend { namespace: receipt.id.namespace, items: &[(receipt, lease_ms)] });
    }

    /// None of most, of others some, or enough for a long debt.
    fn add_cost(&mut self) -> u32 {
        self.numbers.pick(&[0, 0, 0, 0, 1, 3, 500])
    }

    pub(super) fn report(&mut self) {
        let mut items = Vec::new();
        for _ in 0..1 + self.numbers.below(3) {
            let Some(receipt) = self.receipt() else { return };
            let note = if self.numbers.one_in(2) { "on it" } else { "" };
            items.push(ReportItem {
                receipt,
                lease_ms: self.numbers.below(90_000),
                progress: self.numbers.one_in(2).then_some(Progress { percent: 40, note }),
                checkpoint: self.numbers.one_in(2).then_some(b"as far as this"),
                add_cost: self.add_cost(),
            });
        }
        self.apply(&Command::Report { namespace: items[0].receipt.id.namespace, items: &items });
    }
}
