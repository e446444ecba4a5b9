//! Starts of the server, shard by shard: the records that recovery must find, those that it may have lost,
//! and the reasons for which a start may be refused.

use std::sync::Arc;

use sluice_engine::query::NamespaceView;

use super::World;
use super::config::shard_dir;
use super::history::History;
use super::server::{NotBegun, Recovered, Refusal, adopt, open};
use super::shard::{ShardWorld, read_back};
use crate::disk::{Crash, Damaged, Harm};
use crate::model::Checked;

/// Upper limit of failing starts in a row, while causes are removed.
const STARTS_MAX: usize = 20;

/// Reason for which a start failed.
enum StartFailure {
    /// The process died.
    Halted,
    /// The server refused to start.
    Refused(Refusal),
    /// The journal failed on the first records.
    Failed(String),
    /// An invariant does not hold.
    Wrong(String),
}

impl From<String> for StartFailure {
    fn from(wrong: String) -> StartFailure {
        StartFailure::Wrong(wrong)
    }
}

impl World {
    pub(super) fn start_first(&mut self) -> Checked {
        match self.start() {
            Ok(()) => Ok(()),
            Err(StartFailure::Refused(why)) => Err(format!("the first start failed: {why}")),
            Err(StartFailure::Failed(why) | StartFailure::Wrong(why)) => Err(why),
            Err(StartFailure::Halted) => Err("the first start was halted".to_owned()),
        }
    }

    pub(super) fn restart(&mut self) -> Checked {
        for _ in 0..STARTS_MAX {
            if self.rng.below(10_000) < self.config.trouble.failing_call * 20 {
                self.arm();
            }
            if self.rng.below(10_000) < (self.config.trouble.kill + self.config.trouble.power) * 20 {
                let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
                self.halt_soon(crash);
            }
            let crash = match self.start() {
                Ok(()) => {
                    // Files that the server could do without are lost for good.
                    self.lost = None;
                    return self.namespaces_agree();
                }
                Err(StartFailure::Wrong(wrong)) => return Err(wrong),
                Err(_) if self.disk.is_halted() => self.dying,
                Err(StartFailure::Halted) => return Err("a start was halted without a cause".to_owned()),
                Err(StartFailure::Refused(refusal)) => {
                    self.remove_cause(&refusal)?;
                    Crash::Kill
                }
                Err(StartFailure::Failed(why)) => {
                    self.trace(|| format!("  fails while it starts: {why}"));
                    self.may_fail(&why)?;
                    self.armed = false;
                    Crash::Kill
                }
            };
            self.loses(crash);
            self.end(crash);
        }
        Err("the server does not start, though all causes were removed".to_owned())
    }

    /// Tries once to start all shards, as a node does: each begins its epoch before the next is opened.
    fn start(&mut self) -> Result<(), StartFailure> {
        let mut placed = Vec::new();
        let space = self.config.space(&self.disk);
        for at in 0..self.lanes.len() {
            self.at = at;
            self.not_lost(&placed)?;
            let space = Some(Arc::clone(&space));
            let opened = open(&self.config, at as u32, &self.disk, space, &self.clock, self.plant);
            let recovered = opened.map_err(StartFailure::Refused)?;
            self.recovered(recovered)?;
            let adopted = self.adopt(&mut placed);
            let lane = &mut self.lanes[at];
            let Some(server) = &mut lane.server else { continue };
            let begun = adopted.and_then(|()| server.begin(&self.config, &placed, self.plant));
            if at == 0 {
                placed = server.shard.engine().namespaces();
            }
            self.look()?;
            match begun {
                Ok(()) => self.lanes[at].has_begun(),
                Err(_) if self.disk.is_halted() => return Err(StartFailure::Halted),
                Err(NotBegun::Failed(why)) => return Err(StartFailure::Failed(why)),
                Err(NotBegun::NoRoom) => {
                    let why = "there is no room for the first records".to_owned();
                    return Err(StartFailure::Refused(Refusal::Io(why)));
                }
            }
        }
        Ok(())
    }

