//! Parameters as a source of typed requests.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use sluice_calls::fault::{Fault, Read};
use sluice_calls::unary::is_condition;

use super::query::{Params, STALE, boolean};
use crate::json::forward::{deserialize_as_its_value, deserialize_newtype_as_its_value};
use crate::json::number::integer;

/// Reads a request from the parameters behind the `?`; one without a value counts as left out. `takes_stale`:
/// they may say that the answer may be behind, which is no part of the request.
///
/// # Errors
/// The first fault, with the name of its parameter.
pub(crate) fn from_query<T: DeserializeOwned>(query: Option<&str>, takes_stale: bool) -> Read<T> {
    T::deserialize(Query { query, takes_stale })
}

struct Query<'q> {
    query: Option<&'q str>,
    takes_stale: bool,
}

impl<'de> Deserializer<'de> for Query<'_> {
    type Error = Box<Fault>;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        let also: &[&str] = if self.takes_stale { &[STALE] } else { &[] };
        let mut params = Params::read(self.query, &[fields, also].concat())?;
        if self.takes_stale
            && let Some(stale) = params.take(STALE)
        {
            boolean(&stale).map_err(|fault| fault.inside(STALE))?;
        }
        visitor.visit_map(Fields { params: &params, at: 0 })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Read<V::Value> {
        Err(Fault::invalid("parameters are names with values"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The parameters that have a value, in turn.
struct Fields<'p, 'q> {
    params: &'p Params<'q>,
    at: usize,
}

impl<'de> MapAccess<'de> for Fields<'_, '_> {
    type Error = Box<Fault>;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        while let Some((name, value)) = self.params.pair(self.at) {
            self.at += 1;
            if !value.is_empty() || is_condition(name) {
                return seed.deserialize(StrDeserializer::new(name)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let (name, text) = self.params.pair(self.at - 1).unwrap_or_default();
        seed.deserialize(Value(text)).map_err(|fault| fault.inside(name))
    }
}

/// The value of a parameter.
struct Value<'q>(&'q str);

impl Value<'_> {
    /// An integer of at most `max`.
    fn integer<'de, V: Visitor<'de>>(self, max: u64, visitor: V) -> Read<V::Value> {
        visitor.visit_u64(integer(self.0, 0, max)?)
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Box<Fault>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_str(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        visitor.visit_bool(boolean(self.0)?)
    }

    deserialize_as_its_value!();
    deserialize_newtype_as_its_value!();

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.integer(u64::MAX, visitor)
    }

    /// An integer whose range the visitor knows: out of the range of `u64` it gets the text.
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match integer(self.0, 0, u64::MAX) {
            Ok(value) => visitor.visit_u64(value),
            Err(_) => visitor.visit_str(&format!("{:?}", sluice_calls::fault::clip(self.0))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        visitor.visit_enum(StrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
