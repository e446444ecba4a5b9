//! Reading a filter from its JSON.
//!
//! A filter is an object, whose members all have to hold. A member is a JSON pointer with the condition of
//! the value behind it, or `and`, `or` (lists of filters) or `not` (a filter). A condition is a text, a
//! number, true, false or null, which the value has to be equal to, or an object of operators, which all have
//! to hold. Pointers begin with `/` or are empty, so no name of a member means two things.

use std::fmt;

use serde_json::Value;
use sluice_units::parse_duration;

use crate::filter::{Bound, Filter, Side, Term, Test};
use crate::instant::Instant;
use crate::pointer::Pointer;
use crate::tree::Tree;

/// Most `and`, `or` and `not` within each other.
pub const DEPTH_MAX: usize = 16;
/// Most conditions of a filter, each `and`, `or` and `not` counted as one.
pub const TERMS_MAX: usize = 100;
/// Most values of an `in`.
pub const IN_MAX: usize = 1_000;
/// Characters of a name that an error repeats.
const NAME_CHARS_MAX: usize = 64;

const MEMBERS: &str = "a JSON pointer such as \"/state\", or and, or, not";
const OPERATORS: &str = "eq, in, lt, le, gt, ge, prefix, contains, exists, not";

/// A fault in a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    /// Its place, such as `or[1]./total.ge`; empty: the filter as a whole.
    pub at: String,
    /// Reason: what is wrong, and what would be right.
    pub reason: String,
}

type Read<T> = Result<T, FilterError>;

impl FilterError {
    /// A fault in a condition of what is behind a pointer.
    pub fn at_pointer(pointer: &Pointer, reason: impl Into<String>) -> FilterError {
        FilterError::new(reason).inside(&pointer.to_string())
    }

    fn new(reason: impl Into<String>) -> FilterError {
        FilterError { at: String::new(), reason: reason.into() }
    }

    /// Adds the name of the member that the fault is in.
    fn inside(mut self, name: &str) -> FilterError {
        let name = clip(name);
        self.at = match self.at.as_str() {
            "" => name,
            rest if rest.starts_with('[') => format!("{name}{rest}"),
            rest => format!("{name}.{rest}"),
        };
        self
    }

    fn at(self, index: usize) -> FilterError {
        self.inside(&format!("[{index}]"))
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for FilterError {}

fn clip(text: &str) -> String {
    let mut cut: String = text.chars().take(NAME_CHARS_MAX).collect();
    if cut.len() < text.len() {
        cut.push('\u{2026}');
    }
    cut
}

impl Filter {
    /// Reads a filter from JSON text.
    ///
    /// # Errors
    /// The first fault, with its place.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let tree = serde_json::from_str(text).map_err(|error| {
            FilterError::new(format!("this is no JSON, or has numbers or nesting out of range: {error}"))
        })?;
        Reading { terms: 0 }.filter(tree, 0).map(Filter)
    }
}

/// A filter that is being read.
struct Reading {
    /// Conditions so far.
    terms: usize,
}

