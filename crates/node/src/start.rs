//! Start of a node: opens the journals, recovers the engines, begins a new epoch on each, starts the threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sluice_engine::query::NamespaceView;
use sluice_engine::{Command, Engine, Error, NamespaceId, ReceiptKey};
use sluice_journal::{
    Backups, Class, Commit, FsDisk, Keyring, Maintenance, MemoryJournal, RecoveryReport, Space,
    has_hard_state, holds_journal,
};
use sluice_replica::Memory;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot, watch};

use crate::agreed_clock::AgreedClock;
use crate::api::{Durability, Options, StartError};
use crate::clock::{Clock, LogClock, SystemClock, term_min};
use crate::cluster::{ClusterOptions, Inboxes, Ways};
use crate::directory::{Directory, SHARDS_MAX, expect_same_shards, lost, shard_dir};
use crate::driver::{EventFlag, Failing, Threads, Writing, run_maintenance, run_shard, run_writer};
use crate::driving::Driving;
use crate::failed;
use crate::handle::{Inner, Node};
use crate::in_force::InForce;
use crate::mailbox::Mailbox;
use crate::namespaces::done_if_gone;
use crate::opening::{JoinedShard, OpenShard};
use crate::placement::Placement;
use crate::shard::leader::Leader;
use crate::shard::recover::knows;
use crate::shard::replicated::Replicated;
use crate::shard::replicated::forgotten::Forgotten;
use crate::shard::replicated::inbox::Inbox;
use crate::shard::request::{Proposal, ReplyTo, Request};
use crate::shard::store::Store;
use crate::shard::{Parts, Shard, Step};

/// Upper limit of files open for reading alone, of all shards together.
const OPEN_FILES: usize = 128;
/// Lower limit of that for each shard.
const OPEN_FILES_MIN: usize = 8;
/// Time for which a start waits for disk space for its first records.
const FIRST_RECORDS_TIME: Duration = Duration::from_secs(30);

/// Parts of a starting node, gathered shard by shard.
struct Starting<'a> {
    options: &'a Options,
    mailboxes: Vec<Mailbox<Request>>,
    leaders: Vec<Leader>,
    agreed_clock: AgreedClock,
    threads: Threads,
    failing: Failing,
    /// Namespaces as shard 0 knows them.
    placed: Vec<NamespaceView>,
    placement: Arc<Placement>,
    /// Limits in force.
    limits: Arc<InForce>,
    system: Arc<Notify>,
    /// Number that shard 0 gives to the next namespace.
    next_namespace: NamespaceId,
    /// Ways to the other nodes; `None`: the node is alone.
    ways: Option<Ways>,
    forgotten: Forgotten,
    backups: Vec<Backups>,
    keyrings: Vec<Keyring>,
    reports: Vec<RecoveryReport>,
    /// Damage of shards in whose places empty ones stand, by their numbers.
    damaged: BTreeMap<u32, String>,
}

impl Node {
    /// Opens the data directory, recovers, and starts the shards. Blocks until ready to serve.
    ///
    /// # Errors
    /// A sentence for the operator: what is wrong with the directory, the journal or the clock, and what to
    /// do.
    pub fn start(options: Options) -> Result<Node, StartError> {
        start(options, None)
    }

    /// Does so as a node of a cluster. A shard leads or follows as the members agree, which takes about a
    /// second and happens after the start. The data directory is that of the first member, from when it was
    /// alone, or a copy of it; without members it may be empty, and gets its data from the others.
    ///
    /// # Errors
    /// As [`Node::start`]; or there is no data directory.
    pub fn start_in_cluster(options: Options, cluster: ClusterOptions) -> Result<Node, StartError> {
        if options.data_dir.is_none() {
            let refused = "a node of a cluster needs a data directory: start without --memory";
            return Err(StartError::Refused(refused.to_owned()));
        }
        start(options, Some(cluster))
    }
}

