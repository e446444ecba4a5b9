//! Writing and reading of fixed-layout bytes: integers are little endian, short texts carry their length.

use crate::id::BlobRef;

/// Appends fields to bytes.
pub(crate) trait Put {
    fn raw(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.raw(&[value]);
    }
    fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }
    fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }
    fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }
    fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }
    /// At most 65,535 bytes, with their length.
    fn bytes16(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= usize::from(u16::MAX));
        self.u16(bytes.len() as u16);
        self.raw(bytes);
    }
    /// A name, at most 255 bytes, with its length.
    fn name(&mut self, name: &str) {
        debug_assert!(name.len() <= usize::from(u8::MAX));
        self.u8(name.len() as u8);
        self.raw(name.as_bytes());
    }
    fn blob(&mut self, blob: BlobRef) {
        self.u64(blob.index);
        self.u32(blob.item);
        self.u32(blob.len);
    }
}

impl Put for Vec<u8> {
    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Takes fields off the front of bytes; `None` when they end too early or hold what no writer wrote.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// A part of the head of a snapshot: what belongs to no block of a slab, without what is derived or volatile.
pub(crate) trait HeadPart: Sized {
    fn write_head(&self, out: &mut Vec<u8>);

    /// Reads what [`HeadPart::write_head`] wrote; slots are vacant until their blocks are read.
    fn read_head(reader: &mut Reader<'_>) -> Option<Self>;
}

/// The format of snapshots under [`crate::BEHAVIOUR_VERSION`]. When it grows, that version grows too: a
/// journal asks for that one before it changes anything.
pub(crate) const FORMAT: u8 = 16;

/// The first format of snapshots that has locks and documents.
pub(crate) const FORMAT_WITH_LOCKS: u8 = 11;

/// The first format of snapshots that has indexes of messages.
pub(crate) const FORMAT_WITH_SEARCH: u8 = 16;

/// The format of snapshots that do not tell the behaviour version, and the one under which they are written.
pub(crate) const WITHOUT_BEHAVIOUR: (u8, u16) = (9, 11);

/// The format of snapshots that are written under a behaviour version: programs that know this version and
/// no later one read it.
pub(crate) fn format_under(behaviour: u16) -> u8 {
    let (without, oldest) = WITHOUT_BEHAVIOUR;
    match behaviour {
        0 => FORMAT,
        _ => behaviour.saturating_sub(oldest).min(u16::from(FORMAT - without)) as u8 + without,
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn raw(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.array()?))
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn bytes16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.raw(usize::from(len))
    }

    pub(crate) fn name(&mut self) -> Option<&'a str> {
        let len = self.u8()?;
        std::str::from_utf8(self.raw(usize::from(len))?).ok()
    }

    pub(crate) fn blob(&mut self) -> Option<BlobRef> {
        Some(BlobRef { index: self.u64()?, item: self.u32()?, len: self.u32()? })
    }

    /// Bytes that are not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything was read, and no more than everything.
    pub(crate) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}
