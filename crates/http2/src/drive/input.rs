//! Bytes that were read and not yet taken.
//!
//! A connection has storage for them only while there are any: most connections of a server wait, and those
//! that do not share what their thread has.

use std::cell::RefCell;

/// More than a frame with its header, or a record of TLS, so that whatever is kept leaves room.
const INPUT_BYTES: usize = 32 << 10;

/// Storage that a thread keeps for its next reads.
const SPARE_MAX: usize = 8;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Option<Box<[u8]>>,
    start: usize,
    end: usize,
}

impl Input {
    /// Where to read to; never empty, as long as no more than a frame is kept.
    pub(super) fn spare(&mut self) -> &mut [u8] {
        let bytes = self.bytes.get_or_insert_with(|| {
            let kept = SPARE.with_borrow_mut(Vec::pop);
            kept.unwrap_or_else(|| vec![0; INPUT_BYTES].into_boxed_slice())
        });
        if self.start > 0 {
            bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut bytes[self.end..]
    }

    /// So many bytes were read.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    pub(super) fn unread(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| &bytes[self.start..self.end])
    }

    /// Forgets all but the last bytes.
    pub(super) fn keep_last(&mut self, bytes: usize) {
        self.start = self.end - bytes;
    }

    /// Gives the storage away if there is nothing in it.
    pub(super) fn rest(&mut self) {
        if self.start < self.end {
            return;
        }
        (self.start, self.end) = (0, 0);
        if let Some(bytes) = self.bytes.take() {
            SPARE.with_borrow_mut(|spare| {
                if spare.len() < SPARE_MAX {
                    spare.push(bytes);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &mut Input, bytes: &[u8]) {
        input.spare()[..bytes.len()].copy_from_slice(bytes);
        input.filled(bytes.len());
    }

    #[test]
    fn what_is_not_taken_stays_and_leaves_room() {
        let mut input = Input::default();
        read(&mut input, b"taken, kept");
        input.keep_last(4);
        assert_eq!(input.unread(), b"kept");
        assert_eq!(input.spare().len(), INPUT_BYTES - 4);
        input.rest();
        read(&mut input, b" on");
        assert_eq!(input.unread(), b"kept on");
    }

    #[test]
    fn storage_is_shared_while_nothing_is_kept() {
        let mut inputs: Vec<Input> = (0..2 * SPARE_MAX).map(|_| Input::default()).collect();
        for input in &mut inputs {
            read(input, b"x");
            input.keep_last(0);
            input.rest();
            assert!(input.bytes.is_none() && input.unread().is_empty());
            assert_eq!(SPARE.with_borrow(Vec::len), 1);
        }
        inputs.iter_mut().for_each(|input| read(input, b"x"));
        for input in &mut inputs {
            input.keep_last(0);
            input.rest();
        }
        assert_eq!(SPARE.with_borrow(Vec::len), SPARE_MAX);
    }
}