fn start(options: Options, cluster: Option<ClusterOptions>) -> Result<Node, StartError> {
    check(&options)?;
    let (told, failure) = watch::channel(None);
    let mut starting = Starting {
        options: &options,
        mailboxes: (0..options.shards)
            .map(|_| Mailbox::with_bytes(options.mailbox_requests, options.mailbox_bytes))
            .collect(),
        leaders: Vec::new(),
        agreed_clock: AgreedClock::default(),
        threads: Threads::default(),
        failing: Failing { told, noted_in: None },
        placed: Vec::new(),
        placement: Arc::default(),
        limits: Arc::new(InForce::new(&options.limits)),
        system: Arc::default(),
        next_namespace: NamespaceId::DEFAULT,
        ways: None,
        forgotten: Forgotten::default(),
        backups: Vec::new(),
        keyrings: Vec::new(),
        reports: Vec::new(),
        damaged: BTreeMap::new(),
    };
    let started = starting.start_all(cluster.clone());
    let inboxes = started.inspect_err(|_| starting.stop_all())?;
    let inner = Inner {
        placement: starting.placement,
        mailboxes: starting.mailboxes,
        leaders: starting.leaders,
        agreed_clock: starting.agreed_clock,
        inboxes,
        cluster,
        forgotten: starting.forgotten,
        following: (0..options.shards).map(|_| tokio::sync::Mutex::default()).collect(),
        threads: starting.threads,
        backups: starting.backups.into(),
        keyrings: starting.keyrings.into(),
        key_source: options.key_source.clone(),
        data_dir: options.data_dir.clone(),
        reports: starting.reports,
        damaged: starting.damaged,
        limits: starting.limits,
        system: starting.system,
        own_limits: options.limits.clone(),
        movable_time: crate::movable_time::of(&options),
        tickets: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
        failure,
        bulks: Default::default(),
        paces: crate::pace::of_shards(options.shards),
        known_indexes: Default::default(),
        driving: Driving::new(options.shards),
        unread_bytes: Arc::default(),
        shared_changes: Arc::default(),
    };
    Ok(Node { inner: Arc::new(inner), is_stale: false })
}

/// The size of the disk, in bytes; without limit if the disk does not tell it.
fn disk_bytes(data_dir: &Path) -> u64 {
    FsDisk::size_bytes(data_dir).unwrap_or(u64::MAX)
}

/// Checks that a node of a cluster has a log to begin with: nodes whose logs do not begin alike never agree.
fn expect_data(data_dir: &Path, shards: u32) -> Result<(), StartError> {
    match (0..shards).find(|shard| !holds_journal(&shard_dir(data_dir, *shard))) {
        None => Ok(()),
        Some(shard) => Err(StartError::Refused(format!(
            "{} has no data of shard {shard}: each node of a cluster begins with a copy of the data directory of one \
             server, made while that is stopped",
            data_dir.display()
        ))),
    }
}

/// Checks that no shard is that of a node of a cluster, whose other nodes have the same data and go on.
fn expect_no_member(data_dir: &Path, shards: u32) -> Result<(), StartError> {
    // What cannot be read is reported when the shards are opened.
    let is_member = |shard| has_hard_state(&FsDisk, &shard_dir(data_dir, shard)).unwrap_or(false);
    if !(0..shards).any(is_member) {
        return Ok(());
    }
    Err(StartError::Refused(format!(
        "{} holds the data of a node of a cluster, and neither the file {} nor the setting cluster_members says which \
         node: bring that back as it was; or let the machine join anew, with an empty data directory. Where no majority \
         is left, recover another node with `sluice cluster recover`. A server alone with the cluster's data begins \
         from a backup: `sluice restore`",
        data_dir.display(),
        data_dir.join("node").display()
    )))
}

/// Term of a start in memory: that of the time, and more than those of the earlier starts of this process, of
/// which two can fall into one millisecond.
fn memory_term() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = term_min(&SystemClock::new());
    let after = |last: u64| now.max(last + 1);
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
    after(last.unwrap_or_default())
}

