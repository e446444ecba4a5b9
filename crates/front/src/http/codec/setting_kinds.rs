//! How a value of each type of setting is spelt in JSON, and described.

use serde_json::{Value, json};
use sluice_engine::settings::{
    Backoff, BackoffKind, FAIR_WEIGHT_MAX, FAIR_WEIGHTS_MAX, FairWeights, OnExpire, OrderingRetry, Overflow,
    Placement,
};

use super::settings::BACKOFF_FIELDS;
use crate::json::{Fault, Object, Read, Reader, push_text};

/// The least and the largest value of a number; of no meaning for other types.
pub(crate) type Range = (u64, u64);

/// A type of settings.
pub(crate) trait JsonSetting: Sized {
    /// Whether it is always written: other types are left out when they are empty.
    const ALWAYS: bool = true;

    /// Reads a value.
    fn read(reader: &mut Reader<'_>, range: Range) -> Read<Self>;

    /// Appends a field with the value.
    fn write(&self, o: &mut Object<'_>, name: &'static str);

    /// Whether there is nothing to write.
    fn is_empty(&self) -> bool {
        false
    }

    /// Its schema in the API description.
    fn schema(range: Range, about: &str) -> Value;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl JsonSetting for $type {
            fn read(reader: &mut Reader<'_>, (min, max): Range) -> Read<Self> {
                Ok(reader.integer(min, max.min(<$type>::MAX.into()))? as $type)
            }

            fn write(&self, o: &mut Object<'_>, name: &'static str) {
                o.number(name, u64::from(*self));
            }

            fn schema((min, max): Range, about: &str) -> Value {
                json!({"type": "integer", "minimum": min, "maximum": max.min(<$type>::MAX.into()), "description": about})
            }
        })*
    };
}

numbers!(u16, u32, u64);

impl JsonSetting for bool {
    fn read(reader: &mut Reader<'_>, _: Range) -> Read<Self> {
        reader.boolean()
    }

    fn write(&self, o: &mut Object<'_>, name: &'static str) {
        o.boolean(name, *self);
    }

    fn schema(_: Range, about: &str) -> Value {
        json!({"type": "boolean", "description": about})
    }
}

/// A name, or none.
impl JsonSetting for Box<str> {
    const ALWAYS: bool = false;

    fn read(reader: &mut Reader<'_>, _: Range) -> Read<Self> {
        let text = reader.string()?;
        Ok(text.get(reader.scratch()).into())
    }

    fn write(&self, o: &mut Object<'_>, name: &'static str) {
        o.text(name, self);
    }

    fn is_empty(&self) -> bool {
        str::is_empty(self)
    }

    fn schema(_: Range, about: &str) -> Value {
        json!({"type": "string", "description": about})
    }
}

/// A setting that is one of some words; one that is not shown may be named.
macro_rules! words {
    ($type:ty, $hidden:expr, $($word:literal = $value:path),*) => {
        impl JsonSetting for $type {
            const ALWAYS: bool = {
                let hidden: Option<$type> = $hidden;
                hidden.is_none()
            };

            fn is_empty(&self) -> bool {
                let hidden: Option<$type> = $hidden;
                hidden == Some(*self)
            }

            fn read(reader: &mut Reader<'_>, _: Range) -> Read<Self> {
                let text = reader.string()?;
                match text.get(reader.scratch()) {
                    $($word => Ok($value),)*
                    other => Err(Fault::one_of(&[$($word),*], other)),
                }
            }

            fn write(&self, o: &mut Object<'_>, name: &'static str) {
                o.text(name, match self { $($value => $word),* });
            }

            fn schema(_: Range, about: &str) -> Value {
                json!({"type": "string", "enum": [$($word),*], "description": about})
            }
        }
    };
}

words!(OrderingRetry, None, "block" = OrderingRetry::Block, "step_aside" = OrderingRetry::StepAside);
words!(OnExpire, Some(OnExpire::DeadLetter), "dead_letter" = OnExpire::DeadLetter, "drop" = OnExpire::Drop);
words!(
    Overflow,
    Some(Overflow::RefuseNew),
    "refuse_new" = Overflow::RefuseNew,
    "dead_letter_oldest" = Overflow::DeadLetterOldest
);
words!(
    Placement,
    Some(Placement::Fair),
    "fair" = Placement::Fair,
    "least_loaded" = Placement::LeastLoaded,
    "sticky" = Placement::Sticky
);
words!(
    BackoffKind,
    None,
    "none" = BackoffKind::None,
    "fixed" = BackoffKind::Fixed,
    "linear" = BackoffKind::Linear,
    "exponential" = BackoffKind::Exponential
);

/// What is left out takes its default.
impl JsonSetting for Backoff {
    fn read(reader: &mut Reader<'_>, _: Range) -> Read<Self> {
        let mut backoff = Backoff::default();
        reader.object(BACKOFF_FIELDS, |reader, name| {
            match name {
                "kind" => backoff.kind = BackoffKind::read(reader, (0, 0))?,
                "base_ms" => backoff.base_ms = reader.integer(0, u64::MAX)?,
                "cap_ms" => backoff.cap_ms = reader.integer(0, u64::MAX)?,
                "jitter_percent" => backoff.jitter_percent = reader.integer(0, 100)? as u8,
                other => return Err(Fault::unknown("field", other, BACKOFF_FIELDS)),
            }
            Ok(())
        })?;
        Ok(backoff)
    }

    fn write(&self, o: &mut Object<'_>, name: &'static str) {
        o.object(name, |o| {
            self.kind.write(o, "kind");
            o.number("base_ms", self.base_ms);
            o.number("cap_ms", self.cap_ms);
            o.number("jitter_percent", u64::from(self.jitter_percent));
        });
    }

    fn schema(_: Range, _: &str) -> Value {
        json!({"$ref": "#/components/schemas/Backoff"})
    }
}

impl JsonSetting for FairWeights {
    const ALWAYS: bool = false;

    fn read(reader: &mut Reader<'_>, _: Range) -> Read<Self> {
        let mut weights: Vec<(Box<[u8]>, u16)> = Vec::new();
        reader.entries(|reader, key| {
            let key = key.get(reader.scratch()).to_owned();
            let weight = reader.integer(1, u64::from(FAIR_WEIGHT_MAX)).map_err(|fault| fault.inside(&key))?;
            if weights.len() > FAIR_WEIGHTS_MAX {
                return Err(Fault::invalid(format!("too many keys: use at most {FAIR_WEIGHTS_MAX}")));
            }
            weights.push((key.into_bytes().into(), weight as u16));
            Ok(())
        })?;
        let count = weights.len();
        let weights = FairWeights::new(weights);
        if weights.len() < count {
            return Err(Fault::new("duplicate_field", "a key is given twice"));
        }
        Ok(weights)
    }

    fn write(&self, o: &mut Object<'_>, name: &'static str) {
        let out = o.name(name);
        out.push(b'{');
        for (at, (key, weight)) in self.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            push_text(out, &String::from_utf8_lossy(key));
            out.extend_from_slice(format!(":{weight}").as_bytes());
        }
        out.push(b'}');
    }

    fn is_empty(&self) -> bool {
        FairWeights::is_empty(self)
    }

    fn schema(_: Range, about: &str) -> Value {
        let weight = u64::schema((1, FAIR_WEIGHT_MAX.into()), "Messages in each turn");
        json!({"type": "object", "additionalProperties": weight, "description": about})
    }
}
