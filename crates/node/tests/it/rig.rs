//! One shard on a journal in memory that a test can trouble, in a time of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use sluice_engine::command::{Attach, DETACH_GRACE_MS, SchedulePut, Send, SendItem};
use sluice_engine::id::{NamespaceId, QueueId};
use sluice_engine::{Command, Engine, Error, ReceiptKey};
use sluice_journal::{
    Batch, BlobKey, BlobLocation, BlobRead, Class, Event, Journal, MemoryJournal, Refused, Status,
};
use sluice_node::clock::{Clock, LogClock};
use sluice_node::mailbox::Mailbox;
use sluice_node::shard::channel::Channel;
use sluice_node::shard::request::{
    Answer, Attaching, Given, Proposal, Pull, PullReply, Read, ReplyTo, Request,
};
use sluice_node::shard::store::Store;
use sluice_node::shard::{Parts, Shard, Step};
use tokio::sync::oneshot;

pub const START_US: u64 = 1_800_000_000_000_000;
pub const SECOND_US: u64 = 1_000_000;
pub const KEY: ReceiptKey = ReceiptKey([7; 16]);

/// Time that stands still unless moved, and how far the wall clock is ahead of it.
#[derive(Clone, Default)]
pub struct Time(Arc<AtomicU64>, Arc<AtomicI64>);

impl Time {
    pub fn advance(&self, us: u64) {
        self.0.fetch_add(us, Relaxed);
    }

    pub fn jump(&self, us: i64) {
        self.1.fetch_add(us, Relaxed);
    }
}

impl Clock for Time {
    fn monotonic_us(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn wall_us(&self) -> u64 {
        (START_US + self.0.load(Relaxed)).saturating_add_signed(self.1.load(Relaxed))
    }
}

/// A journal in memory whose disk can be full, for all batches or for none, and which can hold back, fail,
/// and tell of damage.
pub struct Disk {
    pub journal: MemoryJournal,
    pub time: Time,
    /// How long letting go of a blob takes.
    pub release_us: u64,
    pub full: Arc<AtomicBool>,
    /// Full for what stays.
    pub full_for_growing: Arc<AtomicBool>,
    pub damaged: Vec<BlobKey>,
    /// Nothing is committed while this is set.
    pub held: Arc<AtomicBool>,
    /// The journal has failed.
    pub failed: Arc<AtomicBool>,
}

impl Journal for Disk {
    type Location = BlobLocation;

    fn next_index(&self) -> u64 {
        self.journal.next_index()
    }

    fn durable_index(&self) -> u64 {
        self.journal.durable_index()
    }

    fn committed_index(&self) -> u64 {
        self.journal.committed_index()
    }

    fn propose(&mut self, batch: &mut Batch, time_us: u64, class: Class) -> Result<u64, Refused> {
        let growing = class == Class::Growing && self.full_for_growing.load(Relaxed);
        if growing || self.full.load(Relaxed) {
            return Err(Refused::Full { free_bytes: 0, needed_bytes: 1 });
        }
        self.journal.propose(batch, time_us, class)
    }

    fn poll(&mut self) -> Option<Event> {
        if self.failed.load(Relaxed) {
            return Some(Event::Failed("the disk is gone".to_owned()));
        }
        if self.held.load(Relaxed) {
            return None;
        }
        self.damaged.pop().map(Event::Damaged).or_else(|| self.journal.poll())
    }

    fn read(&mut self, key: BlobKey) -> BlobRead {
        self.journal.read(key)
    }

    fn release(&mut self, key: BlobKey) {
        self.time.advance(self.release_us);
        self.journal.release(key);
    }
}

impl Store for Disk {
    fn wants_snapshot(&self) -> bool {
        false
    }

    fn snapshot_begin(&mut self, _applied_index: u64, _time_us: u64, _behaviour: u32) {}

    fn snapshot_piece(&mut self, _piece: Vec<u8>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn snapshot_finish(&mut self) {}

    fn status(&self) -> Status {
        Status::default()
    }
}

pub struct Rig {
    pub shard: Shard<Disk, Time>,
    pub mailbox: Mailbox<Request>,
    pub time: Time,
    pub full: Arc<AtomicBool>,
    pub full_for_growing: Arc<AtomicBool>,
    pub held: Arc<AtomicBool>,
    pub failed: Arc<AtomicBool>,
}

pub type Reply = oneshot::Receiver<Result<Vec<Given>, Error>>;

impl Rig {
    pub fn new(mailbox: usize) -> Rig {
        let (time, full, mailbox) = (Time::default(), Arc::<AtomicBool>::default(), Mailbox::new(mailbox));
        let [full_for_growing, held, failed] = [(); 3].map(|()| Arc::<AtomicBool>::default());
        let disk = Disk {
            journal: MemoryJournal::new(),
            time: time.clone(),
            release_us: 0,
            full: full.clone(),
            full_for_growing: full_for_growing.clone(),
            damaged: Vec::new(),
            held: held.clone(),
            failed: failed.clone(),
        };
        let shard = Shard::new(Parts {
            number: 0,
            engine: Engine::new(),
            store: disk,
            clock: time.clone(),
            log_clock: LogClock::start(&time, 0, true).unwrap(),
            mailbox: mailbox.clone(),
            waiting_max: 100,
            events: Default::default(),
        });
        let mut rig = Rig { shard, mailbox, time, full, full_for_growing, held, failed };
        rig.shard.begin(&rig.shard.engine().limits().clone(), 0, KEY);
        rig.settle_down();
        rig
    }

