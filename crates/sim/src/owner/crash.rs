//! Ends of the process.

use super::OwnerWorld;
use crate::disk::Crash;
use crate::model::Checked;

impl OwnerWorld {
    /// Kills the process or cuts the power: now, or during the next calls to the disk.
    pub(super) fn die(&mut self) -> Checked {
        let crash = *self.rng.pick(&[Crash::Kill, Crash::Power]);
        if self.rng.chance(1, 2) {
            return self.crash(crash);
        }
        self.dying = crash;
        self.disk.halt_after(self.rng.below(24));
        Ok(())
    }

    /// Ends the process, and starts the next one.
    pub(super) fn crash(&mut self, crash: Crash) -> Checked {
        self.trace(|| format!("  {crash:?}"));
        let mut power = crash == Crash::Power || self.disk.may_lose();
        self.disk.crash(crash);
        // A supervisor starts the next process; power may be lost before that.
        if self.rng.chance(1, 10) {
            power = true;
            self.disk.crash(Crash::Power);
        }
        (self.incoming, self.backing_up, self.snapshot, self.server) = (None, None, None, None);
        self.reading.crash();
        self.end_of_copies();
        self.armed = false;
        self.stats.restarts += 1;
        self.start(power)
    }

    /// Handles a failed journal: nothing is given afterwards, and the process ends.
    pub(super) fn failed(&mut self, why: &str) -> Checked {
        if self.disk.is_halted() {
            return self.crash(self.dying);
        }
        if !self.armed {
            return Err(format!("the journal failed without a cause: {why}"));
        }
        if let Some(event) = self.server.as_mut().and_then(|server| {
            server.writer.step();
            sluice_journal::Journal::poll(&mut server.journal)
        }) {
            return Err(format!("{event:?} after a failure"));
        }
        let crash = *self.rng.pick(&[Crash::Kill, Crash::Power]);
        self.crash(crash)
    }

    /// Waits until no state is being installed; `false`: it takes longer.
    fn end_installation(&mut self) -> Result<bool, String> {
        for _ in 0..5 {
            if self.model.is_installed() || self.disk.is_halted() {
                break;
            }
            self.now_us += 100_000;
            self.with(|server, now_us| {
                server.maintain(now_us);
                server.write();
            })?;
            self.poll()?;
        }
        Ok(self.model.is_installed() && !self.disk.is_halted())
    }

    /// Stops the journal in order, and starts it again: nothing may be missing.
    pub(super) fn stop(&mut self) -> Checked {
        if self.short || self.armed {
            return Ok(());
        }
        self.with(|server, _| server.write())?;
        self.poll()?;
        if !self.end_installation()? {
            return Ok(());
        }
        let Some(server) = &self.server else { return Ok(()) };
        match server.writer.finish() {
            Ok(()) => self.model.closed(true),
            Err(_) if self.disk.is_halted() => return self.crash(self.dying),
            Err(why) => return Err(format!("it does not stop: {why}")),
        }
        let crash = *self.rng.pick(&[Crash::Kill, Crash::Power]);
        self.crash(crash)
    }
}
