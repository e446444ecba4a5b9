//! Times, durations, sizes and costs as text for people.

use std::time::{SystemTime, UNIX_EPOCH};

use sluice_client::Rate;

/// The current time, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A time in UTC: `2026-11-21 04:44:36Z`.
pub(crate) fn time(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms / 1000 % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The Gregorian date of a day since 1970-01-01. Years begin in March, so that the leap day is the last day
/// of a year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The two largest units of a duration in milliseconds: `3m12s`.
pub(crate) fn length(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    let Some(at) = units.iter().position(|(_, scale)| ms >= *scale) else { return format!("{ms}ms") };
    let (unit, scale) = units[at];
    let mut text = format!("{}{unit}", ms / scale);
    if let Some((next, next_scale)) = units.get(at + 1) {
        let rest = ms % scale / next_scale;
        if rest > 0 {
            text.push_str(&format!("{rest}{next}"));
        }
    }
    text
}

/// A time relative to now: `3m12s ago`, or `in 5s`.
pub(crate) fn relative(ms: u64) -> String {
    let now = now_ms();
    if ms > now { format!("in {}", length(ms - now)) } else { format!("{} ago", length(now - ms)) }
}

/// A rounded size in bytes: `1.4 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut at) = (bytes as f64, 0);
    while value >= 1024.0 && at + 1 < units.len() {
        value /= 1024.0;
        at += 1;
    }
    if at == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[at]) }
}

/// The cost that is spent of a rate's burst: `12/50`; `-` where there is no rate.
pub(crate) fn spent(spent: Option<u64>, rate: Option<Rate>) -> String {
    let Some(rate) = rate else { return "-".to_owned() };
    format!("{}/{}", spent.unwrap_or(0), rate.burst.unwrap_or(rate.count))
}

/// A number with its noun: `1 message`, `2 messages`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    plural(count, what, &format!("{what}s"))
}

/// A number with a noun whose plural does not end in a plain s.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The first `max` characters on one line; `…` marks a cut.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most {
            line.push('…');
            break;
        }
        push_visible(&mut line, if steers(c) { ' ' } else { c });
    }
    line
}

/// Adds a character, one that is not seen as its number: `\u{200b}`.
fn push_visible(text: &mut String, c: char) {
    if is_invisible(c) { text.extend(c.escape_unicode()) } else { text.push(c) }
}

/// True for characters of no width, and for those that end lines for some programs alone: two names that
/// differ by them look the same.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// An argument quoted for a shell.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

/// Text without characters that steer a terminal; line ends stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if steers(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// True for control characters, and for those that change the direction of the text around them (Unicode
/// Standard Annex 9), so that a line reads otherwise than it is.
fn steers(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs
}

/// The same on one line, for a table cell: line ends are replaced, so that a value cannot imitate another
/// line. Characters that are not seen are shown by their numbers.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in printable(text).chars() {
        push_visible(&mut line, if matches!(c, '\n' | '\t') { ' ' } else { c });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_calendar_dates() {
        assert_eq!(time(0), "1970-01-01 00:00:00Z");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(time(1_767_225_599_000), "2025-12-31 23:59:59Z");
        assert_eq!(time(1_798_761_600_000), "2027-01-01 00:00:00Z");
    }

    #[test]
    fn lengths_and_sizes_are_short() {
        assert_eq!(
            [length(5), length(61_000), length(90_061_000), length(60_000)],
            ["5ms", "1m1s", "1d1h", "1m"]
        );
        assert_eq!([size(5), size(1536), size(5 << 30)], ["5 B", "1.5 KiB", "5.0 GiB"]);
        assert_eq!(line("a\nbcd", 3), "a b…");
    }

    #[test]
    fn what_steers_terminals_is_not_printed() {
        assert_eq!(printable("a\u{1b}[8m\u{9b}\r\n\tb"), "a\u{fffd}[8m\u{fffd}\u{fffd}\n\tb");
        assert_eq!(printable("ok\u{202e}txt\u{2069}"), "ok\u{fffd}txt\u{fffd}");
        assert_eq!(one_line("a\nb\tc\u{7f}"), "a b c\u{fffd}");
    }

    #[test]
    fn what_is_not_seen_is_shown_in_tables_by_its_number() {
        for c in
            ['\u{ad}', '\u{200b}', '\u{200d}', '\u{2028}', '\u{2029}', '\u{2060}', '\u{feff}', '\u{e0041}']
        {
            let shown = format!("a\\u{{{:x}}}b", u32::from(c));
            assert_eq!(one_line(&format!("a{c}b")), shown);
            assert_eq!(line(&format!("a{c}b"), 9), shown);
        }
        assert_eq!(
            printable("\u{1f469}\u{200d}\u{1f680}"),
            "\u{1f469}\u{200d}\u{1f680}",
            "a text keeps them"
        );
    }
}
