//! The end of a process and the start of the next: what recovery must find, what it may have lost, and when it may
//! refuse.

use sluice_journal::{BlobKey, BlobRead, Journal};
use sluice_node::shard::request::Completion;

use super::World;
use super::config::ROOMY;
use super::server::{Recovered, Refusal, open};
use crate::disk::Crash;
use crate::model::Checked;

/// Starts that may fail one after the other, while causes are removed.
const STARTS_MAX: usize = 20;

impl World {
    pub(super) fn start_first(&mut self) -> Checked {
        let recovered = open(&self.config, &self.disk, &self.clock, self.plant)
            .map_err(|refusal| format!("the first start failed: {refusal}"))?;
        self.history.begin_at(recovered.next_index);
        self.server = Some(recovered.server);
        self.begin()
    }

    /// The process dies: now, or in the middle of what it does next with the disk.
    pub(super) fn die(&mut self, crash: Crash) -> Checked {
        if self.rng.chance(1, 2) {
            return self.crash(crash);
        }
        self.halt_soon(crash);
        Ok(())
    }

    fn halt_soon(&mut self, crash: Crash) {
        let calls = self.rng.below(16);
        self.trace(|| format!("  {crash:?} after {calls} more calls"));
        self.dying = crash;
        self.disk.halt_after(calls);
    }

    /// The process is killed, or power is lost; then the server is started again.
    pub(super) fn crash(&mut self, crash: Crash) -> Checked {
        // A supervisor starts the next process; power may be lost before it does.
        let twice = self.rng.chance(1, 10);
        let mut must_have = self.must_have(crash);
        self.end(crash);
        if twice {
            must_have = must_have.min(self.must_have(Crash::Power));
            self.disk.crash(Crash::Power);
        }
        self.restart(must_have)
    }

    /// The journal has failed, said so, and the process stops.
    pub(super) fn failed(&mut self, why: &str) -> Checked {
        if self.disk.is_halted() {
            return self.crash(self.dying);
        }
        self.trace(|| format!("  the journal has failed: {why}"));
        let expected = self.armed || self.full || !self.flips.is_empty();
        if !expected {
            return Err(format!("the journal has failed without a cause: {why}"));
        }
        // What was committed before the failure may still be told; nothing is after it.
        self.look()?;
        if let Some(server) = &mut self.server {
            server.writer.step();
            server.shard.step();
        }
        while let Some(late) = self.clients.completions.pop() {
            if !is_refusal(&late) {
                return Err(format!("answered after the journal has failed: {late:?}"));
            }
        }
        let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
        // Where replies do not wait for a sync, what a failed sync has lost was answered long ago.
        let must_have = if self.config.always() { self.must_have(crash) } else { self.durable };
        self.end(crash);
        self.restart(must_have)
    }

    /// The server has stopped in order: whatever comes now, nothing may be lost.
    pub(super) fn stopped(&mut self) -> Checked {
        self.look()?;
        let Some(server) = &self.server else { return Ok(()) };
        match server.writer.sync() {
            Err(_) if self.disk.is_halted() => return self.crash(self.dying),
            Ok(()) => self.durable = self.history.applied(),
            Err(why) if self.armed || self.full => self.trace(|| format!("  the last sync failed: {why}")),
            Err(why) => return Err(format!("the last sync failed without a cause: {why}")),
        }
        let must_have = if self.config.always() { self.clients.acknowledged } else { self.durable };
        let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
        self.end(crash);
        self.restart(must_have)
    }

    /// Records before this one must be there after such a crash.
    fn must_have(&self, crash: Crash) -> u64 {
        if self.config.always() || crash == Crash::Kill { self.clients.acknowledged } else { self.durable }
            .max(self.durable)
    }

    fn end(&mut self, crash: Crash) {
        self.trace(|| format!("  the process ends: {crash:?}"));
        self.disk.crash(crash);
        self.server = None;
        self.clients.cut_off();
        self.armed = false;
        self.stats.restarts += 1;
    }

