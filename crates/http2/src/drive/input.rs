//! Bytes that were read and not yet taken.

/// More than a frame with its header, so that whatever is kept leaves room.
const INPUT_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub(super) struct Input {
    bytes: Box<[u8]>,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; INPUT_BYTES].into_boxed_slice(), end: 0 }
    }

    /// Where to read to; never empty, as long as no more than a frame is kept.
    pub(super) fn spare(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// So many bytes were read.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Forgets all but the last bytes.
    pub(super) fn keep_last(&mut self, bytes: usize) {
        self.bytes.copy_within(self.end - bytes..self.end, 0);
        self.end = bytes;
    }
}
