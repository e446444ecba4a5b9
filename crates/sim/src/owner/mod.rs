//! A journal under an owner who tells what is committed: a member of several nodes, without the others.
//!
//! The real journal on the faulty disk, with a random owner: it proposes batches, commits them late,
//! sometimes before they are durable here, cuts tails, keeps hard states, takes snapshots and backups, and
//! loses the process or the power at any call. [`model`] knows what must be true: nothing that is committed
//! and was noted or given is lost or changed; nothing that was cut comes back once the cut was reported;
//! batches are given in order, without gaps or repeats, and none before it is committed; a hard state never
//! goes back, and is never lost while a batch survives that came after it; blobs of committed batches can be
//! read, those of the tail cannot; snapshots and backups hold nothing uncommitted; batches have the numbers
//! that they were proposed with, and can be read back as long as no snapshot replaces them; an order that is
//! told to be durable is; a state of the
//! others is installed as a whole or not at all, with the blobs that it refers to but those that are gone; a
//! blob that is damaged on the disk is read from a copy, and replaced by it.

mod backup;
mod batch;
mod crash;
mod damage;
mod incoming;
mod model;
mod orders;
mod pieces;
mod read_back;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_journal::{BlobKey, Commit, Durability, Journal, Options};

use crate::disk::{Call, CallFailure, Crash, Flaws, SimDisk};
use crate::model::Checked;
use crate::plant::Plant;
use crate::resting;
use crate::rng::Rng;
use crate::world::{Stats, encryption};
use backup::BackingUp;
use damage::Harmed;
use incoming::Incoming;
use model::Model;
use read_back::ReadingBack;
use server::Server;

/// Data directory on the simulated disk.
const DIRECTORY: &str = "/data";
/// Size of a disk that is never full, in bytes.
const ROOMY: usize = 1 << 30;

/// A journal, its owner, and what must be true of them.
#[derive(Debug)]
pub struct OwnerWorld {
    rng: Rng,
    disk: SimDisk,
    options: Options,
    rates: Rates,
    server: Option<Server>,
    model: Model,
    now_us: u64,
    next_number: u64,
    /// Term of the last new batch.
    term: u64,
    /// Kind of the crash that a planned halt stands for.
    dying: Crash,
    /// True when a call was made to fail in this process.
    armed: bool,
    short: bool,
    /// The state that is being written as a snapshot: its blobs, and the pieces that are not handed over.
    snapshot: Option<Vec<Vec<u8>>>,
    backing_up: Option<BackingUp>,
    incoming: Option<Incoming>,
    reading: ReadingBack,
    harmed: Harmed,
    verbose: bool,
    stats: Stats,
}

/// Rates of a run, as weights of steps.
#[derive(Clone, Copy, Debug)]
struct Rates {
    propose: u64,
    commit: u64,
    /// Commits of 100 that wait until the batches are durable here.
    patient: u64,
    cut: u64,
    crash: u64,
    fail: u64,
    fill: u64,
    damage: u64,
    /// Commits of the others without this node, and steps of receiving a state.
    others: u64,
}

/// Step of the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Propose,
    Commit,
    Cut,
    HardState,
    Wrong,
    Writer,
    Maintenance,
    Poll,
    Read,
    ReadBack,
    KeepFrom,
    Snapshot,
    Backup,
    OthersCommit,
    Receive,
    SendState,
    Time,
    Crash,
    Stop,
    FailCall,
    FillDisk,
    Damage,
}

impl OwnerWorld {
    /// The world of this seed.
    pub fn new(seed: u64, plant: Option<Plant>, verbose: bool) -> Result<OwnerWorld, String> {
        let mut rng = Rng::new(seed);
        let options = draw_options(&mut rng);
        let disk = SimDisk::new(Path::new("/"), ROOMY, rng.fork());
        disk.set_flaws(Flaws {
            skips_syncs: plant == Some(Plant::SkipSync),
            cuts_tail: plant == Some(Plant::CutValidRecordAtRecovery),
            goes_back: plant == Some(Plant::OlderSnapshotFallback),
        });
        sluice_journal::plant::plant(plant.and_then(Plant::in_journal));
        let rates = Rates {
            propose: *rng.pick(&[10, 30, 60]),
            commit: *rng.pick(&[2, 10, 30]),
            patient: *rng.pick(&[0, 50, 100]),
            cut: *rng.pick(&[0, 2, 6]),
            crash: *rng.pick(&[0, 1, 3]),
            fail: *rng.pick(&[0, 0, 1]),
            fill: *rng.pick(&[0, 0, 1]),
            others: *rng.pick(&[0, 1, 4]),
            damage: *rng.pick(&[0, 0, 2]),
        };
        let mut world = OwnerWorld {
            rng,
            disk,
            options,
            rates,
            server: None,
            model: Model::default(),
            now_us: 1_000_000,
            next_number: 0,
            term: 1,
            dying: Crash::Kill,
            armed: false,
            short: false,
            snapshot: None,
            backing_up: None,
            incoming: None,
            reading: ReadingBack::default(),
            harmed: Harmed::default(),
            verbose,
            stats: Stats::default(),
        };
        world.start(false)?;
        Ok(world)
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        Stats { syncs: self.disk.tally().syncs, ..self.stats }
    }

