//! Random filters over random values, against an evaluator that walks the JSON of the filter word by word.
#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

mod random;

use serde_json::{Map, Value, json};
use sluice_filter::Filter;

use random::Random;

const NOW_MS: u64 = 1_767_225_600_000;

impl Random {
    fn scalar(&mut self) -> Value {
        let all = [
            json!(null),
            json!(true),
            json!(false),
            json!(0),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(-1),
            json!(u64::MAX),
            json!(u64::MAX as f64),
            json!(9_007_199_254_740_993u64),
            json!(9_007_199_254_740_992f64),
            json!(NOW_MS),
            json!(NOW_MS - 3_600_000),
            json!(""),
            json!("a"),
            json!("ab"),
            json!("b\u{fc}"),
            json!("2026-01-01T00:00:00Z"),
            json!("2025-12-31T23:00:00.000+00:00"),
        ];
        all[self.below(all.len())].clone()
    }

    fn name(&mut self) -> String {
        ["a", "b", "a/b", "m~n", "0", ""][self.below(6)].to_owned()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 1 } else { 3 }) {
            0 => self.scalar(),
            1 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members: Map<_, _> =
                    (0..self.below(4)).map(|_| (self.name(), self.value(depth - 1))).collect();
                members.into()
            }
        }
    }

    fn pointer(&mut self) -> String {
        let token = |random: &mut Random| random.name().replace('~', "~0").replace('/', "~1");
        (0..self.below(3)).map(|_| format!("/{}", token(self))).collect()
    }

    fn condition(&mut self, depth: usize) -> Value {
        let bounds = [json!(1), json!("a"), json!({"now": "-1h"}), json!({"time": "2026-01-01T00:00:00Z"})];
        let mut operators = Map::new();
        for _ in 0..=self.below(2) {
            let (name, operand) = match self.below(if depth == 0 { 6 } else { 7 }) {
                0 => ("eq", self.value(1)),
                1 => ("in", (0..self.below(4)).map(|_| self.value(1)).collect()),
                2 => {
                    let number = self.scalar();
                    let bound = bounds[self.below(4)].clone();
                    let operand = if number.is_number() || number.is_string() { number } else { bound };
                    (["lt", "le", "gt", "ge"][self.below(4)], operand)
                }
                3 => ("prefix", json!(["", "a", "b"][self.below(3)])),
                4 => ("contains", self.scalar()),
                5 => ("exists", json!(self.below(2) == 0)),
                _ => ("not", self.condition(depth - 1)),
            };
            operators.insert(name.to_owned(), operand);
        }
        operators.into()
    }

    fn filter(&mut self, depth: usize) -> Value {
        let mut members = Map::new();
        for _ in 0..self.below(3) {
            let (name, operand) = match self.below(if depth == 0 { 2 } else { 5 }) {
                0 => (self.pointer(), self.scalar()),
                1 => (self.pointer(), self.condition(1)),
                2 => ("not".to_owned(), self.filter(depth - 1)),
                at => {
                    let filters = (0..self.below(3)).map(|_| self.filter(depth - 1)).collect();
                    (["and", "or"][at - 3].to_owned(), filters)
                }
            };
            members.insert(name, operand);
        }
        members.into()
    }
}

/// The truth, by serde_json's own pointers and comparison of decimals.
fn holds(filter: &Value, value: &Value) -> bool {
    filter.as_object().unwrap().iter().all(|(name, operand)| match name.as_str() {
        "and" => operand.as_array().unwrap().iter().all(|filter| holds(filter, value)),
        "or" => operand.as_array().unwrap().iter().any(|filter| holds(filter, value)),
        "not" => !holds(operand, value),
        pointer => is_so(operand, value.pointer(pointer)),
    })
}

fn is_so(condition: &Value, found: Option<&Value>) -> bool {
    let Some(operators) = condition.as_object() else {
        return found.is_some_and(|found| same(found, condition));
    };
    operators.iter().all(|(name, operand)| match (name.as_str(), found) {
        ("not", _) => !is_so(operand, found),
        ("exists", _) => json!(found.is_some()) == *operand,
        (_, None) => false,
        ("eq", Some(found)) => same(found, operand),
        ("in", Some(found)) => operand.as_array().unwrap().iter().any(|one| same(found, one)),
        ("prefix", Some(found)) => {
            found.as_str().is_some_and(|text| text.starts_with(operand.as_str().unwrap()))
        }
        ("contains", Some(Value::Array(items))) => items.iter().any(|item| same(item, operand)),
        ("contains", Some(found)) => {
            found.as_str().zip(operand.as_str()).is_some_and(|(text, part)| text.contains(part))
        }
        (side, Some(found)) => difference(found, operand).is_some_and(|difference| match side {
            "lt" => difference < 0,
            "le" => difference <= 0,
            "gt" => difference > 0,
            _ => difference >= 0,
        }),
    })
}

/// Equality by the canonical text of both.
fn same(one: &Value, other: &Value) -> bool {
    fn canonical(value: &Value) -> String {
        match value {
            Value::Number(number) => format!("#{}", scaled(number)),
            Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| format!("{name:?}:{}", canonical(value)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            other => other.to_string(),
        }
    }
    canonical(one) == canonical(other)
}

/// Ten times a number: all of those here are then integers.
fn scaled(number: &serde_json::Number) -> i128 {
    match number.as_i128() {
        Some(integer) => integer * 10,
        None => (number.as_f64().unwrap() * 2.0) as i128 * 5,
    }
}

fn difference(found: &Value, bound: &Value) -> Option<i128> {
    match (found, bound) {
        (Value::Number(found), Value::Number(bound)) => Some(scaled(found) - scaled(bound)),
        (Value::String(found), Value::String(bound)) => Some(found.cmp(bound) as i128),
        (found, Value::Object(_)) => {
            let bound_ms = if bound.get("now").is_some() { NOW_MS - 3_600_000 } else { NOW_MS };
            let found_ms = match found {
                Value::String(text) if text.starts_with("2026") => NOW_MS.into(),
                Value::String(text) if text.starts_with("2025") => i128::from(NOW_MS) - 3_600_000,
                found => found.as_number()?.as_i128()?,
            };
            Some(found_ms - i128::from(bound_ms))
        }
        _ => None,
    }
}

#[test]
fn filters_find_what_a_naive_evaluator_finds() {
    let mut random = Random(0x5eed_5eed_5eed_5eed);
    let (mut found, mut total) = (0, 0);
    for _ in 0..20_000 {
        let text = random.filter(3).to_string();
        let filter = Filter::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let shown: Value = serde_json::from_str(&text).unwrap();
        for _ in 0..5 {
            let value = random.value(3);
            let matches = filter.matches(&value, NOW_MS);
            assert_eq!(matches, holds(&shown, &value), "{text} of {value}");
            found += usize::from(matches);
            total += 1;
        }
    }
    assert!(found > total / 10 && found < total * 9 / 10, "{found} of {total} tell little");
}

#[test]
fn no_text_makes_it_panic() {
    let mut random = Random(0x1234_5678_9abc_def0);
    for _ in 0..20_000 {
        let mut bytes = random.filter(3).to_string().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = b"{}[]\",:/~0\\ntu"[random.below(14)];
        }
        if let Ok(text) = String::from_utf8(bytes)
            && let Ok(filter) = Filter::parse(&text)
        {
            filter.matches(&random.value(3), NOW_MS);
        }
    }
}