impl Starting<'_> {
    fn start_all(&mut self, cluster: Option<ClusterOptions>) -> Result<Inboxes, StartError> {
        let shards = self.options.shards;
        let Some(dir) = &self.options.data_dir else {
            let term = memory_term();
            (0..shards).try_for_each(|number| self.start_memory(number, term))?;
            return Ok(Inboxes::default());
        };
        if let Some(cluster) = cluster {
            expect_same_shards(dir, shards)?;
            if !cluster.members.voters().is_empty() {
                expect_data(dir, shards)?;
            }
            let log_bytes = self.share_of_disk(dir) / 4;
            let syncs_first = matches!(self.options.durability, Durability::Always);
            self.failing.noted_in = (!syncs_first).then(|| dir.clone());
            let has_failed = failed::is_noted(dir);
            let memory = Memory { boot: cluster.boot, syncs_first, is_whole: false, has_failed };
            let (seed, forgotten) = (self.seed()?, self.forgotten.clone());
            self.ways = Some(Ways::new(cluster, dir, memory, forgotten, seed, log_bytes, &self.threads)?);
        } else {
            expect_no_member(dir, shards)?;
        }
        let may_lack = self.ways.as_ref().is_some_and(Ways::has_joined);
        let directory = Directory::open(dir, shards, may_lack)?;
        let space = self.space(dir);
        (0..shards).try_for_each(|number| self.start_disk(dir, &directory, &space, number))?;
        if self.damaged.is_empty() {
            directory.complete()?;
        }
        failed::clear(dir).map_err(told)?;
        self.ways.take().map_or_else(|| Ok(Inboxes::default()), |ways| ways.start_clock(&self.threads))
    }

    /// Ends the shards that run already, after another could not start.
    fn stop_all(&mut self) {
        for mailbox in &self.mailboxes {
            mailbox.push_surely(Request::Stop);
        }
        self.ways = None;
        self.threads.join();
        self.backups.clear();
        self.keyrings.clear();
    }

    fn start_memory(&mut self, number: u32, term: u64) -> Result<(), StartError> {
        let log_clock = self.clock_of_one(0)?;
        let shard = self.shard(number, Engine::new(), MemoryJournal::new(), log_clock);
        self.reports.push(RecoveryReport { fresh: true, ..RecoveryReport::default() });
        self.run(number, shard, term, Writing::Memory, EventFlag::default())
    }

    fn start_disk(
        &mut self,
        data_dir: &Path,
        directory: &Directory,
        space: &Arc<Space>,
        number: u32,
    ) -> Result<(), StartError> {
        let options = sluice_journal::Options {
            owner: Some(directory.owner(number)),
            space: Some(Arc::clone(space)),
            commit: if self.ways.is_some() { Commit::Told } else { Commit::Own },
            ..self.journal_options(data_dir, number)
        };
        let opened = match self.ways.as_ref().filter(|ways| ways.has_joined()) {
            Some(ways) => JoinedShard { data_dir, number, options, ways }.open()?,
            None => {
                self.check_not_lost(data_dir, number)?;
                OpenShard::open(Arc::new(FsDisk), options, self.ways.as_ref())?
            }
        };
        let OpenShard { mut journal, writer, maintenance, backups, keyring, report, engine, start, damage } =
            opened;
        if let Some(damage) = damage {
            self.forgotten.note();
            self.damaged.insert(number, damage);
        }
        let events = EventFlag::default();
        let wake = waker(&events, &self.mailboxes[number as usize]);
        let (term, last_time_us) = (report.term, report.last_time_us.max(engine.time_us()));
        let is_whole = report.end_known;
        self.backups.push(backups);
        self.keyrings.push(keyring);
        self.reports.push(report);
        let writing = match self.options.durability {
            _ if self.ways.is_some() => Writing::Apart(writer.clone()),
            Durability::Always => Writing::Threaded(writer.clone()),
            Durability::Interval(_) | Durability::Os => Writing::Inline(writer.clone()),
        };
        if let (Some(ways), Some(start)) = (&mut self.ways, start) {
            let parts = ways.parts(number, is_whole, Arc::new(Inbox::new(wake)));
            let mut store = Replicated::new(journal, writer, start, parts)?;
            ways.discard_if_whole(number, store.member().members());
            let log_clock = LogClock::follow(&SystemClock::new(), last_time_us);
            let mut shard = self.shard(number, engine, store, log_clock);
            self.know_namespaces(number, &shard)?;
            self.placement.take_up(&shard.engine().namespaces());
            let (placement, limits) = (Arc::clone(&self.placement), Arc::clone(&self.limits));
            shard.followed_by(placement, limits, Arc::clone(&self.system));
            self.set_going(number, shard, writing, events)?;
        } else {
            journal.set_waker(wake);
            let log_clock = self.clock_of_one(last_time_us)?;
            let shard = self.shard(number, engine, journal, log_clock);
            self.run(number, shard, term, writing, events)?;
        }
        self.maintain(number, maintenance)
    }

    /// A source of waits that is another on each node.
    fn seed(&self) -> Result<u64, StartError> {
        let mut seed = [0; 8];
        self.options.encryption.random.fill(&mut seed).map_err(told)?;
        Ok(u64::from_le_bytes(seed))
    }

    /// Room on the disk for all shards, with one reserve.
    fn space(&self, data_dir: &Path) -> Arc<Space> {
        let options = sluice_journal::Options {
            reserve_bytes: self.options.reserve_bytes,
            ..sluice_journal::Options::new(data_dir)
        };
        let fitted = options.fitting(disk_bytes(data_dir));
        Space::new(Arc::new(FsDisk), data_dir, fitted.reserve_bytes, fitted.full_margin_bytes)
    }

    /// The part of the disk that belongs to a shard, in bytes.
    fn share_of_disk(&self, data_dir: &Path) -> u64 {
        disk_bytes(data_dir) / u64::from(self.options.shards)
    }

    fn journal_options(&self, data_dir: &Path, number: u32) -> sluice_journal::Options {
        let options = sluice_journal::Options {
            durability: match self.options.durability {
                Durability::Always => sluice_journal::Durability::Always,
                Durability::Interval(interval) => sluice_journal::Durability::Interval(interval),
                Durability::Os => sluice_journal::Durability::Os,
            },
            cache_bytes: self.options.cache_bytes / u64::from(self.options.shards),
            low_water_bytes: self.options.low_water_bytes,
            open_files: (OPEN_FILES / self.options.shards as usize).max(OPEN_FILES_MIN),
            term_min: term_min(&SystemClock::new()),
            encryption: self.options.encryption.clone(),
            knows: knows(),
            ..sluice_journal::Options::new(shard_dir(data_dir, number))
        };
        options.fitting(self.share_of_disk(data_dir))
    }

    /// The log's clock of a node that is alone: the wall clock may be ahead of the log.
    fn clock_of_one(&self, last_time_us: u64) -> Result<LogClock, StartError> {
        let clock = SystemClock::new();
        LogClock::start(&clock, last_time_us, self.options.accept_clock_jump)
            .map_err(|ahead_us| clock_error(&clock, ahead_us))
    }

    fn shard<S: Store>(
        &self,
        number: u32,
        engine: Engine,
        store: S,
        log_clock: LogClock,
    ) -> Shard<S, SystemClock> {
        Shard::new(Parts {
            number,
            engine,
            store,
            clock: SystemClock::new(),
            log_clock,
            mailbox: self.mailboxes[number as usize].clone(),
            waiting_max: self.options.waiting_receives,
            events: self.options.events,
        })
    }

    /// Begins the epoch, durably, and sets the shard going.
    fn run<S: Store + 'static>(
        &mut self,
        number: u32,
        mut shard: Shard<S, SystemClock>,
        term: u64,
        writing: Writing,
        events: EventFlag,
    ) -> Result<(), StartError> {
        let epoch = shard.begin(&self.options.limits, term, self.receipt_key()?);
        await_epoch(&mut shard, epoch, &writing)?;
        shard.leader().begin_only_epoch(epoch);
        self.adopt(number, &shard)?;
        await_placement(&mut shard, &self.placed, &writing)?;
        self.know_namespaces(number, &shard)?;
        self.set_going(number, shard, writing, events)
    }

    /// Takes note of the namespaces that shard 0 knows, if it is this one.
    fn know_namespaces<S: Store>(
        &mut self,
        number: u32,
        shard: &Shard<S, SystemClock>,
    ) -> Result<(), StartError> {
        if number > 0 {
            return Ok(());
        }
        self.placed = shard.engine().namespaces();
        self.placement.take_up(&self.placed);
        self.next_namespace = shard.engine().next_namespace();
        self.check_placement()
    }

    fn set_going<S: Store + 'static>(
        &mut self,
        number: u32,
        shard: Shard<S, SystemClock>,
        writing: Writing,
        events: EventFlag,
    ) -> Result<(), StartError> {
        if let Some(writer) = writing.on_its_own() {
            let writer = writer.clone();
            self.threads.spawn(format!("writer-{number}"), move || run_writer(&writer))?;
        }
        self.leaders.push(shard.leader().clone());
        if number == 0 {
            self.agreed_clock = shard.agreed_clock().clone();
        }
        let failing = self.failing.clone();
        self.threads.spawn(format!("shard-{number}"), move || run_shard(shard, &writing, &events, &failing))
    }

    /// Lets shard 0 know of namespaces that it does not know, though this shard holds them.
    fn adopt<S: Store>(&mut self, number: u32, shard: &Shard<S, SystemClock>) -> Result<(), StartError> {
        if number == 0 {
            return Ok(());
        }
        for adoption in shard.adoptions(&self.placed, self.next_namespace) {
            let name = adoption.namespace.name.clone();
            for (on, command) in adoption.steps() {
                self.propose_on(on, &command).map_err(|error| {
                    StartError::Failed(format!(
                        "shard {number} holds the namespace {name}, which shard 0 does not know and could not be told of \
                         ({error}); nothing of it was deleted: start again; if that does not help, free some space or raise \
                         limits.namespaces"
                    ))
                })?;
            }
            let note = format!(
                "the namespace {name} was not known to shard 0, which has lost its newest records or is an older copy; it \
                 was kept, with all that it holds"
            );
            if let Some(report) = self.reports.get_mut(number as usize) {
                report.notes.push(note);
            }
            self.placement.remove(&name);
            self.placement.take_up(std::slice::from_ref(&adoption.namespace));
            adoption.enter(&mut self.placed);
        }
        Ok(())
    }

    /// Proposes to a shard that runs already, and waits until it is done. A deletion of what is not there is
    /// done.
    fn propose_on(&self, shard: u32, command: &Command<'_>) -> Result<(), Error> {
        let (sender, mut answer) = oneshot::channel();
        let mut proposal = Proposal::new(command, ReplyTo::Once(sender));
        proposal.class = Class::Draining;
        self.mailboxes[shard as usize].push_surely(Request::Propose(proposal));
        let deadline = Instant::now() + FIRST_RECORDS_TIME;
        loop {
            match answer.try_recv() {
                Ok(answer) => return done_if_gone(answer.result),
                Err(TryRecvError::Empty) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return Err(Error::OutcomeUnknown {}),
            }
        }
    }

    /// A key for the receipts of a log that has none.
    fn receipt_key(&self) -> Result<ReceiptKey, StartError> {
        let mut key = ReceiptKey::default();
        self.options.encryption.random.fill(&mut key.0).map_err(told)?;
        Ok(key)
    }

    /// A shard on which namespaces live must not begin empty. Asked before opening, which would make an empty
    /// journal.
    fn check_not_lost(&self, data_dir: &Path, number: u32) -> Result<(), StartError> {
        let relied_on = self.placed.iter().any(|view| view.shard == number);
        if relied_on && !holds_journal(&shard_dir(data_dir, number)) {
            return Err(StartError::Failed(lost(data_dir, number)));
        }
        Ok(())
    }

    /// Every namespace must have its shard.
    fn check_placement(&self) -> Result<(), StartError> {
        match self.placed.iter().find(|view| view.shard >= self.options.shards) {
            None => Ok(()),
            Some(view) => Err(StartError::Refused(format!(
                "namespace {} lives on shard {}, and this start has {}: start with --shards {} and with that shard's \
                 directory in place",
                view.name,
                view.shard,
                self.options.shards,
                view.shard + 1
            ))),
        }
    }

    fn maintain(&self, number: u32, maintenance: Maintenance) -> Result<(), StartError> {
        self.threads.spawn(format!("upkeep-{number}"), move || run_maintenance(maintenance, number))
    }
}

