//! Reads live blobs of sealed files, slowly, again and again, and tells of those that do not verify.

use std::sync::atomic::Ordering::Relaxed;

use super::Maintenance;
use crate::batch::BLOB_HEAD;
use crate::log::shared::Note;
use crate::seam::BlobError;

/// Bytes read in one step at most, and the most that a pause saves up.
const STEP_BYTES: u64 = 256 << 10;

/// Blobs looked at in one step, live or not.
const STEP_BLOBS: u32 = 4096;

/// Where the scrub stands.
#[derive(Debug, Default)]
pub(super) struct Scrub {
    /// The file, and the next blob in it.
    file: u64,
    next: u32,
    /// Bytes that may be read now.
    allowance: u64,
    last_us: u64,
}

impl Maintenance {
    /// Reads as much as the rate allows since the last step. Never asks to be called again at once.
    pub(super) fn scrub(&mut self, now_us: u64) -> bool {
        let rate = self.shared.options.scrub_bytes_per_s;
        if rate == 0 || !self.shared.live_known.load(Relaxed) {
            return false;
        }
        let scrub = &mut self.scrub;
        let elapsed_us = now_us.saturating_sub(scrub.last_us).min(1_000_000);
        scrub.last_us = now_us;
        scrub.allowance = (scrub.allowance + rate * elapsed_us / 1_000_000).min(STEP_BYTES);
        for _ in 0..STEP_BLOBS {
            if self.scrub.allowance == 0 || !self.scrub_next() {
                break;
            }
        }
        false
    }

    /// Verifies the next blob; `false` at the end of a file.
    fn scrub_next(&mut self) -> bool {
        let at = self.scrub.file;
        let Some(entry) = self.entries.iter().find(|entry| entry.holder.number() == at) else {
            self.scrub_next_file();
            return false;
        };
        let ordinal = self.scrub.next;
        if ordinal >= entry.holder.table.len() {
            self.scrub_next_file();
            return false;
        }
        self.scrub.next += 1;
        if !entry.holder.is_live(ordinal) {
            return true;
        }
        let location = entry.holder.location(ordinal);
        self.scrub.allowance = self.scrub.allowance.saturating_sub((location.len() + BLOB_HEAD) as u64);
        // What the system refuses once may pass: what does so twice comes again with the next round.
        let read = match location.read() {
            Err(BlobError::Io(_)) => location.read(),
            read => read,
        };
        if read.is_err_and(|error| error.is_lasting()) {
            self.shared.counters.damaged_blobs.fetch_add(1, Relaxed);
            self.shared.tell(Note::Damaged(location.key));
        }
        true
    }

    /// Goes on to the file with the next higher number, or to the first.
    fn scrub_next_file(&mut self) {
        let numbers = self.entries.iter().map(|entry| entry.holder.number());
        let after = numbers.clone().filter(|number| *number > self.scrub.file).min();
        self.scrub.file = after.or(numbers.min()).unwrap_or(0);
        self.scrub.next = 0;
    }
}
