//! Rules of names, numbers and lists, of which checks are made.

use crate::error::{Error, FieldPath};
use crate::id::MessageId;
use crate::limits::{Limits, NAME_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX};

/// True for `.` and `..`: as segments of a path, clients resolve these before they send (RFC 3986, section
/// 5.2.4), so nobody would reach what has such a name.
fn is_dot_segment(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// Names: 1 to 128 of `A-Z a-z 0-9 . _ -`, except `.` and `..`.
pub(crate) fn name_rule(what: &'static str, name: &str) -> Result<(), Error> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_short = (1..=NAME_BYTES_MAX).contains(&name.len());
    if is_short && name.as_bytes().iter().all(allowed) && !is_dot_segment(name) {
        return Ok(());
    }
    let name = name.chars().take(NAME_BYTES_MAX + 1).collect();
    Err(Error::InvalidName { field: FieldPath::default(), what, name })
}

/// Patterns of names: a name in which `*` may stand.
pub(crate) fn pattern_rule(pattern: &str) -> Result<(), Error> {
    let name = pattern.replace('*', "-");
    name_rule("pattern", &name).map_err(|_| {
        let shown: String = pattern.chars().take(NAME_BYTES_MAX + 1).collect();
        let rule =
            format!("use 1 to {NAME_BYTES_MAX} of A-Z a-z 0-9 . _ - and * for any number of characters");
        invalid("pattern", format!("{shown:?} is not valid: {rule}"))
    })
}

/// Keys: text of 1 to `most` bytes without control characters, except `.` and `..`.
pub(crate) fn key_rule(field: &str, key: &str, most: usize) -> Result<(), Error> {
    between_of("bytes", field, key.len() as u64, 1, most as u64)?;
    if key.chars().any(char::is_control) {
        return Err(invalid(field, format!("{key:?} has control characters: use text without them")));
    }
    if is_dot_segment(key) {
        return Err(invalid(field, format!("{key:?} cannot be reached by a path: use another text")));
    }
    Ok(())
}

pub(crate) fn invalid(field: impl Into<String>, reason: String) -> Error {
    Error::InvalidArgument { field: field.into(), reason }
}

pub(crate) fn at_most(field: &str, value: u64, max: u64) -> Result<(), Error> {
    if value <= max {
        return Ok(());
    }
    Err(invalid(field, format!("{value} is too much: use at most {max}")))
}

pub(crate) fn between(field: &str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(invalid(field, format!("{value} is out of range: use {min} to {max}")))
}

/// Like [`at_most`], of what the field has so many of.
pub(crate) fn at_most_of(unit: &str, field: &str, count: u64, max: u64) -> Result<(), Error> {
    if count <= max {
        return Ok(());
    }
    Err(invalid(field, format!("{count} {unit} are too many: use at most {max}")))
}

/// Like [`between`], of what the field has so many of.
pub(crate) fn between_of(unit: &str, field: &str, count: u64, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&count) {
        return Ok(());
    }
    Err(invalid(field, format!("{count} {unit} are out of range: use {min} to {max}")))
}

pub(crate) fn check_items(what: &'static str, items: usize, limits: &Limits) -> Result<(), Error> {
    if items == 0 {
        return Err(invalid(what, "the list is empty: give at least one".into()));
    }
    if items as u64 > u64::from(limits.batch_items) {
        let limit = u64::from(limits.batch_items);
        return Err(Error::BatchTooLarge { what, size: items as u64, limit });
    }
    Ok(())
}

pub(crate) fn check_ids(ids: &[MessageId], limits: &Limits) -> Result<(), Error> {
    if ids.is_empty() { Ok(()) } else { check_items("ids", ids.len(), limits) }
}

/// Checks the bytes of all items of one record together.
pub(crate) fn check_bytes(what: &'static str, bytes: usize, limits: &Limits) -> Result<(), Error> {
    if bytes as u64 <= u64::from(limits.batch_bytes) {
        return Ok(());
    }
    Err(Error::BatchTooLarge { what, size: bytes as u64, limit: limits.batch_bytes.into() })
}

pub(crate) fn check_content_type(field: &str, content_type: &str) -> Result<(), Error> {
    at_most_of("bytes", field, content_type.len() as u64, u8::MAX.into())
}

/// Checks tags; `field` names them in the error.
pub(crate) fn check_tags(field: &str, tags: &[&str]) -> Result<(), Error> {
    at_most_of("tags", field, tags.len() as u64, TAGS_MAX as u64)?;
    for (at, tag) in tags.iter().enumerate() {
        between_of("bytes", &format!("{field}[{at}]"), tag.len() as u64, 1, TAG_BYTES_MAX as u64)?;
        if tags[..at].contains(tag) {
            return Err(invalid(format!("{field}[{at}]"), format!("{tag:?} is given twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        let long = "n".repeat(128);
        for good in ["a", "...", "A-b_c.9", long.as_str()] {
            assert_eq!(name_rule("queue", good), Ok(()), "{good}");
        }
        let long = "n".repeat(129);
        for bad in ["", "$sys", ".", "..", "a b", "ü", "a/b", long.as_str()] {
            assert!(name_rule("queue", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_can_be_reached_by_a_path() {
        assert_eq!(key_rule("key", "a/../..b", 10), Ok(()));
        for bad in [".", "..", ""] {
            assert!(key_rule("key", bad, 10).is_err(), "{bad:?}");
        }
    }
}
