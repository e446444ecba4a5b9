//! Puts a state of another node in place.

use std::io;

use super::{Maintenance, snapshots};

impl Maintenance {
    /// Puts a state in place, when the writer waits for that.
    pub(super) fn install(&mut self) -> io::Result<bool> {
        if !self.shared.is_told() || !self.writer.is_held() {
            return Ok(false);
        }
        // What the shard has handed on of a snapshot is of the former state; it begins none before it is told
        // that the new one is in place.
        while self.shared.snapshot.pop().is_some() {}
        self.remove_building();
        self.snapshots = snapshots::SnapshotWriting::default();
        // Who is still in the step after which the writer waits tells nobody of its end.
        let Some(files) = self.writer.install()? else { return Ok(self.writer.is_held()) };
        self.shared.set_installing(false);
        self.entries.extend(files);
        self.look_soon();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use crate::log::snapshot::StateHead;
    use crate::{Commit, DiskJournal, FsDisk, Opened, Options, Received};

    fn open(dir: &Path) -> Opened {
        let options = Options { commit: Commit::Told, ..Options::new(dir.to_owned()) };
        DiskJournal::open(Arc::new(FsDisk), options).unwrap()
    }

    fn received(journal: &DiskJournal) -> Received {
        let head =
            StateHead { applied_index: 8, number: 8, term: 3, time_us: 7, behaviour: 1, label: Vec::new() };
        let mut receiving = journal.receive();
        receiving.begin(head).unwrap();
        receiving.add(b"a state").unwrap();
        assert!(receiving.end(crc32fast::hash(b"a state")).unwrap().is_some());
        receiving.finish().unwrap()
    }

    #[test]
    fn a_state_is_put_in_place_after_the_step_in_which_the_writer_came_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let Opened { mut journal, writer, mut maintenance, .. } = open(dir.path());
        journal.set_live([]).unwrap();
        let state = received(&journal);
        journal.install(state, 8, []).unwrap();
        writer.step();
        let stepping = writer.stepping.lock().unwrap();
        for _ in 0..100 {
            maintenance.step(1);
        }
        assert!(maintenance.step(1), "more is waiting, of which nobody else would tell");
        drop(stepping);
        while maintenance.step(1) {}
        assert!(!writer.is_held());
    }
}
