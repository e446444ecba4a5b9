//! The reader of JSON as the source of a request.

use serde::de::DeserializeOwned;
use sluice_calls::fault::{Fault, Read, clip};
use sluice_calls::transactions::{Kept, Protocol};

use super::de::read_value;
use super::reader::{Kind, Reader};
use super::scan::plain_len;
use crate::hot::content::{Content, Text};
use crate::hot::source::{Form, Source};

impl<'a> Source<'a> for Reader<'a> {
    fn object(
        &mut self,
        allowed: &'static [&'static str],
        mut field: impl FnMut(&mut Self, &'static str) -> Read<()>,
    ) -> Read<()> {
        debug_assert!(allowed.len() <= 32, "seen has 32 bits");
        let mut seen = 0u32;
        self.entries(|reader, key| {
            let name = key.get(&reader.scratch);
            let Some(at) = allowed.iter().position(|known| *known == name) else {
                return Err(Fault::unknown("field", name, allowed));
            };
            let name = allowed[at];
            if seen & (1 << at) != 0 {
                return Err(Fault::new("duplicate_field", "the field is given twice").inside(name));
            }
            seen |= 1 << at;
            field(reader, name).map_err(|fault| fault.inside(name))
        })
    }

    fn entries(&mut self, mut entry: impl FnMut(&mut Self, Text<'a>) -> Read<()>) -> Read<()> {
        self.begin(Kind::Object, "an object")?;
        let mut is_first = true;
        while let Some(key) = self.next_key(is_first)? {
            is_first = false;
            entry(self, key)?;
        }
        Ok(())
    }

    fn array(&mut self, mut item: impl FnMut(&mut Self, usize) -> Read<()>) -> Read<()> {
        self.begin(Kind::Array, "an array")?;
        let mut index = 0;
        while self.next_item(index == 0)? {
            item(self, index).map_err(|fault| fault.at(index))?;
            index += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Read<Text<'a>> {
        self.expect(Kind::String, "a string")?;
        let start = self.at + 1;
        let plain = plain_len(&self.text.as_bytes()[start..]);
        if self.text.as_bytes().get(start + plain) == Some(&b'"') {
            self.at = start + plain + 1;
            return Ok(Text::Plain(&self.text[start..start + plain]));
        }
        self.at = start;
        let from = self.scratch.len();
        self.unescape()?;
        Ok(Text::Unescaped(from, self.scratch.len()))
    }

    fn octets(&mut self) -> Read<Content<'a>> {
        self.string().map(Content::Base64)
    }

    fn integer(&mut self, min: u64, max: u64) -> Read<u64> {
        let token = self.integer_token()?;
        match token.parse::<u64>() {
            Ok(value) if (min..=max).contains(&value) => Ok(value),
            _ => Err(Fault::invalid(format!("expected a number from {min} to {max}, got {}", clip(token)))),
        }
    }

    fn boolean(&mut self) -> Read<bool> {
        self.expect(Kind::Boolean, "true or false")?;
        let value = self.text[self.at..].starts_with('t');
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    fn value<T: DeserializeOwned>(&mut self) -> Read<T> {
        read_value(self)
    }

    fn form(&mut self) -> Read<Form> {
        Ok(match self.kind()? {
            Kind::String => Form::Text,
            Kind::Object => Form::Object,
            Kind::Array | Kind::Number | Kind::Boolean | Kind::Null => Form::Other,
        })
    }

    #[cold]
    fn wrong_type(&mut self, expected: &str) -> Box<Fault> {
        let got = match self.kind() {
            Err(fault) => return fault,
            Ok(Kind::Object) => "an object".to_owned(),
            Ok(Kind::Array) => "an array".to_owned(),
            Ok(Kind::Null) => match self.word("null") {
                Ok(()) => "null (leave the field out instead)".to_owned(),
                Err(fault) => return fault,
            },
            Ok(Kind::Boolean) => match self.boolean() {
                Ok(_) => "a boolean".to_owned(),
                Err(fault) => return fault,
            },
            Ok(Kind::String) => match self.string() {
                Ok(text) => format!("the string {:?}", clip(text.get(&self.scratch))),
                Err(fault) => return fault,
            },
            Ok(Kind::Number) => match self.number_token() {
                Ok(token) => format!("the number {}", clip(token)),
                Err(fault) => return fault,
            },
        };
        Fault::new("wrong_type", format!("expected {expected}, got {got}"))
    }

    fn is_blank(&mut self) -> bool {
        self.peek().is_none()
    }

    fn whole(&self) -> Kept<'a> {
        Kept { protocol: Protocol::Json, bytes: self.text.as_bytes() }
    }

    type Again<'r> = Reader<'r>;

    fn again<'r>(kept: Kept<'r>) -> Read<Reader<'r>> {
        Reader::new(kept.expect(Protocol::Json)?)
    }

    fn scratch(&self) -> &str {
        &self.scratch
    }

    fn finish(mut self) -> Read<String> {
        match self.peek() {
            None => Ok(self.scratch),
            Some(_) => Err(self.syntax("expected the end of the body")),
        }
    }
}
