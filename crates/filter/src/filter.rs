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

impl Filter {
    /// True if a value matches it; `now_ms` is the time, in milliseconds since the Unix epoch.
    pub fn matches(&self, value: &Value, now_ms: u64) -> bool {
        self.0.matches(value, now_ms)
    }
}

impl Term {
    fn matches(&self, value: &Value, now_ms: u64) -> bool {
        match self {
            Term::All(terms) => terms.iter().all(|term| term.matches(value, now_ms)),
            Term::Any(terms) => terms.iter().any(|term| term.matches(value, now_ms)),
            Term::Not(term) => !term.matches(value, now_ms),
            Term::At(pointer, test) => test.passes(pointer.find(value), now_ms),
        }
    }
}

impl Test {
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
