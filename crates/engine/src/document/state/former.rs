//! Former versions of documents.

use crate::document::state::FormerSlot;
use crate::document::state::body::Body;
use crate::store::slab::{PlainItem, Slab};
use crate::store::slot::Slot;
use crate::wire::{Put, Reader};

/// A version that a document had, or a vacant slot.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    pub(crate) body: Body,
    /// The version before it, if that is kept; of a vacant slot, the next one.
    pub(crate) before: FormerSlot,
    /// Length of what lies in the blob before the content; [`VACANT`]: the slot is vacant.
    pub(crate) head_bytes: u16,
}

/// All former versions that are kept.
pub(crate) type Formers = Slab<Former, 1024>;

/// No head is as long.
const VACANT: u16 = u16::MAX;

impl PlainItem for Former {
    const BLOCK: usize = 64;

    fn vacant(next: FormerSlot) -> Self {
        Former { body: Body::NONE, before: next, head_bytes: VACANT }
    }

    fn next_vacant(&self) -> Option<FormerSlot> {
        (self.head_bytes == VACANT).then_some(self.before)
    }

    fn write_used(&self, out: &mut Vec<u8>) {
        self.body.write(out);
        self.before.write(out);
        out.u16(self.head_bytes);
    }

    fn read_used(reader: &mut Reader<'_>) -> Option<Self> {
        let (body, before) = (Body::read(reader)?, Slot::read(reader)?);
        Some(Former { body, before, head_bytes: reader.u16().filter(|bytes| *bytes != VACANT)? })
    }
}
