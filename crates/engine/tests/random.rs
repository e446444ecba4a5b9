//! Random commands, and everything that must hold whatever they are. After each record: kept counters equal a
//! recount, ids and tokens are given once, blobs are let go of once, nothing is delivered after its end or
//! twice at a time. Now and then: each message that was sent is listed or has ended once, groups wait for
//! their members, a restored engine answers alike. In the end: a replay gives the same state.
//!
//! `SLUICE_RANDOM_SECONDS=3600` goes through new seeds until the time is over; a run that fails prints its
//! seed, and `SLUICE_RANDOM_SEED=N` runs that one alone.

#![allow(clippy::unwrap_used)]

#[path = "random/attachments.rs"]
mod attachments;
#[path = "random/balance.rs"]
mod balance;
#[path = "random/chains.rs"]
mod chains;
#[path = "random/change.rs"]
mod change;
mod common;
#[path = "random/consumers.rs"]
mod consumers;
#[path = "random/deliveries.rs"]
mod deliveries;
#[path = "random/documents.rs"]
mod documents;
#[path = "random/events.rs"]
mod events;
#[path = "random/groups.rs"]
mod groups;
#[path = "random/lives.rs"]
mod lives;
#[path = "random/locks.rs"]
mod locks;
#[path = "random/manage.rs"]
mod manage;
#[path = "random/odd.rs"]
mod odd;
#[path = "random/schedules.rs"]
mod schedules;
#[path = "random/search.rs"]
mod search;
#[path = "random/sends.rs"]
mod sends;
#[path = "random/shadow.rs"]
mod shadow;
#[path = "random/transactions.rs"]
mod transactions;
#[path = "random/work.rs"]
mod work;

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use attachments::Attachments;
use common::{Driver, Numbers};
use deliveries::Deliveries;
use documents::Documents;
use groups::Groups;
use lives::Lives;
use locks::Locks;
use search::Search;
use shadow::Shadow;
use sluice_engine::command::ScheduleFire;
use sluice_engine::event::Event;
use sluice_engine::id::{ConsumerId, MessageId, NamespaceId, Receipt};
use sluice_engine::limit::Cost;
use sluice_engine::query::State;
use sluice_engine::settings::QueuePatch;
use sluice_engine::{BEHAVIOUR_VERSION, Command, Engine, Limits, Outcome};
use transactions::Transactions;

const QUEUES: [&str; 6] = ["a", "b", "c", "d", "e", "buried"];
/// Costs of messages: most have one, some more than a rate allows at once.
const COSTS: [Cost; 6] = [Cost(1), Cost(1), Cost(1), Cost(0), Cost(2), Cost(40)];
/// The last one is none.
const LIMITS: [&str; 4] = ["l", "m", "n", ""];
const START_US: u64 = 1_700_000_000_000_000;

struct Run {
    numbers: Numbers,
    driver: Driver,
    now_us: u64,
    epoch: u64,
    /// Few queues, keys and places, so that everything gets into each other's way.
    tight: bool,
    /// Whether indexes of messages are told terms often, and begin anew often.
    searches: bool,
    namespaces: Vec<NamespaceId>,
    receipts: VecDeque<Receipt>,
    ids: BTreeSet<MessageId>,
    /// A firing that comes twice.
    again: Option<ScheduleFire>,
    consumers: Vec<(NamespaceId, ConsumerId)>,
    /// What was told with each record.
    events: Vec<Vec<Event>>,
    deliveries: Deliveries,
    lives: Lives,
    groups: Groups,
    locks: Locks,
    documents: Documents,
    attachments: Attachments,
    transactions: Transactions,
    search: Search,
    shadow: Shadow,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut run = Run {
            numbers: Numbers::new(seed * 2 + 1),
            driver: Driver::new(),
            now_us: START_US,
            epoch: 0,
            tight: seed.is_multiple_of(2),
            searches: seed % 3 == 2,
            namespaces: vec![NamespaceId::DEFAULT],
            receipts: VecDeque::new(),
            ids: BTreeSet::new(),
            again: None,
            consumers: Vec::new(),
            events: Vec::new(),
            deliveries: Deliveries::new(seed % 5 == 1),
            lives: Lives::default(),
            groups: Groups::default(),
            locks: Locks::default(),
            documents: Documents::default(),
            attachments: Attachments::default(),
            transactions: Transactions::default(),
            search: Search::default(),
            shadow: Shadow::default(),
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

    fn queue(&mut self) -> &'static str {
        if self.tight { self.numbers.pick(&QUEUES[..2]) } else { self.numbers.pick(&QUEUES) }
    }

