//! Faults that the scheduler injects, and the operator's repairs.

use super::World;
use super::config::{DIRECTORY, ROOMY, shard_dir};
use super::server::Refusal;
use crate::disk::{Call, CallFailure, Crash, Harm};
use crate::model::Checked;

/// All calls that can fail.
const CALLS: [Call; 6] = [Call::Open, Call::Name, Call::Read, Call::Write, Call::Sync, Call::SyncDirectory];

impl World {
    /// Makes a random call fail for good.
    pub(super) fn arm(&mut self) {
        let call = *self.rng.pick(&CALLS);
        let nth = self.rng.below(12);
        self.trace(|| format!("  {call:?} will fail after {nth} more"));
        self.disk.fail_call(call, nth, CallFailure::Io);
        self.armed = true;
    }

    /// Makes a random call fail for lack of space, which passes, or undoes that.
    pub(super) fn pinch_or_release(&mut self) {
        if self.pinched {
            return self.release();
        }
        let nth = self.rng.below(12);
        let call = *self.rng.pick(&[Call::Open, Call::Write]);
        self.disk.fail_call(call, nth, CallFailure::NoRoom);
        self.trace(|| "  room will be short".to_owned());
        self.pinched = true;
    }

    fn release(&mut self) {
        self.trace(|| "  there is room again".to_owned());
        self.disk.forget_failures();
        self.pinched = false;
    }

    pub(super) fn fill_or_free(&mut self) {
        self.full = !self.full;
        let room = self.rng.below(40 << 10) as usize;
        self.disk.set_capacity(if self.full { self.disk.used() + room } else { ROOMY });
        self.trace(|| format!("  the disk is {}", if self.full { "nearly full" } else { "roomy" }));
    }

    /// True when space may be short.
    pub(super) fn short(&self) -> bool {
        self.full || self.pinched
    }

    pub(super) fn damage(&mut self) {
        let harm = self.rng.weighted(&[(2, Harm::Flip), (1, Harm::Zero), (1, Harm::Cut)]);
        if let Some(damaged) = self.disk.damage_somewhere(harm) {
            self.trace(|| format!("  {damaged:?}"));
            self.damages.push(damaged);
            self.tainted = true;
        }
    }

    /// Undoes all faults, for good.
    pub(super) fn calm(&mut self) {
        self.config.trouble = super::config::Trouble::NONE;
        self.full = false;
        self.disk.set_capacity(ROOMY);
        self.release();
        self.disk.forget_halt();
        self.undo_damage();
    }

    fn undo_damage(&mut self) {
        for damaged in std::mem::take(&mut self.damages).iter().rev() {
            self.disk.mend(damaged);
        }
    }

    /// Loses files between two processes: one file, or a shard's whole directory.
    pub(super) fn lose(&mut self) -> Checked {
        self.note_must_have(Crash::Kill);
        self.end(Crash::Kill);
        let dir = shard_dir(self.at as u32);
        // The loss of a server's only shard cannot be told from a first start.
        let several = self.lanes.len() > 1;
        let whole = (several && self.rng.chance(1, 4)).then_some(dir.as_path());
        self.lost = self.disk.lose(|path| path.parent() == Some(&dir), whole);
        self.trace(|| format!("  {:?}", self.lost));
        self.restart()
    }

    /// Removes the cause for which the server refused to start, as an operator would.
    pub(super) fn remove_cause(&mut self, refusal: &Refusal) -> Checked {
        self.trace(|| format!("  refuses to start: {refusal}"));
        match refusal {
            Refusal::Damaged(_) | Refusal::Unread(_) | Refusal::Lost(_) if self.lost.is_some() => {
                self.stats.lost += 1;
                if let Some(lost) = self.lost.take() {
                    self.disk.put_back(&lost);
                }
            }
            Refusal::Damaged(_) | Refusal::Unread(_) if !self.damages.is_empty() => self.undo_damage(),
            Refusal::Io(_) | Refusal::Unread(_) if self.armed => self.armed = false,
            Refusal::Io(_) | Refusal::Unread(_) if self.pinched => self.release(),
            Refusal::Io(_) if self.full => {
                self.full = false;
                self.disk.set_capacity(ROOMY);
            }
            other => return Err(format!("{DIRECTORY}: refuses to start without a cause: {other}")),
        }
        Ok(())
    }
}
