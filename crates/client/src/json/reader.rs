//! The reader.

use std::borrow::Cow;

use super::fault::{Fault, Read};
use super::scan::plain_len;

/// Digits that always fit into 64 bits.
const DIGITS_FIT: u32 = 19;
/// Deepest nesting of a value that is passed over.
const DEPTH_MAX: u32 = 128;

/// Reads one JSON document (RFC 8259) from front to back.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `body`, which must be UTF-8.
    pub(crate) fn new(body: &'a [u8]) -> Read<Reader<'a>> {
        match std::str::from_utf8(body) {
            Ok(text) => Ok(Reader { text, at: 0 }),
            Err(error) => Err(Fault::new("it is not UTF-8", error.valid_up_to())),
        }
    }

    /// Passes over `literal` if that is what comes, to the byte.
    #[inline]
    pub(crate) fn after<const N: usize>(&mut self, literal: &[u8; N]) -> bool {
        // As arrays, whose comparison needs no call.
        let found = self.text.as_bytes()[self.at..].first_chunk() == Some(literal);
        self.at += if found { N } else { 0 };
        found
    }

    /// Tries another way first: where it gives up, nothing has been read.
    #[inline]
    pub(crate) fn attempt<T>(&mut self, way: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.at;
        let read = way(self);
        if read.is_none() {
            self.at = start;
        }
        read
    }

    /// Ends the document: nothing but blanks may follow.
    pub(crate) fn finish(mut self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("expected its end")),
        }
    }

    /// Reads an object; `field` reads, or skips, the value of the field that it is given.
    pub(crate) fn object(&mut self, mut field: impl FnMut(&mut Self, &str) -> Read<()>) -> Read<()> {
        self.entries(|reader, name| field(reader, &name).map_err(|fault| fault.inside(&name)))
    }

    /// Reads an object whose names matter as they are.
    pub(crate) fn entries(&mut self, mut entry: impl FnMut(&mut Self, Cow<'a, str>) -> Read<()>) -> Read<()> {
        self.members(|reader| {
            let name = reader.string()?;
            reader.colon()?;
            entry(reader, name)
        })
    }

    /// Reads an object; `member` reads a name, the colon, and a value.
    #[inline]
    fn members(&mut self, mut member: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.open(b'{', "an object")?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            member(self)?;
            if self.take(b',') {
                continue;
            }
            return if self.take(b'}') { Ok(()) } else { Err(self.fault("expected ',' or '}'")) };
        }
    }

    #[inline]
    fn colon(&mut self) -> Read<()> {
        if self.take(b':') { Ok(()) } else { Err(self.fault("expected ':' after a field's name")) }
    }

    /// Reads an array; `item` reads each of its items.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.open(b'[', "an array")?;
        if self.take(b']') {
            return Ok(());
        }
        for index in 0.. {
            item(self).map_err(|fault| fault.at(index))?;
            if self.take(b',') {
                continue;
            }
            return if self.take(b']') { Ok(()) } else { Err(self.fault("expected ',' or ']'")) };
        }
        Ok(())
    }

    /// Reads a text: a piece of the document unless it holds escapes.
    pub(crate) fn string(&mut self) -> Read<Cow<'a, str>> {
        self.open(b'"', "a string")?;
        let start = self.at;
        let plain = plain_len(&self.text.as_bytes()[start..]);
        self.at = start + plain;
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..start + plain]));
        }
        self.unescape(start).map(Cow::Owned)
    }

    /// Reads an integer that fits.
    pub(crate) fn integer<T: TryFrom<u64>>(&mut self) -> Read<T> {
        let start = self.start_of("a whole number that is not negative", u8::is_ascii_digit)?;
        let (mut value, mut digits) = (0u64, 0);
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            // Wraps only behind the digits that always fit; then it is read again.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            digits += 1;
            self.at += 1;
        }
        let leading_zero = digits > 1 && self.text.as_bytes()[start] == b'0';
        if leading_zero || matches!(self.byte(), Some(b'.' | b'e' | b'E')) {
            return Err(self.fault("expected a whole number"));
        }
        let exact = if digits <= DIGITS_FIT { Some(value) } else { self.text[start..self.at].parse().ok() };
        exact.and_then(|value| T::try_from(value).ok()).ok_or_else(|| self.fault("this number is too large"))
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&mut self) -> Read<bool> {
        self.start_of("true or false", |byte| matches!(byte, b't' | b'f'))?;
        let value = self.byte() == Some(b't');
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// Reads `null`, if that is what comes.
    pub(crate) fn null(&mut self) -> Read<bool> {
        let found = self.peek() == Some(b'n');
        if found {
            self.word("null")?;
        }
        Ok(found)
    }

    /// Passes over a value of any kind. Gives its text.
    pub(crate) fn skip(&mut self) -> Read<&'a str> {
        self.peek();
        let start = self.at;
        self.pass_over(DEPTH_MAX)?;
        Ok(&self.text[start..self.at])
    }

    /// Reads the value of a field that may be there once.
    #[inline]
    pub(crate) fn field<T>(
        &mut self,
        slot: &mut Option<T>,
        read: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<()> {
        if slot.is_some() {
            return Err(self.fault("the field is there twice"));
        }
        *slot = Some(read(self)?);
        Ok(())
    }

    /// The value of a field that must be there.
    #[inline]
    pub(crate) fn required<T>(&self, slot: Option<T>, name: &str) -> Read<T> {
        slot.ok_or_else(|| self.fault("this field is missing").inside(name))
    }

    /// Reads a value that may be `null`.
    #[inline]
    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.null()? { Ok(None) } else { read(self).map(Some) }
    }

    fn pass_over(&mut self, depth: u32) -> Read<()> {
        if depth == 0 {
            return Err(self.fault("values are nested too deeply"));
        }
        match self.peek() {
            Some(b'{') => self.members(|reader| {
                reader.pass_over_string()?;
                reader.colon()?;
                reader.pass_over(depth - 1)
            }),
            Some(b'[') => self.array(|reader| reader.pass_over(depth - 1)),
            Some(b'"') => self.pass_over_string(),
            Some(b't' | b'f') => self.boolean().map(drop),
            Some(b'n') => self.null().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.fault("expected a value")),
        }
    }

    /// A string as RFC 8259 §7 has it; half of a surrogate pair does no harm where nobody reads it.
    fn pass_over_string(&mut self) -> Read<()> {
        self.open(b'"', "a string")?;
        loop {
            self.at += plain_len(&self.text.as_bytes()[self.at..]);
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if self.text.as_bytes().get(self.at + 1) == Some(&b'u') => {
                    self.at += 2;
                    self.hex4()?;
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                other => return Err(self.broken_string(other)),
            }
        }
    }

    #[cold]
    fn broken_string(&self, found: Option<u8>) -> Box<Fault> {
        let reason = if found.is_some() {
            "a control character in a string"
        } else {
            "it ends in the middle of a string"
        };
        self.fault(reason)
    }

    /// A number as RFC 8259 §6 has it.
    fn number(&mut self) -> Read<()> {
        self.at += usize::from(self.byte() == Some(b'-'));
        let first = self.at;
        let whole = self.digits();
        let mut good = whole == 1 || (whole > 1 && self.text.as_bytes()[first] != b'0');
        if self.byte() == Some(b'.') {
            self.at += 1;
            good &= self.digits() > 0;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            good &= self.digits() > 0;
        }
        if good { Ok(()) } else { Err(self.fault("this is not a number")) }
    }

    fn digits(&mut self) -> usize {
        let count = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// Reads the rest of a string in which something other than its end stands at `self.at`; `start`: its
    /// beginning.
    #[cold]
    fn unescape(&mut self, start: usize) -> Read<String> {
        let mut text = String::with_capacity((self.at - start) * 2 + 16);
        text.push_str(&self.text[start..self.at]);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                other => return Err(self.broken_string(other)),
            }
            let plain = plain_len(&self.text.as_bytes()[self.at..]);
            text.push_str(&self.text[self.at..self.at + plain]);
            self.at += plain;
        }
    }

    fn escape(&mut self) -> Read<char> {
        let unescaped = match self.byte() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.fault("unknown escape in a string")),
        };
        self.at += 1;
        Ok(unescaped)
    }

    /// `uXXXX`, and a second one behind it when the first is the high half of a pair.
    fn unicode_escape(&mut self) -> Read<char> {
        self.at += 1;
        let first = self.hex4()?;
        let code = match first {
            0xd800..0xdc00 if self.text.as_bytes()[self.at..].starts_with(b"\\u") => {
                self.at += 2;
                match self.hex4()? {
                    second @ 0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => first,
                }
            }
            _ => first,
        };
        char::from_u32(code).ok_or_else(|| self.fault("half of a surrogate pair in a string"))
    }

    fn hex4(&mut self) -> Read<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let mut value = 0;
        for digit in digits {
            let digit = char::from(*digit).to_digit(16);
            value = value * 16 + digit.ok_or_else(|| self.fault("expected four hexadecimal digits"))?;
        }
        if digits.len() < 4 {
            return Err(self.fault("expected four hexadecimal digits"));
        }
        self.at += 4;
        Ok(value)
    }

    fn word(&mut self, word: &str) -> Read<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fault("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Passes over the byte that opens a value.
    #[inline]
    fn open(&mut self, byte: u8, expected: &str) -> Read<()> {
        self.start_of(expected, |found| *found == byte)?;
        self.at += 1;
        Ok(())
    }

    /// Where the value begins, if its first byte is such.
    #[inline]
    fn start_of(&mut self, expected: &str, is_such: impl Fn(&u8) -> bool) -> Read<usize> {
        match self.peek() {
            Some(byte) if is_such(&byte) => Ok(self.at),
            found => Err(self.wrong(expected, found)),
        }
    }

    #[cold]
    fn wrong(&self, expected: &str, found: Option<u8>) -> Box<Fault> {
        let found = match found {
            None => "its end",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(_) => "no value",
        };
        self.fault(&format!("expected {expected}, found {found}"))
    }

    /// The next byte that is not blank.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// A fault at this place.
    #[cold]
    pub(crate) fn fault(&self, reason: &str) -> Box<Fault> {
        Fault::new(reason, self.at)
    }
}
