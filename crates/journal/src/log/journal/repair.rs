//! Blobs that are damaged on the disk, and whole copies of them.

use super::DiskJournal;
use crate::seam::blob::BlobKey;
use crate::seam::event::Event;

impl DiskJournal {
    /// From now on who reads a damaged blob can wait for a copy of another node
    /// ([`crate::BlobLocation::seek_copy`]): an [`Event::Damaged`] tells of it, and the owner answers by
    /// [`DiskJournal::repair`] or [`DiskJournal::lose`].
    pub fn ask_others(&mut self) {
        self.shared.files.repairs().ask_others();
    }

    /// Notes that all other nodes have lost a damaged blob as well.
    pub fn lose(&mut self, key: BlobKey) {
        self.shared.files.repairs().lose(key);
    }

    /// The next live blob of which a copy is sought.
    pub(super) fn next_sought(&mut self) -> Option<Event> {
        let repairs = self.shared.files.repairs();
        let mut sought = std::iter::from_fn(|| repairs.next_sought());
        let is_missing = |key: &BlobKey| self.index.place(*key).is_some() && repairs.get(*key).is_none();
        sought.find(is_missing).map(Event::Damaged)
    }

    /// Takes a whole copy of a live blob that is damaged on the disk, as another node has it. From now on it
    /// is read from memory, and maintenance replaces the file that holds it by one with this copy, as soon as
    /// a snapshot replaces the file's records; such a segment is not kept as log. Taking the same copy again
    /// does no harm.
    ///
    /// False: no live blob has this key and length, or too many copies wait; nothing has changed.
    pub fn repair(&mut self, key: BlobKey, blob: &[u8]) -> bool {
        let Some(place) = self.index.place(key).filter(|place| place.len as usize == blob.len()) else {
            return false;
        };
        let taken = self.shared.files.repairs().add(key, blob, place.growing);
        self.shared.maintenance_signal.notify();
        taken
    }

    /// Length in bytes of a live blob; `None`: there is none with this key.
    pub fn blob_len(&self, key: BlobKey) -> Option<u32> {
        self.index.place(key).map(|place| place.len)
    }
}
