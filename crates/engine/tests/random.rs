//! Random commands, and everything that must hold whatever they are: kept counters equal a recount, blobs are released
//! exactly once, a replay and a restored snapshot equal the engine that they come from, no token holds twice.

#![allow(clippy::unwrap_used)]

#[path = "random/chains.rs"]
mod chains;
#[path = "random/change.rs"]
mod change;
mod common;
#[path = "random/consumers.rs"]
mod consumers;

use std::collections::{BTreeSet, VecDeque};

use common::Driver;
use sluice_engine::command::{
    Content, Deliver, Group, Progress, QueueItem, Receive, ReportItem, ScheduleFire, SchedulePut, Send,
    SendItem, SettleItem, Settlement,
};
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::limit::{LimitRules, Rate};
use sluice_engine::options::{
    DependsMode, DependsOn, Expires, OnDuplicate, OnParentFailed, SendOptions, Unique, UniqueUntil,
};
use sluice_engine::query::State;
use sluice_engine::settings::{
    Backoff, BackoffKind, FairWeights, OnExpire, OrderingRetry, Overflow, Placement, QueuePatch, Quotas,
};
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Limits, Outcome};

const QUEUES: [&str; 6] = ["a", "b", "c", "d", "e", "buried"];
/// The last one is none.
const LIMITS: [&str; 4] = ["l", "m", "n", ""];
const START_US: u64 = 1_700_000_000_000_000;

/// A small generator of numbers (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

