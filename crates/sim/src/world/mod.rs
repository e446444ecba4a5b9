//! One run: a server, its disk and clock, clients, and a scheduler that picks each next step by the seed.

mod across;
mod backup;
mod bulk_check;
mod bulks;
mod clients;
mod config;
mod consumers;
mod crash;
pub(crate) mod encryption;
mod event_log;
mod finish;
mod future;
mod history;
mod keys;
mod namespaces;
mod prepared;
mod records;
mod server;
mod shard;
mod spy;
mod start;
mod stopping;
mod trouble;
mod watchers;

use sluice_node::clock::Clock;
use sluice_node::shard::Step;

use crate::clock::SimClock;
use crate::disk::{Crash, Damaged, Flaws, Lost, SimDisk};
use crate::model::Checked;
use crate::plant::Plant;
use crate::rng::Rng;
use crate::workload::Generator;
use across::Across;
use backup::BackingUp;
use config::{Config, DIRECTORY, ROOMY};
use history::History;
use namespaces::Changing;
use shard::ShardWorld;
use spy::JournalCall;

/// Counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Number of steps.
    pub steps: u64,
    /// Number of answered requests.
    pub answers: u64,
    /// Number of messages given to clients, with payload.
    pub delivered: u64,
    /// Number of events that watchers got.
    pub heard: u64,
    /// Number of gaps that watchers got.
    pub gaps: u64,
    /// Number of committed records.
    pub records: u64,
    /// Number of crashes and stops.
    pub restarts: u64,
    /// Number of syncs of files.
    pub syncs: u64,
    /// Number of backups restored and compared.
    pub backups: u64,
    /// Number of starts refused because files were missing.
    pub lost: u64,
    /// Number of ended bulks.
    pub bulks: u64,
    /// Number of cuts of a tail.
    pub cuts: u64,
    /// Number of damaged blobs of which a whole copy was found.
    pub repairs: u64,
    /// Number of terms that had a leader.
    pub elections: u64,
    /// Number of leaderships that were handed over.
    pub transfers: u64,
    /// Number of messages whose batches were read back from a log.
    pub fetches: u64,
    /// Number of calls for which there was no leader, or another.
    pub unled: u64,
    /// Number of calls whose outcome was not known.
    pub unknown: u64,
    /// Number of states that were installed.
    pub installs: u64,
    /// Number of times at which a member became quiet.
    pub quiets: u64,
    /// Number of nodes that got another number, since they had forgotten something.
    pub renumbered: u64,
    /// Number of changes of the members that are in force.
    pub changes: u64,
    /// Number of changes of the members that were refused.
    pub refused: u64,
    /// Number of starts of nodes that were removed.
    pub returned: u64,
    /// Number of leases with which consumers went on after they had lost their leader.
    pub resumed: u64,
    /// Number of times at which a disk of a cluster was filled.
    pub filled: u64,
    /// Number of calls of a cluster's clients that were refused for want of room.
    pub full: u64,
    /// Number of transactions over several namespaces that were answered as committed.
    pub committed: u64,
    /// Number of those that were answered as refused.
    pub aborted: u64,
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.steps += other.steps;
        self.answers += other.answers;
        self.delivered += other.delivered;
        self.heard += other.heard;
        self.gaps += other.gaps;
        self.records += other.records;
        self.restarts += other.restarts;
        self.syncs += other.syncs;
        self.backups += other.backups;
        self.lost += other.lost;
        self.bulks += other.bulks;
        self.cuts += other.cuts;
        self.repairs += other.repairs;
        self.elections += other.elections;
        self.transfers += other.transfers;
        self.fetches += other.fetches;
        self.unled += other.unled;
        self.unknown += other.unknown;
        self.installs += other.installs;
        self.quiets += other.quiets;
        self.renumbered += other.renumbered;
        self.changes += other.changes;
        self.refused += other.refused;
        self.returned += other.returned;
        self.resumed += other.resumed;
        self.filled += other.filled;
        self.full += other.full;
        self.committed += other.committed;
        self.aborted += other.aborted;
    }
}

/// A step of the scheduler.
#[derive(Clone, Copy, Debug)]
enum WorldAction {
    Ask,
    Pull,
    Watch,
    Bulk,
    Shard,
    Writer,
    Maintenance,
    ReadBlobs,
    Moment,
    While,
    Jump,
    Compare,
    Kill,
    Power,
    Stop,
    FailCall,
    FillDisk,
    Pinch,
    Flip,
    Lose,
    Future,
    ChangeKeys,
    WrongKeys,
    BackUp,
    Across,
}

