//! The strict reader.

use serde::de::IgnoredAny;
use sluice_calls::fault::{Fault, Read};

use super::scan::plain_len;
use crate::hot::content::Text;
use crate::hot::source::Source as _;

/// The type of a value, told by its first character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A digit or minus.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`
    Null,
}

/// Reads one JSON document from front to back. There is no recursion but that of the caller's own structure,
/// so nesting is bounded.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(super) text: &'a str,
    /// Place of the next byte to read.
    pub(super) at: usize,
    /// Texts read so far that held escapes.
    pub(super) scratch: String,
}

impl<'a> Reader<'a> {
    /// A reader of `body`, which must be UTF-8.
    pub(crate) fn new(body: &'a [u8]) -> Read<Reader<'a>> {
        match std::str::from_utf8(body) {
            Ok(text) => Ok(Reader { text, at: 0, scratch: String::new() }),
            Err(error) => Err(Fault::new(
                "invalid_json",
                format!(
                    "the body is not UTF-8 from byte {} on: send other octets in base64, or raw",
                    error.valid_up_to()
                ),
            )),
        }
    }

    /// Reads the beginning of an object or array.
    #[inline]
    pub(super) fn begin(&mut self, kind: Kind, expected: &str) -> Read<()> {
        self.expect(kind, expected)?;
        self.at += 1;
        Ok(())
    }

    /// Reads the name of the next field of an object, and what stands before and after it; `None` at the
    /// object's end.
    #[inline]
    pub(super) fn next_key(&mut self, is_first: bool) -> Read<Option<Text<'a>>> {
        if self.take(b'}') {
            return Ok(None);
        }
        if !is_first && !self.take(b',') {
            return Err(self.syntax("expected ',' or '}'"));
        }
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a field's name in double quotes"));
        }
        let key = self.string()?;
        if !self.take(b':') {
            return Err(self.syntax("expected ':' after the field's name"));
        }
        Ok(Some(key))
    }

    /// Reads what stands before the next item of an array; false at the array's end.
    #[inline]
    pub(super) fn next_item(&mut self, is_first: bool) -> Read<bool> {
        if self.take(b']') {
            return Ok(false);
        }
        if !is_first && !self.take(b',') {
            return Err(self.syntax("expected ',' or ']'"));
        }
        Ok(true)
    }

    /// Reads an integer of any size, as text.
    pub(super) fn integer_token(&mut self) -> Read<&'a str> {
        self.expect(Kind::Number, "an integer")?;
        let start = self.at;
        let token = self.number_token()?;
        if token.contains(['.', 'e', 'E']) {
            self.at = start;
            return Err(self.wrong_type("an integer without fraction or exponent"));
        }
        Ok(token)
    }

    /// Reads an object with all that is in it, as the text that it is written in.
    pub(super) fn object_token(&mut self) -> Read<&'a str> {
        self.expect(Kind::Object, "an object")?;
        let rest = &self.text[self.at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                let token = &rest[..values.byte_offset()];
                self.at += token.len();
                Ok(token)
            }
            Some(Err(error)) => Err(self.syntax(&format!("in the object that begins here: {error}"))),
            None => Err(self.syntax("expected an object")),
        }
    }

    /// The kind of the value that comes next.
    pub(crate) fn kind(&mut self) -> Read<Kind> {
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Boolean),
            Some(b'n') => Ok(Kind::Null),
            None if self.text.trim_ascii().is_empty() => {
                Err(Fault::new("invalid_json", "the body is empty: expected JSON"))
            }
            None => Err(self.syntax("the body ends in the middle")),
            Some(_) => Err(self.syntax("expected a value")),
        }
    }

    #[inline]
    pub(super) fn expect(&mut self, kind: Kind, expected: &str) -> Read<()> {
        if self.kind()? == kind { Ok(()) } else { Err(self.wrong_type(expected)) }
    }

    /// The next byte that is not blank.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn word(&mut self, word: &str) -> Read<()> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.syntax("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// A number as RFC 8259 §6 has it, as text.
    pub(super) fn number_token(&mut self) -> Read<&'a str> {
        let start = self.at;
        self.at += usize::from(self.text.as_bytes().get(self.at) == Some(&b'-'));
        let whole = self.digits();
        let leading_zero = whole > 1 && self.text.as_bytes()[self.at - whole] == b'0';
        let mut good = whole > 0 && !leading_zero;
        if self.text.as_bytes().get(self.at) == Some(&b'.') {
            self.at += 1;
            good &= self.digits() > 0;
        }
        if matches!(self.text.as_bytes().get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.as_bytes().get(self.at), Some(b'+' | b'-')));
            good &= self.digits() > 0;
        }
        if good { Ok(&self.text[start..self.at]) } else { Err(self.syntax("this is not a number")) }
    }

    fn digits(&mut self) -> usize {
        let count = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// Reads the rest of a string, after its opening quote, into the scratch.
    pub(super) fn unescape(&mut self) -> Read<()> {
        loop {
            let plain = plain_len(&self.text.as_bytes()[self.at..]);
            self.scratch.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    let unescaped = self.escape()?;
                    self.scratch.push(unescaped);
                }
                Some(_) => return Err(self.syntax("a control character in a string: write it as \\u00XX")),
                None => return Err(self.syntax("the body ends in the middle of a string")),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let byte = self.text.as_bytes().get(self.at).copied();
        let unescaped = match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => {
                return Err(
                    self.syntax("unknown escape: use one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")
                );
            }
        };
        self.at += 1;
        Ok(unescaped)
    }

    /// `uXXXX`, and a second one behind it when the first is the high half of a pair.
    fn unicode_escape(&mut self) -> Read<char> {
        self.at += 1;
        let first = self.hex4()?;
        let code = match first {
            0xd800..0xdc00 if self.text[self.at..].starts_with("\\u") => {
                self.at += 2;
                let second = self.hex4()?;
                match second {
                    0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => first,
                }
            }
            _ => first,
        };
        char::from_u32(code).ok_or_else(|| self.syntax("half of a surrogate pair in a string"))
    }

    fn hex4(&mut self) -> Read<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let good = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let value = self.text.get(self.at..self.at + 4).filter(|_| good);
        match value.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                self.at += 4;
                Ok(value)
            }
            None => Err(self.syntax("expected four hexadecimal digits after \\u")),
        }
    }

    #[cold]
    pub(super) fn syntax(&self, reason: &str) -> Box<Fault> {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Fault::new("invalid_json", format!("line {line}, column {column}: {reason}"))
    }
}
