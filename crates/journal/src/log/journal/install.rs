//! Installing a state of another node over the present one.
//!
//! At once nothing of the former state and log can be read that the new state does not refer to; on the disk
//! there is either the former or the new one, until maintenance has put the new one in place. Until then what
//! the writer tells is about the former log, and is ignored.

use std::io;

use super::{DiskJournal, SnapshotTrigger};
use crate::log::files::Handle;
use crate::log::header::Position;
use crate::log::manifest::{Link, NUMBER_MAX};
use crate::log::received::Received;
use crate::log::receiving::Receiving;
use crate::log::shared::{Installation, Order};
use crate::log::snapshot::{StateHead, Work};
use crate::log::state_reader::PlacedSnapshot;
use crate::seam::blob::BlobKey;
use crate::seam::event::InstallError;

impl DiskJournal {
    /// Begins to receive a state of another node, for [`DiskJournal::install`]; for [`crate::Commit::Told`].
    pub fn receive(&self) -> Receiving {
        Receiving::new(&self.shared)
    }

    /// True when a blob is live here, and need not be received. Those of the tail are not live.
    pub fn holds(&self, key: BlobKey) -> bool {
        self.index.find(key).is_some()
    }

    /// Installs a state in place of the present one and of the whole log, tail included: the log goes on
    /// behind the state's last batch. An order as a cut is: at once the next batch has the next index and
    /// number, and [`DiskJournal::durable_orders`] tells when it is durable. Until then a crash leaves either
    /// what was there or the state.
    ///
    /// `live` are all blobs to which the state refers, each with its length in bytes. Those that are neither
    /// here nor received must be released by the log up to record `whole_from`, and may be missing until that
    /// is committed; so may those that are missing since an earlier state. Of what was received, blobs of
    /// records that this journal has given are left out.
    ///
    /// # Errors
    /// The reason for which the state cannot be installed; nothing was changed.
    ///
    /// # Panics
    /// When a state is being installed.
    pub fn install(
        &mut self,
        mut received: Received,
        whole_from: u64,
        live: impl IntoIterator<Item = (BlobKey, u32)>,
    ) -> Result<(), InstallError> {
        if let Some(what) = self.shared.failure() {
            return Err(InstallError::Failed(what.clone()));
        }
        while self.index.is_moving() {
            self.continue_move();
        }
        let tail = self.tail.as_mut().ok_or(InstallError::NoTail)?;
        assert!(self.installing.is_none(), "one state is installed at a time");
        let head = received.head();
        let committed_index = tail.committed_index();
        if head.applied_index <= committed_index || head.number < self.given.next_number {
            return Err(InstallError::Behind { committed_index });
        }
        let link = link_behind(&head);
        received.limit(self.given.next_index, link.next_index);
        let whole_from = whole_from.max(self.whole_from);
        let may_miss = head.applied_index < whole_from;
        let end = (self.given, self.segments.given_len());
        self.shared.set_installing(true);
        let installed = self.index.install(link, end, &received.blobs, live, may_miss);
        let complete = installed.inspect_err(|_| self.shared.set_installing(false))?;

        tail.install(&head, self.given.next_index - 1);
        self.segments.restart(self.index.growing_handle().clone(), link);
        self.segments.forget_complete();
        if std::mem::replace(&mut self.snapshots.running, true) {
            self.shared.snapshot.push(Work::Abort);
        }
        self.snapshots.requested = false;
        (self.next_index, self.next_number) = (link.next_index, link.next_number);
        (self.last_time_us, self.given) = (link.time_us, link);
        self.whole_from = whole_from;
        self.keep_from(u64::MAX);
        self.order(Order::Install(Box::new(Installation { received, whole_from, link, complete })));
        self.installing = Some(self.orders);
        Ok(())
    }

    /// Index of the record up to which the log releases the blobs that may be missing since a state was
    /// installed. It is greater than any record's when what releases them will never come
    /// ([`DiskJournal::go_on_without_blobs`]); 0: none may be missing.
    pub fn whole_from(&self) -> u64 {
        self.whole_from
    }

    /// True: blobs may be missing since a state was installed, and the log does not reach to where the last
    /// of them is released.
    pub fn may_miss_blobs(&self) -> bool {
        self.next_index <= self.whole_from
    }

    /// Goes on without the blobs that may be missing, when what releases them will never come: none of them
    /// is damage from now on. Blocks; it is on the disk then.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn go_on_without_blobs(&mut self) -> io::Result<()> {
        self.whole_from = NUMBER_MAX;
        self.shared.change_manifest(|manifest| manifest.whole_from = NUMBER_MAX)
    }

    /// Goes on behind the state that is in place now.
    pub(super) fn installed(&mut self, handle: Handle, start: Link, placed: PlacedSnapshot) {
        let Some(tail) = &mut self.tail else { return };
        self.installing = None;
        tail.installed(start.next_index - 1);
        self.shared.set_given(Position { segment: handle.number, offset: 0 });
        self.shared.set_committed(tail.notable_index());
        self.segments.restart(handle.clone(), start);
        self.index.restart(handle, start);
        self.snapshots = SnapshotTrigger::found(0, Some(placed));
        self.snapshots.live_blobs = self.index.live_blobs();
    }
}

/// State of the chain behind a state. The chain begins anew there.
fn link_behind(head: &StateHead) -> Link {
    Link {
        next_index: head.applied_index + 1,
        next_number: head.number + 1,
        previous: 0,
        term: head.term,
        time_us: head.time_us,
    }
}