/// Steps until the epoch has begun, durably.
fn await_epoch<S: Store>(
    shard: &mut Shard<S, SystemClock>,
    epoch: u64,
    writing: &Writing,
) -> Result<(), StartError> {
    let deadline = Instant::now() + FIRST_RECORDS_TIME;
    while shard.in_flight() > 0 && Instant::now() < deadline {
        step(shard, writing)?;
    }
    if shard.engine().epoch() == epoch {
        return Ok(());
    }
    Err(StartError::Full(
        "the first records of this start could not be written, since the disk is full: free some space"
            .to_owned(),
    ))
}

/// Steps until the namespaces are as shard 0 has placed them.
fn await_placement<S: Store>(
    shard: &mut Shard<S, SystemClock>,
    placed: &[NamespaceView],
    writing: &Writing,
) -> Result<(), StartError> {
    let deadline = Instant::now() + FIRST_RECORDS_TIME;
    while shard.in_flight() > 0 || !shard.follow_placement(placed) {
        if Instant::now() > deadline {
            return Err(StartError::Failed(
                "namespaces whose creation or deletion was interrupted could not be brought into line with shard 0 in \
                 time: start again; if that does not help, free some space or raise limits.namespaces"
                    .to_owned(),
            ));
        }
        step(shard, writing)?;
    }
    Ok(())
}

