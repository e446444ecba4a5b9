//! Keys that messages name: short ones lie where they are kept, so that a new one allocates nothing.

use std::ops::Deref;

use crate::wire::{Put, Reader};

/// Bytes that fit into the place of the key itself.
const SHORT_BYTES: usize = 22;

/// The bytes of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Short { len: u8, bytes: [u8; SHORT_BYTES] },
    Long(Box<[u8]>),
}

const _: () = assert!(size_of::<Key>() == 24);

impl Key {
    pub(crate) fn new(key: &[u8]) -> Key {
        if key.len() > SHORT_BYTES {
            return Key::Long(key.into());
        }
        let mut bytes = [0; SHORT_BYTES];
        bytes[..key.len()].copy_from_slice(key);
        Key::Short { len: key.len() as u8, bytes }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.bytes16(self);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Key> {
        Some(Key::new(reader.bytes16()?))
    }
}

impl Default for Key {
    fn default() -> Self {
        Key::new(&[])
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Key::Short { len, bytes } => &bytes[..usize::from(*len)],
            Key::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_come_back() {
        for len in 0..=128 {
            let bytes: Vec<u8> = (0..len).collect();
            assert_eq!(*Key::new(&bytes), *bytes);
        }
    }
}
