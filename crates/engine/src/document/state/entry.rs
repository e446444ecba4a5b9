//! The terms of documents in indexes.

use crate::document::state::{DocumentSlot, EntrySlot};
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// A term of a document in an index, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) term: u128,
    /// NIL: the slot is vacant.
    pub(crate) document: DocumentSlot,
    /// The next entry of the document; of a vacant slot, the next one.
    pub(crate) next: EntrySlot,
    /// Place of the index.
    pub(crate) index: u16,
}

/// All terms of all documents.
pub(crate) type Entries = Slab<Entry, 1024>;

const _: () = assert!(size_of::<Entry>() == 32);

impl PlainItem for Entry {
    const BLOCK: usize = 128;

    fn vacant(next: EntrySlot) -> Self {
        Entry { term: 0, document: Slot::NIL, next, index: 0 }
    }

    fn next_vacant(&self) -> Option<EntrySlot> {
        (self.document == Slot::NIL).then_some(self.next)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        out.raw(&self.term.to_be_bytes());
        self.document.write(out);
        self.next.write(out);
        out.u16(self.index);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Entry {
            term: u128::from_be_bytes(*reader.array()?),
            document: Slot::read(reader).filter(|slot| *slot != Slot::NIL)?,
            next: Slot::read(reader)?,
            index: reader.u16()?,
        })
    }
}
