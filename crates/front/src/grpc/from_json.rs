//! From the JSON that the HTTP API gives to the message of a call's answer, on the way through, without a
//! tree in between.

use std::borrow::Cow;
use std::fmt;

use data_encoding::BASE64;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::schema::{Field, Kind, schema};
use super::wire::{put_bytes, put_number};

/// Encodes a JSON object as a message.
///
/// # Errors
/// When the JSON is not what the message is made for: tests hold the two against each other.
pub(super) fn encode(message: usize, json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(json.len());
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    deserializer.deserialize_map(Fields { message, out: &mut out })?;
    deserializer.end()?;
    Ok(out)
}

/// The fields of an object, as those of a message.
struct Fields<'o> {
    message: usize,
    out: &'o mut Vec<u8>,
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let message = schema().message(self.message);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let known = message.fields.iter().find_map(|field| match &*key {
                key if key == field.name => Some((field, false)),
                key if !field.base64.is_empty() && key == field.base64 => Some((field, true)),
                _ => None,
            });
            let Some((field, base64)) = known else {
                debug_assert!(false, "{key} has no field in the contract");
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            map.next_value_seed(Value { field, base64, number: field.number, out: self.out })?;
        }
        Ok(())
    }
}

/// The value of a field.
struct Value<'o> {
    field: &'static Field,
    /// True when its octets are base64.
    base64: bool,
    /// The number under which it is written.
    number: u32,
    out: &'o mut Vec<u8>,
}

impl Value<'_> {
    /// The message that the value is, if it is one.
    fn message<E: Error>(&self) -> Result<usize, E> {
        match self.field.kind {
            Kind::Message(at) | Kind::Entries(at) => Ok(at),
            _ => Err(E::custom(format_args!("{} is no message", self.field.name))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value for {}", self.field.name)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        put_number(self.out, self.number, value.into());
        Ok(())
    }

    /// A number where text is wanted: the details of an error.
    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        match self.field.kind {
            Kind::Text => put_bytes(self.out, self.number, value.to_string().as_bytes()),
            _ => put_number(self.out, self.number, value),
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        if self.base64 {
            let octets = BASE64.decode(value.as_bytes()).map_err(E::custom)?;
            put_bytes(self.out, self.number, &octets);
        } else {
            put_bytes(self.out, self.number, value.as_bytes());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let Kind::Message(at) = self.field.kind
            && let Some(field) = schema().stands_for(at)
        {
            let mut inner = Vec::new();
            let value = Value { field, base64: false, number: field.number, out: &mut inner };
            value.visit_seq(list)?;
            put_bytes(self.out, self.number, &inner);
            return Ok(());
        }
        let Value { field, base64, number, out } = self;
        while list.next_element_seed(Value { field, base64, number, out })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let message = self.message()?;
        let mut inner = Vec::new();
        if matches!(self.field.kind, Kind::Entries(_)) {
            let value = &schema().message(message).fields[1];
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                inner.clear();
                put_bytes(&mut inner, 1, name.as_bytes());
                map.next_value_seed(Value { field: value, base64: false, number: 2, out: &mut inner })?;
                put_bytes(self.out, self.number, &inner);
            }
            return Ok(());
        }
        match schema().stands_for(message) {
            Some(field) => {
                Value { field, base64: false, number: field.number, out: &mut inner }.visit_map(map)?;
            }
            None => Fields { message, out: &mut inner }.visit_map(map)?,
        }
        put_bytes(self.out, self.number, &inner);
        Ok(())
    }
}
