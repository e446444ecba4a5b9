//! The layout of the ids that a record about dead letters names.

use crate::core::field::{ReadField, WriteField};
use crate::id::MessageId;
use crate::layout::{fixed_items, id_at};
use crate::wire::{Put, Reader};

/// A list of message ids.
#[derive(Clone, Copy)]
pub(crate) struct Ids<'a> {
    pub(crate) items: &'a [[u8; 12]],
}

impl<'a> Ids<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = MessageId> + use<'a> {
        self.items.iter().map(|bytes| id_at(bytes))
    }
}

impl WriteField for &[MessageId] {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.len() as u32);
        self.iter().for_each(|id| id.write(out));
    }
}

impl<'a> ReadField<'a> for Ids<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        fixed_items(reader).map(|items| Ids { items })
    }
}
