//! Equality and order. Numbers are compared by their value, exactly: an integer that a double cannot hold is
//! not equal to the double next to it.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A double from which on its integer part does not matter: all integers of JSON are nearer to zero.
const BEYOND_INTEGERS: f64 = 1e30;

/// The order of two numbers.
pub(crate) fn order_of_numbers(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => order_of_integer(one, double(other)),
        (None, Some(other)) => order_of_integer(other, double(one)).reverse(),
        (None, None) => double(one).partial_cmp(&double(other)).unwrap_or(Ordering::Equal),
    }
}

/// The double that a number is which is no integer.
fn double(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn order_of_integer(integer: i128, double: f64) -> Ordering {
    if double.abs() >= BEYOND_INTEGERS {
        return if double > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let order = integer.cmp(&(double.trunc() as i128));
    let of_fraction = || 0.0.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal);
    order.then_with(of_fraction)
}

/// True for values of the same type and the same value; lists in their order, objects by their names.
pub(crate) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order_of_numbers(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| is_equal(value, other))
            };
            one.len() == other.len() && one.iter().all(same)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(one: &str, other: &str) -> Ordering {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        order_of_numbers(&number(one), &number(other))
    }

    #[test]
    fn numbers_are_ordered_by_their_value() {
        let rising = [
            "-1e308",
            "-1e30",
            "-9223372036854775808",
            "-2.5",
            "-2",
            "-1.5",
            "0",
            "5e-324",
            "0.1",
            "0.30000000000000004",
            "1",
            "9007199254740991",
            "9007199254740992.0",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808.0",
            "18446744073709551615",
            "18446744073709551616",
            "1e30",
            "1e308",
        ];
        for (at, one) in rising.iter().enumerate() {
            for (other_at, other) in rising.iter().enumerate() {
                assert_eq!(order(one, other), at.cmp(&other_at), "{one} and {other}");
            }
        }
        for (one, other) in [("1", "1.0"), ("0", "-0.0"), ("1e2", "100"), ("0.10", "0.1"), ("1E-1", "0.1")] {
            assert_eq!(order(one, other), Ordering::Equal, "{one} and {other}");
        }
    }

    #[test]
    fn values_are_equal_with_all_that_is_in_them() {
        assert!(is_equal(
            &json!({"a": [1, {"b": 2}], "c": null}),
            &json!({"c": null, "a": [1.0, {"b": 2.0}]})
        ));
        for (one, other) in [
            (json!([1, 2]), json!([2, 1])),
            (json!([1]), json!([1, 1])),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!({"a": 1}), json!({"b": 1})),
            (json!("1"), json!(1)),
            (json!(0), json!(false)),
            (json!(null), json!(false)),
            (json!([]), json!({})),
        ] {
            assert!(!is_equal(&one, &other), "{one} and {other}");
        }
    }
}
