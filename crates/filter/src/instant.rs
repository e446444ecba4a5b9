//! Times: of texts as RFC 3339 has them, of whole numbers as milliseconds since the Unix epoch.

use jiff::Timestamp;
use serde_json::Value;

/// Nanoseconds of a millisecond.
const NS_PER_MS: i128 = 1_000_000;

/// A point in time, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Instant(i128);

impl Instant {
    pub(crate) fn of_ms(ms: i128) -> Instant {
        Instant(ms.saturating_mul(NS_PER_MS))
    }

    /// The time so many milliseconds from now.
    pub(crate) fn from_now(now_ms: u64, ms: i64) -> Instant {
        Instant::of_ms(i128::from(now_ms) + i128::from(ms))
    }

    /// The last whole millisecond, since the Unix epoch, that is not after it.
    pub(crate) fn ms_floor(self) -> i128 {
        self.0.div_euclid(NS_PER_MS)
    }

    /// The time of a text as RFC 3339 has it; `None`: it is none.
    pub(crate) fn of_text(text: &str) -> Option<Instant> {
        if !has_form(text.as_bytes()) {
            return None;
        }
        text.parse::<Timestamp>().ok().map(|time| Instant(time.as_nanosecond()))
    }

    /// The time that a value is; `None`: it is none.
    pub(crate) fn of_value(value: &Value) -> Option<Instant> {
        match value {
            Value::String(text) => Instant::of_text(text),
            Value::Number(number) => {
                let ms = i64::try_from(number.as_i128()?).ok()?;
                Timestamp::from_millisecond(ms).ok().map(|time| Instant(time.as_nanosecond()))
            }
            _ => None,
        }
    }
}

/// True for a text of the form of RFC 3339 §5.6, such as `2026-11-27T05:00:00.5+01:00`: what reads it takes
/// more than that.
fn has_form(text: &[u8]) -> bool {
    let is = |at: usize, allowed: &[u8]| text.get(at).is_some_and(|byte| allowed.contains(byte));
    let from_end = |back: usize, allowed: &[u8]| text.len() >= back && is(text.len() - back, allowed);
    let has_zone = from_end(1, b"Zz") || from_end(6, b"+-") && from_end(3, b":");
    let separators = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let allowed = |byte: &u8| byte.is_ascii_digit() || b"-+:.TtZz ".contains(byte);
    separators && has_zone && text[0].is_ascii_digit() && text.iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_behind_the_last_day_are_no_times() {
        let is_time = |ms: i64| Instant::of_value(&Value::from(ms)).is_some();
        assert!(is_time(253_402_207_200_000) && !is_time(253_402_207_201_000) && !is_time(i64::MAX));
        assert!(is_time(-1) && !is_time(i64::MIN));
    }

    #[test]
    fn times_are_read_as_the_standard_has_them() {
        let ns = |text: &str| Instant::of_text(text).map(|instant| instant.0);
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:01.5z", 1_500_000_000),
            ("1970-01-01 01:00:00+01:00", 0),
            ("1969-12-31T23:59:59.999999999-00:00", -1),
            ("2026-11-27T05:00:00Z", 1_795_755_600_000_000_000),
        ] {
            assert_eq!(ns(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "now",
            "2026-11-27",
            "2026-11-27T05:00:00",
            "2026-11-27T05:00Z",
            "2026-11-27T05:00:00+0100",
            "2026-11-27T05:00:00+01",
            "2026-11-27T05:00:00Z[UTC]",
            "2026-11-27T05:00:00,5Z",
            "2026-13-27T05:00:00Z",
            "2026-11-31T05:00:00Z",
            "+002026-11-27T05:00:00Z",
            " 2026-11-27T05:00:00Z",
        ] {
            assert_eq!(ns(wrong), None, "{wrong}");
        }
    }
}