impl Reading {
    fn count(&mut self) -> Read<()> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            let reason =
                format!("the filter has more than {TERMS_MAX} conditions, with each and, or and not");
            return Err(FilterError::new(reason));
        }
        Ok(())
    }

    /// Counts an `and`, an `or` or a `not` at a depth; the depth in it.
    fn nest(&mut self, depth: usize) -> Read<usize> {
        self.count()?;
        if depth == DEPTH_MAX {
            let reason = format!("more than {DEPTH_MAX} and, or and not are within each other");
            return Err(FilterError::new(reason));
        }
        Ok(depth + 1)
    }

    fn filter(&mut self, tree: Tree, depth: usize) -> Read<Term> {
        let members = members_of(tree, "a filter, which is an object")?;
        let member = |(name, tree): (String, Tree)| {
            self.member(&name, tree, depth).map_err(|error| error.inside(&name))
        };
        Ok(all(members.into_iter().map(member).collect::<Read<_>>()?))
    }

    fn member(&mut self, name: &str, tree: Tree, depth: usize) -> Read<Term> {
        match name {
            "and" => Ok(all(self.filters(tree, depth)?)),
            "or" => Ok(Term::Any(self.filters(tree, depth)?)),
            "not" => {
                let depth = self.nest(depth)?;
                Ok(Term::Not(Box::new(self.filter(tree, depth)?)))
            }
            pointer if pointer.is_empty() || pointer.starts_with('/') => {
                let wrong = || FilterError::new("in a JSON pointer each ~ is followed by 0 or 1 (RFC 6901)");
                self.condition(&Pointer::parse(pointer).ok_or_else(wrong)?, tree, depth)
            }
            _ => Err(FilterError::new(format!("expected {MEMBERS}"))),
        }
    }

    fn filters(&mut self, tree: Tree, depth: usize) -> Read<Vec<Term>> {
        let depth = self.nest(depth)?;
        let Tree::List(items) = tree else { return Err(FilterError::new("expected a list of filters")) };
        let each = |(at, item)| self.filter(item, depth).map_err(|error| error.at(at));
        items.into_iter().enumerate().map(each).collect()
    }

    /// The condition of the value behind a pointer.
    fn condition(&mut self, pointer: &Pointer, tree: Tree, depth: usize) -> Read<Term> {
        let operators = match tree {
            Tree::Object(_) => members_of(tree, "")?,
            Tree::Scalar(value) => {
                self.count()?;
                return Ok(Term::At(pointer.clone(), Test::OneOf(vec![value])));
            }
            Tree::List(_) => {
                let reason =
                    "expected an operator, such as {\"in\": [..]}, {\"eq\": [..]} or {\"contains\": ..}";
                return Err(FilterError::new(reason));
            }
        };
        if operators.is_empty() {
            return Err(FilterError::new(format!("expected an operator: {OPERATORS}")));
        }
        let each = |(name, operand): (String, Tree)| {
            self.operator(pointer, &name, operand, depth).map_err(|error| error.inside(&name))
        };
        Ok(all(operators.into_iter().map(each).collect::<Read<_>>()?))
    }

    fn operator(&mut self, pointer: &Pointer, name: &str, operand: Tree, depth: usize) -> Read<Term> {
        if name == "not" {
            let depth = self.nest(depth)?;
            return Ok(Term::Not(Box::new(self.condition(pointer, operand, depth)?)));
        }
        self.count()?;
        let test = match name {
            "eq" => Test::OneOf(vec![value_of(operand)?]),
            "in" => Test::OneOf(values_of(operand)?),
            "lt" => Test::Range(Side::Below, bound_of(operand)?),
            "le" => Test::Range(Side::UpTo, bound_of(operand)?),
            "ge" => Test::Range(Side::From, bound_of(operand)?),
            "gt" => Test::Range(Side::Above, bound_of(operand)?),
            "prefix" => match operand {
                Tree::Scalar(Value::String(prefix)) => Test::Prefix(prefix),
                _ => return Err(FilterError::new("expected a text")),
            },
            "contains" => Test::Contains(value_of(operand)?),
            "exists" => match operand {
                Tree::Scalar(Value::Bool(exists)) => Test::Exists(exists),
                _ => return Err(FilterError::new("expected true or false")),
            },
            _ => return Err(FilterError::new(format!("unknown operator: known here are {OPERATORS}"))),
        };
        Ok(Term::At(pointer.clone(), test))
    }
}

/// The term that holds when all of these do.
fn all(mut terms: Vec<Term>) -> Term {
    match terms.len() {
        1 => terms.remove(0),
        _ => Term::All(terms),
    }
}

/// The members of an object, each name once.
fn members_of(tree: Tree, expected: &str) -> Read<Vec<(String, Tree)>> {
    let Tree::Object(members) = tree else { return Err(FilterError::new(format!("expected {expected}"))) };
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(given_twice(pair[0])),
        None => Ok(members),
    }
}

fn given_twice(name: &str) -> FilterError {
    FilterError::new(format!("{:?} is given twice: use and, or or", clip(name)))
}

