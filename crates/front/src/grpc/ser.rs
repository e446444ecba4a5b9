//! The message of a typed answer, guided by the descriptors of the contract.

use data_encoding::BASE64;
use serde::ser::{
    Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer,
};
use serde_json::Error;

use super::schema::{Field, Kind, MessageType, schema};
use super::wire::{put_bytes, put_number};

/// Encodes an answer as a message.
///
/// # Errors
/// When the answer has a field that the message has not: tests hold the two against each other.
pub(super) fn encode(message: usize, answer: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    answer.serialize(Object { message: schema().message(message), out: &mut out })?;
    Ok(out)
}

/// A writer of the fields of a message.
struct Object<'o> {
    message: &'static MessageType,
    out: &'o mut Vec<u8>,
}

impl Object<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        let named = |field: &&Field| field.name == name || (!field.base64.is_empty() && field.base64 == name);
        let field = self.message.fields.iter().find(named);
        let field = field.ok_or_else(|| Error::custom(format!("{name} has no field in the contract")))?;
        let base64 = field.name != name;
        value.serialize(Value { field, base64, number: field.number, out: self.out })
    }
}

/// A writer of the value of a field.
struct Value<'o> {
    field: &'static Field,
    /// True if octets are written in base64.
    base64: bool,
    /// The number under which it is written.
    number: u32,
    out: &'o mut Vec<u8>,
}

/// A message or list that is being written, and what it becomes.
struct Nested<'o> {
    field: &'static Field,
    number: u32,
    out: &'o mut Vec<u8>,
    inner: Vec<u8>,
    /// The name of the entry whose value comes next.
    name: String,
}

fn unexpected<T>(what: &str) -> Result<T, Error> {
    Err(Error::custom(format!("no message has {what}")))
}

macro_rules! refuse {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, _: $type) -> Result<(), Error> {
            unexpected(stringify!($type))
        })*
    };
}

/// The serializer methods that neither an object nor a value supports.
macro_rules! refuse_others {
    () => {
        refuse! { serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, }
        refuse! { serialize_f32: f32, serialize_f64: f64, serialize_char: char, }

        fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
            unexpected("a unit")
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<(), Error> {
            unexpected("a variant with a value")
        }

        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
            unexpected("a tuple")
        }

        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, Error> {
            unexpected("a tuple")
        }

        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, Error> {
            unexpected("a tuple")
        }

        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, Error> {
            unexpected("a variant with fields")
        }
    };
}

impl<'o> Serializer for Object<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Object<'o>;
    type SerializeStructVariant = Impossible<(), Error>;

    refuse_others!();

    fn is_human_readable(&self) -> bool {
        false
    }

    refuse! { serialize_bool: bool, serialize_str: &str, serialize_bytes: &[u8], }
    refuse! { serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Error> {
        unexpected("a word alone")
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        unexpected("a list alone")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        unexpected("entries alone")
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Object<'o>, Error> {
        Ok(self)
    }
}

impl SerializeStruct for Object<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl<'o> Value<'o> {
    fn nested(self) -> Nested<'o> {
        let Value { field, number, out, .. } = self;
        Nested { field, number, out, inner: Vec::new(), name: String::new() }
    }
}

impl<'o> Serializer for Value<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Nested<'o>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Nested<'o>;
    type SerializeStruct = Nested<'o>;
    type SerializeStructVariant = Impossible<(), Error>;

    refuse_others!();

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        put_number(self.out, self.number, value.into());
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    /// A number where text is wanted: the details of an error.
    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        match self.field.kind {
            Kind::Text => put_bytes(self.out, self.number, value.to_string().as_bytes()),
            _ => put_number(self.out, self.number, value),
        }
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.base64 {
            let octets = BASE64.decode(value.as_bytes()).map_err(Error::custom)?;
            put_bytes(self.out, self.number, &octets);
        } else {
            put_bytes(self.out, self.number, value.as_bytes());
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        put_bytes(self.out, self.number, value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, word: &'static str) -> Result<(), Error> {
        self.serialize_str(word)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Nested<'o>, Error> {
        Ok(self.nested())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Nested<'o>, Error> {
        Ok(self.nested())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Nested<'o>, Error> {
        Ok(self.nested())
    }
}

impl Nested<'_> {
    /// The message that the value is.
    fn message(&self) -> Result<usize, Error> {
        match self.field.kind {
            Kind::Message(at) | Kind::Entries(at) => Ok(at),
            _ => Err(Error::custom(format!("{} is no message", self.field.name))),
        }
    }

    /// The message of an entry and the number of its field, if the value is entries.
    fn entries(&self) -> Option<(usize, u32)> {
        let field = self.list().unwrap_or(self.field);
        match field.kind {
            Kind::Entries(entry) => {
                Some((entry, if self.list().is_some() { field.number } else { self.number }))
            }
            _ => None,
        }
    }

    /// The list that a message with one field stands for.
    fn list(&self) -> Option<&'static Field> {
        if self.field.is_list {
            return None;
        }
        schema().stands_for(self.message().ok()?)
    }
}

impl SerializeSeq for Nested<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        match self.list() {
            Some(field) => {
                value.serialize(Value { field, base64: false, number: field.number, out: &mut self.inner })
            }
            None => {
                let Nested { field, number, ref mut out, .. } = *self;
                value.serialize(Value { field, base64: false, number, out })
            }
        }
    }

    fn end(self) -> Result<(), Error> {
        if self.list().is_some() {
            put_bytes(self.out, self.number, &self.inner);
        }
        Ok(())
    }
}

impl SerializeStruct for Nested<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        let message = schema().message(self.message()?);
        Object { message, out: &mut self.inner }.field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        put_bytes(self.out, self.number, &self.inner);
        Ok(())
    }
}

/// Entries, or an object whose names are values of their own.
impl SerializeMap for Nested<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        let name = serde_json::to_value(name)?;
        self.name = name.as_str().ok_or_else(|| Error::custom("the name of an entry is a text"))?.to_owned();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let Some((entry, number)) = self.entries() else {
            let message = schema().message(self.message()?);
            return Object { message, out: &mut self.inner }.field(&self.name, value);
        };
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, self.name.as_bytes());
        let field = &schema().message(entry).fields[1];
        value.serialize(Value { field, base64: false, number: 2, out: &mut bytes })?;
        let out = if self.list().is_some() { &mut self.inner } else { &mut *self.out };
        put_bytes(out, number, &bytes);
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        if self.list().is_some() || !matches!(self.field.kind, Kind::Entries(_)) {
            put_bytes(self.out, self.number, &self.inner);
        }
        Ok(())
    }
}
