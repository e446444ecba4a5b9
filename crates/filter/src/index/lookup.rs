//! The ranges of a whole filter.

use std::ops::RangeInclusive;

use super::needs::{Asked, Needs};
use super::ranges::{TermRange, TermSet};
use super::term::IndexTerm;
use crate::filter::Filter;
use crate::pointer::Pointer;

/// Most ranges of a lookup, with that of [`IndexTerm::ANY`].
pub const RANGES_MAX: usize = 1_000;

/// The ranges of terms in which an index has every document that matches a filter, and others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexRanges {
    /// Ranges in their order, with a gap between each and the next; the last one is [`IndexTerm::ANY`] alone.
    /// At most [`RANGES_MAX`].
    pub ranges: Vec<RangeInclusive<IndexTerm>>,
    /// Rank among the indexes that serve the filter.
    pub rank: IndexRank,
}

/// The rank of a lookup by its widest range; the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IndexRank {
    /// Single terms, or nothing but [`IndexTerm::ANY`].
    Terms,
    /// A part of the numbers or of the texts.
    Part,
    /// All numbers or all texts.
    Type,
}

impl Filter {
    /// The ranges of terms in which the index of a pointer has every document that matches this filter;
    /// `now_ms` is the time, as in [`Filter::matches`], and must be the same. `None`: the index does not
    /// serve this filter, because documents without terms can match it, or because it needs more than
    /// [`RANGES_MAX`] ranges.
    pub fn ranges(&self, pointer: &Pointer, now_ms: u64) -> Option<IndexRanges> {
        let asked = Asked { pointer, now_ms, ranges_max: RANGES_MAX - 1 };
        let needs = Needs::of(&self.0, &asked)?;
        let always = std::iter::once(IndexTerm::ANY..=IndexTerm::ANY);
        let ranges = TermSet::of(needs.into_ranges().chain(always)).into_ranges();
        let rank = ranges.iter().map(IndexRank::of).max().unwrap_or(IndexRank::Terms);
        Some(IndexRanges { ranges, rank })
    }
}

