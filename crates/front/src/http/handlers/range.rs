//! Ranges of bytes (RFC 9110 §14).

/// The part of a content that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ranged {
    /// All of it: no range is asked for, or one that is passed over.
    Whole,
    /// The bytes from the first one to the second one, which is not included.
    Part(u64, u64),
    /// A range in which it has no byte.
    Nothing,
}

/// Reads a `Range` of a content of so many bytes. Several ranges, and those in another unit, are passed over,
/// as RFC 9110 §14.2 allows.
pub(super) fn range_of(range: Option<&str>, bytes: u64) -> Ranged {
    let read = || {
        let (unit, set) = range?.split_once('=')?;
        let (first, last) = set.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Beyond 64 bits lies no byte.
        let number = |text: &str| Some(text).filter(is_number).map(|text| text.parse().unwrap_or(u64::MAX));
        Some(match (first, last) {
            ("", last) => (bytes.saturating_sub(number(last)?), bytes),
            (first, "") => (number(first)?, bytes),
            (first, last) => {
                let last = number(last).filter(|last| number(first).is_some_and(|first| first <= *last))?;
                (number(first)?, last.saturating_add(1).min(bytes))
            }
        })
    };
    match read() {
        None => Ranged::Whole,
        Some((from, to)) if from < to => Ranged::Part(from, to),
        Some(_) => Ranged::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        for (range, expected) in [
            ("bytes=0-4", Ranged::Part(0, 5)),
            ("Bytes=5-", Ranged::Part(5, 10)),
            ("bytes=-3", Ranged::Part(7, 10)),
            ("bytes=-30", Ranged::Part(0, 10)),
            ("bytes=8-99", Ranged::Part(8, 10)),
            ("bytes=9-9", Ranged::Part(9, 10)),
            ("bytes=10-", Ranged::Nothing),
            ("bytes=10-11", Ranged::Nothing),
            ("bytes=-0", Ranged::Nothing),
            ("bytes=18446744073709551616-", Ranged::Nothing),
            ("bytes=18446744073709551616-18446744073709551617", Ranged::Nothing),
            ("bytes=0-18446744073709551616", Ranged::Part(0, 10)),
            ("bytes=-18446744073709551616", Ranged::Part(0, 10)),
            ("bytes=4-3", Ranged::Whole),
            ("bytes=0-1,3-4", Ranged::Whole),
            ("lines=0-1", Ranged::Whole),
            ("bytes=a-b", Ranged::Whole),
            ("bytes=-", Ranged::Whole),
            ("bytes", Ranged::Whole),
        ] {
            assert_eq!(range_of(Some(range), 10), expected, "{range}");
        }
        assert_eq!(range_of(None, 10), Ranged::Whole);
        assert_eq!(range_of(Some("bytes=0-"), 0), Ranged::Nothing);
    }
}
