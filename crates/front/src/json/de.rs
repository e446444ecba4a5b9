//! The strict reader as a source of typed requests: derived decoders ask, and faults come with their place.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use sluice_calls::fault::{Fault, Read};
use sluice_calls::payload::JSON_OBJECT;

use super::forward::deserialize_as_its_value;
use super::reader::{Kind, Reader};
use crate::hot::content::Text;
use crate::hot::source::Source as _;

/// Reads a request from a body that is JSON.
///
/// # Errors
/// The first fault, with its place.
pub(crate) fn from_body<T: DeserializeOwned>(body: &[u8]) -> Read<T> {
    let mut reader = Reader::new(body)?;
    let value = T::deserialize(Value(&mut reader))?;
    reader.finish()?;
    Ok(value)
}

/// Reads a request from a body that may be left out: a blank one stands for an object without fields.
///
/// # Errors
/// The first fault, with its place.
pub(crate) fn from_optional_body<T: DeserializeOwned>(body: &[u8]) -> Read<T> {
    let is_blank = Reader::new(body)?.is_blank();
    from_body(if is_blank { b"{}" } else { body })
}

/// Reads the value that comes next.
///
/// # Errors
/// The first fault, with its place.
pub(crate) fn read_value<T: DeserializeOwned>(reader: &mut Reader<'_>) -> Read<T> {
    T::deserialize(Value(reader))
}

/// The value that comes next.
struct Value<'r, 'a>(&'r mut Reader<'a>);

impl<'a> Value<'_, 'a> {
    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        let text = self.0.string()?;
        visitor.visit_str(text.get(self.0.scratch()))
    }

    /// An integer of at most `max`.
    fn integer<'de, V: Visitor<'de>>(self, max: u64, visitor: V) -> Read<V::Value> {
        visitor.visit_u64(self.0.integer(0, max)?)
    }
}

impl<'de> Deserializer<'de> for Value<'_, '_> {
    type Error = Box<Fault>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.0.kind()? {
            Kind::Object => self.deserialize_map(visitor),
            Kind::Array => self.deserialize_seq(visitor),
            Kind::String => self.text(visitor),
            Kind::Boolean => self.deserialize_bool(visitor),
            Kind::Number => self.deserialize_i128(visitor),
            Kind::Null => Err(self.0.wrong_type("a value")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_bool(self.0.boolean()?)
    }

    deserialize_as_its_value!();

    /// A value that stands for itself, or an object that is taken as text.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Read<V::Value> {
        match name {
            JSON_OBJECT => visitor.visit_str(self.0.object_token()?),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.integer(u64::MAX, visitor)
    }

    /// An integer whose range the visitor knows: out of the range of `u64` it gets the text.
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        let token = self.0.integer_token()?;
        match token.parse() {
            Ok(value) => visitor.visit_u64(value),
            Err(_) => visitor.visit_str(&sluice_calls::fault::clip(token)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.text(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.0.begin(Kind::Array, "an array")?;
        visitor.visit_seq(Items { reader: self.0, index: 0, ended: false })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.0.begin(Kind::Object, "an object")?;
        visitor.visit_map(Fields { reader: self.0, key: None, is_first: true })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        let text = self.0.string()?;
        visitor.visit_enum(StrDeserializer::new(text.get(self.0.scratch())))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The fields of an object.
struct Fields<'r, 'a> {
    reader: &'r mut Reader<'a>,
    key: Option<Text<'a>>,
    is_first: bool,
}

impl<'de> MapAccess<'de> for Fields<'_, '_> {
    type Error = Box<Fault>;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        let is_first = std::mem::take(&mut self.is_first);
        self.key = self.reader.next_key(is_first)?;
        let Some(key) = self.key else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(key.get(self.reader.scratch()))).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let value = seed.deserialize(Value(self.reader));
        let key = self.key.map(|key| key.get(self.reader.scratch())).unwrap_or_default();
        value.map_err(|fault| fault.inside(key))
    }
}

/// The items of an array.
struct Items<'r, 'a> {
    reader: &'r mut Reader<'a>,
    index: usize,
    ended: bool,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Box<Fault>;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        self.ended = self.ended || !self.reader.next_item(self.index == 0)?;
        if self.ended {
            return Ok(None);
        }
        let item = seed.deserialize(Value(self.reader)).map_err(|fault| fault.at(self.index))?;
        self.index += 1;
        Ok(Some(item))
    }
}
