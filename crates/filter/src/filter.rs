//! A filter, and whether a value matches it.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::compare::{is_equal, order_of_numbers};
use crate::instant::Instant;
use crate::pointer::Pointer;

/// A condition on JSON values.
#[derive(Clone, Debug)]
pub struct Filter(pub(crate) Term);

/// A part of a filter.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// Holds when all of these do.
    All(Vec<Term>),
    /// Holds when one of these does.
    Any(Vec<Term>),
    /// Holds when this does not.
    Not(Box<Term>),
    /// Holds when the value behind the pointer passes the test.
    At(Pointer, Test),
}

/// A test of a value.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// Equal to one of these.
    OneOf(Vec<Value>),
    /// On this side of a bound.
    Range(Side, Bound),
    /// A text that begins with this.
    Prefix(String),
    /// A list with this item, or a text with this text in it.
    Contains(Value),
    /// There is a value, if true; else there is none.
    Exists(bool),
}

/// A side of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Below,
    UpTo,
    From,
    Above,
}

/// The bound of a range.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    Number(Number),
    Text(String),
    /// A point in time.
    Time(Instant),
    /// So many milliseconds from now.
    FromNow(i64),
}

impl Default for Filter {
    /// The filter that every value matches.
    fn default() -> Filter {
        Filter(Term::All(Vec::new()))
    }
}

impl Filter {
    /// True if a value matches it; `now_ms` is the time, in milliseconds since the Unix epoch.
    pub fn matches(&self, value: &Value, now_ms: u64) -> bool {
        self.matches_partly(value, |_| true, now_ms) == Some(true)
    }

    /// True or false if a value of which only a part is known matches it, or does not, whatever the rest is;
    /// `None`: the rest decides. `is_known` says whether the value has what is behind a pointer, if that is
    /// there at all.
    pub fn matches_partly(
        &self,
        value: &Value,
        is_known: impl Fn(&Pointer) -> bool,
        now_ms: u64,
    ) -> Option<bool> {
        self.0.matches(value, &is_known, now_ms)
    }

    /// The pointers of its conditions; some may come again and again.
    pub fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        self.tests().map(|(pointer, _)| pointer)
    }

    /// Values with which the value behind a pointer is compared for equality, wherever that stands, also
    /// under a negation.
    pub fn equals(&self, pointer: &Pointer) -> impl Iterator<Item = &Value> {
        let values = self.tests().filter(move |(at, _)| *at == pointer).map(|(_, test)| match test {
            Test::OneOf(values) => values.as_slice(),
            Test::Range(..) | Test::Prefix(_) | Test::Contains(_) | Test::Exists(_) => &[],
        });
        values.flatten()
    }

    /// The tests of its conditions, with their pointers.
    fn tests(&self) -> impl Iterator<Item = (&Pointer, &Test)> {
        let mut rest = vec![&self.0];
        std::iter::from_fn(move || {
            loop {
                match rest.pop()? {
                    Term::All(terms) | Term::Any(terms) => rest.extend(terms),
                    Term::Not(term) => rest.push(term),
                    Term::At(pointer, test) => return Some((pointer, test)),
                }
            }
        })
    }

    /// Values to one of which the value behind a pointer is equal in all that matches; `None`: it may be
    /// another in what matches.
    pub fn equal_to_one_of(&self, pointer: &Pointer) -> Option<Vec<&Value>> {
        self.0.one_of(pointer, Test::equals)
    }

    /// Values one of which is contained by the value behind a pointer, as an item or as a part, in all that
    /// matches; `None`: in what matches there may be none of them.
    pub fn contains_one_of(&self, pointer: &Pointer) -> Option<Vec<&Value>> {
        self.0.one_of(pointer, Test::contains)
    }
}

