//! The fields of a message as a source of typed requests: derived decoders ask, guided by the descriptors of
//! the contract.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use sluice_calls::fault::{Fault, Read};

use super::rows::{Rows, read_rows, text};
use super::schema::{Field, Kind, MessageType, schema};
use super::wire::Raw;
use crate::json::forward::{deserialize_as_its_value, deserialize_newtype_as_its_value};

/// Reads a request from the fields of its message.
///
/// # Errors
/// The first fault, with its place.
pub(super) fn from_rows<T: DeserializeOwned>(message: &'static MessageType, rows: &Rows<'_>) -> Read<T> {
    T::deserialize(Message { message, rows })
}

/// Reads a value from a field, by its rows: one for each time that it came.
///
/// # Errors
/// The first fault, with its place inside the field.
pub(super) fn from_field<T: DeserializeOwned>(field: &'static Field, rows: &[(usize, Raw<'_>)]) -> Read<T> {
    T::deserialize(Value { field, rows, is_item: false })
}

/// A message as an object.
struct Message<'r, 'b> {
    message: &'static MessageType,
    rows: &'r [(usize, Raw<'b>)],
}

impl<'de> Deserializer<'de> for Message<'_, '_> {
    type Error = Box<Fault>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_map(Fields { message: self.message, rows: self.rows, field: &[] })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The fields of a message, in turn.
struct Fields<'r, 'b> {
    message: &'static MessageType,
    /// The rows that are not read yet.
    rows: &'r [(usize, Raw<'b>)],
    /// The field whose name was told last, each time that it came.
    field: &'r [(usize, Raw<'b>)],
}

impl<'de> MapAccess<'de> for Fields<'_, '_> {
    type Error = Box<Fault>;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        let Some((at, _)) = self.rows.first() else { return Ok(None) };
        let same = self.rows.iter().take_while(|(other, _)| other == at).count();
        (self.field, self.rows) = self.rows.split_at(same);
        seed.deserialize(StrDeserializer::new(self.message.fields[*at].json_name())).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let Some((at, _)) = self.field.first() else { return Err(Fault::invalid("a field without a name")) };
        let field = &self.message.fields[*at];
        seed.deserialize(Value { field, rows: self.field, is_item: false })
            .map_err(|fault| fault.inside(&field.name))
    }
}

/// The value of a field, or an item of its list.
struct Value<'r, 'b> {
    field: &'static Field,
    /// Each time that it came; of an item, that one.
    rows: &'r [(usize, Raw<'b>)],
    is_item: bool,
}

impl<'b> Value<'_, 'b> {
    /// The last of several: that counts (protobuf, "Last One Wins").
    fn last(&self) -> Raw<'b> {
        self.rows.last().map_or(Raw::Bytes(&[]), |(_, raw)| *raw)
    }

    fn integer<'de, V: Visitor<'de>>(self, max: u64, visitor: V) -> Read<V::Value> {
        match self.last() {
            Raw::Number(number) if number <= max => visitor.visit_u64(number),
            Raw::Number(number) => {
                Err(Fault::invalid(format!("expected a number from 0 to {max}, got {number}")))
            }
            Raw::Bytes(_) => self.deserialize_any(visitor),
        }
    }

    /// A message: of several pieces they count together.
    fn message<'de, V: Visitor<'de>>(self, at: usize, visitor: V) -> Read<V::Value> {
        let bytes = |raw: &Raw<'b>| if let Raw::Bytes(bytes) = raw { *bytes } else { &[] };
        let joined: Vec<u8>;
        let bytes = match self.rows {
            [(_, one)] => bytes(one),
            many => {
                joined = many.iter().map(|(_, raw)| bytes(raw)).collect::<Vec<_>>().concat();
                &joined
            }
        };
        let message = schema().message(at);
        let rows = read_rows(message, bytes)?;
        match schema().stands_for(at) {
            Some(field) => Value { field, rows: &rows, is_item: false }.deserialize_any(visitor),
            None => Message { message, rows: &rows }.deserialize_any(visitor),
        }
    }
}

impl<'de> Deserializer<'de> for Value<'_, '_> {
    type Error = Box<Fault>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.field.is_list && !self.is_item {
            return visitor.visit_seq(Items { field: self.field, rows: self.rows, index: 0 });
        }
        match (self.field.kind, self.last()) {
            (Kind::Entries(entry), _) => visitor.visit_map(Entries { entry, rows: self.rows, value: None }),
            (Kind::Message(at), _) => self.message(at, visitor),
            (Kind::Boolean, Raw::Number(number)) => visitor.visit_bool(number != 0),
            (_, Raw::Number(number)) => visitor.visit_u64(number),
            (Kind::Octets, Raw::Bytes(bytes)) => visitor.visit_string(data_encoding::BASE64.encode(bytes)),
            (_, Raw::Bytes(bytes)) => visitor.visit_str(text(bytes)?),
        }
    }

    deserialize_as_its_value!();
    deserialize_newtype_as_its_value!();

    /// Octets as they are, where their reader takes them so.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match (self.field.kind, self.last()) {
            (Kind::Octets, Raw::Bytes(bytes)) => visitor.visit_bytes(bytes),
            _ => self.deserialize_any(visitor),
        }
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        match self.last() {
            Raw::Bytes(bytes) => visitor.visit_enum(StrDeserializer::new(text(bytes)?)),
            Raw::Number(_) => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u64 u128 f32 f64 char str string byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The items of a list.
struct Items<'r, 'b> {
    field: &'static Field,
    rows: &'r [(usize, Raw<'b>)],
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Box<Fault>;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        let Some((first, rest)) = self.rows.split_first() else { return Ok(None) };
        self.rows = rest;
        let item = Value { field: self.field, rows: std::slice::from_ref(first), is_item: true };
        let item = seed.deserialize(item).map_err(|fault| fault.at(self.index))?;
        self.index += 1;
        Ok(Some(item))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rows.len())
    }
}

/// Names with values: an object.
struct Entries<'r, 'b> {
    /// The message with name and value.
    entry: usize,
    rows: &'r [(usize, Raw<'b>)],
    /// The name that was told last, and its value.
    value: Option<(&'b str, Raw<'b>)>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Box<Fault>;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        let Some(((_, row), rest)) = self.rows.split_first() else { return Ok(None) };
        self.rows = rest;
        let message = schema().message(self.entry);
        let rows = read_rows(message, if let Raw::Bytes(bytes) = row { bytes } else { &[] })?;
        let of = |field| rows.iter().rev().find(|(at, _)| *at == field).map(|(_, raw)| *raw);
        let name = match of(0) {
            Some(Raw::Bytes(bytes)) => text(bytes)?,
            _ => "",
        };
        let is_text = message.fields[1].kind == Kind::Text;
        let absent = if is_text { Raw::Bytes(&[]) } else { Raw::Number(0) };
        self.value = Some((name, of(1).unwrap_or(absent)));
        seed.deserialize(StrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let Some((name, raw)) = self.value else { return Err(Fault::invalid("a value without a name")) };
        let field = &schema().message(self.entry).fields[1];
        seed.deserialize(Value { field, rows: &[(1, raw)], is_item: true })
            .map_err(|fault| fault.inside(name))
    }
}
