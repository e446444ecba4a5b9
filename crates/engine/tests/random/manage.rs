//! What operators do to queues, limits and namespaces, at random.

use std::sync::Arc;

use sluice_engine::id::MessageId;
use sluice_engine::limit::{LimitRules, Rate};
use sluice_engine::outcome::Reply;
use sluice_engine::push::{PushHeaders, PushSecrets, PushUrl};
use sluice_engine::query::State;
use sluice_engine::settings::{
    FairWeights, OnExpire, OrderingRetry, Overflow, Placement, QueuePatch, Quotas,
};
use sluice_engine::{Command, Limits};

use super::{LIMITS, Numbers, Run};

impl Run {
    pub(super) fn manage(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let queue = self.queue();
        let dead: Vec<MessageId> = match self.driver.engine.queue_id(namespace, queue) {
            Some(id) if self.numbers.one_in(2) => {
                let page = self.driver.engine.messages(id, Some(State::Dead), None, 5);
                page.items.iter().map(|message| message.id).collect()
            }
            _ => Vec::new(),
        };
        let choice = self.numbers.below(12);
        if self.deliveries.in_order && matches!(choice, 2..=5) {
            return;
        }
        match choice {
            8 => {
                let limit = self.numbers.pick(&LIMITS[..3]);
                self.apply(&Command::LimitDelete { namespace, limit });
            }
            9 | 10 => {
                let (limit, rules) = (self.numbers.pick(&LIMITS[..3]), self.rules());
                self.apply(&Command::LimitSet { namespace, limit, rules });
            }
            0 => self.apply(&Command::QueuePurge { namespace, queue }),
            1 => self.apply(&Command::QueueDelete { namespace, queue }),
            2 | 3 => self.apply(&Command::DeadRedrive { namespace, queue, ids: &dead }),
            4 if self.numbers.one_in(2) => {
                let per_second = self.numbers.pick(&[0, 1, 50, 100_000]);
                self.apply(&Command::DeadRedriveRate { namespace, queue, per_second });
            }
            4 => self.apply(&Command::DeadDelete { namespace, queue, ids: &dead }),
            5 if self.numbers.one_in(2) => {
                let pattern = self.numbers.pick(&["*", "b*", "*e*", "buried"]);
                if self.numbers.one_in(3) {
                    self.apply(&Command::DefaultsDelete { namespace, pattern });
                } else {
                    let patch = self.patch();
                    self.apply(&Command::DefaultsSet { namespace, pattern, patch });
                }
            }
            5 => self.hold(),
            _ => {
                let patch = self.patch();
                let create = self.numbers.one_in(2);
                self.apply(&Command::QueueSet { namespace, queue, patch, create });
            }
        }
    }

