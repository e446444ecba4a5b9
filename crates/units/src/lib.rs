//! Parsing and formatting of durations (`500ms`, `30s`, `5m`, `1h30m`) and sizes (`64MiB`, `10MB`).
#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::time::Duration;

const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Parses a duration of whole milliseconds, of one or more parts: `1h30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration with its unit, such as 500ms, 30s, 5m, 12h, 1h30m or 7d".to_owned();
    let mut rest = text.trim();
    let mut total_ms = 0u64;
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(wrong)?;
        let unit_len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        let scale = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        let part = number.checked_mul(scale).ok_or_else(|| "the duration is too long".to_owned())?;
        total_ms = total_ms.checked_add(part).ok_or_else(|| "the duration is too long".to_owned())?;
        rest = after;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Parses a size in bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size such as 64MiB, 10MB, 512KiB, or a number of bytes".to_owned();
    let (number, unit) = split_number(text.trim()).ok_or_else(wrong)?;
    let scale = SIZE_UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?.1;
    number.checked_mul(scale).ok_or_else(|| "the size is too large".to_owned())
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// Formats a duration so that [`parse_duration`] returns the same: `90000` ms are `1m30s`.
pub fn show_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, scale) in DURATION_UNITS.iter().rev() {
        if rest >= *scale {
            text.push_str(&format!("{}{unit}", rest / scale));
            rest %= scale;
        }
    }
    text
}

/// Formats a size so that [`parse_size`] returns the same.
pub fn show_size(bytes: u64) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{}{unit}", bytes / scale),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("0", 0),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in
            ["", "30", "s", "30 s", "1.5s", "-1s", "30sec", "99999999999999999999s", "999999999999999999d"]
        {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("10MB", 10_000_000), ("512", 512), ("1 KiB", 1024), ("0", 0)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "MiB", "1.5GiB", "64mib", "-1", "99999999TiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for ms in [0, 1, 999, 1_000, 90_000, 86_400_000, 86_461_001] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
        }
        for bytes in [0, 1, 1023, 1024, 1536, 1 << 20, (1 << 30) + 1, 1 << 40] {
            assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }
        assert_eq!(show_duration(Duration::from_secs(90)), "1m30s");
        assert_eq!(show_size(256 << 20), "256MiB");
    }
}