/// One step of the shard, after what it has proposed is durable.
fn step<S: Store>(shard: &mut Shard<S, SystemClock>, writing: &Writing) -> Result<(), StartError> {
    if let Some(writer) = writing.writer() {
        if !writer.step() {
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.sync().map_err(StartError::Failed)?;
    }
    match shard.step() {
        Step::Failed => Err(StartError::Failed(shard.failure().unwrap_or_default().to_owned())),
        _ => Ok(()),
    }
}

fn waker(events: &EventFlag, mailbox: &Mailbox<Request>) -> Arc<dyn Fn() + Send + Sync> {
    let (events, mailbox) = (events.clone(), mailbox.clone());
    Arc::new(move || {
        events.raise();
        mailbox.wake();
    })
}

fn check(options: &Options) -> Result<(), StartError> {
    if options.shards == 0 || options.shards > SHARDS_MAX {
        return Err(StartError::Refused(format!(
            "shards: {} is out of range, use 1 to {SHARDS_MAX}",
            options.shards
        )));
    }
    crate::movable_time::check(options)?;
    options.limits.check().map_err(|error| StartError::Refused(error.to_string()))
}

fn clock_error(clock: &SystemClock, ahead_us: u64) -> StartError {
    StartError::Failed(format!(
        "the wall clock ({} s since 1970) is {} days ahead of the newest entry in the log: every lease and delay would \
         end at once. Set the clock right, or start with --accept-clock-jump if it is right",
        clock.wall_us() / 1_000_000,
        ahead_us / 86_400_000_000
    ))
}

fn told(error: impl std::fmt::Display) -> StartError {
    StartError::Failed(error.to_string())
}