    fn restart(&mut self, mut must_have: u64) -> Checked {
        for _ in 0..STARTS_MAX {
            if self.rng.below(10_000) < self.config.trouble.failing_call * 20 {
                self.arm();
            }
            if self.rng.below(10_000) < (self.config.trouble.kill + self.config.trouble.power) * 20 {
                let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
                self.halt_soon(crash);
            }
            match open(&self.config, &self.disk, &self.clock, self.plant) {
                Ok(recovered) => return self.recovered(recovered, must_have),
                Err(_) if self.disk.is_halted() => {
                    must_have = must_have.min(self.must_have(self.dying));
                    self.disk.crash(self.dying);
                    continue;
                }
                Err(refusal) => self.remove_cause(&refusal)?,
            }
            self.disk.crash(Crash::Kill);
        }
        Err("the server does not start, though all causes were removed".to_owned())
    }

    /// An operator reads why the server refused to start, and does something about it.
    fn remove_cause(&mut self, refusal: &Refusal) -> Checked {
        self.trace(|| format!("  refuses to start: {refusal}"));
        match refusal {
            Refusal::Damaged(_) | Refusal::Unread(_) if !self.flips.is_empty() => {
                for flip in std::mem::take(&mut self.flips).iter().rev() {
                    self.disk.unflip(flip);
                }
            }
            Refusal::Io(_) | Refusal::Unread(_) if self.armed => self.armed = false,
            Refusal::Io(_) if self.full => {
                self.full = false;
                self.disk.set_capacity(ROOMY);
            }
            other => return Err(format!("refuses to start without a cause: {other}")),
        }
        Ok(())
    }

    fn recovered(&mut self, recovered: Recovered, must_have: u64) -> Checked {
        let next = recovered.next_index;
        self.trace(|| format!("  recovered to @{next}: {}", recovered.report));
        if next > self.history.next_index() {
            return Err(format!("recovery found record {}, which was never proposed", next - 1));
        }
        if next < self.may_miss_from(must_have) {
            return Err(format!(
                "recovery lost records {next} to {} of what was acknowledged",
                must_have - 1
            ));
        }
        self.history.recover_to(next)?;
        self.clients.acknowledged = self.clients.acknowledged.min(next);
        self.durable = self.durable.min(next);
        self.server = Some(recovered.server);
        self.compare()?;
        self.read_all_back()?;
        self.begin()
    }

    /// Begins the new epoch, which must be durable before anything is served.
    fn begin(&mut self) -> Checked {
        let Some(server) = &mut self.server else { return Ok(()) };
        match server.begin(&self.config, self.plant) {
            Ok(()) => {
                self.look()?;
                self.durable = self.history.applied();
                self.written = self.durable;
                self.last_write = self.durable;
                Ok(())
            }
            Err(why) => {
                self.look()?;
                self.failed(&why)
            }
        }
    }

    /// A flipped bit in what was written, before anything was written that tells that it was synced, cannot be told
    /// from a torn write: recovery may cut there. Where each write is synced, that is the last one.
    fn may_miss_from(&self, must_have: u64) -> u64 {
        if self.flips.is_empty() {
            must_have
        } else if self.config.always() {
            must_have.min(self.last_write)
        } else {
            must_have.min(self.durable)
        }
    }

    /// Reads the payload of every message, from cache or disk.
    fn read_all_back(&mut self) -> Checked {
        let blobs: Vec<_> = self.history.model().blobs().collect();
        let Some(server) = &mut self.server else { return Ok(()) };
        for (id, blob) in blobs {
            let read = match server.shard.store().read(BlobKey { index: blob.index, item: blob.item }) {
                BlobRead::Cached(bytes) => Ok(bytes),
                BlobRead::OnDisk(location) => location.read().map_err(|error| format!("{error:?}")),
                BlobRead::Missing => Err("it is not in the journal".to_owned()),
            };
            match read {
                Ok(bytes) => self.history.check_blob(blob, &bytes)?,
                Err(_) if self.armed || self.tainted || self.disk.is_halted() => {}
                Err(why) => return Err(format!("the payload of message {id} cannot be read back: {why}")),
            }
        }
        Ok(())
    }
}

/// Whether this tells its client that nothing is known to have been done.
fn is_refusal(completion: &Completion) -> bool {
    match completion {
        Completion::Answer(_, answer) => answer.result.is_err(),
        Completion::Given(_, given) => given.as_ref().is_ok_and(Vec::is_empty) || given.is_err(),
    }
}
