//! The values by which something is sorted, each so small that a cursor can carry it.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::compare::order_of_numbers;

/// Bytes of a text by which it is sorted; a character that goes beyond them does not count.
pub const SORT_TEXT_BYTES: usize = 256;

/// A value to sort by, or none. In this order: none, null, false, true, numbers by their value, texts by the
/// first [`SORT_TEXT_BYTES`] of their UTF-8, lists, objects; all lists are equal, and all objects.
#[derive(Clone, Debug)]
pub struct SortValue(Option<Value>);

impl SortValue {
    /// The value, as far as it is sorted by.
    pub fn of(value: Option<&Value>) -> SortValue {
        SortValue(value.map(|value| match value {
            Value::String(text) => Value::from(cut(text)),
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            scalar => scalar.clone(),
        }))
    }

    /// The value as JSON that [`SortValue::from_json`] reads.
    pub fn to_json(&self) -> Value {
        Value::Array(self.0.iter().cloned().collect())
    }

    /// The value of such JSON; `None`: it is something else.
    pub fn from_json(json: &Value) -> Option<SortValue> {
        match json.as_array()?.as_slice() {
            [] => Some(SortValue(None)),
            [value] => Some(SortValue::of(Some(value))),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match &self.0 {
            None => 0,
            Some(Value::Null) => 1,
            Some(Value::Bool(false)) => 2,
            Some(Value::Bool(true)) => 3,
            Some(Value::Number(_)) => 4,
            Some(Value::String(_)) => 5,
            Some(Value::Array(_)) => 6,
            Some(Value::Object(_)) => 7,
        }
    }
}

fn cut(text: &str) -> &str {
    let mut len = text.len().min(SORT_TEXT_BYTES);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}

impl Ord for SortValue {
    fn cmp(&self, other: &SortValue) -> Ordering {
        match (&self.0, &other.0) {
            (Some(Value::Number(one)), Some(Value::Number(other))) => order_of_numbers(one, other),
            (Some(Value::String(one)), Some(Value::String(other))) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for SortValue {
    fn partial_cmp(&self, other: &SortValue) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortValue {
    fn eq(&self, other: &SortValue) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SortValue {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_types_have_an_order_which_json_keeps() {
        let rising = [
            None,
            Some(json!(null)),
            Some(json!(false)),
            Some(json!(true)),
            Some(json!(-1)),
            Some(json!(0.5)),
            Some(json!(u64::MAX)),
            Some(json!("")),
            Some(json!("Z")),
            Some(json!("a")),
            Some(json!("\u{fc}")),
            Some(json!([1, 2])),
            Some(json!({"a": 1})),
        ];
        let values: Vec<SortValue> = rising.iter().map(|value| SortValue::of(value.as_ref())).collect();
        for (at, one) in values.iter().enumerate() {
            for (other_at, other) in values.iter().enumerate() {
                assert_eq!(one.cmp(other), at.cmp(&other_at), "{one:?} and {other:?}");
            }
            assert_eq!(SortValue::from_json(&one.to_json()).as_ref(), Some(one));
        }
        assert_eq!(SortValue::of(Some(&json!([1]))), SortValue::of(Some(&json!([]))));
        for wrong in [json!(1), json!([1, 2]), json!(null)] {
            assert_eq!(SortValue::from_json(&wrong), None);
        }
    }

    #[test]
    fn of_a_long_text_its_beginning_counts() {
        let long = |tail: &str| SortValue::of(Some(&json!("\u{20ac}".repeat(85) + tail)));
        assert_eq!(long("a"), SortValue::of(Some(&json!("\u{20ac}".repeat(85) + "ab"))));
        assert_eq!(long("\u{fc}"), long("\u{e4}"), "half a character is none");
        assert!(long("a") < long("b"));
    }
}