fn value_of(tree: Tree) -> Read<Value> {
    tree.into_value().map_err(|name| given_twice(&name))
}

fn values_of(tree: Tree) -> Read<Vec<Value>> {
    let Tree::List(items) = tree else { return Err(FilterError::new("expected a list of values")) };
    if items.len() > IN_MAX {
        let reason = format!("the list has {} values: use at most {IN_MAX}", items.len());
        return Err(FilterError::new(reason));
    }
    items.into_iter().map(value_of).collect()
}

fn bound_of(tree: Tree) -> Read<Bound> {
    const EXPECTED: &str = "expected a number, a text, a time such as {\"time\": \"2026-01-31T12:00:00Z\"}, or one relative to \
         now such as {\"now\": \"-7d\"}";
    match tree {
        Tree::Scalar(Value::Number(number)) => Ok(Bound::Number(number)),
        Tree::Scalar(Value::String(text)) => Ok(Bound::Text(text)),
        Tree::Object(mut members) if members.len() == 1 => {
            let (name, operand) = members.remove(0);
            let Tree::Scalar(Value::String(text)) = operand else { return Err(FilterError::new(EXPECTED)) };
            match name.as_str() {
                "now" => from_now(&text).map(Bound::FromNow).map_err(|error| error.inside("now")),
                "time" => Instant::of_text(&text).map(Bound::Time).ok_or_else(|| {
                    let reason = "expected a date with a time and a zone (RFC 3339), at most \
                                  9999-12-30T22:00:00Z, such as 2026-01-31T12:00:00Z";
                    FilterError::new(reason).inside("time")
                }),
                _ => Err(FilterError::new(EXPECTED)),
            }
        }
        _ => Err(FilterError::new(EXPECTED)),
    }
}

