//! Consumers that come, change their credit and go.

use sluice_engine::Command;
use sluice_engine::command::Attach;
use sluice_engine::outcome::Reply;

use super::{QUEUES, Run};

impl Run {
    pub(super) fn consumers(&mut self) {
        let known = self.numbers.below(self.consumers.len() as u64 + 1) as usize;
        let credit = self.numbers.pick(&[0, 1, 2, 5, 40, 3_000]);
        let Some(&(namespace, consumer)) = self.consumers.get(known) else { return self.attach(credit) };
        if self.numbers.one_in(4) {
            let held = self.receipts.len() as u64 + 1;
            let from = self.numbers.below(held) as usize;
            let receipts: Vec<_> = self.receipts.iter().skip(from).take(8).copied().collect();
            if receipts.is_empty() {
                return;
            }
            self.apply(&Command::Resume { namespace, consumer, receipts: &receipts });
            assert_eq!(self.driver.out.results.len(), receipts.len());
        } else if self.numbers.one_in(2) {
            self.apply(&Command::Credit { namespace, consumer, credit });
        } else {
            let grace_ms = self.grace_ms();
            let held = self.receipts.len() as u64 + 1;
            let reached =
                self.receipts.get(self.numbers.below(held) as usize).map_or(0, |receipt| receipt.token);
            self.apply(&Command::Detach { namespace, consumer, grace_ms, reached });
        }
    }

    fn grace_ms(&mut self) -> u64 {
        self.numbers.below(3) * 20_000
    }

    fn attach(&mut self, credit: u32) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let mut queues: Vec<&str> = QUEUES.to_vec();
        queues.retain(|_| self.numbers.one_in(2));
        if queues.is_empty() {
            queues.push("a");
        }
        let lease_ms = self.numbers.below(2) * (1 + self.numbers.below(40_000));
        let (name, queues, grace_ms) = ("c", &*queues, self.grace_ms());
        self.apply(&Command::Attach(Attach { namespace, name, queues, credit, lease_ms, grace_ms }));
        if let Reply::Consumer { consumer } = self.driver.out.reply {
            self.consumers.push((namespace, consumer));
        }
    }

    pub(super) fn detach_consumers(&mut self) {
        while let Some((namespace, consumer)) = self.consumers.pop() {
            self.apply(&Command::Detach { namespace, consumer, grace_ms: 1_000, reached: 0 });
        }
    }
}