struct Run {
    numbers: Numbers,
    driver: Driver,
    now_us: u64,
    epoch: u32,
    namespaces: Vec<NamespaceId>,
    receipts: VecDeque<Receipt>,
    tokens: BTreeSet<u64>,
    ids: BTreeSet<MessageId>,
    /// A firing that comes twice.
    again: Option<ScheduleFire>,
    consumers: Vec<(NamespaceId, ConsumerId)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut run = Run {
            numbers: Numbers(seed * 2 + 1),
            driver: Driver::new(),
            now_us: START_US,
            epoch: 0,
            namespaces: vec![NamespaceId::DEFAULT],
            receipts: VecDeque::new(),
            tokens: BTreeSet::new(),
            ids: BTreeSet::new(),
            again: None,
            consumers: Vec::new(),
        };
        run.begin_epoch();
        for (limit, queue) in LIMITS.into_iter().zip(&QUEUES).take(3) {
            let (namespace, rules) = (NamespaceId::DEFAULT, run.rules());
            run.apply(&Command::LimitSet { namespace, limit, rules });
            let patch = QueuePatch { limit: Some(limit.into()), ..QueuePatch::default() };
            run.apply(&Command::QueueSet { namespace, queue, patch, create: true });
        }
        run
    }

    fn begin_epoch(&mut self) {
        self.epoch += 1 + self.numbers.below(3) as u32;
        self.apply(&Command::Epoch { number: self.epoch, behaviour: BEHAVIOUR_VERSION });
    }

    fn apply(&mut self, command: &Command<'_>) {
        assert_eq!(command.check(&Limits::default()), Ok(()), "{command:?}");
        self.driver.apply(self.now_us, command);
        for delivery in &self.driver.out.deliveries {
            assert!(self.tokens.insert(delivery.receipt.token), "a token was given twice");
            assert!(delivery.lease_until_us > self.now_us);
            self.receipts.push_back(delivery.receipt);
        }
        self.take_pushed();
        if self.receipts.len() > 500 {
            self.receipts.pop_front();
        }
    }

    fn step(&mut self) {
        if let Some(fire) = self.again.take() {
            self.apply(&Command::ScheduleFire(fire));
            assert_eq!(self.driver.out, Outcome::default(), "an instant counts once");
            return;
        }
        if !self.numbers.one_in(3) {
            let reach = self.numbers.pick(&[10, 5_000, 1_000_000, 60_000_000]);
            self.now_us += self.numbers.below(reach);
        }
        match self.numbers.below(100) {
            0..=27 => self.send(),
            28..=29 => self.group(),
            30..=54 => self.receive(),
            55..=79 => self.settle(),
            80..=82 => self.extend(),
            83..=84 => self.report(),
            85..=88 => self.change(),
            89..=91 => self.apply(&Command::Tick),
            92..=93 => self.schedule(),
            94..=95 => self.consumers(),
            96..=98 => self.manage(),
            _ => self.rare(),
        }
    }

    fn send(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let count = if self.numbers.one_in(200) { 2_500 } else { 1 + self.numbers.below(8) };
        let payload = vec![7; self.numbers.below(40) as usize];
        let keyed = self.numbers.one_in(2);
        let parents = self.parents(namespace);
        let mut options: Vec<SendOptions<'_>> = (0..4).map(|_| self.options()).collect();
        let step_options = self.step_options();
        let steps = self.steps(&step_options);
        let chain = self.chain(&steps);
        self.put_chain(&chain, &mut options);
        for options in options.iter_mut().skip(2) {
            options.depends_on = self.depends_on(&parents);
        }
        let back = SendOptions {
            depends_on: self
                .depends_on(&parents)
                .map(|depends_on| DependsOn { places: &[[0; 4]], ..depends_on }),
            ..options[0]
        };
        let items: Vec<SendItem<'_>> = (0..count)
            .map(|at| SendItem {
                payload: &payload,
                tags: if self.numbers.one_in(6) { &["red"] } else { &[] },
                headers: if self.numbers.one_in(4) { &[("trace", "1")] } else { &[] },
                priority: if self.numbers.one_in(2) { self.numbers.below(10) as u8 } else { 0 },
                deliver: match self.numbers.below(6) {
                    0 => Deliver::AfterMs(self.numbers.below(100_000)),
                    1 => Deliver::AtUs(self.now_us.saturating_sub(50) + self.numbers.below(100)),
                    _ => Deliver::Now,
                },
                max_attempts: self.numbers.below(4) as u16,
                backoff: self.numbers.one_in(8).then(|| self.backoff()),
                options: match (keyed, self.numbers.below(6) as usize) {
                    (true, 5) if at > 0 => Some(&back),
                    (true, any) => options.get(any),
                    (false, _) => None,
                },
                ..SendItem::default()
            })
            .collect();
        let key = [self.numbers.below(20) as u8];
        let keyed = self.numbers.one_in(4);
        let command = Command::Send(Send {
            namespace,
            queue: self.numbers.pick(&QUEUES),
            idempotency_key: if keyed { &key } else { &[] },
            request_digest: self.numbers.below(2),
            items: &items,
        });
        self.apply(&command);
        if let sluice_engine::outcome::Reply::Sent { first, count, duplicate: false } = self.driver.out.reply
        {
            let out = &self.driver.out;
            let listed = (0..count).zip(&out.ids).filter(|(item, _)| !out.duplicates.contains(item));
            let mut fresh: Vec<MessageId> = listed.map(|(_, id)| *id).collect();
            if out.ids.is_empty() {
                let id = |n| MessageId { sequence: first.sequence + n, ..first };
                fresh = (0..u64::from(count)).map(id).collect();
            } else {
                assert_eq!((out.ids.len(), out.ids[0]), (count as usize, first));
                assert!(!out.duplicates.is_empty());
                let known = |item: &u32| self.ids.contains(&out.ids[*item as usize]);
                let in_batch = |item: &u32| fresh.contains(&out.ids[*item as usize]);
                assert!(out.duplicates.iter().all(|item| known(item) || in_batch(item)));
            }
            for id in fresh {
                assert!(self.ids.insert(id), "an id was given twice");
            }
        }
    }

    fn group(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let parents = self.parents(namespace);
        let step_options = self.step_options();
        let steps = self.steps(&step_options);
        let chain = self.chain(&steps);
        let mut options: Vec<SendOptions<'_>> = (0..3)
            .map(|at| SendOptions {
                unique: None,
                depends_on: if at > 0 { self.depends_on(&parents) } else { None },
                ..self.options()
            })
            .collect();
        self.put_chain(&chain, &mut options);
        let members: Vec<QueueItem<'_>> = (0..self.numbers.below(6))
            .map(|_| QueueItem {
                queue: self.numbers.pick(&QUEUES),
                item: SendItem {
                    payload: b"member",
                    options: options.get(self.numbers.below(5) as usize),
                    ..SendItem::default()
                },
            })
            .collect();
        let item = SendItem { payload: b"callback", options: options.first(), ..SendItem::default() };
        let callback = QueueItem { queue: self.numbers.pick(&QUEUES), item };
        let key = [self.numbers.below(20) as u8];
        let idempotency_key: &[u8] = if self.numbers.one_in(4) { &key } else { &[] };
        let group =
            Group { namespace, idempotency_key, request_digest: 0, members: &members, callback: &callback };
        self.apply(&Command::Group(group));
        if let sluice_engine::outcome::Reply::Sent { first, count, duplicate: false } = self.driver.out.reply
        {
            for n in 0..u64::from(count) {
                let id = MessageId { sequence: first.sequence + n, ..first };
                assert!(self.ids.insert(id), "an id was given twice");
            }
        }
    }

    /// Some messages that are still here, and now and then one that is not.
    fn parents(&mut self, namespace: NamespaceId) -> Vec<[u8; 12]> {
        let ids: Vec<MessageId> =
            self.ids.iter().rev().filter(|id| id.namespace == namespace).copied().collect();
        let gone = self.numbers.one_in(10);
        let here = ids.into_iter().filter(|id| gone || self.driver.engine.message(*id).is_ok());
        let here: Vec<MessageId> = here.take(40).collect();
        let count = self.numbers.below(4).min(here.len() as u64);
        (0..count).map(|_| DependsOn::id_bytes(self.numbers.pick(&here))).collect()
    }

    fn depends_on<'a>(&mut self, ids: &'a [[u8; 12]]) -> Option<DependsOn<'a>> {
        if ids.is_empty() || self.numbers.one_in(2) {
            return None;
        }
        let mode = self.numbers.pick(&[DependsMode::All, DependsMode::Any]);
        let actions = [OnParentFailed::Cancel, OnParentFailed::Hold, OnParentFailed::Run];
        Some(DependsOn { ids, places: &[], mode, on_parent_failed: self.numbers.pick(&actions) })
    }

    fn options(&mut self) -> SendOptions<'static> {
        let keys: [&[u8]; 5] = [b"", b"", b"k0", b"k1", b"k2, which does not lie in its place"];
        let ttl = self.numbers.one_in(4);
        SendOptions {
            ordering_key: self.numbers.pick(&keys),
            fair_key: self.numbers.pick(&keys),
            limit_key: self.numbers.pick(&keys),
            unique: self.unique(),
            expires: match self.numbers.below(12) {
                0 => Expires::AfterMs(100_000 + self.numbers.below(100_000)),
                1 => Expires::AtUs(self.now_us + 200 + self.numbers.below(90_000_000)),
                _ => Expires::Never,
            },
            result_ttl_ms: if ttl { 1 + self.numbers.below(90_000) } else { 0 },
            correlation_id: self.numbers.pick::<&[u8]>(&[b"", b"c0"]),
            reply_to: self.numbers.pick(&["", "", "", "a", "replies"]),
            hold: self.numbers.one_in(10),
            ..SendOptions::default()
        }
    }

    fn unique(&mut self) -> Option<Unique<'static>> {
        let keys: [&[u8]; 4] = [b"u0", b"u1", b"u2", b"u3, which does not lie in its place"];
        self.numbers.one_in(4).then(|| Unique {
            key: self.numbers.pick(&keys),
            window_ms: 1 + self.numbers.below(100_000),
            until: self.numbers.pick(&[UniqueUntil::Gone, UniqueUntil::Window]),
            on_duplicate: self.numbers.pick(&[
                OnDuplicate::Keep,
                OnDuplicate::ReplacePayload,
                OnDuplicate::Debounce,
            ]),
        })
    }

    fn backoff(&mut self) -> Backoff {
        let kind = self.numbers.pick(&[
            BackoffKind::None,
            BackoffKind::Fixed,
            BackoffKind::Linear,
            BackoffKind::Exponential,
        ]);
        Backoff { kind, base_ms: self.numbers.below(3_000), cap_ms: 60_000, jitter_percent: 20 }
    }

    fn receive(&mut self) {
        let weight = self.numbers.below(2) as u16;
        let queues: Vec<(&str, u16)> = (0..1 + self.numbers.below(3))
            .map(|_| (self.numbers.pick(&QUEUES), weight * (1 + self.numbers.below(5) as u16)))
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

    fn receipt(&mut self) -> Option<Receipt> {
        let at = self.numbers.below(self.receipts.len().max(1) as u64) as usize;
        let mut receipt = *self.receipts.get(at)?;
        match self.numbers.below(40) {
            0 => receipt.token += 1,
            1 => receipt.id.sequence += 1_000_000,
            _ => {}
        }
        Some(receipt)
    }

    fn settle(&mut self) {
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
                _ => Settlement::Ack,
            };
            let error = if self.numbers.one_in(3) { "it failed" } else { "" };
            let ack = settlement == Settlement::Ack;
            let result =
                (ack && self.numbers.one_in(3)).then_some(Content { content_type: "", bytes: b"42" });
            items.push(SettleItem { receipt, settlement, error, result });
        }
        let namespace = items[0].receipt.id.namespace;
        self.apply(&Command::Settle { namespace, items: &items });
    }

    fn extend(&mut self) {
        let Some(receipt) = self.receipt() else { return };
        let lease_ms = self.numbers.below(90_000);
        self.apply(&Command::Extend { namespace: receipt.id.namespace, items: &[(receipt, lease_ms)] });
    }

    fn report(&mut self) {
        let mut items = Vec::new();
        for _ in 0..1 + self.numbers.below(3) {
            let Some(receipt) = self.receipt() else { return };
            let note = if self.numbers.one_in(2) { "on it" } else { "" };
            items.push(ReportItem {
                receipt,
                lease_ms: self.numbers.below(90_000),
                progress: self.numbers.one_in(2).then_some(Progress { percent: 40, note }),
                checkpoint: self.numbers.one_in(2).then_some(b"as far as this"),
            });
        }
        self.apply(&Command::Report { namespace: items[0].receipt.id.namespace, items: &items });
    }

    fn schedule(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let schedule = self.numbers.pick(&["s", "t", "u"]);
        let queue = self.numbers.pick(&QUEUES);
        let next_at_us = self.now_us + 1 + self.numbers.below(100_000);
        match self.numbers.below(12) {
            0 => self.apply(&Command::ScheduleDelete { namespace, schedule }),
            1 | 2 => {
                let paused = self.numbers.one_in(2);
                self.apply(&Command::SchedulePause { namespace, schedule, paused, next_at_us });
            }
            3 => {
                self.apply(&Command::ScheduleTrigger { namespace, schedule });
                self.know_scheduled();
            }
            4 | 5 => {
                let mut options = self.options();
                if let Expires::AtUs(_) = options.expires {
                    // A schedule's messages come again and again.
                    options.expires = Expires::Never;
                }
                let item = SendItem {
                    payload: b"again",
                    deliver: if self.numbers.one_in(3) { Deliver::AfterMs(700) } else { Deliver::Now },
                    backoff: self.numbers.one_in(3).then(|| self.backoff()),
                    options: options.given(),
                    ..SendItem::default()
                };
                let spec = self.numbers.pick::<&[u8]>(&[b"one", b"two"]);
                let put = SchedulePut { namespace, schedule, queue, spec, next_at_us, item: &item };
                self.apply(&Command::SchedulePut(put));
            }
            _ => self.fire(),
        }
    }

    fn know_scheduled(&mut self) {
        if let sluice_engine::outcome::Reply::Sent { first, duplicate, .. } = self.driver.out.reply {
            assert_eq!(self.ids.insert(first), !duplicate, "an id was given twice, or is of nobody");
        }
    }

    /// Instants come early, late and twice, of schedules that are there and that are not.
    fn fire(&mut self) {
        let at = self.numbers.below(4) as usize;
        let due = self.driver.engine.schedules_by_time().nth(at).map(|due| (due.number, due.instant_us));
        let Some((number, instant_us)) = due else { return };
        let next_at_us =
            if self.numbers.one_in(8) { 0 } else { instant_us + 1 + self.numbers.below(2_000_000) };
        let number = if self.numbers.one_in(10) { number - 1 } else { number };
        let fire = ScheduleFire { number, instant_us, send: !self.numbers.one_in(4), next_at_us };
        self.apply(&Command::ScheduleFire(fire));
        self.know_scheduled();
        self.again = self.numbers.one_in(3).then_some(fire);
    }

    fn manage(&mut self) {
        let namespace = self.numbers.pick(&self.namespaces.clone());
        let queue = self.numbers.pick(&QUEUES);
        let dead: Vec<MessageId> = match self.driver.engine.queue_id(namespace, queue) {
            Some(id) if self.numbers.one_in(2) => {
                let page = self.driver.engine.messages(id, Some(State::Dead), None, 5);
                page.items.iter().map(|message| message.id).collect()
            }
            _ => Vec::new(),
        };
        match self.numbers.below(12) {
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
        QueuePatch {
            lease_ms: Some(1 + self.numbers.below(50_000)),
            max_attempts: self.numbers.one_in(2).then_some(3),
            max_deliveries: self.numbers.one_in(2).then_some(5),
            backoff: self.numbers.one_in(2).then(|| self.backoff()),
            max_messages: self.numbers.one_in(8).then(|| self.numbers.pick(&[0, 40])),
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
            ordering_retry: self
                .numbers
                .one_in(2)
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
            dead_letter_queue: self
                .numbers
                .one_in(3)
                .then(|| self.numbers.pick(&["", "a", "e", "buried"]).into()),
            closed: self.numbers.one_in(3).then(|| self.numbers.one_in(4)),
        }
    }

    fn rules(&mut self) -> LimitRules {
        let numbers = &mut self.numbers;
        let count = |numbers: &mut Numbers| numbers.one_in(3).then(|| 1 + numbers.below(6) as u32);
        let rate = |numbers: &mut Numbers| {
            let rate = Rate {
                count: 1 + numbers.below(20) as u32,
                period_ms: 1 + numbers.below(30_000),
                burst: 1 + numbers.below(5) as u32,
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

    fn rare(&mut self) {
        match self.numbers.below(4) {
            0 => self.begin_epoch(),
            1 if self.namespaces.len() > 1 => {
                let namespace = self.namespaces.pop().unwrap();
                self.apply(&Command::NamespaceDelete { namespace, force: true });
            }
            2 => {
                let limits =
                    Limits { idempotency_keys: 5, idempotency_window_ms: 50_000, ..Limits::default() };
                self.apply(&Command::Configure(limits));
            }
            _ => {
                let name = format!("n{}", self.numbers.below(1_000_000));
                let quotas = Quotas { messages: 3_000, ..Quotas::default() };
                self.apply(&Command::NamespaceCreate { number: None, name: &name, shard: 0, quotas });
                if let sluice_engine::outcome::Reply::Namespace { namespace } = self.driver.out.reply {
                    self.namespaces.push(namespace);
                }
            }
        }
    }

    fn check(&self) {
        self.driver.engine.recount().unwrap();
        self.check_listings();
        let live: BTreeSet<_> = self.driver.engine.live_blobs().collect();
        let held: BTreeSet<_> = self.driver.blobs.keys().copied().collect();
        assert_eq!(live, held, "the engine refers to exactly the blobs that it has not let go of");
    }

    /// After a long time with ticks alone nothing is delayed or leased, and nothing waits to be swept.
    fn settle_down(&mut self) {
        self.detach_consumers();
        self.now_us += 24 * 3_600_000_000;
        while self.driver.engine.next_deadline().is_some_and(|due| due <= self.now_us) {
            self.apply(&Command::Tick);
        }
        let totals = self.driver.engine.totals();
        assert_eq!(totals.states[State::Delayed as usize] + totals.states[State::Leased as usize], 0);
        assert_eq!(totals.states.iter().sum::<u64>(), self.driver.engine.message_count());
        self.check();
    }
}

fn restore(pieces: &[u8], cut: usize) -> Engine {
    let mut chunks = pieces.chunks(cut);
    Engine::restore(&mut || chunks.next().map(<[u8]>::to_vec)).unwrap()
}

fn run(seed: u64, steps: usize) {
    let mut run = Run::new(seed);
    let mut snapshot: Option<(u64, Vec<u8>)> = None;
    for step in 0..steps {
        run.step();
        if let Some((digest, bytes)) = &mut snapshot {
            if run.driver.engine.snapshot_step(1 + run.numbers.below(3_000) as usize, bytes) {
                let restored = restore(bytes, 1 + run.numbers.below(5_000) as usize);
                assert_eq!(restored.digest(), *digest, "seed {seed}, step {step}");
                restored.recount().unwrap();
                snapshot = None;
            }
        } else if run.numbers.one_in(50) {
            run.driver.engine.snapshot_begin();
            snapshot = Some((run.driver.engine.digest(), Vec::new()));
        }
        if step % 64 == 0 {
            run.check();
        }
    }
    run.driver.engine.snapshot_abort();
    run.settle_down();

    let mut replayed = Engine::new();
    let mut out = Outcome::default();
    for record in &run.driver.log {
        replayed.apply(record.now_us, record.index, &record.body, &mut out);
    }
    assert_eq!(replayed.digest(), run.driver.engine.digest(), "seed {seed}");
}

#[test]
fn random_commands_keep_what_must_hold() {
    for seed in 1..=30 {
        run(seed, 1_500);
    }
}

/// A restored engine and the one it comes from answer alike from then on.
#[test]
fn a_restored_engine_goes_on_like_the_first() {
    for seed in 100..=110 {
        let mut first = Run::new(seed);
        for _ in 0..800 {
            first.step();
        }
        first.driver.engine.snapshot_begin();
        let mut bytes = Vec::new();
        while !first.driver.engine.snapshot_step(10_000, &mut bytes) {}
        let mut second = restore(&bytes, 777);
        let from = first.driver.log.len();
        let mut outcomes = Vec::new();
        for _ in 0..400 {
            let before = first.driver.log.len();
            first.step();
            if first.driver.log.len() > before {
                outcomes.push(first.driver.out.clone());
            }
        }
        let mut out = Outcome::default();
        for (record, expected) in first.driver.log[from..].iter().zip(&outcomes) {
            second.apply(record.now_us, record.index, &record.body, &mut out);
            assert_eq!(&out, expected, "seed {seed}, record {}", record.index);
        }
        assert_eq!(second.digest(), first.driver.engine.digest());
    }
}

#[test]
fn a_damaged_snapshot_is_refused_and_never_panics() {
    let mut first = Run::new(5);
    for _ in 0..120 {
        first.step();
    }
    first.driver.engine.snapshot_begin();
    let mut bytes = Vec::new();
    while !first.driver.engine.snapshot_step(10_000, &mut bytes) {}
    let refused = |bytes: &[u8]| {
        let mut piece = Some(bytes.to_vec());
        let error = Engine::restore(&mut || piece.take()).expect_err("it is damaged");
        assert!(error.to_string().contains("snapshot"), "{error}");
    };
    for at in (0..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        refused(&flipped);
    }
    for cut in (0..bytes.len()).step_by(101) {
        refused(&bytes[..cut]);
    }
}

#[test]
fn a_body_that_nobody_wrote_is_refused_and_never_panics() {
    let mut first = Run::new(6);
    for _ in 0..300 {
        first.step();
    }
    let mut numbers = Numbers(99);
    let mut out = Outcome::default();
    let mut engine = Engine::new();
    engine.apply(START_US, 1, &first.driver.log[0].body, &mut out);
    // A log gives each index once.
    let mut index = 1;
    let mut apply = |engine: &mut Engine, body: &[u8]| {
        index += 1;
        engine.apply(START_US, index, body, &mut out);
    };
    for record in &first.driver.log {
        for cut in [0, 1, 2, record.body.len() / 2, record.body.len().saturating_sub(1)] {
            apply(&mut engine, &record.body[..cut.min(record.body.len())]);
        }
        let mut body = record.body.clone();
        let at = numbers.below(body.len() as u64) as usize;
        body[at] ^= 1 << numbers.below(8);
        apply(&mut engine, &body);
        engine.recount().unwrap();
    }
}
