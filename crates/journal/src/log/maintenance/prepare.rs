//! Makes the next segment ahead of time.
//!
//! Measured: fdatasync after appending to a growing file takes 397 µs (p50), into a file of zeros that is
//! already on the disk 148 µs, since then no metadata is committed. So with durability `always` a segment is
//! filled with zeros first.

use std::io;

use super::Maintenance;
use crate::disk::File;
use crate::file_kind::Kind;
use crate::lock::lock;
use crate::log::files::Handle;
use crate::log::manifest::OpenSegment;
use crate::log::shared::Fresh;
use crate::log::writer::BEGIN_PART;
use crate::options::Durability;

/// Zeros written in one step.
const STEP_BYTES: u64 = 1 << 20;

/// Zeros after which they are synced, so that a sync of the log beside it has little to wait for.
const SYNC_BYTES: u64 = 2 << 20;

/// When segments are full sooner than that, two are made ahead.
const QUICK_US: u64 = 5_000_000;

/// A segment on its way.
#[derive(Debug)]
pub(super) struct Preparing {
    handle: Handle,
    filled: u64,
    wanted: u64,
}

impl Maintenance {
    /// Does a step towards the next segment, early enough for it to be ready when the current one is full.
    pub(super) fn prepare_segment(&mut self, now_us: u64) -> io::Result<bool> {
        if let Some(preparing) = &mut self.preparing {
            if preparing.filled < preparing.wanted {
                preparing.fill()?;
                return Ok(true);
            }
            self.offer_segment()?;
            return Ok(true);
        }
        // Let go of before the writer's state is looked at, under which the writer takes what is ready.
        let ready = lock(&self.shared.fresh).len();
        if ready >= self.ready_wanted(now_us) {
            return Ok(false);
        }
        let wanted = if self.is_coming_to_rest() {
            self.shared.options.first_prefill()
        } else {
            self.shared.options.next_prefill()
        };
        if !self.shared.space.is_ample_for(wanted) {
            // The writer makes a segment without zeros when it needs one.
            return Ok(false);
        }
        let handle = self.shared.create(Kind::Log)?;
        self.preparing = Some(Preparing { handle, filled: 0, wanted });
        Ok(true)
    }

    /// Number of segments that should be ready.
    fn ready_wanted(&self, now_us: u64) -> usize {
        if self.is_coming_to_rest() {
            return 1;
        }
        let (used, fits) = self.writer.fill();
        if used < fits / BEGIN_PART {
            return 0;
        }
        let quick = self.sealed_at_us.is_some_and(|at| now_us < at + QUICK_US);
        match self.shared.options.durability {
            Durability::Always => 1 + usize::from(quick),
            // They are empty, and cost nothing but their making.
            Durability::Interval(_) | Durability::Os => 2,
        }
    }

    fn offer_segment(&mut self) -> io::Result<()> {
        let Some(preparing) = &self.preparing else { return Ok(()) };
        let open = OpenSegment { number: preparing.handle.number, len: preparing.filled, end: 0 };
        self.shared.sync_dir()?;
        let mut manifest = lock(&self.shared.manifest);
        // The writer may have made one itself meanwhile; numbers grow in the order of the log. Or the root
        // key was replaced.
        let late = manifest.open.last().is_some_and(|last| last.number > open.number);
        if late || !self.shared.files.is_current(&preparing.handle) {
            drop(manifest);
            self.give_up_preparing();
            return Ok(());
        }
        self.shared.alter_manifest(&mut manifest, |manifest| manifest.open.push(open))?;
        if let Some(Preparing { handle, filled, .. }) = self.preparing.take() {
            lock(&self.shared.fresh).push_back(Fresh { handle, prefilled: filled });
        }
        Ok(())
    }

    pub(super) fn give_up_preparing(&mut self) {
        if let Some(preparing) = self.preparing.take() {
            self.shared.discard(&preparing.handle);
        }
    }
}

impl Preparing {
    fn fill(&mut self) -> io::Result<()> {
        let bytes = STEP_BYTES.min(self.wanted - self.filled);
        self.handle.file.write_at(&vec![0; bytes as usize], self.filled)?;
        self.filled += bytes;
        if self.filled.is_multiple_of(SYNC_BYTES) || self.filled == self.wanted {
            self.handle.file.sync_data()?;
        }
        Ok(())
    }
}
