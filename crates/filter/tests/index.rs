//! Random filters over random documents: the index of a pointer loses none of those that match.
#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

mod random;

use serde_json::{Map, Value, json};
use sluice_filter::{
    Filter, IndexRanges, IndexRank, IndexTerm, LIST_TERMS_MAX, Pointer, RANGES_MAX, terms_of,
};

use random::Random;

const NOW_MS: u64 = 1_767_225_600_000;
const POINTERS: [&str; 2] = ["/a", "/b/c"];
const FILTERS: usize = 10_000;
const DOCUMENTS_PER_FILTER: usize = 10;

impl Random {
    fn one_of(&mut self, all: &[Value]) -> Value {
        all[self.below(all.len())].clone()
    }

    fn number(&mut self) -> Value {
        let near = |random: &mut Random, to: u64| json!(to - 3 + random.below(6) as u64);
        match self.below(9) {
            0 => near(self, 1 << 53),
            1 => near(self, u64::MAX - 3),
            2 => near(self, NOW_MS),
            3 => json!(i64::MIN + self.below(3) as i64),
            4 => self.one_of(&[
                json!(0.0),
                json!(-0.0),
                json!(5e-324),
                json!(-5e-324),
                json!(1e300),
                json!(-1e300),
            ]),
            5 => self.one_of(&[json!(u64::MAX as f64), json!((1u64 << 53) as f64), json!(NOW_MS as f64)]),
            6 => json!(self.below(9) as f64 / 2.0 - 2.0),
            7 => json!(NOW_MS - 3_600_000 + self.below(3) as u64),
            _ => json!(self.below(5) as i64 - 2),
        }
    }

    fn text(&mut self) -> Value {
        let beginning = ["", "a", "abcdef", "abcdefg", "abcdef\u{20ac}", "b", "\u{fc}"][self.below(7)];
        let rest = ["", "\0", "a", "b", "ba", "\u{e9}", "\u{10ffff}"][self.below(7)];
        match self.below(5) {
            0 => self.one_of(&[
                json!("2026-01-01T00:00:00Z"),
                json!("2025-12-31T23:00:00.000+00:00"),
                json!("2026-01-01T00:59:59.9995+01:00"),
                json!("1969-12-31T23:59:59.9985Z"),
            ]),
            _ => json!(format!("{beginning}{rest}")),
        }
    }

    fn scalar(&mut self) -> Value {
        match self.below(8) {
            0 => json!(null),
            1 => json!(self.below(2) == 0),
            2..5 => self.number(),
            _ => self.text(),
        }
    }

    fn list(&mut self) -> Value {
        let long = self.below(8) == 0;
        let filling = if long { LIST_TERMS_MAX - 2 + self.below(4) } else { 0 };
        let mut items: Vec<Value> = (1_000..1_000 + filling).map(Value::from).collect();
        for _ in 0..self.below(5) {
            items.push(if self.below(8) == 0 { self.nested() } else { self.scalar() });
        }
        items.into()
    }

    fn nested(&mut self) -> Value {
        self.one_of(&[json!([]), json!([1]), json!({}), json!({"c": 1}), json!({"c": [1, "a"]})])
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => self.nested(),
            1 | 2 => self.list(),
            _ => self.scalar(),
        }
    }

    /// A document which often has what a filter looks for: its values are some of those in the filter.
    fn document(&mut self, sought: &[Value]) -> Value {
        let mut document = Map::new();
        if self.below(8) > 0 {
            document.insert("a".to_owned(), self.value_like(sought));
        }
        if self.below(8) > 0 {
            document.insert("b".to_owned(), json!({"c": self.value_like(sought)}));
        }
        document.into()
    }

    fn value_like(&mut self, sought: &[Value]) -> Value {
        if sought.is_empty() || self.below(5) == 0 {
            return self.value();
        }
        match (self.below(3), self.one_of(sought)) {
            (0, value) => {
                let mut items = self.list().as_array().unwrap().clone();
                items.extend([value, self.one_of(sought), self.one_of(sought)]);
                items.into()
            }
            (1, Value::String(text)) => json!(text + self.text().as_str().unwrap()),
            (_, value) => value,
        }
    }

    fn bound(&mut self) -> Value {
        match self.below(5) {
            0 => self.one_of(&[json!({"now": ""}), json!({"now": "-1h"}), json!({"now": "+1h"})]),
            1 => json!({"time": self.one_of(&[
                json!("2026-01-01T00:00:00Z"),
                json!("2025-12-31T23:59:59.9995Z"),
                json!("1969-12-31T23:59:59.9985Z"),
            ])}),
            2 | 3 => self.number(),
            _ => self.text(),
        }
    }

    fn condition(&mut self, depth: usize) -> Value {
        let mut operators = Map::new();
        for _ in 0..=self.below(2) {
            let (name, operand) = match self.below(if depth == 0 { 10 } else { 11 }) {
                0 => ("eq", self.value()),
                1 => ("in", (0..self.below(4)).map(|_| self.scalar()).collect()),
                2 => ("in", (0..self.below(4)).map(|_| self.value()).collect()),
                3..6 => (["lt", "le", "gt", "ge"][self.below(4)], self.bound()),
                6 => ("prefix", self.text()),
                7 => ("contains", self.value()),
                8 => ("contains", self.scalar()),
                9 => ("exists", json!(self.below(4) > 0)),
                _ => ("not", self.condition(depth - 1)),
            };
            operators.insert(name.to_owned(), operand);
        }
        operators.into()
    }

    /// Filters of two items of one list.
    fn two_items(&mut self) -> Value {
        let pointer = POINTERS[self.below(2)];
        let mut item = || json!({ pointer: {"contains": self.scalar()} });
        json!([item(), item()])
    }

    fn filter(&mut self, depth: usize) -> Value {
        let mut members = Map::new();
        for _ in 0..=self.below(4) / 3 {
            let (name, operand) = match self.below(if depth == 0 { 3 } else { 8 }) {
                0 => (POINTERS[self.below(2)].to_owned(), self.scalar()),
                1 | 2 => (POINTERS[self.below(2)].to_owned(), self.condition(1)),
                3 => ("not".to_owned(), self.filter(depth - 1)),
                4 => ("and".to_owned(), self.two_items()),
                at => {
                    let filters = (0..self.below(4)).map(|_| self.filter(depth - 1)).collect();
                    (["or", "and", "or"][at - 5].to_owned(), filters)
                }
            };
            members.insert(name, operand);
        }
        members.into()
    }
}

