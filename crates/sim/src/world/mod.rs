//! One run: a server, its disk and clock, clients, and a scheduler that lets the seed pick what happens next.

mod clients;
mod config;
mod crash;
mod finish;
mod history;
mod server;
mod spy;

use sluice_node::clock::Clock;
use sluice_node::shard::Step;
use sluice_node::shard::request::Request;

use crate::clock::SimClock;
use crate::disk::{Call, Crash, Flaws, Flip, SimDisk};
use crate::model::Checked;
use crate::plant::Plant;
use crate::rng::Rng;
use crate::workload::Generator;
use clients::Clients;
use config::{Config, DIRECTORY, ROOMY};
use history::History;
use server::Server;
use spy::Sight;

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Steps taken.
    pub steps: u64,
    /// Requests answered.
    pub answers: u64,
    /// Messages given to clients, payload and all.
    pub delivered: u64,
    /// Records committed.
    pub records: u64,
    /// Crashes and stops.
    pub restarts: u64,
    /// Syncs of files.
    pub syncs: u64,
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.steps += other.steps;
        self.answers += other.answers;
        self.delivered += other.delivered;
        self.records += other.records;
        self.restarts += other.restarts;
        self.syncs += other.syncs;
    }
}

/// What may happen next.
#[derive(Clone, Copy, Debug)]
enum Action {
    Ask,
    Pull,
    Shard,
    Writer,
    Maintenance,
    ReadBlob,
    Moment,
    While,
    Jump,
    Compare,
    Kill,
    Power,
    Stop,
    FailCall,
    FillDisk,
    Flip,
}

/// See the module.
pub struct World {
    config: Config,
    rng: Rng,
    disk: SimDisk,
    clock: SimClock,
    server: Option<Server>,
    history: History,
    generator: Generator,
    clients: Clients,
    plant: Option<Plant>,
    verbose: bool,
    /// Whether a call may fail because the scheduler wanted it to.
    armed: bool,
    /// Whether the disk was made small.
    full: bool,
    /// What ends the process when the disk has halted.
    dying: Crash,
    /// Whether the shard has just said that it has nothing to do.
    idle: bool,
    /// Damage done and not undone.
    flips: Vec<Flip>,
    /// Whether there was ever damage: compaction may have copied a damaged payload, where nothing undoes it.
    tainted: bool,
    /// All before this record is durable, whatever the durability setting.
    durable: u64,
    /// Records before this one have been given to the disk; and where what was given last begins.
    written: u64,
    last_write: u64,
    stats: Stats,
}

impl World {
    /// The world of this seed, with a server that has just started for the first time.
    ///
    /// # Errors
    /// What was wrong with the start.
    pub fn new(seed: u64, plant: Option<Plant>, verbose: bool) -> Result<World, String> {
        let mut rng = Rng::new(seed);
        let config = Config::draw(&mut rng);
        let disk = SimDisk::new(std::path::Path::new("/data"), ROOMY, rng.fork());
        disk.set_flaws(Flaws {
            skips_syncs: plant == Some(Plant::SkipSync),
            cuts_tail: plant == Some(Plant::CutValidRecordAtRecovery),
            goes_back: plant == Some(Plant::OlderSnapshotFallback),
        });
        sluice_engine::plant::plant(plant.and_then(Plant::in_engine));
        let mut world = World {
            generator: Generator::new(rng.fork()),
            history: History::new(config.limits.clone()),
            clients: Clients::new(),
            clock: SimClock::default(),
            config,
            disk,
            rng,
            server: None,
            plant,
            verbose,
            armed: false,
            full: false,
            dying: Crash::Kill,
            idle: false,
            flips: Vec::new(),
            tainted: false,
            durable: 0,
            written: 0,
            last_write: 0,
            stats: Stats::default(),
        };
        world.trace(|| format!("{DIRECTORY}: {:?}", world.config));
        world.start_first()?;
        Ok(world)
    }

    /// What the run came to so far.
    pub fn stats(&self) -> Stats {
        Stats { syncs: self.disk.tally().syncs, ..self.stats }
    }

    /// The disk, for those who look.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// Lets the next thing happen.
    ///
    /// # Errors
    /// What must be true and is not.
    pub fn step(&mut self) -> Checked {
        self.stats.steps += 1;
        let action = self.next_action();
        self.trace(|| format!("{} {action:?}", self.stats.steps));
        self.act(action)?;
        if self.disk.is_halted() {
            return self.crash(self.dying);
        }
        self.look()?;
        if std::mem::take(&mut self.idle) { self.nobody_waits_in_vain() } else { Ok(()) }
    }

    fn next_action(&mut self) -> Action {
        let trouble = self.config.trouble;
        let busy = self.config.busy * 100;
        let pulls = if self.generator.holds() > 60 { busy / 8 } else { busy / 2 };
        self.rng.weighted(&[
            (busy, Action::Ask),
            (pulls, Action::Pull),
            (3_000, Action::Shard),
            (2_500, Action::Writer),
            (1_500, Action::Maintenance),
            (500, Action::ReadBlob),
            (1_000, Action::Moment),
            (150, Action::While),
            (20, Action::Compare),
            (trouble.clock_jump, Action::Jump),
            (trouble.kill, Action::Kill),
            (trouble.power, Action::Power),
            (trouble.orderly_stop, Action::Stop),
            (trouble.failing_call, Action::FailCall),
            (trouble.full_disk, Action::FillDisk),
            (trouble.flip, Action::Flip),
        ])
    }

