//! Reads JSON as strictly as the HTTP API does: a name that an object has twice is refused instead of losing
//! the first value, and so is null, which stands for no value of a field.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value};

/// Parses one JSON value.
///
/// # Errors
/// The first mistake, with its place such as `headers.a` or `chain[0].priority`.
pub(in crate::cli) fn value(text: &[u8]) -> serde_json::Result<Value> {
    let mut reader = Deserializer::from_slice(text);
    let value = Place(String::new()).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The place of a value; empty: the whole text.
struct Place(String);

impl Place {
    fn of_field(&self, name: &str) -> Place {
        Place(if self.0.is_empty() { name.to_owned() } else { format!("{}.{name}", self.0) })
    }

    fn of_entry(&self, at: usize) -> Place {
        Place(format!("{}[{at}]", self.0))
    }
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        let place = if self.0.is_empty() { "it" } else { &self.0 };
        Err(E::custom(format!("{place} is null: leave the field out instead")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element_seed(self.of_entry(list.len()))? {
            list.push(entry);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let place = self.of_field(&name);
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("{} is given twice", place.0)));
            }
            object.insert(name, entries.next_value_seed(place)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_allows_is_read_as_it_stands() {
        let text = r#"{"a":[1,-1,1.5,"x\n",true,{}],"b":{"a":""}}"#;
        assert_eq!(value(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_name_given_twice_and_null_are_refused_with_their_places() {
        for (text, expected) in [
            (r#"{"a":1,"a":1}"#, "a is given twice"),
            (r#"{"headers":{"x":"1","x":"2"}}"#, "headers.x is given twice"),
            (r#"[{"a":[1,{"b":1,"b":2}]}]"#, "[0].a[1].b is given twice"),
            (r#"{"chain":[{"priority":null}]}"#, "chain[0].priority is null: leave the field out instead"),
            ("null", "it is null"),
            ("1 2", "trailing characters"),
        ] {
            let told = value(text.as_bytes()).unwrap_err().to_string();
            assert!(told.starts_with(expected), "{told}");
        }
    }
}
