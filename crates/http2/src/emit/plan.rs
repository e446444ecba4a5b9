//! The bytes of one tick, in their order, with a cursor.

use std::io::IoSlice;

use bytes::Bytes;

/// Bytes to write: small pieces in one reused buffer, large ones by reference.
#[derive(Debug, Default)]
pub struct Plan {
    scratch: Vec<u8>,
    parts: Vec<Part>,
    /// The part that is written next, and how much of it is written.
    part: usize,
    written: usize,
    /// Bytes that are left.
    left: usize,
    /// True when each frame is a part of its own.
    by_frame: bool,
}

#[derive(Debug)]
enum Part {
    /// A range of the scratch.
    Scratch { start: usize, end: usize },
    /// Bytes of a body.
    Body(Bytes),
}

/// Storage that is kept from one plan to the next.
const KEPT_BYTES: usize = 128 << 10;

impl Plan {
    /// Number of bytes that are left to write.
    pub fn len(&self) -> usize {
        self.left
    }

    /// True when all bytes are written.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Fills `slices` with the next bytes, `bytes_max` at most, and returns the number of slices filled.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>], mut bytes_max: usize) -> usize {
        let mut filled = 0;
        let mut skip = self.written;
        for (slot, part) in slices.iter_mut().zip(&self.parts[self.part..]) {
            let bytes = &self.bytes(part)[std::mem::take(&mut skip)..];
            let bytes = &bytes[..bytes.len().min(bytes_max)];
            *slot = IoSlice::new(bytes);
            bytes_max -= bytes.len();
            filled += 1;
            if self.by_frame || bytes_max == 0 {
                break;
            }
        }
        filled
    }

    /// Marks the next `bytes` as written.
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn advance(&mut self, mut bytes: usize) {
        assert!(bytes <= self.left, "more is written than was planned");
        self.left -= bytes;
        while let Some(part) = self.parts.get(self.part) {
            let rest = self.bytes(part).len() - self.written;
            if bytes < rest {
                self.written += bytes;
                return;
            }
            bytes -= rest;
            self.written = 0;
            // Lets go of a body as soon as it is written.
            self.parts[self.part] = Part::Scratch { start: 0, end: 0 };
            self.part += 1;
        }
    }

    fn bytes<'a>(&'a self, part: &'a Part) -> &'a [u8] {
        match part {
            &Part::Scratch { start, end } => &self.scratch[start..end],
            Part::Body(bytes) => bytes,
        }
    }

    /// Bytes of storage that are kept from one plan to the next.
    pub(super) fn kept_bytes(&self) -> usize {
        self.scratch.capacity() + self.parts.capacity() * size_of::<Part>()
    }

    /// Begins the next plan with `frames`, which gets the storage of the last one.
    pub(super) fn begin(&mut self, frames: &mut Vec<u8>, by_frame: bool) {
        debug_assert!(self.is_empty());
        self.parts.clear();
        (self.part, self.written) = (0, 0);
        self.by_frame = by_frame;
        self.scratch.clear();
        self.scratch.shrink_to(KEPT_BYTES);
        std::mem::swap(&mut self.scratch, frames);
        self.left = self.scratch.len();
        if by_frame {
            self.split_frames();
        } else if self.left > 0 {
            self.parts.push(Part::Scratch { start: 0, end: self.left });
        }
    }

    /// Makes each frame of the scratch a part.
    fn split_frames(&mut self) {
        let mut start = 0;
        while let Some(header) = crate::frame::FrameHeader::parse(&self.scratch[start..]) {
            let end = start + crate::frame::FrameHeader::BYTES + header.length as usize;
            self.parts.push(Part::Scratch { start, end });
            start = end;
        }
    }

    /// Appends what `write` writes.
    pub(super) fn copy(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.scratch.len();
        write(&mut self.scratch);
        let end = self.scratch.len();
        self.left += end - start;
        match self.parts.last_mut() {
            Some(Part::Scratch { end: last_end, .. }) if *last_end == start && !self.by_frame => {
                *last_end = end
            }
            _ => self.parts.push(Part::Scratch { start, end }),
        }
    }

    /// Appends `bytes` without copying them.
    pub(super) fn reference(&mut self, bytes: Bytes) {
        self.left += bytes.len();
        self.parts.push(Part::Body(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let mut plan = Plan::default();
        plan.begin(&mut b"head".to_vec(), false);
        plan.copy(|out| out.extend_from_slice(b"er"));
        plan.reference(Bytes::from_static(b"a large body"));
        plan.copy(|out| out.extend_from_slice(b"!"));
        plan
    }

    fn text(plan: &Plan) -> String {
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = plan.slices(&mut slices, usize::MAX);
        let bytes = slices[..filled].iter().flat_map(|slice| slice.iter()).copied().collect();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn neighbours_in_the_scratch_are_one_slice() {
        let plan = plan();
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(plan.slices(&mut slices, 100), 3);
        assert_eq!(plan.slices(&mut slices[..2], 100), 2);
        assert_eq!(plan.slices(&mut slices, 8), 2);
        assert_eq!(&*slices[1], b"a ");
        assert_eq!(text(&plan), "headera large body!");
        assert_eq!(plan.len(), 19);
    }

    #[test]
    fn the_cursor_stops_at_every_byte() {
        for first in 0..=19 {
            for second in 0..=19 - first {
                let mut plan = plan();
                plan.advance(first);
                plan.advance(second);
                assert_eq!(text(&plan), "headera large body!"[first + second..]);
                assert_eq!(plan.len(), 19 - first - second);
            }
        }
    }
}
