//! Values of requests and answers that several calls have.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;
use sluice_engine::limit::Cost;
use sluice_engine::limits::IDEMPOTENCY_KEY_BYTES_MAX;

use crate::fault::{Fault, Read};
use crate::schema::inline_schemas;

/// A number from `MIN` to `MAX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Within<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Within<MIN, MAX> {
    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The nearest number in the range.
    pub fn clamped(value: u64) -> Self {
        Within(value.clamp(MIN, MAX))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Asked for as a wider type, so that what is below zero is told with the range as well.
        deserializer.deserialize_i128(WithinVisitor::<MIN, MAX>).map(Within)
    }
}

struct WithinVisitor<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Visitor<'_> for WithinVisitor<MIN, MAX> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {MIN} to {MAX}")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        match (MIN..=MAX).contains(&value) {
            true => Ok(value),
            false => self.visit_str(&value.to_string()),
        }
    }

    /// A number that is out of range, as it was written.
    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        Err(E::custom(format_args!("expected a number from {MIN} to {MAX}, got {text}")))
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Within<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Within<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NumberFrom{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

/// Maximum number of entries of a page: 1 to 1,000; default 100.
pub type PageSize = Within<1, 1_000>;
/// Default number of entries of a page.
const PAGE_DEFAULT: u64 = 100;

/// The number of entries that a page may have.
pub(crate) fn page_size(asked: Option<PageSize>) -> usize {
    asked.map_or(PAGE_DEFAULT, PageSize::get) as usize
}

/// Cuts a list that has one entry more than the page when there is a next one; gives the name after which
/// that begins.
pub(crate) fn cut_page<T>(entries: &mut Vec<T>, size: usize, name: impl Fn(&T) -> &str) -> Option<String> {
    let more = entries.len() > size;
    entries.truncate(size);
    entries.last().filter(|_| more).map(|last| name(last).to_owned())
}

/// A parameter that counts as left out when it is empty.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// The text by which a repeat of a request is known.
///
/// # Errors
/// `invalid_argument` at the field `request_id`: it is too long.
pub(crate) fn request_id(text: Option<&str>) -> Read<Option<&str>> {
    let id = given(text);
    if let Some(long) = id.filter(|id| id.len() > IDEMPOTENCY_KEY_BYTES_MAX) {
        let reason = format!("expected at most {IDEMPOTENCY_KEY_BYTES_MAX} bytes, got {}", long.len());
        return Err(Fault::invalid(reason).inside("request_id"));
    }
    Ok(id)
}

/// Reads a cursor: the `next` of the page before.
///
/// # Errors
/// `invalid_argument` at the field `cursor`.
pub(crate) fn cursor(text: Option<&str>) -> Read<Option<u64>> {
    let Some(text) = given(text) else { return Ok(None) };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(cursor) if digits => Ok(Some(cursor)),
        _ => Err(Fault::invalid("expected the value of next from the page before").inside("cursor")),
    }
}

/// An answer in which a field is always there that other answers of the same type leave out.
pub trait Whole: JsonSchema {
    /// The name of the schema.
    const NAME: &'static str;
    /// The field.
    const FIELD: &'static str;

    /// Its value in the example.
    fn example() -> Value;
}

/// The answer with its field.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Shown<T>(pub(crate) T);

impl<T: Whole> JsonSchema for Shown<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.push(T::FIELD.into());
        }
        for example in schema.get_mut("examples").and_then(Value::as_array_mut).into_iter().flatten() {
            example[T::FIELD] = T::example();
        }
        schema
    }
}

/// `true`, in a field that is absent where it does not apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct True;

impl True {
    /// The field, if it applies.
    pub(crate) fn when(applies: bool) -> Option<True> {
        applies.then_some(True)
    }
}

impl Serialize for True {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

inline_schemas! {
    True: json_schema!({"type": "boolean", "const": true});
}

/// A request or an answer without fields.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = Nothing {})]
pub struct Nothing {}

/// An enum of the engine, by the words that stand for its values.
pub trait Words: Copy + PartialEq + 'static {
    /// Each value and its word.
    const WORDS: &[(Self, &'static str)];
    /// The words alone, in the same order.
    const NAMES: &'static [&'static str];
}

/// A word that stands for a value of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Word<T>(pub T);

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let known = T::WORDS.iter().find(|(_, word)| *word == text);
        known.map(|(value, _)| Word(*value)).ok_or_else(|| de::Error::unknown_variant(&text, T::NAMES))
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = T::WORDS.iter().find(|(value, _)| *value == self.0);
        serializer.serialize_str(known.map_or("", |(_, word)| word))
    }
}

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::NAMES.join("_or_").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": T::NAMES})
    }
}

/// Names the words of enums of the engine.
macro_rules! words {
    ($($type:ty: $($word:literal = $value:path),+;)*) => {
        $(impl $crate::value::Words for $type {
            const WORDS: &[(Self, &'static str)] = &[$(($value, $word)),+];
            const NAMES: &'static [&'static str] = &[$($word),+];
        })*
    };
}
pub(crate) use words;

/// A cost that is absent when it is the one that nobody has to give.
pub(crate) fn other_cost(cost: Cost) -> Option<u32> {
    (cost != Cost::default()).then_some(cost.0)
}

/// A text that is absent when it is empty.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}