impl Term {
    /// See [`Filter::matches_partly`].
    fn matches(&self, value: &Value, is_known: &impl Fn(&Pointer) -> bool, now_ms: u64) -> Option<bool> {
        let of_each = |terms: &[Term], decides: bool| {
            let mut all = Some(!decides);
            for term in terms {
                match term.matches(value, is_known, now_ms) {
                    Some(is) if is == decides => return Some(decides),
                    Some(_) => {}
                    None => all = None,
                }
            }
            all
        };
        match self {
            Term::All(terms) => of_each(terms, false),
            Term::Any(terms) => of_each(terms, true),
            Term::Not(term) => term.matches(value, is_known, now_ms).map(|is| !is),
            Term::At(pointer, test) => is_known(pointer).then(|| test.passes(pointer.find(value), now_ms)),
        }
    }

    /// The values that tests of the value behind a pointer have, one of which passes in all that matches; of
    /// several such lists the shortest.
    fn one_of<'t>(
        &'t self,
        pointer: &Pointer,
        values: fn(&'t Test) -> Option<Vec<&'t Value>>,
    ) -> Option<Vec<&'t Value>> {
        match self {
            Term::All(terms) => {
                terms.iter().filter_map(|term| term.one_of(pointer, values)).min_by_key(Vec::len)
            }
            Term::Any(terms) => {
                let all: Option<Vec<_>> = terms.iter().map(|term| term.one_of(pointer, values)).collect();
                all.map(|all| all.concat())
            }
            Term::At(at, test) if at == pointer => values(test),
            // A negation holds where there is no value.
            Term::Not(_) | Term::At(..) => None,
        }
    }
}

impl Test {
    /// The values to one of which a value is equal that passes.
    fn equals(&self) -> Option<Vec<&Value>> {
        let Test::OneOf(values) = self else { return None };
        Some(values.iter().collect())
    }

    /// The value that a value contains that passes.
    fn contains(&self) -> Option<Vec<&Value>> {
        let Test::Contains(part) = self else { return None };
        Some(vec![part])
    }

    fn passes(&self, found: Option<&Value>, now_ms: u64) -> bool {
        let Some(found) = found else { return matches!(self, Test::Exists(false)) };
        match self {
            Test::Exists(exists) => *exists,
            Test::OneOf(values) => values.iter().any(|value| is_equal(value, found)),
            Test::Range(side, bound) => bound.order(found, now_ms).is_some_and(|order| side.has(order)),
            Test::Prefix(prefix) => found.as_str().is_some_and(|text| text.starts_with(prefix)),
            Test::Contains(part) => match (found, part) {
                (Value::Array(items), part) => items.iter().any(|item| is_equal(item, part)),
                (Value::String(text), Value::String(part)) => text.contains(part),
                _ => false,
            },
        }
    }
}

impl Side {
    /// True for what has this order to the bound.
    fn has(self, order: Ordering) -> bool {
        match self {
            Side::Below => order.is_lt(),
            Side::UpTo => order.is_le(),
            Side::From => order.is_ge(),
            Side::Above => order.is_gt(),
        }
    }
}

