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
#[path = "random/events.rs"]
mod events;
#[path = "random/manage.rs"]
mod manage;
#[path = "random/schedules.rs"]
mod schedules;
#[path = "random/sends.rs"]
mod sends;
#[path = "random/work.rs"]
mod work;

use std::collections::{BTreeSet, VecDeque};

use common::Driver;
use sluice_engine::command::ScheduleFire;
use sluice_engine::event::Event;
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::query::State;
use sluice_engine::settings::QueuePatch;
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
    /// What was told with each record.
    events: Vec<Vec<Event>>,
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
            events: Vec::new(),
        };
        run.driver.engine.watch_events(true);
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
        self.events.push(self.driver.out.events.clone());
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
        second.watch_events(true);
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
