//! Notes on the disk of how far the log is synced and committed: idle markers, and the manifest.

use std::io;

use super::{Writer, WriterState};
use crate::disk::shortage::is_passing;
use crate::lock::lock;
use crate::log::header::Position;
use crate::log::manifest::Manifest;
use crate::log::shared::Shared;

impl WriterState {
    fn mark_due(&self, shared: &Shared) -> bool {
        let fits = self.offset + self.batch_bytes(0) <= shared.options.segment_bytes;
        let news = self.last_batch > self.marked
            || shared.is_told() && shared.committed_index() > self.marked_committed;
        self.idle() && self.last_batch <= self.synced && news && fits
    }
}

impl Writer {
    /// Closes the journal in order: syncs everything and notes in segment and manifest that it is synced.
    /// Without the notes, damage to the last batches could be taken for batches that were never synced. Then
    /// as [`Writer::stop`].
    ///
    /// # Errors
    /// The failure, which has ended the journal's life.
    pub fn finish(&self) -> Result<(), String> {
        self.sync()?;
        self.mark().inspect_err(|what| self.shared.poison(what.clone()))?;
        self.sync()?;
        match self.note_closed() {
            // What is durable stays so without it.
            Err(error) if is_passing(&error) => {}
            noted => noted.map_err(|error| format!("the manifest could not be written: {error}"))?,
        }
        self.stop();
        Ok(())
    }

    /// True when more is synced, or told to be committed, than the manifest notes.
    pub(crate) fn note_due(&self) -> bool {
        // Asked for first: who holds the manifest does not wait for the state.
        let synced_to = self.synced_to();
        self.is_news(synced_to, &lock(&self.shared.manifest))
    }

    /// Notes the synced position in the manifest, so that a later loss of the segment's end is detected.
    pub(crate) fn note_synced(&self) -> io::Result<()> {
        let synced_to = self.synced_to();
        let mut manifest = lock(&self.shared.manifest);
        if !self.is_news(synced_to, &manifest) {
            return Ok(());
        }
        self.shared.alter_manifest(&mut manifest, |manifest| manifest.note_synced(synced_to))
    }

    fn is_news(&self, synced_to: Position, manifest: &Manifest) -> bool {
        let told = self.shared.is_told() && self.shared.committed_index() > manifest.committed;
        synced_to > manifest.synced_to || told
    }

    /// Notes in the manifest that the journal was closed.
    fn note_closed(&self) -> io::Result<()> {
        let synced_to = self.synced_to();
        self.shared.change_manifest(|manifest| {
            manifest.note_synced(synced_to);
            manifest.closed = true;
        })
    }

    /// True when the last batch is synced and no later batch says so: an idle marker is due.
    pub(crate) fn mark_due(&self) -> bool {
        lock(&self.state).mark_due(&self.shared)
    }

    /// Writes an idle marker, if one is due: a batch without records that notes the synced position.
    pub(crate) fn mark(&self) -> Result<bool, String> {
        let marked = {
            // As in a step, so that the shard's thread never waits for this write.
            let Ok(_stepping) = self.stepping.try_lock() else { return Ok(false) };
            let mut state = lock(&self.state);
            let due = state.mark_due(&self.shared);
            if due {
                let encoded = state.encode_marker(&self.shared);
                let written = encoded.and_then(|_| self.write(&mut state));
                written.inspect_err(|what| self.shared.poison(what.clone()))?;
            }
            due
        };
        // Who has queued meanwhile relies on this.
        self.step();
        Ok(marked)
    }

    /// Ends the segment that grows and begins the next one, with a marker. False: something is being written,
    /// or there is no room.
    pub(crate) fn roll(&self) -> Result<bool, String> {
        let has_rolled = {
            let Ok(_stepping) = self.stepping.try_lock() else { return Ok(false) };
            let mut state = lock(&self.state);
            if self.shared.failure().is_some() || !state.idle() {
                return Ok(false);
            }
            let rolled = self.begin_segment(&mut state).and_then(|begun| {
                if begun {
                    state.encode_marker(&self.shared)?;
                    self.run(&mut state)?;
                }
                Ok(begun)
            });
            rolled.inspect_err(|what| self.shared.poison(what.clone()))?
        };
        // Who has queued meanwhile relies on this.
        self.step();
        Ok(has_rolled)
    }

    /// True when the segment that grows holds at least this many bytes of the log, or more zeros ahead than
    /// the first of a run.
    pub(crate) fn is_beyond(&self, bytes: u64) -> bool {
        let state = lock(&self.state);
        state.offset >= bytes || state.prefilled > state.offset + self.shared.options.first_prefill()
    }
}
