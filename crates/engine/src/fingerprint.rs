//! Fingerprints of errors: errors that differ only in ids, times and addresses have the same.

use crate::hash::hash;

/// Bytes of a text that count; the rest is left out.
const BYTES_MAX: usize = 512;
/// Bytes of the longest word that counts although a digit is in it, such as the code 451.
const CODE_BYTES_MAX: usize = 3;
/// Bytes of a UUID as text.
const UUID_BYTES: usize = 36;

/// The fingerprint of an error's text, of which the first line with more than blanks counts. In it each
/// word of more than three bytes with a digit stands for any such word, other than a status of a mail
/// system, such as 4.7.1. A word is of ASCII letters and digits, and of whatever is not ASCII; a single
/// `.`, `:`, `-` or `,` between two digits joins two of them, and the parts of a UUID are one:
/// `10.0.0.1:5432`, `12:03:04` and `12.5s` are words.
///
/// It is shown, and callers keep it in their filters: it must never change.
pub fn error_fingerprint(text: &[u8]) -> u64 {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let line = &line[..line.len().min(BYTES_MAX)];
    let mut plain = Vec::with_capacity(line.len());
    let mut from = 0;
    while from < line.len() {
        let end = from + word_bytes(&line[from..]).max(1);
        let part = &line[from..end];
        let is_id = part.len() > CODE_BYTES_MAX && part.iter().any(u8::is_ascii_digit) && !is_status(part);
        plain.extend_from_slice(if is_id { b"#" } else { part });
        from = end;
    }
    hash(0, &plain)
}

/// Length of the word at the beginning of a text; 0: it begins with none.
fn word_bytes(text: &[u8]) -> usize {
    if is_uuid(text) {
        return UUID_BYTES;
    }
    let is_of_word =
        |at: usize| text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    loop {
        let joins = end > 0 && matches!(text.get(end), Some(b'.' | b':' | b'-' | b','));
        if is_of_word(end) || joins && is_digit(end - 1) && is_digit(end + 1) {
            end += 1;
        } else {
            return end;
        }
    }
}

/// True for a status of a mail system, such as 4.7.1 (RFC 3463, section 2).
fn is_status(word: &[u8]) -> bool {
    let mut parts = word.split(|byte| *byte == b'.');
    let is_class = matches!(parts.next(), Some(b"2" | b"4" | b"5"));
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|part| (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit))
    };
    is_class && is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}

/// True for a text that begins with a UUID (RFC 9562, section 4) that has a digit.
fn is_uuid(text: &[u8]) -> bool {
    let Some(text) = text.get(..UUID_BYTES) else { return false };
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.iter().enumerate().all(fits) && text.iter().any(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> u64 {
        error_fingerprint(text.as_bytes())
    }

    #[test]
    fn ids_and_numbers_do_not_count_and_codes_do() {
        let one = of("timeout after 3012ms of request 0a1b-77f0 at 10.0.0.7");
        assert_eq!(one, of("timeout after 59999ms of request 77aa-0123 at 10.0.0.7"));
        assert_ne!(one, of("timeout of request 0a1b-77f0 at 10.0.0.7"));
        assert_ne!(of("smtp: 451 try later"), of("smtp: 550 no such user"));
        assert_ne!(of("caf\u{e9}"), of("cafe"));
    }

    #[test]
    fn times_addresses_and_uuids_do_not_count() {
        for (one, other) in [
            ("connect to 10.0.0.1:5432: refused", "connect to 192.168.7.12:80: refused"),
            ("late since 12:03:04", "late since 23:59:59"),
            ("at 2026-11-29T12:03:04Z: no", "at 2025-01-02T00:00:00.123Z: no"),
            ("took 12.5s", "took 1.25s"),
            ("no job aaaabbbb-cccc-dddd-eeee-fffff0123456", "no job 01234567-89ab-cdef-0123-456789abcdef"),
        ] {
            assert_eq!(of(one), of(other), "{one}");
        }
        assert_ne!(of("code:451"), of("code:550"));
        assert_ne!(of("550 5.1.1 refused"), of("550 5.7.1 refused"));
        assert_ne!(of("a-b"), of("a-c"));
        assert_ne!(of("retry: 3"), of("retry: 4"));
    }

    #[test]
    fn the_first_line_counts_and_no_more_than_its_beginning() {
        assert_eq!(of("\n  no such host \r\n at line 7"), of("no such host"));
        let long = "x".repeat(BYTES_MAX);
        assert_eq!(of(&long), of(&format!("{long} and more")));
        assert_eq!(of(""), of(" \n\t"));
    }

    /// A failure here changes what callers have kept: do not adapt the value.
    #[test]
    fn a_fingerprint_never_changes() {
        assert_eq!(of("smtp: 451 4.7.1 user 12345"), 0xe339_7e7f_23c5_0cb5);
    }
}