    /// Takes a step.
    pub fn step(&mut self) -> Checked {
        self.stats.steps += 1;
        let rates = self.rates;
        let step = self.rng.weighted(&[
            (rates.propose, Step::Propose),
            (rates.commit, Step::Commit),
            (rates.cut, Step::Cut),
            (3, Step::HardState),
            (1, Step::Wrong),
            (25, Step::Writer),
            (25, Step::Maintenance),
            (25, Step::Poll),
            (8, Step::Read),
            (8, Step::ReadBack),
            (1, Step::KeepFrom),
            (4, Step::Snapshot),
            (if self.backing_up.is_some() { 20 } else { 1 }, Step::Backup),
            (rates.others, Step::OthersCommit),
            (if self.incoming.is_some() { 20 } else { rates.others }, Step::Receive),
            (1, Step::SendState),
            (15, Step::Time),
            (rates.crash, Step::Crash),
            (u64::from(rates.crash > 0), Step::Stop),
            (rates.fail, Step::FailCall),
            (rates.fill, Step::FillDisk),
            (rates.damage, Step::Damage),
        ]);
        self.trace(|| format!("{step:?}"));
        self.take(step)?;
        if self.disk.is_halted() {
            return self.crash(self.dying);
        }
        Ok(())
    }

    fn take(&mut self, step: Step) -> Checked {
        match step {
            Step::Propose => self.propose(),
            Step::Commit => self.commit(),
            Step::Cut => self.cut(),
            Step::HardState => self.hard_state(),
            Step::Wrong => self.wrong(),
            Step::Writer => {
                self.with(|server, _| server.write())?;
                self.check_indexes()
            }
            Step::Maintenance => self.with(|server, now_us| server.maintain(now_us)),
            Step::Poll => self.poll(),
            Step::Read => self.read(),
            Step::ReadBack => self.read_back(),
            Step::KeepFrom => self.keep_from(),
            Step::Snapshot => self.take_snapshot(),
            Step::Backup => self.back_up(),
            Step::OthersCommit => self.others_commit(),
            Step::Receive => self.receive(),
            Step::SendState => self.send_state(),
            Step::Time => {
                self.now_us += *self.rng.pick(&[100, 30_000, 1_500_000]);
                Ok(())
            }
            Step::Crash => self.die(),
            Step::Stop => self.stop(),
            Step::FailCall => self.fail_call(),
            Step::FillDisk => self.fill_disk(),
            Step::Damage => self.damage(),
        }
    }

    fn with(&mut self, act: impl FnOnce(&mut Server, u64)) -> Checked {
        let now_us = self.now_us;
        if let Some(server) = &mut self.server {
            act(server, now_us);
        }
        Ok(())
    }

    fn fail_call(&mut self) -> Checked {
        let calls = [Call::Open, Call::Name, Call::Read, Call::Write, Call::Sync, Call::SyncDirectory];
        let how = *self.rng.pick(&[CallFailure::Io, CallFailure::NoRoom]);
        let call = if how == CallFailure::NoRoom { Call::Write } else { *self.rng.pick(&calls) };
        self.armed = true;
        self.disk.fail_call(call, self.rng.below(8), how);
        Ok(())
    }

    fn fill_disk(&mut self) -> Checked {
        self.short = !self.short;
        let room = self.rng.below(64 << 10) as usize;
        self.disk.set_capacity(if self.short { self.disk.used() + room } else { ROOMY });
        Ok(())
    }

    /// Ends all faults, commits everything, and starts once more: the log is the committed one.
    pub fn finish(&mut self) -> Checked {
        self.disk.forget_failures();
        self.disk.forget_halt();
        (self.short, self.rates.crash) = (false, 0);
        self.rates.damage = 0;
        self.disk.set_capacity(ROOMY);
        self.crash(Crash::Kill)?;
        for _ in 0..3 {
            self.catch_up()?;
            for _ in 0..50 {
                self.now_us += 100_000;
                self.with(|server, now_us| {
                    server.maintain(now_us);
                    server.write();
                })?;
                self.poll()?;
            }
            let last = self.model.next_index() - 1;
            self.commit_to(last)?;
        }
        self.poll()?;
        self.repair_all()?;
        self.healed()?;
        self.stop()?;
        self.healed()?;
        self.check_directory()
    }

    /// Checks that everything is durable, committed, and given.
    fn healed(&mut self) -> Checked {
        let last = self.model.next_index() - 1;
        let Some(server) = &self.server else { return Err("there is no server".to_owned()) };
        let found = [server.journal.durable_index(), server.journal.committed_index(), self.model.given];
        if found != [last; 3] || !self.model.is_durable() {
            return Err(format!(
                "durable, committed, given: {found:?} of {last}, or an order is not durable"
            ));
        }
        let keys: Vec<BlobKey> = self.model.live.keys().copied().collect();
        keys.into_iter().try_for_each(|key| self.check_blob(key))?;
        self.read_whole_log()
    }

    fn trace(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", what());
        }
    }
}

fn draw_options(rng: &mut Rng) -> Options {
    let mut options = Options::new(PathBuf::from(DIRECTORY));
    options.commit = Commit::Told;
    options.durability = rng.weighted(&[
        (6, Durability::Always),
        (2, Durability::Os),
        (2, Durability::Interval(Duration::from_millis(500))),
    ]);
    options.segment_bytes = *rng.pick(&[4 << 10, 8 << 10, 32 << 10]);
    options.snapshot_log_bytes = *rng.pick(&[4 << 10, 16 << 10, 64 << 10]);
    options.cache_bytes = *rng.pick(&[0, 4 << 10, 1 << 20]);
    options.reserve_bytes = *rng.pick(&[0, 64 << 10]);
    options.low_water_bytes = 32 << 10;
    options.full_margin_bytes = 16 << 10;
    options.scrub_bytes_per_s = *rng.pick(&[0, 64 << 10]);
    options.identity = rng.bits() | 1;
    options.rest_after = resting::draw(Rng::new(options.identity));
    options.encryption = encryption::draw(rng.fork());
    options
}
