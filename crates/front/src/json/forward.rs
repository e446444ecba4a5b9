//! Sources of typed requests: the part of a deserializer that is the same for all of them.

/// Methods of a `Deserializer` with an `integer` of its own, which reads a number of at most `max`: integers
/// of up to 32 bits, and what stands for its value itself.
macro_rules! deserialize_as_its_value {
    () => {
        fn deserialize_u8<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.integer(u8::MAX.into(), visitor)
        }

        fn deserialize_u16<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.integer(u16::MAX.into(), visitor)
        }

        fn deserialize_u32<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.integer(u32::MAX.into(), visitor)
        }

        fn deserialize_option<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            visitor.visit_some(self)
        }
    };
}
pub(crate) use deserialize_as_its_value;

/// Method of a `Deserializer` for which all that has one field stands for its value itself.
macro_rules! deserialize_newtype_as_its_value {
    () => {
        fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            visitor.visit_newtype_struct(self)
        }
    };
}
pub(crate) use deserialize_newtype_as_its_value;
