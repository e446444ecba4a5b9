//! Places within a JSON value: JSON pointers (RFC 6901).

use std::fmt;

use serde_json::Value;

/// A JSON pointer, such as `/items/0/price`; an empty one is the value as a whole.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pointer {
    /// Names and indexes on the way, without their escapes.
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer. `None`: it does not begin with `/`, or a `~` is not followed by 0 or 1.
    pub fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer { tokens: Vec::new() });
        }
        let tokens = text.strip_prefix('/')?.split('/').map(unescaped).collect::<Option<_>>()?;
        Some(Pointer { tokens })
    }

    /// The name or index with which it begins; `None`: it is the value as a whole.
    pub fn first(&self) -> Option<&str> {
        self.tokens.first().map(String::as_str)
    }

    /// The value behind it; `None`: there is none.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.tokens.iter().try_fold(value, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => items.get(index(token)?),
            _ => None,
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens.iter().try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}

/// A token without its escapes (RFC 6901 §4).
fn unescaped(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        text.push(match part.as_bytes().first()? {
            b'0' => '~',
            b'1' => '/',
            _ => return None,
        });
        text.push_str(&part[1..]);
    }
    Some(text)
}

/// The index of an item: digits without a leading zero (RFC 6901 §4).
fn index(token: &str) -> Option<usize> {
    let is_index = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| is_index)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of RFC 6901 §5, and what its §4 says of indexes.
    #[test]
    fn the_examples_of_the_standard() {
        let value = json!({
            "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6,
            " ": 7, "m~n": 8,
        });
        let found = |text: &str| Pointer::parse(text).unwrap().find(&value).cloned();
        assert_eq!(found(""), Some(value.clone()));
        for (pointer, expected) in [
            ("/foo", json!(["bar", "baz"])),
            ("/foo/0", json!("bar")),
            ("/", json!(0)),
            ("/a~1b", json!(1)),
            ("/c%d", json!(2)),
            ("/i\\j", json!(5)),
            ("/k\"l", json!(6)),
            ("/ ", json!(7)),
            ("/m~0n", json!(8)),
        ] {
            assert_eq!(found(pointer), Some(expected), "{pointer}");
            assert_eq!(Pointer::parse(pointer).unwrap().to_string(), pointer);
        }
        for nothing in ["/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/bar", "/x", "/foo/0/x", "//"] {
            assert_eq!(found(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_told() {
        for wrong in ["a", "a/b", "/~", "/~2", "/a~", "~0", "/\u{fc}~\u{fc}"] {
            assert_eq!(Pointer::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Pointer::parse("/~01").unwrap().tokens, ["~1"]);
        assert_eq!(Pointer::parse("/~1~0x").unwrap().tokens, ["/~x"]);
    }
}