/// The milliseconds of a text such as `-7d`; empty: none.
fn from_now(text: &str) -> Read<i64> {
    if text.is_empty() {
        return Ok(0);
    }
    let (is_past, duration) = match text.strip_prefix('-') {
        Some(duration) => (true, duration),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let duration = parse_duration(duration).map_err(|reason| {
        FilterError::new(format!("{reason}, with - for a time before now: got {:?}", clip(text)))
    })?;
    let ms = i64::try_from(duration.as_millis()).map_err(|_| FilterError::new("the duration is too long"))?;
    Ok(if is_past { -ms } else { ms })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(text: &str) -> FilterError {
        Filter::parse(text).unwrap_err()
    }

    #[test]
    fn faults_are_told_with_their_place() {
        for (text, at, begins) in [
            ("[]", "", "expected a filter"),
            ("{", "", "this is no JSON"),
            ("{} x", "", "this is no JSON"),
            (r#"{"state": "paid"}"#, "state", "expected a JSON pointer"),
            (r#"{"/~2": 1}"#, "/~2", "in a JSON pointer"),
            (r#"{"/a": {}}"#, "/a", "expected an operator"),
            (r#"{"/a": [1]}"#, "/a", "expected an operator"),
            (r#"{"/a": {"$eq": 1}}"#, "/a.$eq", "unknown operator"),
            (r#"{"/a": {"lt": true}}"#, "/a.lt", "expected a number"),
            (r#"{"/a": {"lt": {"now": 7}}}"#, "/a.lt", "expected a number"),
            (r#"{"/a": {"lt": {"now": "-7"}}}"#, "/a.lt.now", "expected a duration"),
            (r#"{"/a": {"lt": {"now": "--7d"}}}"#, "/a.lt.now", "expected a duration"),
            (r#"{"/a": {"lt": {"time": "2026-01-31"}}}"#, "/a.lt.time", "expected a date"),
            (r#"{"/a": {"lt": {"now": "-7d", "time": ""}}}"#, "/a.lt", "expected a number"),
            (r#"{"/a": {"prefix": 1}}"#, "/a.prefix", "expected a text"),
            (r#"{"/a": {"exists": 1}}"#, "/a.exists", "expected true or false"),
            (r#"{"/a": {"in": 1}}"#, "/a.in", "expected a list of values"),
            (r#"{"/a": {"not": [1]}}"#, "/a.not", "expected an operator"),
            (r#"{"or": {"/a": 1}}"#, "or", "expected a list of filters"),
            (r#"{"or": [{}, {"and": [{"/a": {"ge": null}}]}]}"#, "or[1].and[0]./a.ge", "expected a number"),
            (r#"{"/a": 1, "/a": 2}"#, "", "\"/a\" is given twice"),
            (r#"{"/a": {"lt": 1, "lt": 2}}"#, "/a", "\"lt\" is given twice"),
            (r#"{"/a": {"eq": {"x": 1, "x": 2}}}"#, "/a.eq", "\"x\" is given twice"),
        ] {
            let found = error(text);
            assert_eq!(found.at, at, "{text}: {found}");
            assert!(found.reason.starts_with(begins), "{text}: {found}");
        }
        assert!(error(&format!("{{\"{}\":1}}", "x".repeat(10_000))).to_string().len() < 300);
    }

    #[test]
    fn limits_are_kept_and_named() {
        let nested =
            |depth: usize| format!(r#"{}{{"/a":1}}{}"#, r#"{"not":"#.repeat(depth), "}".repeat(depth));
        assert!(Filter::parse(&nested(DEPTH_MAX)).is_ok());
        assert!(error(&nested(DEPTH_MAX + 1)).reason.starts_with("more than 16 and, or and not"));
        assert!(error(&nested(200)).reason.contains("nesting"));
        let inner = format!(r#"{{"/a":{}1{}}}"#, r#"{"not":"#.repeat(17), "}".repeat(17));
        assert!(error(&inner).reason.starts_with("more than 16 and, or and not"));
        let wide = |terms: usize| format!(r#"{{"or":[{}]}}"#, vec![r#"{"/a":1}"#; terms].join(","));
        assert!(Filter::parse(&wide(TERMS_MAX - 1)).is_ok());
        assert!(error(&wide(TERMS_MAX)).reason.starts_with("the filter has more than 100 conditions"));
        let many = |values: usize| format!(r#"{{"/a":{{"in":[{}]}}}}"#, vec!["1"; values].join(","));
        assert!(Filter::parse(&many(IN_MAX)).is_ok());
        assert_eq!(error(&many(IN_MAX + 1)).reason, "the list has 1001 values: use at most 1000");
    }

    #[test]
    fn times_are_relative_to_now_or_fixed() {
        let now_ms = 1_000_000_000_000;
        let matches = |text: &str, value: Value| Filter::parse(text).unwrap().matches(&value, now_ms);
        let week = r#"{"/at": {"ge": {"now": "-7d"}}}"#;
        let ms = now_ms - 7 * 86_400_000;
        assert!(matches(week, json!({"at": ms})) && !matches(week, json!({"at": ms - 1})));
        // 2001-09-09T01:46:40Z is 1,000,000,000 s.
        assert!(matches(week, json!({"at": "2001-09-02T01:46:40Z"})));
        assert!(matches(week, json!({"at": "2001-09-02T03:46:40+02:00"})));
        assert!(!matches(week, json!({"at": "2001-09-02T01:46:39.999Z"})));
        for other in [json!({}), json!({"at": "soon"}), json!({"at": 1e300}), json!({"at": [ms]})] {
            assert!(!matches(week, other.clone()), "{other}");
        }
        let soon = r#"{"/at": {"gt": {"now": ""}, "le": {"now": "+1h30m"}}}"#;
        assert!(matches(soon, json!({"at": now_ms + 5_400_000})) && !matches(soon, json!({"at": now_ms})));
        let fixed = r#"{"/at": {"lt": {"time": "2001-09-09T01:46:40Z"}}}"#;
        assert!(matches(fixed, json!({"at": now_ms - 1})) && !matches(fixed, json!({"at": now_ms})));
        let text = r#"{"/at": {"lt": "2001-09-09"}}"#;
        assert!(matches(text, json!({"at": "2001-09-08T23"})) && !matches(text, json!({"at": 0})));
    }
}
