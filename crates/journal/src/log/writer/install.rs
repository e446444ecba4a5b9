//! Putting a state in place, for which the writer waits.
//!
//! What was given of the former log is sealed, since live blobs may be in it, and a segment is taken into
//! which a marker is written that begins the chain behind the state. Then one replacement of the manifest
//! names the state, its blobs and that segment, and nothing else of the former log.

use std::io;
use std::sync::Arc;

use super::{Writer, WriterState};
use crate::disk::File;
use crate::file_kind::Kind;
use crate::lock::lock;
use crate::log::blob_holder::BlobHolder;
use crate::log::header::Position;
use crate::log::manifest::{Manifest, OpenSegment, Sealed};
use crate::log::sealed_file::SealedFile;
use crate::log::shared::{Complete, Installation, Note, Order};
use crate::plant::{self, Plant};

impl WriterState {
    /// True when nothing can be written before a state is in place.
    pub(super) fn is_held(&self) -> bool {
        self.buffer.is_empty() && matches!(self.todo.front(), Some(Order::Install(_)))
    }
}

impl Writer {
    /// True when the writer waits for a state to be put in place.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.state).is_held()
    }

    /// Puts the state in place for which the writer waits; for maintenance, which changes complete files
    /// alone. Returns the files with blobs that came with it; `None`: it waits for none, or is in a step.
    ///
    /// # Errors
    /// After one that passes, such as a lack of room, nothing was changed.
    pub(crate) fn install(&self) -> io::Result<Option<Vec<SealedFile>>> {
        let files = {
            let Ok(_stepping) = self.stepping.try_lock() else { return Ok(None) };
            let mut state = lock(&self.state);
            if self.shared.failure().is_some() || !state.is_held() {
                return Ok(None);
            }
            let Some(Order::Install(mut installation)) = state.todo.pop_front() else { return Ok(None) };
            let placed = self.place(&mut state, &mut installation);
            if placed.is_err() {
                state.todo.push_front(Order::Install(installation));
            }
            let files = placed?;
            self.run(&mut state).map_err(io::Error::other)?;
            files
        };
        // Who has queued meanwhile relies on this.
        self.step();
        Ok(Some(files))
    }

    fn place(&self, state: &mut WriterState, installation: &mut Installation) -> io::Result<Vec<SealedFile>> {
        // What stays of the former log is sealed, and the state is not to be durable before older orders.
        if !plant::is(Plant::SealUnsynced) {
            self.sync_held(state).map_err(io::Error::other)?;
        }
        let sealed = self.seal_given(installation)?;
        let fresh = self.fresh_segment().map_err(io::Error::other)?;
        let fresh = fresh.ok_or(io::ErrorKind::StorageFull)?;
        let link = installation.link;
        let (marker, next) = self.marker(state, &fresh, link).map_err(io::Error::other)?;
        let end = Position { segment: fresh.handle.number, offset: marker.len() as u64 };
        let replaced =
            self.write_marker(&fresh, &marker).and_then(|()| self.name(installation, &sealed, end));
        if let Err(error) = replaced {
            lock(&self.shared.fresh).push_front(fresh);
            return Err(error);
        }
        lock(&self.shared.complete).clear();
        state.begins.clear();
        let handle = fresh.handle.clone();
        state.go_on(fresh, end, next, link.next_index - 1);
        state.written_orders += 1;
        let placed = installation.received.snapshot.clone();
        state.ready.push(Note::Installed { handle, start: link, placed });
        Ok(self.files_of(installation, sealed))
    }

    /// Writes the tables of the segments that are complete, and of what was given of the one that grew.
    fn seal_given(&self, installation: &Installation) -> io::Result<Vec<(Sealed, Arc<BlobHolder>)>> {
        let growing = installation.complete.iter().filter(|_| !plant::is(Plant::ForgetGrowingSegment));
        let complete: Vec<Complete> = lock(&self.shared.complete).iter().chain(growing).cloned().collect();
        let mut sealed = Vec::new();
        for complete in complete {
            sealed.push((complete.write_table(&self.shared)?, complete.holder));
        }
        self.shared.sync_dir()?;
        Ok(sealed)
    }

    /// Replaces the manifest, and removes the files that it does not name any more.
    fn name(
        &self,
        installation: &mut Installation,
        sealed: &[(Sealed, Arc<BlobHolder>)],
        end: Position,
    ) -> io::Result<()> {
        // Whatever comes of this: the manifest on the disk may be the one that names them.
        installation.received.keep(|_| true);
        let Installation { received, whole_from, link, .. } = &*installation;
        let snapshot = &received.snapshot.named;
        let (gone, old) = self.shared.change_manifest(|manifest| {
            manifest.note_synced(end);
            let is_former = |open: &OpenSegment| open.number < end.segment;
            let former: Vec<OpenSegment> = manifest.open.extract_if(.., |open| is_former(open)).collect();
            manifest.open_start = *link;
            manifest.sealed.extend(sealed.iter().map(|(sealed, _)| *sealed));
            manifest.term = manifest.term.max(link.term);
            manifest.committed = snapshot.applied_index;
            manifest.whole_from = if plant::is(Plant::ForgetWholeFrom) { 0 } else { *whole_from };
            manifest.blob_files.extend(received.blobs.iter().map(|file| file.named.clone()));
            let old = manifest.snapshot.replace(snapshot.clone());
            (former, old)
        })?;
        let manifest = lock(&self.shared.manifest);
        self.remove_former(&manifest, &gone, old.map(|old| old.number));
        let named = manifest.file_numbers();
        installation.received.keep(|number| named.contains(&number));
        Ok(())
    }

    fn remove_former(&self, manifest: &Manifest, open: &[OpenSegment], snapshot: Option<u64>) {
        let logs = open.iter().map(|open| (Kind::Log, open.number));
        for (kind, number) in logs.chain(snapshot.map(|number| (Kind::Snapshot, number))) {
            if !manifest.names(kind, number) {
                self.shared.files.remove(kind, number);
                self.shared.files.keys().forget(number);
            }
        }
    }

    /// Files with blobs, for maintenance.
    fn files_of(
        &self,
        installation: &Installation,
        sealed: Vec<(Sealed, Arc<BlobHolder>)>,
    ) -> Vec<SealedFile> {
        let mut files = Vec::new();
        for (sealed, holder) in sealed {
            // Is what follows not given back to the disk, it only takes room.
            let _ = holder.handle.file.set_len(holder.len);
            holder.handle.file.only_read();
            files.push(SealedFile::sealed(&sealed, holder));
        }
        for file in &installation.received.blobs {
            files.push(SealedFile::new(file.holder.clone(), file.named.ranges.clone()));
        }
        files
    }
}