/// One run; see the module.
pub struct World {
    config: Config,
    rng: Rng,
    disk: SimDisk,
    clock: SimClock,
    /// The shards by number; `at` is the current one.
    lanes: Vec<ShardWorld>,
    at: usize,
    plant: Option<Plant>,
    verbose: bool,
    /// True when a call to the disk may fail for good, as the scheduler has planned.
    armed: bool,
    /// True when a call to the disk may fail for lack of space, which passes.
    pinched: bool,
    /// True when the disk was made small.
    full: bool,
    /// Crash that follows when the disk has halted.
    dying: Crash,
    /// True when the shard has just reported that it is idle.
    idle: bool,
    /// Damage that is not undone.
    damages: Vec<Damaged>,
    /// True when there ever was damage: compaction may have copied a damaged payload, where nothing undoes
    /// it.
    tainted: bool,
    /// Lost files that can be put back.
    lost: Option<Lost>,
    /// Running change of a namespace.
    changing: Option<Changing>,
    /// Running backup.
    backing_up: Option<BackingUp>,
    /// Transactions over several namespaces; `None`: the run has none.
    across: Option<Across>,
    stats: Stats,
}

impl World {
    /// Makes the world of a seed, with a server that has just started for the first time.
    ///
    /// # Errors
    /// A failure of the first start.
    pub fn new(seed: u64, plant: Option<Plant>, verbose: bool) -> Result<World, String> {
        let mut rng = Rng::new(seed);
        let config = Config::draw(&mut rng);
        let across = config.across().map(Across::new);
        World::with(config, rng, across, plant, verbose)
    }

    /// The world of this configuration, which makes the other draws by `rng`.
    fn with(
        config: Config,
        mut rng: Rng,
        across: Option<Across>,
        plant: Option<Plant>,
        verbose: bool,
    ) -> Result<World, String> {
        let disk = SimDisk::new(std::path::Path::new("/data"), ROOMY, rng.fork());
        disk.set_flaws(Flaws {
            skips_syncs: plant == Some(Plant::SkipSync),
            cuts_tail: plant == Some(Plant::CutValidRecordAtRecovery),
            goes_back: plant == Some(Plant::OlderSnapshotFallback),
        });
        sluice_engine::plant::plant(plant.and_then(Plant::in_engine));
        sluice_node::plant::plant(plant.and_then(Plant::in_node));
        let lanes = (0..config.shards)
            .map(|shard| {
                let history = History::new(config.limits.clone(), !config.mixes);
                let others = config.other_draws(shard);
                let clients = Generator::new(shard, config.mixes, rng.fork(), others);
                ShardWorld::new(history, clients)
            })
            .collect();
        let mut world = World {
            clock: SimClock::default(),
            config,
            disk,
            rng,
            lanes,
            at: 0,
            plant,
            verbose,
            armed: false,
            pinched: false,
            full: false,
            dying: Crash::Kill,
            idle: false,
            damages: Vec::new(),
            tainted: false,
            lost: None,
            changing: None,
            backing_up: None,
            across,
            stats: Stats::default(),
        };
        world.trace(|| format!("{DIRECTORY}: {:?}", world.config));
        world.start_first()?;
        Ok(world)
    }

    /// Counts of the run so far.
    pub fn stats(&self) -> Stats {
        Stats { syncs: self.disk.tally().syncs, ..self.stats }
    }

    /// The simulated disk.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// Runs the next step.
    ///
    /// # Errors
    /// An invariant that does not hold.
    pub fn step(&mut self) -> Checked {
        self.stats.steps += 1;
        self.at = self.rng.index(self.lanes.len());
        let action = self.next_action();
        self.trace(|| format!("{} {action:?} {}", self.stats.steps, self.at));
        self.act(action)?;
        if self.disk.is_halted() {
            return self.crash(self.dying);
        }
        self.look()?;
        if std::mem::take(&mut self.idle) { self.nobody_waits_in_vain() } else { Ok(()) }
    }

    fn next_action(&mut self) -> WorldAction {
        let trouble = self.config.trouble;
        let busy = self.config.busy * 100;
        let pulls = if self.lanes[self.at].generator.holds() > 60 { busy / 8 } else { busy / 2 };
        self.rng.weighted(&[
            (busy, WorldAction::Ask),
            (pulls, WorldAction::Pull),
            (80, WorldAction::Watch),
            (self.bulk_weight(), WorldAction::Bulk),
            (3_000, WorldAction::Shard),
            (2_500, WorldAction::Writer),
            (1_500, WorldAction::Maintenance),
            (500, WorldAction::ReadBlobs),
            (1_000, WorldAction::Moment),
            (150, WorldAction::While),
            (20, WorldAction::Compare),
            (trouble.clock_jump, WorldAction::Jump),
            (trouble.kill, WorldAction::Kill),
            (trouble.power, WorldAction::Power),
            (trouble.orderly_stop, WorldAction::Stop),
            (trouble.failing_call, WorldAction::FailCall),
            (trouble.full_disk, WorldAction::FillDisk),
            (trouble.pinch, WorldAction::Pinch),
            (trouble.flip, WorldAction::Flip),
            (trouble.lose, WorldAction::Lose),
            (trouble.future, WorldAction::Future),
            (2 * self.keys_weight(), WorldAction::ChangeKeys),
            (self.keys_weight(), WorldAction::WrongKeys),
            (self.backup_weight(), WorldAction::BackUp),
            (self.across_weight(), WorldAction::Across),
        ])
    }

