//! Orders that are no batches: cuts of the tail, and hard states.
//!
//! A cut never writes over what is on the disk. A segment is taken into which a marker is written that
//! continues the chain where the tail began; then the manifest is replaced, which names that segment and not
//! those that it takes the place of, and says where the one before it ends. Until then the marker continues
//! nothing that recovery follows, and the whole tail is the log; afterwards nothing of it is.

use std::io;

use super::{Begin, Writer, WriterState};
use crate::disk::File;
use crate::disk::shortage::is_passing;
use crate::file_kind::Kind;
use crate::lock::lock;
use crate::log::header::{Header, Position};
use crate::log::manifest::{Link, OpenSegment};
use crate::log::sealing::append_batch;
use crate::log::shared::{Fresh, Note, Order, Shared};
use crate::plant::{self, Plant};

impl WriterState {
    /// Notes where the next batch begins, and forgets the batches that are committed.
    pub(super) fn note_begin(&mut self, shared: &Shared) {
        let committed = shared.committed_index();
        while self.begins.front().is_some_and(|begin| begin.link.next_index <= committed) {
            self.begins.pop_front();
        }
        let at = Position { segment: self.segment.number, offset: self.offset };
        self.begins.push_back(Begin { at, link: self.link });
    }
}

impl Writer {
    /// Carries out the first order, which is no batch, when everything before it is written; `false` when
    /// there is no room on the disk, or no file handle.
    pub(super) fn carry_out(&self, state: &mut WriterState) -> Result<bool, String> {
        let done = match state.todo.front() {
            Some(Order::Cut(index)) => self.cut(state, *index)?,
            Some(Order::HardState { state: kept, tells_of_log }) => {
                let (kept, tells_of_log) = (kept.clone(), *tells_of_log);
                if tells_of_log && state.synced < state.written {
                    self.sync_held(state)?;
                }
                self.keep(kept)?
            }
            Some(Order::Write(_) | Order::Install(_)) | None => return Ok(true),
        };
        if done {
            state.todo.pop_front();
            state.written_orders += 1;
        }
        Ok(done)
    }

    /// Keeps a hard state in the manifest; `false` when there is no room.
    fn keep(&self, kept: Vec<u8>) -> Result<bool, String> {
        if plant::is(Plant::HardStateUnsynced) {
            lock(&self.shared.manifest).hard_state = kept;
            return Ok(true);
        }
        has_room(self.shared.change_manifest(|manifest| manifest.hard_state = kept))
    }

    /// Cuts the tail from a record on; `false` when there is no room.
    fn cut(&self, state: &mut WriterState, index: u64) -> Result<bool, String> {
        let place = state.begins.binary_search_by_key(&index, |begin| begin.link.next_index);
        let place = place.map_err(|_| format!("no batch of the tail begins with record {index}"))?;
        let Begin { at, link } = state.begins[place];
        // What stays is synced, since what follows in the other segment tells so.
        self.sync_held(state)?;
        let Some(fresh) = self.fresh_segment()? else { return Ok(false) };
        let (marker, next) = self.marker(state, &fresh, link)?;
        let end = Position { segment: fresh.handle.number, offset: marker.len() as u64 };
        let replaced = self.write_marker(&fresh, &marker).and_then(|()| self.replace(at, end));
        if !has_room(replaced)? {
            lock(&self.shared.fresh).push_front(fresh);
            return Ok(false);
        }
        state.begins.truncate(place);
        let handle = fresh.handle.clone();
        state.go_on(fresh, end, next, self.shared.committed_index());
        self.shared.maintenance_signal.notify();
        state.ready.push(Note::Cut { at, handle, start: link });
        Ok(true)
    }

    /// The first batch of a segment that continues the log after `link`: one without records. Returns its
    /// bytes, and the chain after it.
    pub(super) fn marker(
        &self,
        state: &WriterState,
        fresh: &Fresh,
        link: Link,
    ) -> Result<(Vec<u8>, Link), String> {
        let mut header = Header {
            checksum: 0,
            at: Position { segment: fresh.handle.number, offset: 0 },
            first_index: link.next_index,
            number: link.next_number,
            term: link.term,
            time_us: link.time_us,
            synced_to: state.synced,
            committed: self.shared.committed_index(),
            len: 0,
            records: 0,
            content_checksum: 0,
            previous: link.previous,
            nonce: None,
        };
        let mut bytes = Vec::new();
        append_batch(&mut bytes, &fresh.handle.seal, self.shared.identity, &mut header, &[], false)?;
        Ok((bytes, Link::after(&header)))
    }

    pub(super) fn write_marker(&self, fresh: &Fresh, marker: &[u8]) -> io::Result<()> {
        fresh.handle.file.write_at(marker, 0)?;
        self.shared.count_syncs(1);
        fresh.handle.file.sync_data()
    }

    /// Lets the log go on from `at` in the segment of `synced_to`, in the manifest.
    fn replace(&self, at: Position, synced_to: Position) -> io::Result<()> {
        if plant::is(Plant::CutWithoutManifest) {
            return Ok(());
        }
        let is_cut = |open: &OpenSegment| {
            let first = at.segment + u64::from(at.offset > 0);
            (first..synced_to.segment).contains(&open.number)
        };
        let gone: Vec<OpenSegment> = self.shared.change_manifest(|manifest| {
            manifest.note_synced(synced_to);
            let gone = manifest.open.extract_if(.., |open| is_cut(open)).collect();
            if let Some(open) = manifest.open.iter_mut().find(|open| open.number == at.segment) {
                open.end = at.offset;
            }
            gone
        })?;
        for open in gone {
            self.shared.files.remove(Kind::Log, open.number);
            self.shared.files.keys().forget(open.number);
        }
        Ok(())
    }
}

/// True when a change was made; `false` when there was no room for it, or no file handle, so that it may be
/// tried again.
fn has_room(changed: io::Result<()>) -> Result<bool, String> {
    match changed {
        Ok(()) => Ok(true),
        Err(error) if is_passing(&error) => Ok(false),
        Err(error) => Err(format!("the manifest or a segment could not be written: {error}")),
    }
}
