//! Weights of fair keys, as an object by key.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use sluice_engine::settings::{self as engine, FAIR_WEIGHT_MAX, FAIR_WEIGHTS_MAX};

use crate::value::Within;

type Weight = Within<1, { FAIR_WEIGHT_MAX as u64 }>;

/// Messages that each fair key gives in its turn, by key.
#[derive(Clone, PartialEq, Debug)]
pub struct FairWeights(pub(super) engine::FairWeights);

impl<'de> Deserialize<'de> for FairWeights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WeightsVisitor)
    }
}

struct WeightsVisitor;

impl<'de> Visitor<'de> for WeightsVisitor {
    type Value = FairWeights;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FairWeights, A::Error> {
        let mut weights: Vec<(Box<[u8]>, u16)> = Vec::new();
        while let Some((key, weight)) = map.next_entry::<String, Weight>()? {
            if weights.len() > FAIR_WEIGHTS_MAX {
                return Err(de::Error::custom(format_args!("too many keys: use at most {FAIR_WEIGHTS_MAX}")));
            }
            weights.push((key.into_bytes().into(), weight.get() as u16));
        }
        let count = weights.len();
        let weights = engine::FairWeights::new(weights);
        if weights.len() < count {
            // Without a name: the fault is in the object as a whole.
            return Err(de::Error::duplicate_field(""));
        }
        Ok(FairWeights(weights))
    }
}

impl Serialize for FairWeights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, weight)| (String::from_utf8_lossy(key), weight)))
    }
}

impl JsonSchema for FairWeights {
    fn schema_name() -> Cow<'static, str> {
        "FairWeights".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let weight = generator.subschema_for::<Weight>();
        json_schema!({
            "type": "object", "additionalProperties": weight,
            "description": "Messages that each fair key gives in its turn, by key; at most 1,000 keys",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::{Error, MapDeserializer};

    use super::*;
    use crate::fault::Fault;

    type Entries = Vec<(&'static str, u64)>;

    #[test]
    fn a_key_that_is_given_twice_is_refused() {
        let entries: Entries = vec![("a", 2), ("b", 3), ("a", 4)];
        let entries = MapDeserializer::<_, Box<Fault>>::new(entries.into_iter());
        let fault = FairWeights::deserialize(entries).unwrap_err();
        assert_eq!((fault.code, fault.field.as_str()), ("duplicate_field", ""));
    }

    #[test]
    fn weights_have_a_range_and_a_largest_number() {
        let of = |entries: Vec<(String, u64)>| {
            FairWeights::deserialize(MapDeserializer::<_, Error>::new(entries.into_iter()))
        };
        let many = |count: usize| (0..count).map(|at| (at.to_string(), 1)).collect();
        assert_eq!(of(many(FAIR_WEIGHTS_MAX)).unwrap().0.len(), FAIR_WEIGHTS_MAX);
        assert!(of(many(FAIR_WEIGHTS_MAX + 2)).is_err());
        assert!(of(vec![("a".to_owned(), 1_000)]).is_ok());
        assert!(of(vec![("a".to_owned(), 0)]).is_err());
        assert!(of(vec![("a".to_owned(), 1_001)]).is_err());
    }
}
