//! Contents that are JSON: reading them so that nothing is lost, their depth and their memory.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use super::decimal::is_kept;
use crate::fault::{Fault, Read, clip};

/// Most lists and objects within each other: as many as `serde_json` reads.
pub(super) const DEPTH_MAX: usize = 127;
/// Memory of a member of an object beside its name and value, in bytes: a part of a node of a B-tree.
const MEMBER_BYTES: usize = 48;

/// Lists and objects within each other, the outermost among them. At most [`DEPTH_MAX`] in what was read.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Memory that a value takes, in bytes.
pub(super) fn memory(value: &Value) -> usize {
    let within = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(memory).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + MEMBER_BYTES + memory(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + within
}

/// Reads JSON that is the same when it is written again.
pub(super) fn json(text: &[u8]) -> Read<Value> {
    read("JSON", text)
}

/// Reads JSON whose numbers are the same when it is written again; `what`: its format.
pub(super) fn read<T: DeserializeOwned>(what: &str, text: &[u8]) -> Read<T> {
    let read = serde_json::from_slice(text);
    match changed_number(text) {
        Some(number) => Err(Fault::invalid(format!(
            "number {} would be another after a patch, which keeps integers of 64 bits and the decimal digits of \
             doubles: put the document as a whole",
            clip(number)
        ))),
        None => read.map_err(|error| unreadable(what, &error)),
    }
}

#[cold]
fn unreadable(what: &str, error: &serde_json::Error) -> Box<Fault> {
    let place = format!("line {} column {}", error.line(), error.column());
    Fault::invalid(match error.classify() {
        // The reader tells of it by nothing but its words.
        Category::Syntax if error.to_string().starts_with("recursion limit") => {
            format!("more than {DEPTH_MAX} lists and objects are within each other at {place}")
        }
        Category::Eof | Category::Io => format!("this is no {what}: it ends too early, at {place}"),
        Category::Syntax => format!("this is no {what}: see {place}"),
        Category::Data => format!("this is no {what}: {error}"),
    })
}

/// The first number of a JSON text that would not be the same when it is written again.
fn changed_number(text: &[u8]) -> Option<&str> {
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        match first {
            b'"' => rest = behind_text(behind),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
                let len = rest.iter().take_while(|byte| is_part(byte)).count();
                let number = std::str::from_utf8(&rest[..len]).ok()?;
                if !is_kept(number) {
                    return Some(number);
                }
                rest = &rest[len..];
            }
            _ => rest = behind,
        }
    }
    None
}

fn behind_text(mut rest: &[u8]) -> &[u8] {
    while let Some((&byte, behind)) = rest.split_first() {
        match byte {
            b'"' => return behind,
            b'\\' => rest = behind.get(1..).unwrap_or_default(),
            _ => rest = behind,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    #[test]
    fn lists_and_objects_within_each_other_are_counted() {
        for (value, expected) in [(value!(1), 0), (value!([]), 1), (value!({"a": [{}], "b": {}}), 3)] {
            assert_eq!(depth(&value), expected, "{value}");
        }
        let deepest = ["[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX)].concat();
        assert_eq!(depth(&json(deepest.as_bytes()).unwrap()), DEPTH_MAX);
        assert!(json(format!("[{deepest}]").as_bytes()).is_err());
    }

    #[test]
    fn numbers_that_a_patch_would_change_are_refused() {
        for kept in
            ["1e2", "-0.1", "18446744073709551615", "1.7976931348623157e308", "\"12345678901234567890123\""]
        {
            assert!(json(kept.as_bytes()).is_ok(), "{kept}");
        }
        for lost in ["18446744073709551616", "1e400", "[\"\\\"\",{\"a\":9007199254740993.0}]"] {
            let refused = json(lost.as_bytes()).unwrap_err();
            assert_eq!(refused.code, "invalid_argument", "{lost}");
            assert!(refused.reason.contains("would be another"), "{}", refused.reason);
        }
    }

    #[test]
    fn faults_are_told_in_words() {
        let nested = "[".repeat(DEPTH_MAX + 1);
        for (text, expected) in [
            ("{nope}", "this is no JSON: see line 1 column 2"),
            ("[1,", "this is no JSON: it ends too early, at line 1 column 3"),
            (&nested, "more than 127 lists and objects are within each other at line 1 column 128"),
        ] {
            assert_eq!(json(text.as_bytes()).unwrap_err().reason, expected);
        }
    }
}