    /// Passes on the namespaces of the starting shard that shard 0 does not know.
    fn adopt(&mut self, placed: &mut Vec<NamespaceView>) -> Result<(), NotBegun> {
        let (begun, starting) = self.lanes.split_at_mut(self.at);
        let Some(starting) = starting.first().and_then(|lane| lane.server.as_ref()) else { return Ok(()) };
        let mut servers: Vec<_> = begun.iter_mut().filter_map(|lane| lane.server.as_mut()).collect();
        let told = adopt(&mut servers, starting, placed);
        let at = self.at;
        for shard in 0..at {
            self.at = shard;
            let looked = self.look().map_err(NotBegun::Failed);
            self.at = at;
            looked?;
        }
        for shard in told? {
            self.lanes[shard].has_begun();
        }
        Ok(())
    }

    /// Checks, as a node does before it opens a shard, that the shard's files are there if other shards rely
    /// on it: opening it without them would make an empty journal.
    fn not_lost(&self, placed: &[NamespaceView]) -> Result<(), StartFailure> {
        let shards = self.lanes.len();
        let holds = |shard: usize| self.disk.has_file(&shard_dir(shard as u32).join("manifest"));
        let relied_on = match self.at {
            0 => (1..shards).any(holds),
            at => placed.iter().any(|view| view.shard == at as u32),
        };
        if relied_on && !holds(self.at) {
            return Err(StartFailure::Refused(Refusal::Lost(format!("shard {} is missing", self.at))));
        }
        Ok(())
    }

    /// Begins a shard anew whose lost directory the server has replaced by an empty one; it must have held
    /// nothing.
    fn begin_anew(&mut self) -> Checked {
        let shard = self.at as u32;
        if self.at == 0 || !self.lanes[0].history.seen().namespaces(shard).is_empty() {
            return Err(format!("shard {shard} was lost, and the server went on without it"));
        }
        let lane = &mut self.lanes[self.at];
        lane.history = History::new(self.config.limits.clone(), !self.config.mixes);
        lane.clients.forget_tokens();
        lane.must_have = 0;
        Ok(())
    }

    fn recovered(&mut self, recovered: Recovered) -> Checked {
        let next = recovered.next_index;
        self.trace(|| format!("  shard {} recovered to @{next}: {}", self.at, recovered.report));
        let lost = self.lost.as_ref().is_some_and(|lost| lost.directory == Some(shard_dir(self.at as u32)));
        // The new log has records already if an earlier try to start came that far.
        if lost && next == 1 {
            self.begin_anew()?;
        }
        let always = self.config.always();
        let worst = worst(&self.damages);
        let lane = &mut self.lanes[self.at];
        if lane.server.is_none() && lane.history.next_index() == 0 {
            lane.history.begin_at(next);
        }
        if next > lane.history.next_index() {
            return Err(format!("recovery found record {}, which was never proposed", next - 1));
        }
        if next < may_miss_from(lane, worst, always) {
            let last = lane.must_have - 1;
            return Err(format!("recovery lost records {next} to {last} of what was acknowledged"));
        }
        lane.history.recover_to(next)?;
        lane.clients.acknowledged = lane.clients.acknowledged.min(next);
        lane.durable = next;
        lane.noted = next;
        lane.server = Some(recovered.server);
        self.compare()?;
        let excused = self.armed || self.tainted || self.disk.is_halted();
        let ShardWorld { server, history, .. } = &mut self.lanes[self.at];
        let Some(server) = server else { return Ok(()) };
        read_back(server, history.witnesses(), history, excused)
    }
}

/// The worst harm done to files.
fn worst(damages: &[Damaged]) -> Option<Harm> {
    damages.iter().map(|damaged| damaged.harm).max_by_key(|harm| *harm != Harm::Flip)
}

/// Index from which recovery may miss records. Damage looks like a torn write, at which recovery may cut,
/// where nothing shows that the damaged bytes were synced. Zeros and cut ends may take everything that shows
/// it but the manifest. A flipped bit leaves what was written later: with a sync after each write recovery
/// may miss the last write, else whatever was synced last.
fn may_miss_from(lane: &ShardWorld, worst: Option<Harm>, always: bool) -> u64 {
    let known = match worst {
        None => return lane.must_have,
        Some(Harm::Zero | Harm::Cut) => lane.noted,
        Some(Harm::Flip) if always => lane.last_write.max(lane.noted),
        Some(Harm::Flip) => lane.vouched.max(lane.noted),
    };
    lane.must_have.min(known)
}