    fn act(&mut self, action: Action) -> Checked {
        match action {
            Action::Ask => return self.client_asks(),
            Action::Pull => self.client_pulls(),
            Action::Shard => return self.shard_steps(),
            Action::Writer => self.writer_steps(),
            Action::Maintenance => self.maintenance_steps(),
            Action::ReadBlob => return self.read_blob(),
            Action::Moment => self.clock.advance(self.rng.between(1, 20_000)),
            Action::While => {
                let us =
                    self.rng.weighted(&[(6, 200_000), (4, 1_500_000), (2, 12_000_000), (1, 700_000_000)]);
                self.clock.advance(us);
            }
            Action::Jump => {
                let us = self.rng.weighted(&[(1, -7_200_000_000), (1, 7_200_000_000), (2, 5_000_000)]);
                self.clock.jump(us);
            }
            Action::Compare => return self.compare(),
            Action::Kill => return self.die(Crash::Kill),
            Action::Power => return self.die(Crash::Power),
            Action::Stop => return self.stop(),
            Action::FailCall => self.arm(),
            Action::FillDisk => self.fill_or_free(),
            Action::Flip => self.damage(),
        }
        Ok(())
    }

    fn shard_steps(&mut self) -> Checked {
        let Some(server) = &mut self.server else { return Ok(()) };
        let step = server.shard.step();
        self.idle = step == Step::Idle;
        if step == Step::Failed {
            let why = server.shard.failure().unwrap_or_default().to_owned();
            return self.failed(&why);
        }
        Ok(())
    }

    fn writer_steps(&mut self) {
        let Some(server) = &mut self.server else { return };
        server.writer.step();
        let proposed = self.history.next_index();
        if proposed > self.written {
            self.last_write = self.written;
            self.written = proposed;
        }
    }

    fn maintenance_steps(&mut self) {
        let now_us = self.clock.monotonic_us();
        if let Some(server) = &mut self.server {
            server.maintenance.step(now_us);
        }
    }

    /// Looks at what the step has brought: what the journal said, and what clients were told.
    fn look(&mut self) -> Checked {
        let Some(server) = &self.server else { return Ok(()) };
        for sight in server.sights.take() {
            match sight {
                Sight::Proposed { first_index, time_us, records } => {
                    self.history.propose(first_index, time_us, &records)?;
                }
                Sight::Committed(committed) => {
                    let before = self.history.applied();
                    self.history.commit(&committed)?;
                    self.stats.records += self.history.applied() - before;
                    self.trace(|| self.told(before));
                }
                Sight::Refused { first_index, records } => self.history.refuse(first_index, records)?,
            }
        }
        self.clients_look()
    }

    fn told(&self, from: u64) -> String {
        let told = (from..self.history.applied()).map(|i| format!("  @{i} {}", self.history.describe(i)));
        told.collect::<Vec<_>>().join("\n")
    }

    /// Lays the server's state beside the witnesses'.
    fn compare(&mut self) -> Checked {
        let Some(server) = &self.server else { return Ok(()) };
        let engine = server.shard.engine();
        let witness = self.history.witness();
        if engine.digest() != witness.digest() {
            return Err("the state is not what replaying the log gives".to_owned());
        }
        self.history.model().compare(engine)
    }

    fn arm(&mut self) {
        let call = *self.rng.pick(&[Call::Name, Call::Read, Call::Write, Call::Sync, Call::SyncDirectory]);
        let nth = self.rng.below(12);
        self.trace(|| format!("  {call:?} will fail after {nth} more"));
        self.disk.fail_call(call, nth);
        self.armed = true;
    }

    fn fill_or_free(&mut self) {
        self.full = !self.full;
        let room = self.rng.below(40 << 10) as usize;
        self.disk.set_capacity(if self.full { self.disk.used() + room } else { ROOMY });
        self.trace(|| format!("  the disk is {}", if self.full { "nearly full" } else { "roomy" }));
    }

    fn damage(&mut self) {
        if let Some(flip) = self.disk.flip_somewhere(|_| true) {
            self.trace(|| format!("  {flip:?}"));
            self.flips.push(flip);
            self.tainted = true;
        }
    }

    /// Asks the server to stop in order, and lets it.
    fn stop(&mut self) -> Checked {
        let Some(server) = &self.server else { return Ok(()) };
        if server.mailbox.push(Request::Stop).is_err() {
            return Ok(());
        }
        for _ in 0..10_000 {
            let Some(server) = &mut self.server else { return Ok(()) };
            let step = server.shard.step();
            match step {
                Step::Failed => return self.shard_steps(),
                Step::Stopped => return self.stopped(),
                Step::Worked | Step::Idle => {}
            }
            self.writer_steps();
            self.look()?;
            self.maintenance_steps();
        }
        // On a full disk the last records may wait for room for ever: a supervisor loses patience.
        if self.full { self.crash(Crash::Kill) } else { Err("the server does not stop".to_owned()) }
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", line());
        }
    }
}
