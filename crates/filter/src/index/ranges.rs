//! Sets of terms, as ranges.

use std::ops::RangeInclusive;

use super::term::IndexTerm;

/// A range of terms, with both of its ends.
pub(super) type TermRange = RangeInclusive<IndexTerm>;

/// A set of terms: ranges in their order, with a gap between each and the next.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct TermSet(Vec<TermRange>);

impl TermSet {
    /// The set of all terms that are in one of some ranges.
    pub(super) fn of(ranges: impl IntoIterator<Item = TermRange>) -> TermSet {
        let mut ranges: Vec<TermRange> = ranges.into_iter().collect();
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut merged: Vec<TermRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start().0 <= last.end().0.saturating_add(1) => {
                    *last = *last.start()..=*range.end().max(last.end());
                }
                _ => merged.push(range),
            }
        }
        TermSet(merged)
    }

    /// The set of these terms.
    pub(super) fn of_terms(terms: impl IntoIterator<Item = IndexTerm>) -> TermSet {
        TermSet::of(terms.into_iter().map(|term| term..=term))
    }

    /// The set of what is in both.
    pub(super) fn intersection(&self, other: &TermSet) -> TermSet {
        let (mut ours, mut others) = (self.0.as_slice(), other.0.as_slice());
        let mut both = Vec::new();
        while let ([one, ours_rest @ ..], [another, others_rest @ ..]) = (ours, others) {
            let (start, end) = (*one.start().max(another.start()), *one.end().min(another.end()));
            if start <= end {
                both.push(start..=end);
            }
            if one.end() < another.end() {
                ours = ours_rest;
            } else {
                others = others_rest;
            }
        }
        TermSet(both)
    }

    /// Number of ranges.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_ranges(self) -> Vec<TermRange> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u128, u128)]) -> TermSet {
        TermSet::of(ranges.iter().map(|(start, end)| IndexTerm(*start)..=IndexTerm(*end)))
    }

    fn ends(set: &TermSet) -> Vec<(u128, u128)> {
        set.0.iter().map(|range| (range.start().0, range.end().0)).collect()
    }

    #[test]
    fn ranges_that_meet_are_one() {
        assert_eq!(
            ends(&set(&[(7, 9), (1, 2), (3, 4), (6, 6), (20, 30), (21, 22)])),
            [(1, 4), (6, 9), (20, 30)]
        );
        assert_eq!(ends(&set(&[(5, 5), (5, 5)])), [(5, 5)]);
        assert_eq!(ends(&set(&[(u128::MAX, u128::MAX), (0, u128::MAX)])), [(0, u128::MAX)]);
        assert_eq!(ends(&set(&[])), []);
    }

    #[test]
    fn an_intersection_has_what_is_in_both() {
        let both = |one: &[_], other: &[_]| {
            let (one, other) = (set(one), set(other));
            assert_eq!(one.intersection(&other), other.intersection(&one));
            ends(&one.intersection(&other))
        };
        assert_eq!(both(&[(1, 4), (6, 9)], &[(3, 7)]), [(3, 4), (6, 7)]);
        assert_eq!(both(&[(0, 100)], &[(1, 1), (50, 60), (100, 200)]), [(1, 1), (50, 60), (100, 100)]);
        assert_eq!(both(&[(1, 3), (7, 8)], &[(5, 5), (9, 9)]), []);
        assert_eq!(both(&[(1, 3), (5, 8)], &[(3, 5), (8, 8)]), [(3, 3), (5, 5), (8, 8)]);
        assert_eq!(both(&[(1, 3)], &[]), []);
    }
}
