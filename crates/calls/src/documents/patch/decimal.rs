//! Decimal numbers, exact: whether a number is the same when it is written again, and sums.

use serde_json::Number;

/// A number of JSON: its digits without zeros at either end, times ten to the power of the exponent. Zero has
/// no digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    is_negative: bool,
    /// Values 0 to 9, the most significant one first.
    digits: Vec<u8>,
    /// Power of ten of the last digit.
    exponent: i64,
}

impl Decimal {
    /// Reads a number as JSON has it; `None`: its exponent is out of range.
    pub(super) fn read(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
        let digits: Vec<u8> = digits.map(|digit| digit - b'0').collect();
        if digits.iter().all(|digit| *digit == 0) {
            return Some(Decimal { is_negative: false, digits: Vec::new(), exponent: 0 });
        }
        let exponent = exponent.parse::<i64>().ok()?.checked_sub(fraction.len() as i64)?;
        Decimal { is_negative: mantissa.starts_with('-'), digits, exponent }.trimmed()
    }

    /// A number that JSON was read into.
    pub(super) fn of(number: &Number) -> Option<Decimal> {
        Decimal::read(&number.to_string())
    }

    /// The number without zeros at either end.
    fn trimmed(mut self) -> Option<Decimal> {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        self.digits.truncate(self.digits.len() - zeros);
        let zeros_before = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros_before);
        if self.digits.is_empty() {
            return Some(Decimal { is_negative: false, digits: Vec::new(), exponent: 0 });
        }
        self.exponent = self.exponent.checked_add(zeros as i64)?;
        Some(self)
    }

    /// The sum of two numbers within the range of a double, which have at most some hundred digits.
    pub(super) fn plus(&self, other: &Decimal) -> Option<Decimal> {
        let exponent = self.exponent.min(other.exponent);
        let (one, two) = (self.units(exponent), other.units(exponent));
        let length = one.len().max(two.len()) + 1;
        let at = |units: &[u8], place: usize| i16::from(units.get(place).copied().unwrap_or_default());
        let is_less = one.len().cmp(&two.len()).then_with(|| one.iter().rev().cmp(two.iter().rev())).is_lt();
        let is_negative = if is_less { other.is_negative } else { self.is_negative };
        let (smaller, larger) = if is_less { (one, two) } else { (two, one) };
        let sign = if self.is_negative == other.is_negative { 1 } else { -1 };
        let mut carried = 0;
        let mut digits = Vec::with_capacity(length);
        for place in 0..length {
            let sum = at(&larger, place) + sign * at(&smaller, place) + carried;
            digits.push(sum.rem_euclid(10) as u8);
            carried = sum.div_euclid(10);
        }
        digits.reverse();
        Decimal { is_negative, digits, exponent }.trimmed()
    }

    /// Digits in units of a power of ten that is not above its own, the least significant one first.
    fn units(&self, exponent: i64) -> Vec<u8> {
        if self.digits.is_empty() {
            return Vec::new();
        }
        let zeros = (self.exponent - exponent).max(0) as usize;
        std::iter::repeat_n(0, zeros).chain(self.digits.iter().rev().copied()).collect()
    }

    /// The number as JSON is read into it, not as an integer; `None`: it would be another.
    pub(super) fn kept(&self) -> Option<Number> {
        let sign = if self.is_negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let text = format!("{sign}{}e{}", if digits.is_empty() { "0" } else { &digits }, self.exponent);
        let number: Number = serde_json::from_str(&text).ok()?;
        (Decimal::of(&number).as_ref() == Some(self)).then_some(number)
    }
}

/// True for a number that is the same when it is read and written again.
pub(super) fn is_kept(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let written = serde_json::from_str::<Number>(number).ok().and_then(|number| Decimal::of(&number));
    written.is_some() && written == Decimal::read(number)
}

/// True for numbers of the same value.
pub(super) fn is_equal(one: &Number, other: &Number) -> bool {
    one == other || Decimal::of(one).is_some_and(|one| Some(one) == Decimal::of(other))
}

/// The sum of two numbers, an integer if both are; `None`: it would be another when it is written.
pub(super) fn sum(one: &Number, other: &Number) -> Option<Number> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Number::from_i128(one.checked_add(other)?),
        _ => Decimal::of(one)?.plus(&Decimal::of(other)?)?.kept(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_whose_decimal_value_is_written() {
        for kept in [
            "0",
            "-0",
            "-0.0",
            "0e999",
            "1e2",
            "1.00000000000000000000",
            "-0.1",
            "0.30000000000000004",
            "18446744073709551615",
            "-9223372036854775808",
            "1.7976931348623157e308",
            "5e-324",
            "2.50e-1",
            "9007199254740992.0",
            "12300000000000000000000e-2",
        ] {
            assert!(is_kept(kept), "{kept}");
        }
        for lost in [
            "9007199254740993.0",
            "12345678901234567e5",
            "1e-400",
            "1e400",
            "0.10000000000000001",
            "18446744073709551616",
            "-9223372036854775809",
            "0.123456789012345678901",
            "1e99999999999999999999",
        ] {
            assert!(!is_kept(lost), "{lost}");
        }
    }

    #[test]
    fn sums_are_exact_or_none() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        for (one, other, expected) in [
            ("40", "2", Some("42")),
            ("0.1", "0.2", Some("0.3")),
            ("1.5", "0.5", Some("2.0")),
            ("1", "-1.0", Some("0.0")),
            ("-0.5", "0.25", Some("-0.25")),
            ("-1", "100.5", Some("99.5")),
            ("0", "-2.5", Some("-2.5")),
            ("999.9", "0.1", Some("1000.0")),
            ("9007199254740993", "1.0", Some("9007199254740994.0")),
            ("9007199254740993", "0.5", None),
            ("1e308", "1e-308", None),
            ("1e308", "1e308", None),
            ("18446744073709551615", "1", None),
        ] {
            let found = sum(&number(one), &number(other)).map(|sum| sum.to_string());
            assert_eq!(found.as_deref(), expected, "{one} + {other}");
        }
    }

    #[test]
    fn numbers_are_equal_by_their_value() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        assert!(is_equal(&number("1"), &number("1.0")) && is_equal(&number("10"), &number("1e1")));
        assert!(is_equal(&number("-0.0"), &number("0")));
        assert!(!is_equal(&number("1"), &number("1.5")) && !is_equal(&number("1"), &number("-1")));
    }
}
