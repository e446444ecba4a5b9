//! The terms that the parts of a filter need.
//!
//! A document has either the term of a scalar value or the terms of a list's items. A part of a filter is
//! served by an index if each document that matches it has a term other than that of nothing. The part then
//! needs two sets: one that has the term of every scalar that matches, and one that has, of every list that
//! matches, at least one term. Lists with the term of all lookups are candidates anyway.

use serde_json::Value;

use super::ranges::{TermRange, TermSet};
use super::term::IndexTerm;
use crate::filter::{Bound, Side, Term, Test};
use crate::instant::Instant;
use crate::pointer::Pointer;

/// The terms that a part of a filter needs.
#[derive(Default)]
pub(super) struct Needs {
    /// Terms of scalars: the one of each that matches is here.
    scalars: TermSet,
    /// Terms of items: one of each list that matches is here.
    items: TermSet,
}

/// The index that is asked, and when.
pub(super) struct Asked<'a> {
    /// Pointer of the index.
    pub pointer: &'a Pointer,
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Most ranges that a part may need. A part that needs more is not served.
    pub ranges_max: usize,
}

impl Needs {
    /// The terms that a part of a filter needs; `None`: the index does not serve it.
    pub(super) fn of(term: &Term, asked: &Asked<'_>) -> Option<Needs> {
        let needs = match term {
            Term::All(terms) => {
                terms.iter().filter_map(|term| Needs::of(term, asked)).reduce(Needs::all_of_both)
            }
            Term::Any(terms) => {
                terms.iter().map(|term| Needs::of(term, asked)).collect::<Option<_>>().map(Needs::any_of)
            }
            // A negation holds for documents without a value.
            Term::Not(_) => None,
            Term::At(pointer, _) if pointer != asked.pointer => None,
            Term::At(_, test) => Needs::of_test(test, asked.now_ms),
        };
        needs.filter(|needs| needs.scalars.len() + needs.items.len() <= asked.ranges_max)
    }

    fn of_test(test: &Test, now_ms: u64) -> Option<Needs> {
        match test {
            // Objects and empty lists exist, and have no terms.
            Test::Exists(_) => None,
            Test::OneOf(values) => {
                let terms: Option<Vec<_>> = values.iter().map(IndexTerm::of_scalar).collect();
                terms.map(|terms| Needs::of_scalars(TermSet::of_terms(terms)))
            }
            Test::Range(side, bound) => Some(Needs::of_scalars(terms_within(*side, bound, now_ms))),
            Test::Prefix(prefix) => {
                Some(Needs::of_scalars(TermSet::of([range(IndexTerm::with_prefix(prefix))])))
            }
            Test::Contains(part) => Needs::of_part(part),
        }
    }

    /// The needs of `contains`. A list or object has no term within a list.
    fn of_part(part: &Value) -> Option<Needs> {
        let items = TermSet::of_terms([IndexTerm::of_scalar(part)?.in_list()]);
        let texts = part.is_string().then(|| range(IndexTerm::TEXTS));
        Some(Needs { scalars: TermSet::of(texts), items })
    }

    fn of_scalars(scalars: TermSet) -> Needs {
        Needs { scalars, items: TermSet::default() }
    }

    /// The needs of a part that holds when two others do. The one term of a scalar has to be in both sets. A
    /// list can meet either set with another of its terms, so that nothing is known of their intersection.
    fn all_of_both(self, other: Needs) -> Needs {
        let scalars = self.scalars.intersection(&other.scalars);
        let items = if other.items.len() < self.items.len() { other.items } else { self.items };
        Needs { scalars, items }
    }

    /// The needs of a part that holds when one of some others does.
    fn any_of(parts: Vec<Needs>) -> Needs {
        let (scalars, items): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|part| (part.scalars.into_ranges(), part.items.into_ranges())).unzip();
        Needs {
            scalars: TermSet::of(scalars.into_iter().flatten()),
            items: TermSet::of(items.into_iter().flatten()),
        }
    }

    /// The ranges of both sets.
    pub(super) fn into_ranges(self) -> impl Iterator<Item = TermRange> {
        self.scalars.into_ranges().into_iter().chain(self.items.into_ranges())
    }
}

/// The terms of scalars on a side of a bound. The bound's own term is among them on every side, since other
/// values may have it too.
fn terms_within(side: Side, bound: &Bound, now_ms: u64) -> TermSet {
    match bound {
        Bound::Number(number) => {
            let term = IndexTerm::of_number(number);
            TermSet::of([half(side, IndexTerm::NUMBERS, (term, term))])
        }
        Bound::Text(text) => TermSet::of([half(side, IndexTerm::TEXTS, IndexTerm::like_text(text))]),
        Bound::Time(time) => terms_of_times(side, *time),
        Bound::FromNow(ms) => terms_of_times(side, Instant::from_now(now_ms, *ms)),
    }
}

/// The terms of times: those of numbers on the side, and of all texts, which do not sort as their times.
fn terms_of_times(side: Side, time: Instant) -> TermSet {
    let term = IndexTerm::of_double(time.ms_floor() as f64);
    TermSet::of([half(side, IndexTerm::NUMBERS, (term, term)), range(IndexTerm::TEXTS)])
}

/// The terms of a type on a side of a bound, and those of the bound, each given by its first and last term.
fn half(side: Side, all: (IndexTerm, IndexTerm), bound: (IndexTerm, IndexTerm)) -> TermRange {
    match side {
        Side::Below | Side::UpTo => all.0..=bound.1,
        Side::From | Side::Above => bound.0..=all.1,
    }
}

fn range(ends: (IndexTerm, IndexTerm)) -> TermRange {
    ends.0..=ends.1
}
