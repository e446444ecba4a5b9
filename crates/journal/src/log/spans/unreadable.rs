//! Places where reading ahead failed. One unreadable sector must not fail the reading of its neighbourhood
//! again and again: a drive may take seconds to give up.

use std::collections::VecDeque;
use std::ops::Range;

use super::{CHUNK_BYTES, SpanPlace};

/// Upper limit of places; the oldest is dropped first.
const PLACES_MAX: usize = 64;

/// Parts of files that are excluded from reading ahead.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    parts: VecDeque<(u64, Range<u64>)>,
}

impl Unreadable {
    /// Notes that reading a span from here to `until` failed. A read extends at most one chunk beyond either
    /// end.
    pub(super) fn note(&mut self, (number, from): SpanPlace, until: u64) {
        if self.parts.len() == PLACES_MAX {
            self.parts.pop_front();
        }
        self.parts.push_back((number, from.saturating_sub(CHUNK_BYTES)..until + CHUNK_BYTES));
    }

    /// Limit for a span that begins here and is to end at `until`. A result up to `from`: no span may be
    /// read.
    pub(super) fn limit(&self, (number, from): SpanPlace, until: u64) -> u64 {
        let behind = self.parts.iter().filter(|(other, part)| *other == number && from < part.end);
        behind.map(|(_, part)| part.start).fold(until, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_end_before_what_could_not_be_read_and_begin_behind_it() {
        let mut unreadable = Unreadable::default();
        assert_eq!(unreadable.limit((1, 0), 400_000), 400_000);
        unreadable.note((1, 100_000), 200_000);
        let (start, end) = (100_000 - CHUNK_BYTES, 200_000 + CHUNK_BYTES);
        assert_eq!(unreadable.limit((1, 0), 400_000), start);
        assert_eq!(unreadable.limit((1, 0), 50_000), 50_000);
        assert!(unreadable.limit((1, start), 400_000) <= start);
        assert!(unreadable.limit((1, end - 1), 400_000) < end - 1);
        assert_eq!(unreadable.limit((1, end), 400_000), 400_000);
        assert_eq!(unreadable.limit((2, 0), 400_000), 400_000);
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let mut unreadable = Unreadable::default();
        for number in 0..2 * PLACES_MAX as u64 {
            unreadable.note((number, 0), 1);
        }
        assert_eq!(unreadable.parts.len(), PLACES_MAX);
        assert_eq!(unreadable.limit((0, 0), 9), 9);
        assert_eq!(unreadable.limit((2 * PLACES_MAX as u64 - 1, 0), 9), 0);
    }
}