impl Bound {
    /// The order of a value to the bound; `None`: they are not of the same type.
    fn order(&self, found: &Value, now_ms: u64) -> Option<Ordering> {
        let of_time = |time: Instant| Instant::of_value(found).map(|found| found.cmp(&time));
        match (self, found) {
            (Bound::Number(bound), Value::Number(found)) => Some(order_of_numbers(found, bound)),
            (Bound::Text(bound), Value::String(found)) => Some(found.as_str().cmp(bound)),
            (Bound::Time(time), _) => of_time(*time),
            (Bound::FromNow(ms), _) => of_time(Instant::from_now(now_ms, *ms)),
            (Bound::Number(_) | Bound::Text(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(filter: &Value) -> Filter {
        Filter::parse(&filter.to_string()).unwrap()
    }

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn what_is_known_decides_where_the_rest_cannot() {
        let known = |filter: Value| {
            let is_known = |pointer: &Pointer| pointer.first() == Some("a");
            parse(&filter).matches_partly(&json!({"a": 1}), is_known, 0)
        };
        for (filter, expected) in [
            (json!({}), Some(true)),
            (json!({"/a": 1}), Some(true)),
            (json!({"/a": 2}), Some(false)),
            (json!({"/b": 1}), None),
            (json!({"/b": {"exists": false}}), None),
            (json!({"/a": 1, "/b": 1}), None),
            (json!({"/a": 2, "/b": 1}), Some(false)),
            (json!({"or": [{"/b": 1}, {"/a": 1}]}), Some(true)),
            (json!({"or": [{"/b": 1}, {"/a": 2}]}), None),
            (json!({"or": []}), Some(false)),
            (json!({"not": {"/b": 1}}), None),
            (json!({"not": {"/a": 2, "/b": 1}}), Some(true)),
            (json!({"": {"exists": true}}), None),
        ] {
            assert_eq!(known(filter.clone()), expected, "{filter}");
        }
    }

    #[test]
    fn the_values_that_a_filter_needs_are_told() {
        let equal = |filter: Value| {
            let filter = parse(&filter);
            let values = filter.equal_to_one_of(&pointer("/a"));
            values.map(|values| values.into_iter().cloned().collect::<Value>())
        };
        for (filter, expected) in [
            (json!({"/a": 1}), Some(json!([1]))),
            (json!({"/a": {"in": [1, 2]}, "/b": 3}), Some(json!([1, 2]))),
            (json!({"and": [{"/a": {"in": [1, 2]}}, {"/a": 2}]}), Some(json!([2]))),
            (json!({"or": [{"/a": 1}, {"/a": 2, "/b": 1}]}), Some(json!([1, 2]))),
            (json!({"or": []}), Some(json!([]))),
            (json!({"or": [{"/a": 1}, {"/b": 1}]}), None),
            (json!({"not": {"/a": 1}}), None),
            (json!({"/a": {"contains": 1}}), None),
            (json!({"/b": 1}), None),
            (json!({}), None),
        ] {
            assert_eq!(equal(filter.clone()), expected, "{filter}");
        }
    }

    #[test]
    fn the_values_that_a_filter_looks_for_in_lists_are_told() {
        let contained = |filter: Value| {
            let filter = parse(&filter);
            let values = filter.contains_one_of(&pointer("/a"));
            values.map(|values| values.into_iter().cloned().collect::<Value>())
        };
        for (filter, expected) in [
            (json!({"/a": {"contains": "x"}, "/b": 3}), Some(json!(["x"]))),
            (json!({"or": [{"/a": {"contains": "x"}}, {"/a": {"contains": "y"}}]}), Some(json!(["x", "y"]))),
            (json!({"or": [{"/a": {"contains": "x"}}, {"/b": {"contains": "y"}}]}), None),
            (json!({"/a": {"not": {"contains": "x"}}}), None),
            (json!({"/a": "x"}), None),
        ] {
            assert_eq!(contained(filter.clone()), expected, "{filter}");
        }
    }

    #[test]
    fn all_pointers_are_told() {
        let filter = parse(&json!({"/a": 1, "or": [{"/b/c": 1}, {"not": {"/d": {"gt": 1, "lt": 3}}}]}));
        let mut all: Vec<String> = filter.pointers().map(Pointer::to_string).collect();
        all.sort();
        assert_eq!(all, ["/a", "/b/c", "/d", "/d"]);
    }

    #[test]
    fn what_a_value_is_compared_with_is_told_wherever_it_stands() {
        let filter = parse(&json!({
            "/a": {"not": {"eq": 1}}, "not": {"or": [{"/a": {"in": [2, 3]}}, {"/b": 4}]}, "or": [{"/a": {"gt": 5}}],
        }));
        let at = pointer("/a");
        let mut all: Vec<String> = filter.equals(&at).map(Value::to_string).collect();
        all.sort();
        assert_eq!(all, ["1", "2", "3"]);
    }
}