/// The operands of a filter that are values.
fn sought(filter: &Value, values: &mut Vec<Value>) {
    match filter {
        Value::Object(members) => members.values().for_each(|member| sought(member, values)),
        Value::Array(items) => items.iter().for_each(|item| sought(item, values)),
        scalar => values.push(at_bound(scalar).unwrap_or_else(|| scalar.clone())),
    }
}

/// The number that is the time of a bound relative to now.
fn at_bound(operand: &Value) -> Option<Value> {
    match operand.as_str()? {
        "-1h" => Some(json!(NOW_MS - 3_600_000)),
        "+1h" => Some(json!(NOW_MS + 3_600_000)),
        _ => None,
    }
}

/// The promises about ranges, whatever the filter is.
fn check(ranges: &IndexRanges, filter: &Value) {
    let all = &ranges.ranges;
    assert!(all.len() <= RANGES_MAX && all.iter().all(|range| !range.is_empty()), "{filter}");
    assert!(all.is_sorted_by(|one, next| one.end() < next.start()), "{filter}: {all:x?}");
    assert_eq!(all.last(), Some(&(IndexTerm::ANY..=IndexTerm::ANY)), "{filter}");
    assert!(!is_found(ranges, &[IndexTerm::NOTHING]), "{filter}");
    let are_terms = all.iter().all(|range| range.start() == range.end());
    assert_eq!(ranges.rank == IndexRank::Terms, are_terms, "{filter}: {all:x?}");
}

fn is_found(ranges: &IndexRanges, terms: &[IndexTerm]) -> bool {
    ranges.ranges.iter().any(|range| terms.iter().any(|term| range.contains(term)))
}

/// Counts of what the random filters came to, to see that they tell something.
#[derive(Default, Debug)]
struct Told {
    unserved: usize,
    matching: usize,
    candidates: usize,
    others: usize,
}

#[test]
fn an_index_loses_no_document_that_matches() {
    let mut random = Random(0x5eed_0f1d_e5ee_d001);
    let pointers = POINTERS.map(|pointer| Pointer::parse(pointer).unwrap());
    let mut told = Told::default();
    for _ in 0..FILTERS {
        let json = random.filter(2);
        let filter = Filter::parse(&json.to_string()).unwrap_or_else(|error| panic!("{json}: {error}"));
        let mut values = Vec::new();
        sought(&json, &mut values);
        let ranges = pointers.each_ref().map(|pointer| filter.ranges(pointer, NOW_MS));
        ranges.iter().flatten().for_each(|ranges| check(ranges, &json));
        if ranges.iter().all(Option::is_none) {
            continue;
        }
        for _ in 0..DOCUMENTS_PER_FILTER {
            let document = random.document(&values);
            let matches = filter.matches(&document, NOW_MS);
            for (pointer, ranges) in pointers.iter().zip(&ranges) {
                let terms = terms_of(&document, pointer);
                assert!(
                    (1..=LIST_TERMS_MAX).contains(&terms.len()) && terms.is_sorted_by(|one, next| one < next)
                );
                let found = ranges.as_ref().map(|ranges| is_found(ranges, &terms));
                assert!(
                    found != Some(false) || !matches,
                    "{json} loses {document} at {pointer}: {ranges:x?}"
                );
                *told.count(matches, found) += 1;
            }
        }
    }
    let Told { unserved, matching, candidates, others } = told;
    assert!(unserved > 20_000 && matching > 8_000, "{told:?} tells little");
    assert!(others > 2 * candidates, "{told:?}: the ranges are too wide");
}

impl Told {
    fn count(&mut self, matches: bool, found: Option<bool>) -> &mut usize {
        match (matches, found) {
            (_, None) => &mut self.unserved,
            (true, Some(_)) => &mut self.matching,
            (false, Some(true)) => &mut self.candidates,
            (false, Some(false)) => &mut self.others,
        }
    }
}
