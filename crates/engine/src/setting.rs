//! Values of settings: how they are written into records and snapshots.

use crate::wire::{Put, Reader};

/// A value of the table of settings: how it is written into records and snapshots.
pub(crate) trait Setting: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
}

impl Setting for Box<str> {
    fn write(&self, out: &mut Vec<u8>) {
        out.name(self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(reader.name()?.into())
    }
}

impl Setting for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.bool(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.bool()
    }
}

impl Setting for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.u64(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.u64()
    }
}

impl Setting for u16 {
    fn write(&self, out: &mut Vec<u8>) {
        out.u16(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.u16()
    }
}

impl Setting for u32 {
    fn write(&self, out: &mut Vec<u8>) {
        out.u32(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.u32()
    }
}