    fn begin_epoch(&mut self) {
        self.epoch += 1 + self.numbers.below(3);
        self.apply(&Command::Consensus { entry: b"the first of a term" });
        self.apply(&Command::Epoch { number: self.epoch, behaviour: BEHAVIOUR_VERSION });
    }

    fn apply(&mut self, command: &Command<'_>) {
        assert_eq!(command.check(&Limits::default()), Ok(()), "{command:?}");
        self.driver.apply(self.now_us, command);
        let Driver { engine, out, .. } = &self.driver;
        if let Err(why) = engine.recount() {
            panic!("{why}, after {} records, by {command:?}", self.driver.log.len());
        }
        self.deliveries.follow(self.now_us, out, engine);
        self.lives.follow(&out.events);
        let index = self.driver.log.len() as u64;
        let mut follow = |command: &Command<'_>, out: &Outcome| {
            self.locks.follow(self.now_us, command, out);
            self.documents.follow(self.now_us, command, out);
            self.attachments.follow(self.now_us, command, (index, out), &self.documents);
        };
        if let Command::Transaction(transaction) = command {
            let done = self.transactions.follow(self.now_us, transaction, (engine.limits(), out));
            let done = done.into_iter().map(|(operation, out)| (operation.unwrap_or(Command::Tick), out));
            let is_commit = |it: &(Command<'_>, _)| matches!(it.0, Command::AttachmentCommit(_));
            let (commits, others): (Vec<_>, Vec<_>) = done.partition(is_commit);
            others.iter().chain(&commits).for_each(|(operation, out)| follow(operation, out));
        } else {
            follow(command, out);
        }
        self.shadow.follow(&self.driver);
        let pushed = out.pushed.iter().map(|(_, delivery)| delivery);
        self.receipts.extend(out.deliveries.iter().chain(pushed).map(|delivery| delivery.receipt));
        self.consumers.retain(|(_, consumer)| !out.detached.contains(consumer));
        self.events.push(out.events.clone());
        while self.receipts.len() > 500 {
            self.receipts.pop_front();
        }
    }

    /// Whether there is work that goes on by ticks which are due at once.
    fn is_working(&self) -> bool {
        self.driver.engine.next_deadline().is_some_and(|due| due <= self.now_us)
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
        if self.searches && self.numbers.one_in(3) {
            self.search();
        }
        match self.numbers.below(100) {
            0..=14 => self.send(),
            15..=17 => self.attachment(),
            18..=21 => self.lock(),
            22..=25 => self.document(),
            26 => self.odd(),
            27..=28 => self.transaction(),
            29 if !self.deliveries.in_order => self.group(),
            30..=54 => self.receive(),
            55..=79 => self.settle(),
            80..=82 => self.extend(),
            83..=84 => self.report(),
            85..=88 => self.change(),
            89..=91 => self.apply(&Command::Tick),
            92..=93 => self.schedule(),
            94..=95 => self.consumers(),
            96..=97 => self.manage(),
            98 => self.search(),
            _ => self.rare(),
        }
    }

