//! Parameters behind the `?`, as strict as bodies are.

use std::borrow::Cow;

use crate::json::number::integer;
use crate::json::{Fault, Read, clip};

/// The parameter of calls that show state, by which the answer may be behind.
pub(crate) const STALE: &str = "stale";

/// True if the parameters ask for an answer that may be behind. Whether they can be read is not looked at.
pub(crate) fn asks_stale(query: Option<&str>) -> bool {
    let is = |text: &str, expected: &str| percent_decode(text, true).is_some_and(|text| text == expected);
    let mut pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, value)| is(name, STALE) && is(value, "true"))
}

/// The parameters of a request; all of them known and none twice.
#[derive(Debug)]
pub(crate) struct Params<'q> {
    pairs: Vec<(&'static str, Cow<'q, str>)>,
}

impl<'q> Params<'q> {
    /// Reads `query`, whose names must be among `allowed`.
    pub(crate) fn read(query: Option<&'q str>, allowed: &[&'static str]) -> Read<Params<'q>> {
        let mut pairs: Vec<(&'static str, Cow<'q, str>)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent_decode(name, true)
                .ok_or_else(|| Fault::invalid("the name of a query parameter is not UTF-8 in %-encoding"))?;
            let Some(&name) = allowed.iter().find(|known| **known == name) else {
                return Err(Fault::unknown("query parameter", &name, allowed));
            };
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Fault::new("duplicate_field", "the query parameter is given twice").inside(name));
            }
            let value = percent_decode(value, true)
                .ok_or_else(|| Fault::invalid("the value is not UTF-8 in %-encoding").inside(name))?;
            pairs.push((name, value));
        }
        Ok(Params { pairs })
    }

    /// Name and value of a parameter, in the order of the query.
    pub(super) fn pair(&self, at: usize) -> Option<(&'static str, &str)> {
        self.pairs.get(at).map(|(name, value)| (*name, &**value))
    }

    /// Takes out a parameter; `None`: it was not given, or is empty.
    pub(super) fn take(&mut self, name: &str) -> Option<Cow<'q, str>> {
        let at = self.pairs.iter().position(|(other, _)| *other == name)?;
        Some(self.pairs.remove(at).1).filter(|value| !value.is_empty())
    }

    /// The value of a parameter, if it was given and is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(other, _)| *other == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// A number between `min` and `max`, or `default`.
    pub(crate) fn integer(&self, name: &str, min: u64, max: u64, default: u64) -> Read<u64> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => integer(text, min, max).map_err(|fault| fault.inside(name)),
        }
    }
}

/// `true` or `false`.
pub(super) fn boolean(text: &str) -> Read<bool> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(Fault::new("wrong_type", format!("expected true or false, got {:?}", clip(other)))),
    }
}

/// Undoes %-encoding (RFC 3986 §2.1), in a query also `+` for a blank; `None` if that gives no UTF-8 or is
/// cut off.
pub(crate) fn percent_decode(text: &str, plus: bool) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| byte == b'%' || (plus && byte == b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                (high * 16 + low) as u8
            }
            b'+' if plus => b' ',
            other => other,
        });
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let params = Params::read(Some("a=x%2Fy+z&b=12&c=true&d="), &["a", "b", "c", "d"]).unwrap();
        assert_eq!(params.text("a"), Some("x/y z"));
        assert_eq!(params.integer("b", 1, 12, 5).unwrap(), 12);
        assert!(boolean(params.text("c").unwrap()).unwrap());
        assert_eq!(params.text("d"), None);
        assert_eq!(params.integer("e", 1, 12, 5).unwrap(), 5);
    }

    #[test]
    fn an_answer_that_may_be_behind_is_asked_for_by_name() {
        for query in ["stale=true", "a=1&st%61le=tru%65", "stale=false&stale=true"] {
            assert!(asks_stale(Some(query)), "{query}");
        }
        for query in ["stale", "stale=", "stale=false", "stale=True", "a=stale&b=true", "stale=%ff"] {
            assert!(!asks_stale(Some(query)), "{query}");
        }
        assert!(!asks_stale(None));
    }

    #[test]
    fn bad_parameters_are_refused_by_name() {
        let read = |query| Params::read(Some(query), &["a", "b"]);
        assert_eq!(read("c=1").unwrap_err().field, "c");
        assert_eq!(read("a=1&a=2").unwrap_err().code, "duplicate_field");
        assert_eq!(read("a=%f").unwrap_err().field, "a");
        assert_eq!(read("a=%ff").unwrap_err().field, "a");
        let params = read("a=-1&b=maybe").unwrap();
        assert_eq!(
            params.integer("a", 0, 9, 0).unwrap_err().reason,
            "expected a number from 0 to 9, got \"-1\""
        );
        assert_eq!(boolean(params.text("b").unwrap()).unwrap_err().code, "wrong_type");
        assert!(integer("+1", 0, 9).is_err());
    }

    #[test]
    fn noise_never_panics() {
        let mut random = sluice_calls::testing::Random(17);
        for _ in 0..20_000 {
            let mut query = b"a=x%2Fy+z&b=%c3%a9&a=".to_vec();
            random.mutate(&mut query);
            if let Ok(query) = std::str::from_utf8(&query)
                && let Ok(params) = Params::read(Some(query), &["a", "b"])
            {
                let _ = params.integer("a", 0, 9, 0);
            }
        }
    }
}