    /// Steps until there is nothing to do; tells how many steps did something.
    pub fn settle_down(&mut self) -> u32 {
        for steps in 0..100_000 {
            if self.shard.step() == Step::Idle {
                return steps;
            }
        }
        panic!("the shard spins");
    }

    /// Lets so much time pass, as a driver would: it sleeps for as long as the shard says. Tells the number
    /// of steps.
    pub fn pass(&mut self, us: u64) -> u32 {
        let until = self.time.monotonic_us() + us;
        let mut steps = 0;
        while self.time.monotonic_us() < until {
            steps += self.settle_down() + 1;
            let left = until - self.time.monotonic_us();
            self.time.advance(self.shard.idle_us().unwrap_or(left).clamp(1, left));
        }
        steps + self.settle_down()
    }

    pub fn send(&mut self, messages: usize) -> QueueId {
        let items = vec![SendItem { payload: b"x", ..SendItem::default() }; messages];
        let send = Send {
            namespace: NamespaceId::DEFAULT,
            queue: "jobs",
            idempotency_key: b"",
            request_digest: 0,
            items: &items,
        };
        self.mailbox.push(Request::Propose(Proposal::new(&Command::Send(send), ReplyTo::Nobody))).unwrap();
        self.settle_down();
        self.shard.engine().queue_id(NamespaceId::DEFAULT, "jobs").unwrap()
    }

    pub fn pull(&self, ticket: u64, wait_us: u64) -> Reply {
        self.pull_of("jobs", ticket, wait_us)
    }

    pub fn pull_of(&self, queue: &str, ticket: u64, wait_us: u64) -> Reply {
        let (sender, receiver) = oneshot::channel();
        let pull = Pull {
            ticket,
            namespace: NamespaceId::DEFAULT,
            queues: vec![(queue.into(), 0)].into(),
            max_messages: 10,
            max_bytes: 1 << 20,
            lease_ms: 1_000,
            wait_us,
            consumer: Box::default(),
            room: None,
            reply: PullReply::Once(sender),
        };
        self.mailbox.push(Request::Pull(Box::new(pull))).unwrap();
        receiver
    }

    /// What comes of a command.
    pub fn answer(&mut self, command: &Command<'_>) -> Answer {
        let (sender, mut receiver) = oneshot::channel();
        self.mailbox.push(Request::Propose(Proposal::new(command, ReplyTo::Once(sender)))).unwrap();
        self.settle_down();
        receiver.try_recv().unwrap()
    }

    /// A consumer of `jobs` that leases for a second.
    pub fn attach(&mut self) -> Arc<Channel> {
        let channel = Arc::<Channel>::default();
        let attach = Attach {
            namespace: NamespaceId::DEFAULT,
            name: "worker",
            queues: &["jobs"],
            credit: 10,
            lease_ms: 1_000,
            grace_ms: DETACH_GRACE_MS,
        };
        let (reply, mut attached) = oneshot::channel();
        let attaching = Attaching::new(&attach, Arc::clone(&channel), reply);
        self.mailbox.push(Request::Attach(Box::new(attaching))).unwrap();
        self.settle_down();
        attached.try_recv().unwrap().unwrap();
        channel
    }

    /// A schedule that fires each second, from a second after the shard's time on.
    pub fn schedule(&mut self) {
        let put = SchedulePut {
            namespace: NamespaceId::DEFAULT,
            schedule: "beat",
            queue: "jobs",
            spec: b"1 all every 1000",
            next_at_us: self.shard.engine().time_us() + SECOND_US,
            item: &SendItem::default(),
        };
        let put = Proposal::new(&Command::SchedulePut(put), ReplyTo::Nobody);
        self.mailbox.push(Request::Propose(put)).unwrap();
        self.settle_down();
    }

    pub fn fired(&self) -> u64 {
        self.shard.engine().schedule(NamespaceId::DEFAULT, "beat").unwrap().fired
    }

    pub fn waiting(&mut self) -> usize {
        let (sender, mut receiver) = oneshot::channel();
        let read = Read(Box::new(move |looking| sender.send(looking.unwrap().waiting).unwrap()));
        self.mailbox.push(Request::Read(read)).unwrap();
        self.settle_down();
        receiver.try_recv().unwrap()
    }
}
