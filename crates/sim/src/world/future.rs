//! Downgrades: today's server opens the log of a newer one; it must refuse it and change nothing.

use sluice_engine::BEHAVIOUR_VERSION;
use sluice_engine::command::Command;
use sluice_journal::{Batch, Class, DiskJournal, Journal};
use sluice_record::write_record;

use super::World;
use super::server::open;
use crate::disk::{Crash, SimDisk};
use crate::model::Checked;

impl World {
    /// Lets a newer server run on a copy of the disk, then starts today's server there.
    pub(super) fn meet_the_future(&mut self) -> Checked {
        if self.tainted || self.lanes[self.at].server.is_none() {
            return Ok(());
        }
        let copy = self.disk.copy(self.rng.fork()).map_err(|error| format!("the copy: {error}"))?;
        self.start_newer(&copy)?;
        copy.crash(Crash::Kill);
        let before = copy.dump();
        match open(&self.config, self.at as u32, &copy, None, &self.clock, None) {
            Ok(_) => Err("a log of a newer behaviour version was taken".to_owned()),
            Err(why) if copy.dump() != before => {
                Err(format!("a newer log was refused ({why}), but the directory was changed"))
            }
            Err(why) => {
                self.trace(|| format!("  a newer log: {why}"));
                Ok(())
            }
        }
    }

    /// Writes the first record of a newer server.
    fn start_newer(&self, disk: &SimDisk) -> Checked {
        let shard = self.at as u32;
        let opened = DiskJournal::open(
            std::sync::Arc::new(disk.clone()),
            self.config.journal(shard, &self.clock, None),
        );
        let mut opened = opened.map_err(|error| error.to_string())?;
        let mut batch = Batch::new();
        let number = 1_000_000;
        write_record(&mut batch, &Command::Epoch { number, behaviour: BEHAVIOUR_VERSION + 1 });
        let time_us = opened.report.last_time_us + 1;
        opened.journal.propose(&mut batch, time_us, Class::Draining).map_err(|why| format!("{why:?}"))?;
        opened.writer.step();
        opened.writer.finish()
    }
}