    fn patch(&mut self) -> QueuePatch {
        let in_order = self.deliveries.in_order;
        QueuePatch {
            lease_ms: Some(1 + self.numbers.below(50_000)),
            max_attempts: self.numbers.one_in(2).then_some(3),
            max_deliveries: self.numbers.one_in(2).then_some(5),
            backoff: self.numbers.one_in(2).then(|| self.backoff()),
            max_messages: self.numbers.one_in(6).then(|| self.numbers.pick(&[0, 1, 3, 40])),
            max_bytes: self.numbers.one_in(8).then(|| self.numbers.pick(&[0, 1_000])),
            overflow: self
                .numbers
                .one_in(3)
                .then(|| self.numbers.pick(&[Overflow::RefuseNew, Overflow::DeadLetterOldest])),
            max_age_ms: self.numbers.one_in(6).then(|| self.numbers.pick(&[0, 110_000])),
            on_expire: self
                .numbers
                .one_in(2)
                .then(|| self.numbers.pick(&[OnExpire::DeadLetter, OnExpire::Drop])),
            ordering_retry: (self.numbers.one_in(2) && !in_order)
                .then(|| self.numbers.pick(&[OrderingRetry::Block, OrderingRetry::StepAside])),
            placement: self
                .numbers
                .one_in(2)
                .then(|| self.numbers.pick(&[Placement::Fair, Placement::LeastLoaded, Placement::Sticky])),
            limit: self.numbers.one_in(3).then(|| self.numbers.pick(&LIMITS).into()),
            fair_weights: self.numbers.one_in(2).then(|| self.fair_weights()),
            retain_done_ms: self.numbers.one_in(3).then(|| self.numbers.below(2) * 40_000),
            retain_done_count: self.numbers.one_in(3).then(|| self.numbers.below(3) as u32 * 5),
            paused: self.numbers.one_in(3).then(|| self.numbers.one_in(3)),
            dead_letter_queue: (self.numbers.one_in(3) && !in_order)
                .then(|| self.numbers.pick(&["", "a", "e", "buried"]).into()),
            closed: self.numbers.one_in(3).then(|| self.numbers.one_in(4)),
            description: self.numbers.one_in(6).then(|| self.numbers.pick(&["", "what it is for"]).into()),
            push_url: self.numbers.one_in(4).then(|| PushUrl(self.numbers.pick(&["", "https://a/"]).into())),
            push_secrets: self.numbers.one_in(8).then(|| PushSecrets(Arc::new([[7; 24].into()]))),
            push_timeout_ms: self.numbers.one_in(8).then_some(100),
            push_concurrency: self.numbers.one_in(8).then_some(1),
            push_rate: self.numbers.one_in(8).then(|| self.numbers.below(2) as u32),
            push_headers: self.numbers.one_in(8).then(PushHeaders::default),
            push_paused: self.numbers.one_in(8).then(|| self.numbers.one_in(2)),
            search_index: self.numbers.one_in(3).then(|| self.search_kinds()),
        }
    }

    pub(super) fn rules(&mut self) -> LimitRules {
        let numbers = &mut self.numbers;
        let count = |numbers: &mut Numbers| numbers.one_in(3).then(|| numbers.pick(&[1, 1, 2, 6]));
        let rate = |numbers: &mut Numbers| {
            let rate = Rate {
                count: 1 + numbers.below(20) as u32,
                period_ms: 1 + numbers.below(30_000),
                burst: numbers.pick(&[1, 1, 5, 100]),
            };
            numbers.one_in(3).then_some(rate)
        };
        LimitRules {
            in_flight: count(numbers),
            in_flight_per_key: count(numbers),
            rate: rate(numbers),
            rate_per_key: rate(numbers),
        }
    }

    fn fair_weights(&mut self) -> FairWeights {
        let keys: [&[u8]; 3] = [b"", b"k0", b"k1"];
        let weights = keys.map(|key| (key.into(), 1 + self.numbers.below(4) as u16));
        FairWeights::new(weights.into_iter().take(self.numbers.below(4) as usize).collect())
    }

    fn hold(&mut self) {
        let Some(receipt) = self.receipt() else { return };
        let Ok(view) = self.driver.engine.message(receipt.id) else { return };
        self.apply(&Command::HoldDamaged { id: receipt.id, blob: view.blob });
    }

    pub(super) fn rare(&mut self) {
        match self.numbers.below(4) {
            0 => self.begin_epoch(),
            1 if self.namespaces.len() > 1 => {
                let namespace = self.namespaces.pop().unwrap();
                self.apply(&Command::NamespaceDelete { namespace, force: true });
            }
            2 => {
                let limits = Limits {
                    idempotency_keys: 5,
                    idempotency_window_ms: 50_000,
                    ..self.driver.engine.limits().clone()
                };
                self.apply(&Command::Configure(limits));
            }
            _ => {
                let name = format!("n{}", self.numbers.below(1_000_000));
                let messages = self.numbers.pick(&[3_000, 5, 1]);
                let quotas = Quotas { messages, ..Quotas::default() };
                self.apply(&Command::NamespaceCreate { number: None, name: &name, shard: 0, quotas });
                if let Reply::Namespace { namespace } = self.driver.out.reply {
                    self.namespaces.push(namespace);
                }
            }
        }
    }
}
