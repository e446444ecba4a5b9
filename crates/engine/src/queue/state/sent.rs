//! The ids that a send gave, for repeats with its idempotency key.

use crate::core::idempotency::Gave;
use crate::wire::{Put, Reader};

/// The messages of a send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// Sequence of the first message.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Items that were duplicates by their unique key, and the sequences of the messages that they are
    /// duplicates of.
    pub(crate) duplicates: Box<[(u32, u64)]>,
}

impl Gave for Sent {
    fn entries(&self) -> u64 {
        self.duplicates.len() as u64
    }

    fn write_fixed(&self, out: &mut Vec<u8>) {
        out.u64(self.first);
        out.u32(self.count);
    }

    fn write_entries(&self, out: &mut Vec<u8>) {
        out.u32(self.duplicates.len() as u32);
        for &(item, sequence) in &self.duplicates {
            out.u32(item);
            out.u64(sequence);
        }
    }

    fn read_fixed(reader: &mut Reader<'_>) -> Option<Sent> {
        Some(Sent { first: reader.u64()?, count: reader.u32()?, duplicates: Box::default() })
    }

    fn read_entries(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let duplicates = reader.u32()?;
        let read = |_| Some((reader.u32()?, reader.u64()?));
        self.duplicates = (0..duplicates).map(read).collect::<Option<_>>()?;
        Some(())
    }
}

impl Sent {
    /// The sequence of each item's message, in order: new ones follow each other from the first on.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut fresh, mut duplicates) = (self.first, self.duplicates.iter().peekable());
        (0..self.count).map(move |item| match duplicates.next_if(|(at, _)| *at == item) {
            Some((_, sequence)) => *sequence,
            None => {
                fresh += 1;
                fresh - 1
            }
        })
    }
}
