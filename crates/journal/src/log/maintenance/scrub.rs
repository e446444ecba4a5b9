//! Reads live blobs of sealed files, slowly, a round an hour, and tells of those that do not verify.

use std::sync::atomic::Ordering::Relaxed;

use super::Maintenance;
use crate::log::read_ahead::ReadAhead;
use crate::log::shared::Note;
use crate::seam::batch::BLOB_HEAD;
use crate::seam::blob::BlobError;

/// Bytes read in one step at most.
const STEP_BYTES: u64 = 1 << 20;

/// Blobs looked at in one step, live or not.
const STEP_BLOBS: u32 = 4096;

/// Time between two steps, in microseconds; each reads as much as the rate allows.
const STEP_EVERY_US: u64 = 250_000;

/// Minimum time between the beginnings of two rounds, in microseconds.
const ROUND_EVERY_US: u64 = 3_600_000_000;

/// Where the scrub stands.
#[derive(Debug, Default)]
pub(super) struct Scrub {
    /// The file, and the next blob in it; `None` between two rounds.
    at: Option<(u64, u32)>,
    /// Bytes that may be read now.
    allowance: u64,
    step_at_us: u64,
    round_at_us: u64,
}

impl Maintenance {
    /// Reads what the rate allows for one step, when that is due.
    pub(super) fn scrub(&mut self, now_us: u64) {
        if self.scrub_due_us().is_none_or(|at| now_us < at) {
            return;
        }
        if self.scrub.at.is_none() {
            self.scrub.at = self.file_after(0);
            self.scrub.round_at_us = now_us + ROUND_EVERY_US;
        }
        self.scrub.step_at_us = now_us + STEP_EVERY_US;
        let rate = self.shared.options.scrub_bytes_per_s;
        self.scrub.allowance = (rate / (1_000_000 / STEP_EVERY_US)).clamp(1, STEP_BYTES);
        // Each step looks at the disk anew.
        let ahead = ReadAhead::new();
        for _ in 0..STEP_BLOBS {
            if self.scrub.allowance == 0 || !self.scrub_next(&ahead) {
                break;
            }
        }
    }

    /// When the scrub goes on, or begins anew.
    pub(super) fn scrub_due_us(&self) -> Option<u64> {
        let off = self.shared.options.scrub_bytes_per_s == 0 || !self.shared.live_known.load(Relaxed);
        if off || self.entries.is_empty() {
            return None;
        }
        Some(if self.scrub.at.is_some() { self.scrub.step_at_us } else { self.scrub.round_at_us })
    }

    /// Verifies the next blob; `false` at the end of a round.
    fn scrub_next(&mut self, ahead: &ReadAhead) -> bool {
        let Some((number, ordinal)) = self.scrub.at else { return false };
        let entry = self.entries.iter().find(|entry| entry.holder.number() == number);
        let Some(entry) = entry.filter(|entry| ordinal < entry.holder.table.len()) else {
            self.scrub.at = self.file_after(number + 1);
            return self.scrub.at.is_some();
        };
        self.scrub.at = Some((number, ordinal + 1));
        if !entry.holder.is_live(ordinal) {
            return true;
        }
        let location = entry.holder.location(ordinal);
        self.scrub.allowance = self.scrub.allowance.saturating_sub((location.len() + BLOB_HEAD) as u64);
        // What the system refuses once may pass: what does so twice comes again with the next round.
        let read = match ahead.verify(&location) {
            Err(BlobError::Io(_)) => ahead.verify(&location),
            read => read,
        };
        if read.is_err_and(|error| error.is_lasting()) {
            self.shared.counters.damaged_blobs.fetch_add(1, Relaxed);
            self.shared.tell(Note::Damaged(location.key));
        }
        true
    }

    /// The beginning of the file with this number, or the next higher one.
    fn file_after(&self, number: u64) -> Option<(u64, u32)> {
        let numbers = self.entries.iter().map(|entry| entry.holder.number());
        numbers.filter(|found| *found >= number).min().map(|found| (found, 0))
    }
}