impl IndexRank {
    fn of(range: &TermRange) -> IndexRank {
        let has_all = |(first, last)| range.contains(&first) && range.contains(&last);
        if range.start() == range.end() {
            IndexRank::Terms
        } else if has_all(IndexTerm::NUMBERS) || has_all(IndexTerm::TEXTS) {
            IndexRank::Type
        } else {
            IndexRank::Part
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::index::terms_of;

    const NOW_MS: u64 = 1_000_000_000_000;

    /// The ranges of a filter in the index of `/a`, without that of all lookups, and their rank.
    fn found(filter: &Value) -> Option<(Vec<TermRange>, IndexRank)> {
        let filter = Filter::parse(&filter.to_string()).unwrap();
        let mut found = filter.ranges(&Pointer::parse("/a").unwrap(), NOW_MS)?;
        assert_eq!(found.ranges.pop(), Some(IndexTerm::ANY..=IndexTerm::ANY));
        Some((found.ranges, found.rank))
    }

    /// The ranges of a condition of the value at `/a`.
    fn of(condition: &Value) -> Vec<TermRange> {
        found(&json!({ "/a": condition })).unwrap().0
    }

    fn rank(filter: &Value) -> IndexRank {
        found(filter).unwrap().1
    }

    fn term(value: &Value) -> IndexTerm {
        terms_of(value, &Pointer::parse("").unwrap())[0]
    }

    /// The ranges of these values alone.
    fn alone<const N: usize>(values: [Value; N]) -> Vec<TermRange> {
        let mut terms = values.map(|value| term(&value));
        terms.sort_unstable();
        terms.map(|term| term..=term).to_vec()
    }

    /// The range from one number to another.
    fn numbers(first: &Value, last: &Value) -> TermRange {
        term(first)..=term(last)
    }

    /// The range of texts by the first 7 bytes in the first and the last term.
    fn texts(first: u128, last: u128) -> TermRange {
        let high = |bytes: u128| 4 << 120 | bytes << 64;
        IndexTerm(high(first))..=IndexTerm(high(last) | u128::from(u64::MAX))
    }

    fn all_texts() -> TermRange {
        IndexTerm::TEXTS.0..=IndexTerm::TEXTS.1
    }

    #[test]
    fn equality_needs_a_term_for_each_value() {
        for value in [json!(null), json!(true), json!(-0.0), json!(u64::MAX), json!("a text")] {
            assert_eq!(of(&value), alone([value.clone()]));
            assert_eq!(of(&json!({ "eq": value })), alone([value]));
        }
        let values = json!({"in": ["b", 1, null, 1.0, "a", false]});
        assert_eq!(of(&values), alone([json!("b"), json!(1), json!(null), json!("a"), json!(false)]));
        assert_eq!(rank(&json!({ "/a": values })), IndexRank::Terms);
        for unserved in [json!([1]), json!({"b": 1}), json!([]), json!({})] {
            assert_eq!(found(&json!({"/a": {"eq": unserved}})), None);
            assert_eq!(found(&json!({"/a": {"in": [1, unserved]}})), None);
        }
    }

    #[test]
    fn bounds_of_numbers_are_within_the_range() {
        let (first, last) = IndexTerm::NUMBERS;
        for bound in [json!(3), json!(-0.5), json!(9_007_199_254_740_993u64)] {
            assert_eq!(of(&json!({ "lt": bound })), [first..=term(&bound)]);
            assert_eq!(of(&json!({ "le": bound })), [first..=term(&bound)]);
            assert_eq!(of(&json!({ "gt": bound })), [term(&bound)..=last]);
            assert_eq!(of(&json!({ "ge": bound })), [term(&bound)..=last]);
            assert_eq!(rank(&json!({"/a": { "ge": bound }})), IndexRank::Part);
        }
    }

    #[test]
    fn bounds_of_texts_count_by_their_first_bytes() {
        const END: u128 = (1 << 56) - 1;
        assert_eq!(of(&json!({"lt": "b"})), [texts(0, 0x62 << 48)]);
        assert_eq!(of(&json!({"ge": "b"})), [texts(0x62 << 48, END)]);
        assert_eq!(of(&json!({"le": "2026-11-27"})), [texts(0, 0x32_3032_362d_3131)]);
        assert_eq!(of(&json!({"gt": "2026-11-27"})), [texts(0x32_3032_362d_3131, END)]);
        assert_eq!(rank(&json!({"/a": {"ge": "b"}})), IndexRank::Part);
        assert_eq!(found(&json!({"/a": {"ge": ""}})), Some((vec![all_texts()], IndexRank::Type)));
    }

    #[test]
    fn a_prefix_counts_by_its_first_bytes() {
        assert_eq!(of(&json!({"prefix": "b"})), [texts(0x62 << 48, 0x62_ffff_ffff_ffff)]);
        let seven = texts(0x32_3032_362d_3131, 0x32_3032_362d_3131);
        for prefix in ["2026-11", "2026-11-27"] {
            assert_eq!(of(&json!({ "prefix": prefix })), std::slice::from_ref(&seven));
        }
        assert_eq!(rank(&json!({"/a": {"prefix": "2026-11-27"}})), IndexRank::Part);
        assert_eq!(found(&json!({"/a": {"prefix": ""}})), Some((vec![all_texts()], IndexRank::Type)));
    }

    #[test]
    fn bounds_in_time_need_all_texts() {
        let (first, last) = IndexTerm::NUMBERS;
        let texts = IndexTerm::TEXTS;
        let now = term(&json!(NOW_MS));
        assert_eq!(of(&json!({"ge": {"now": ""}})), [now..=texts.1]);
        assert_eq!(of(&json!({"lt": {"now": ""}})), [first..=now, all_texts()]);
        let hour_ago = json!({"gt": {"now": "-1h"}, "le": {"time": "2001-09-09T01:46:40Z"}});
        assert_eq!(of(&hour_ago), [numbers(&json!(NOW_MS - 3_600_000), &json!(NOW_MS)), all_texts()]);
        assert_eq!(rank(&json!({ "/a": hour_ago })), IndexRank::Type);
        // A millisecond and a half before 1970.
        let before = json!({"time": "1969-12-31T23:59:59.9985Z"});
        assert_eq!(of(&json!({ "le": before })), [first..=term(&json!(-2)), all_texts()]);
        assert_eq!(of(&json!({ "gt": before }))[0], term(&json!(-2))..=texts.1);
        assert!(last.0 + 1 == texts.0.0, "numbers and texts meet");
    }

    #[test]
    fn contains_needs_the_item_and_for_a_text_all_texts() {
        for part in [json!(null), json!(true), json!(9_007_199_254_740_993u64)] {
            assert_eq!(of(&json!({ "contains": part })), alone([json!([part])]));
            assert_eq!(rank(&json!({"/a": { "contains": part }})), IndexRank::Terms);
        }
        let of_text = [vec![all_texts()], alone([json!(["red"])])].concat();
        assert_eq!(found(&json!({"/a": {"contains": "red"}})), Some((of_text, IndexRank::Type)));
        for part in [json!([]), json!([1]), json!({}), json!({"b": 1})] {
            assert_eq!(found(&json!({"/a": { "contains": part }})), None);
        }
    }

    #[test]
    fn what_documents_without_terms_can_match_is_not_served() {
        for filter in [
            json!({}),
            json!({"and": []}),
            json!({"/a": {"exists": true}}),
            json!({"/a": {"exists": false}}),
            json!({"/a": {"not": {"eq": 1}}}),
            json!({"not": {"/a": 1}}),
            json!({"not": {"/a": {"not": {"eq": 1}}}}),
            json!({"/b": 1}),
            json!({"/a/0": 1}),
            json!({"": 1}),
            json!({"or": [{"/a": 1}, {"/b": 1}]}),
            json!({"or": [{"/a": 1}, {}]}),
            json!({"and": [{"/b": 1}, {"/a": {"exists": true}}]}),
        ] {
            assert_eq!(found(&filter), None, "{filter}");
        }
    }

    #[test]
    fn all_intersects_scalars_and_leaves_out_what_is_not_served() {
        let window = json!({"/a": {"ge": 3, "lt": 9, "exists": true}, "/b": 1, "not": {"/a": 4}});
        assert_eq!(found(&window), Some((vec![numbers(&json!(3), &json!(9))], IndexRank::Part)));
        assert_eq!(of(&json!({"in": [1, 5, 7, "x"], "gt": 4})), alone([json!(5), json!(7)]));
        assert_eq!(of(&json!({"ge": 3, "le": 3})), alone([json!(3)]));
        for never in [json!({"ge": 9, "lt": 3}), json!({"ge": 3, "lt": "x"}), json!({"eq": 1, "contains": 1})]
        {
            assert_eq!(of(&never), []);
        }
        assert_eq!(rank(&json!({"/a": {"ge": 9, "lt": 3}})), IndexRank::Terms);
    }

    #[test]
    fn all_takes_the_items_of_one_part() {
        let two = json!({"and": [{"/a": {"contains": 1}}, {"/a": {"contains": 2}}]});
        assert_eq!(found(&two), Some((alone([json!([1])]), IndexRank::Terms)));
        let any = json!({"or": [{"/a": {"contains": 1}}, {"/a": {"contains": 2}}]});
        let fewer = json!({"and": [any, {"/a": {"contains": 3}}]});
        assert_eq!(found(&fewer).unwrap().0, alone([json!([3])]));
        let of_text = json!({"contains": "red", "prefix": "b"});
        assert_eq!(of(&of_text), [texts(0x62 << 48, 0x62_ffff_ffff_ffff)]);
    }

    #[test]
    fn any_needs_what_each_part_needs() {
        let any = json!({"or": [{"/a": {"contains": 1}}, {"/a": {"lt": 5}}, {"/a": {"le": 7}, "/b": 1}]});
        let expected = [vec![IndexTerm::NUMBERS.0..=term(&json!(7))], alone([json!([1])])].concat();
        assert_eq!(found(&any), Some((expected, IndexRank::Part)));
        for nothing in [json!({"or": []}), json!({"/a": {"in": []}}), json!({"or": [], "/b": 1})] {
            assert_eq!(found(&nothing), Some((vec![], IndexRank::Terms)), "{nothing}");
        }
    }

    #[test]
    fn the_number_of_ranges_is_limited() {
        let some = |from: usize, to: usize| json!({"/a": {"in": (from..to).collect::<Vec<_>>()}});
        assert_eq!(found(&some(0, RANGES_MAX - 1)).unwrap().0.len(), RANGES_MAX - 1);
        assert_eq!(found(&some(0, RANGES_MAX)), None);
        assert_eq!(found(&json!({"or": [some(0, 600), some(600, 1_200)]})), None);
        assert_eq!(found(&json!({"or": [some(0, 600), some(300, 900)]})).unwrap().0.len(), 900);
        let one_is_served = json!({"and": [some(0, RANGES_MAX), {"/a": {"ge": 7}}]});
        assert_eq!(rank(&one_is_served), IndexRank::Part);
    }
}