    fn act(&mut self, action: WorldAction) -> Checked {
        match action {
            WorldAction::Ask => return self.client_asks(),
            WorldAction::Pull => self.client_pulls(),
            WorldAction::Watch => self.watch(),
            WorldAction::Bulk => return self.bulk(),
            WorldAction::Shard => return self.shard_steps(),
            WorldAction::Writer => self.writer_steps(),
            WorldAction::Maintenance => self.maintenance_steps(),
            WorldAction::ReadBlobs => return self.read_blobs(),
            WorldAction::Moment => self.clock.advance(self.rng.between(1, 20_000)),
            WorldAction::While => {
                let us =
                    self.rng.weighted(&[(6, 200_000), (4, 1_500_000), (2, 12_000_000), (1, 700_000_000)]);
                self.clock.advance(us);
            }
            WorldAction::Jump => {
                let us = self.rng.weighted(&[(1, -7_200_000_000), (1, 7_200_000_000), (2, 5_000_000)]);
                self.clock.jump(us);
            }
            WorldAction::Compare => return self.compare(),
            WorldAction::Kill => return self.die(Crash::Kill),
            WorldAction::Power => return self.die(Crash::Power),
            WorldAction::Stop => return self.stop(),
            WorldAction::FailCall => self.arm(),
            WorldAction::FillDisk => self.fill_or_free(),
            WorldAction::Pinch => self.pinch_or_release(),
            WorldAction::Flip => self.damage(),
            WorldAction::Lose => return self.lose(),
            WorldAction::Future => return self.meet_the_future(),
            WorldAction::ChangeKeys => return self.change_keys(),
            WorldAction::WrongKeys => return self.start_without_keys(),
            WorldAction::BackUp => return self.back_up(),
            WorldAction::Across => return self.across(),
        }
        Ok(())
    }

    fn shard_steps(&mut self) -> Checked {
        let Some(server) = &mut self.lanes[self.at].server else { return Ok(()) };
        let step = server.shard.step();
        self.idle = step == Step::Idle;
        if step == Step::Failed { self.shard_fails() } else { Ok(()) }
    }

    fn shard_fails(&mut self) -> Checked {
        let Some(server) = &self.lanes[self.at].server else { return Ok(()) };
        let why = server.shard.failure().unwrap_or_default().to_owned();
        self.failed(&why)
    }

    fn writer_steps(&mut self) {
        let lane = &mut self.lanes[self.at];
        let Some(server) = &mut lane.server else { return };
        server.writer.step();
        lane.note_written();
    }

    fn maintenance_steps(&mut self) {
        let now_us = self.clock.monotonic_us();
        let calm = self.config.always() && !self.armed && !self.short() && self.damages.is_empty();
        let lane = &mut self.lanes[self.at];
        if let Some(server) = &mut lane.server {
            server.maintenance.step(now_us);
            lane.note_written();
            lane.rests(now_us, calm);
        }
    }

    /// Examines what the step has brought: journal events, and what clients got.
    fn look(&mut self) -> Checked {
        let lane = &mut self.lanes[self.at];
        let Some(server) = &lane.server else { return Ok(()) };
        for sight in server.sights.take() {
            let history = &mut self.lanes[self.at].history;
            match sight {
                JournalCall::Proposed { first_index, time_us, records } => {
                    history.propose(first_index, time_us, &records)?;
                }
                JournalCall::Committed(committed) => {
                    let before = history.applied();
                    history.commit(&committed)?;
                    self.stats.records += history.applied() - before;
                    self.trace(|| self.told(before));
                    // A replayed run shows the batch at which the states begin to differ.
                    let history = &self.lanes[self.at].history;
                    if self.verbose {
                        history.compare(history.witness())?;
                    }
                }
                JournalCall::Refused { first_index, records } => history.refuse(first_index, records)?,
            }
        }
        self.clients_look()
    }

    fn told(&self, from: u64) -> String {
        let history = &self.lanes[self.at].history;
        let told = (from..history.applied()).map(|i| format!("  @{i} {}", history.describe(i)));
        told.collect::<Vec<_>>().join("\n")
    }

    /// Compares the shard's state with that of the witnesses.
    fn compare(&mut self) -> Checked {
        let lane = &self.lanes[self.at];
        let Some(server) = &lane.server else { return Ok(()) };
        let engine = server.shard.engine();
        if engine.digest() != lane.history.witness().digest() {
            let differs = lane.history.compare(engine).err();
            return Err(format!("the state is not what replaying the log gives: {differs:?}"));
        }
        lane.history.compare(engine)
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", line());
        }
    }
}
