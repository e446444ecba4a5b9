//! Ends of a process (killed, power lost, failed, stopped), and the records that the next one must find.

use sluice_node::shard::Step;
use sluice_node::shard::request::{Completion, Request};

use super::World;
use super::across::Across;
use super::shard::ShardWorld;
use crate::disk::Crash;
use crate::model::Checked;

impl World {
    /// Kills the process: now, or during its next calls to the disk.
    pub(super) fn die(&mut self, crash: Crash) -> Checked {
        if self.rng.chance(1, 2) {
            return self.crash(crash);
        }
        self.halt_soon(crash);
        Ok(())
    }

    pub(super) fn halt_soon(&mut self, crash: Crash) {
        let calls = self.rng.below(16);
        self.trace(|| format!("  {crash:?} after {calls} more calls"));
        self.dying = crash;
        self.disk.halt_after(calls);
    }

    /// Kills the process or cuts the power, and starts the server again.
    pub(super) fn crash(&mut self, crash: Crash) -> Checked {
        // A supervisor starts the next process; power may be lost before that.
        let twice = self.rng.chance(1, 10);
        self.note_must_have(crash);
        self.end(crash);
        if twice {
            self.loses(Crash::Power);
            self.disk.crash(Crash::Power);
        }
        self.restart()
    }

    /// Handles a failed journal: nothing may be acknowledged any more, and the process stops.
    pub(super) fn failed(&mut self, why: &str) -> Checked {
        if self.disk.is_halted() {
            return self.crash(self.dying);
        }
        self.trace(|| format!("  the journal of shard {} has failed: {why}", self.at));
        self.may_fail(why)?;
        // Answers to what was committed before the failure may still arrive; none to anything after it.
        self.look()?;
        let lane = &mut self.lanes[self.at];
        if let Some(server) = &mut lane.server {
            server.writer.step();
            server.shard.step();
        }
        while let Some(late) = lane.clients.completions.pop() {
            if !is_refusal(&late) {
                return Err(format!("answered after the journal has failed: {late:?}"));
            }
        }
        let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
        self.note_must_have(crash);
        // Where replies do not wait for a sync, records that a failed sync has lost may have been answered
        // already.
        if !self.config.always() {
            let lane = &mut self.lanes[self.at];
            lane.must_have = lane.durable;
        }
        self.end(crash);
        self.restart()
    }

    /// Checks that a journal had a reason to fail. A full disk is no reason, since it passes.
    pub(super) fn may_fail(&self, why: &str) -> Checked {
        let expected = self.armed || !self.damages.is_empty();
        if expected { Ok(()) } else { Err(format!("the journal failed without a cause: {why}")) }
    }

    /// Stops the server in order.
    pub(super) fn stop(&mut self) -> Checked {
        let mut asked = vec![false; self.lanes.len()];
        for _ in 0..10_000 {
            let mut stopped = 0;
            for (at, asked) in asked.iter_mut().enumerate() {
                self.at = at;
                let Some(server) = &mut self.lanes[at].server else { return Ok(()) };
                *asked = *asked || server.mailbox.push(Request::Stop).is_ok();
                match server.shard.step() {
                    Step::Failed => return self.shard_fails(),
                    Step::Stopped => stopped += 1,
                    Step::Worked | Step::Idle => {}
                }
                self.writer_steps();
                self.look()?;
                self.maintenance_steps();
                if self.disk.is_halted() {
                    return self.crash(self.dying);
                }
            }
            if stopped == self.lanes.len() {
                return self.stopped();
            }
        }
        // On a full disk the last records may wait for space for ever, until a supervisor kills the process.
        if self.short() { self.crash(Crash::Kill) } else { Err("the server does not stop".to_owned()) }
    }

    /// Checks an orderly stop: nothing may be lost afterwards.
    fn stopped(&mut self) -> Checked {
        for at in 0..self.lanes.len() {
            self.at = at;
            self.look()?;
            let lane = &mut self.lanes[at];
            let Some(server) = &lane.server else { return Ok(()) };
            match server.writer.finish() {
                Err(_) if self.disk.is_halted() => return self.crash(self.dying),
                Ok(()) => {
                    lane.sync_all();
                    // Without space the manifest may not record it.
                    if !self.short() {
                        self.lanes[at].note_all();
                    }
                }
                Err(why) => {
                    self.trace(|| format!("  the last sync failed: {why}"));
                    self.may_fail(&why)?;
                }
            }
            let lane = &mut self.lanes[at];
            lane.must_have = if self.config.always() { lane.clients.acknowledged } else { lane.durable };
        }
        let crash = if self.rng.chance(1, 2) { Crash::Kill } else { Crash::Power };
        self.end(crash);
        self.restart()
    }

    /// Notes what the next start must find after this crash.
    pub(super) fn note_must_have(&mut self, crash: Crash) {
        for at in 0..self.lanes.len() {
            self.lanes[at].must_have = self.survives(&self.lanes[at], crash);
        }
    }

    /// Notes a further crash before the next start.
    pub(super) fn loses(&mut self, crash: Crash) {
        for at in 0..self.lanes.len() {
            let survives = self.survives(&self.lanes[at], crash);
            self.lanes[at].must_have = self.lanes[at].must_have.min(survives);
        }
    }

    /// Index before which all records must survive such a crash. Where replies do not wait for a sync, a
    /// journal that has failed without having reported it yet may have lost answered records.
    fn survives(&self, lane: &ShardWorld, crash: Crash) -> u64 {
        let keeps_answered = self.config.always() || (crash == Crash::Kill && !self.disk.may_lose());
        if keeps_answered { lane.clients.acknowledged } else { lane.durable }.max(lane.durable)
    }

    pub(super) fn end(&mut self, crash: Crash) {
        self.trace(|| format!("  the process ends: {crash:?}"));
        self.disk.crash(crash);
        for lane in &mut self.lanes {
            lane.server = None;
            lane.clients.cut_off();
        }
        self.changing = None;
        self.backing_up = None;
        self.across.iter_mut().for_each(Across::stop);
        self.armed = false;
        self.stats.restarts += 1;
    }
}

/// True for an answer that confirms nothing.
fn is_refusal(completion: &Completion) -> bool {
    match completion {
        Completion::Answer(_, answer) => answer.result.is_err(),
        Completion::Given(_, given) => given.as_ref().is_ok_and(Vec::is_empty) || given.is_err(),
    }
}
