//! State of changes that people have made to a message.

use crate::change::{CHANGES_REMEMBERED_MAX, Verb};
use crate::id::BlobRef;
use crate::queue::state::ChangedSlot;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// Behaviour version from which on the version of a held message tells the time of its delivery.
pub(crate) const DUE_IN_VERSION_SINCE: u16 = 18;

/// A change that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) verb: Verb,
    pub(crate) at_us: u64,
    /// The note: by whom and why.
    pub(crate) note: BlobRef,
}

/// Changes of one message, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// Leased: it is gone when the lease ends, however it ends.
    pub(crate) cancelled: bool,
    /// Held: when it may be ready at the earliest.
    pub(crate) due_us: u64,
    /// Its tags, if they are others than those that it was sent with.
    pub(crate) tags: Option<BlobRef>,
    /// Oldest first.
    pub(crate) log: Vec<Entry>,
    next_vacant: Option<ChangedSlot>,
}

/// The changes of all messages that have any.
pub(crate) type AllChanged = Slab<Changed, 1024>;

impl Changed {
    /// Nothing.
    pub(crate) fn none() -> Changed {
        Changed { next_vacant: None, ..Changed::vacant(Slot::NIL) }
    }

    /// Remembers a change; returns the blob of one that is forgotten for it, which is never the first.
    pub(crate) fn record(&mut self, entry: Entry) -> Option<BlobRef> {
        let forgotten = (self.log.len() >= CHANGES_REMEMBERED_MAX).then(|| self.log.remove(1).note);
        self.log.push(entry);
        forgotten
    }

    /// Everything that it refers to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let tags = self.tags.filter(|tags| *tags != BlobRef::EMPTY);
        tags.into_iter().chain(self.log.iter().map(|entry| entry.note))
    }
}

impl PlainItem for Changed {
    const BLOCK: usize = 32;

    fn vacant(next: ChangedSlot) -> Self {
        Changed { cancelled: false, due_us: 0, tags: None, log: Vec::new(), next_vacant: Some(next) }
    }

    fn next_vacant(&self) -> Option<ChangedSlot> {
        self.next_vacant
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.bool(self.cancelled);
        out.u64(self.due_us);
        out.bool(self.tags.is_some());
        if let Some(tags) = self.tags {
            out.blob(tags);
        }
        out.u16(self.log.len() as u16);
        for entry in &self.log {
            out.u8(entry.verb as u8);
            out.u64(entry.at_us);
            out.blob(entry.note);
        }
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let (cancelled, due_us) = (reader.bool()?, reader.u64()?);
        let tags = if reader.bool()? { Some(reader.blob()?) } else { None };
        let mut log = Vec::new();
        for _ in 0..reader.u16()? {
            let verb = *Verb::ALL.get(usize::from(reader.u8()?))?;
            log.push(Entry { verb, at_us: reader.u64()?, note: reader.blob()? });
        }
        Some(Changed { cancelled, due_us, tags, log, next_vacant: None })
    }
}