    fn check(&mut self) {
        let engine = &self.driver.engine;
        balance::check_queues(engine, &self.lives.refused);
        self.lives.check(engine);
        self.documents.check(&self.driver);
        self.attachments.check(&self.driver);
        search::check(&self.driver);
        if !self.is_working() {
            self.locks.check(self.now_us);
            let limit = self.numbers.pick(&[1, 2, 1_000]);
            self.documents.check_watcher(self.now_us, limit, &self.driver.engine);
            self.groups.check(&self.lives, &self.driver.engine);
        }
        let live: BTreeSet<_> = self.driver.engine.live_blobs().collect();
        let held: BTreeSet<_> = self.driver.blobs.keys().copied().collect();
        assert_eq!(live, held, "the engine refers to exactly the blobs that it has not let go of");
    }

    /// After a long time with ticks alone nothing is delayed or leased, and nothing waits to be swept.
    fn settle_down(&mut self) {
        self.detach_consumers();
        self.now_us += 24 * 3_600_000_000;
        while self.is_working() {
            self.apply(&Command::Tick);
        }
        let totals = self.driver.engine.totals();
        assert_eq!(totals.states[State::Delayed as usize] + totals.states[State::Leased as usize], 0);
        assert_eq!(totals.states.iter().sum::<u64>(), self.driver.engine.message_count());
        self.attachments.check_chunks(self.now_us, &self.documents, &self.driver);
        self.check();
    }

    /// The same state comes of the same log.
    fn replay(&self) {
        let (mut replayed, mut out) = (Engine::new(), Outcome::default());
        for record in &self.driver.log {
            replayed.apply(record.now_us, record.index, &record.body, &mut out);
        }
        assert_eq!(replayed.digest(), self.driver.engine.digest());
    }
}

fn restore(pieces: &[u8], cut: usize) -> Engine {
    let mut chunks = pieces.chunks(cut);
    Engine::restore(&mut || chunks.next().map(<[u8]>::to_vec)).unwrap()
}

fn run(seed: u64, steps: usize) {
    let mut run = Run::new(seed);
    // One that is written while records are applied.
    let mut snapshot: Option<(u64, Vec<u8>)> = None;
    for step in 0..steps {
        run.step();
        let often = if run.is_working() { 4 } else { 100 };
        if let Some((digest, bytes)) = &mut snapshot {
            if run.driver.engine.snapshot_step(1 + run.numbers.below(3_000) as usize, bytes) {
                let restored = restore(bytes, 1 + run.numbers.below(5_000) as usize);
                assert_eq!(restored.digest(), *digest);
                restored.recount().unwrap();
                snapshot = None;
            }
        } else if run.numbers.one_in(100) {
            run.driver.engine.snapshot_begin();
            snapshot = Some((run.driver.engine.digest(), Vec::new()));
        } else if run.numbers.one_in(often) {
            run.shadow.begin(&mut run.driver.engine);
        }
        if step % 16 == 0 {
            run.check();
        }
    }
    run.driver.engine.snapshot_abort();
    run.settle_down();
    run.replay();
}

/// Runs seeds, and prints the one that fails: that of `SLUICE_RANDOM_SEED`, new ones for
/// `SLUICE_RANDOM_SECONDS`, or else those of `always`.
fn each_seed(always: std::ops::RangeInclusive<u64>, run: impl Fn(u64)) {
    let asked = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let tell = |seed| {
        let done = catch_unwind(AssertUnwindSafe(|| run(seed)));
        done.unwrap_or_else(|why| {
            eprintln!("failed: SLUICE_RANDOM_SEED={seed} cargo test -p sluice-engine --test random");
            resume_unwind(why)
        });
    };
    if let Some(seed) = asked("SLUICE_RANDOM_SEED") {
        return tell(seed);
    }
    let Some(seconds) = asked("SLUICE_RANDOM_SECONDS") else { return always.for_each(tell) };
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    (first..).take_while(|_| Instant::now() < end).for_each(tell);
}

#[test]
fn random_commands_keep_what_must_hold() {
    each_seed(1..=50, |seed| run(seed, 1_000));
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
    let mut numbers = Numbers::new(99);
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
