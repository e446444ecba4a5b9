//! Optional fields of a message to send: keys, an expiry, where results go.

use sluice_engine::item::{
    Chain, DependsMode, DependsOn, Expires, OnDuplicate, OnParentFailed, SendOptions, Unique, UniqueUntil,
    WINDOW_MS_MAX,
};
use sluice_engine::limit::{COST_MAX, Cost};
use sluice_engine::limits::DELAY_MS_MAX;

use sluice_calls::fault::{Fault, Read};
use sluice_calls::value::Words;

use super::content::Text;
use super::parents::Parents;
use super::source::Source;

/// Latest time in microseconds that milliseconds can name.
pub(crate) const AT_MS_MAX: u64 = u64::MAX / 1_000;
/// Fields of `unique`.
pub(crate) const UNIQUE_FIELDS: &[&str] = &["key", "window_ms", "until", "on_duplicate"];
/// Window of a unique key unless the sender gives one, in milliseconds: one day.
pub(crate) const WINDOW_MS_DEFAULT: u64 = 24 * 3600 * 1000;

/// The optional fields of one message, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    ordering_key: Option<Text<'a>>,
    fair_key: Option<Text<'a>>,
    limit_key: Option<Text<'a>>,
    cost: Cost,
    unique: Option<UniqueFields<'a>>,
    expires: Expires,
    result_ttl_ms: u64,
    correlation_id: Option<Text<'a>>,
    reply_to: Option<Text<'a>>,
    hold: bool,
    parents: Option<Parents>,
    depends_mode: Option<DependsMode>,
    on_parent_failed: Option<OnParentFailed>,
}

#[derive(Debug)]
struct UniqueFields<'a> {
    key: Text<'a>,
    window_ms: u64,
    until: UniqueUntil,
    on_duplicate: OnDuplicate,
}

impl<'a> Options<'a> {
    /// Reads a field; false if it is none of these.
    pub(crate) fn field(&mut self, reader: &mut impl Source<'a>, name: &'static str) -> Read<bool> {
        match name {
            "ordering_key" => self.ordering_key = Some(key(reader)?),
            "fair_key" => self.fair_key = Some(key(reader)?),
            "limit_key" => self.limit_key = Some(key(reader)?),
            "cost" => self.cost = Cost(cost(reader)?),
            "unique" => self.unique = Some(unique(reader)?),
            "ttl_ms" | "expires_at_ms" => {
                if self.expires != Expires::Never {
                    return Err(Fault::conflict("ttl_ms", "expires_at_ms"));
                }
                self.expires = match name {
                    "ttl_ms" => Expires::AfterMs(reader.integer(1, DELAY_MS_MAX)?),
                    _ => Expires::AtUs(reader.integer(1, AT_MS_MAX)? * 1_000),
                };
            }
            "result_ttl_ms" => self.result_ttl_ms = reader.integer(0, WINDOW_MS_MAX)?,
            "correlation_id" => self.correlation_id = Some(key(reader)?),
            "reply_to" => self.reply_to = Some(key(reader)?),
            "hold" => self.hold = reader.boolean()?,
            "depends_on" => self.parents = Some(Parents::read(reader)?),
            "depends_mode" => self.depends_mode = Some(word(reader)?),
            "on_parent_failed" => self.on_parent_failed = Some(word(reader)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses fields that mean nothing without another.
    pub(crate) fn check(&self) -> Read<()> {
        let without = [
            ("depends_mode", self.depends_mode.is_some()),
            ("on_parent_failed", self.on_parent_failed.is_some()),
        ];
        match without.into_iter().find(|(_, given)| *given && self.parents.is_none()) {
            Some((field, _)) => {
                Err(Fault::invalid("it means nothing without depends_on: give both, or none").inside(field))
            }
            None => Ok(()),
        }
    }

    /// The options in the engine's form.
    pub(crate) fn as_engine<'s>(&'s self, scratch: &'s str) -> SendOptions<'s>
    where
        'a: 's,
    {
        let text = |text: Option<Text<'a>>| text.map_or("", |text| text.get(scratch));
        SendOptions {
            ordering_key: text(self.ordering_key).as_bytes(),
            fair_key: text(self.fair_key).as_bytes(),
            limit_key: text(self.limit_key).as_bytes(),
            cost: self.cost,
            unique: self.unique.as_ref().map(|unique| Unique {
                key: unique.key.get(scratch).as_bytes(),
                window_ms: unique.window_ms,
                until: unique.until,
                on_duplicate: unique.on_duplicate,
            }),
            expires: self.expires,
            result_ttl_ms: self.result_ttl_ms,
            correlation_id: text(self.correlation_id).as_bytes(),
            reply_to: text(self.reply_to),
            hold: self.hold,
            depends_on: self.parents.as_ref().map(|parents| DependsOn {
                ids: &parents.ids,
                places: &parents.places,
                mode: self.depends_mode.unwrap_or_default(),
                on_parent_failed: self.on_parent_failed.unwrap_or_default(),
            }),
            // Steps refer to their own options: they are added when all of those are there.
            chain: Chain::None,
        }
    }
}

/// Reads a cost.
pub(super) fn cost<'a>(reader: &mut impl Source<'a>) -> Read<u32> {
    Ok(reader.integer(0, COST_MAX.into())? as u32)
}

/// A text that is not empty: an empty one would mean that none is given.
fn key<'a>(reader: &mut impl Source<'a>) -> Read<Text<'a>> {
    let text = reader.string()?;
    if text.get(reader.scratch()).is_empty() {
        return Err(Fault::invalid("expected at least one character (leave the field out instead)"));
    }
    Ok(text)
}

fn unique<'a>(reader: &mut impl Source<'a>) -> Read<UniqueFields<'a>> {
    let mut name = None;
    let (mut window_ms, mut until, mut on_duplicate) =
        (WINDOW_MS_DEFAULT, UniqueUntil::default(), OnDuplicate::default());
    reader.object(UNIQUE_FIELDS, |reader, field| {
        match field {
            "key" => name = Some(key(reader)?),
            "window_ms" => window_ms = reader.integer(1, WINDOW_MS_MAX)?,
            "until" => until = word(reader)?,
            _ => on_duplicate = word(reader)?,
        }
        Ok(())
    })?;
    let key = name.ok_or_else(|| Fault::missing("key", "a unique message needs its key"))?;
    Ok(UniqueFields { key, window_ms, until, on_duplicate })
}

/// Reads a word that stands for a value.
pub(crate) fn word<'a, T: Words>(reader: &mut impl Source<'a>) -> Read<T> {
    let text = reader.string()?;
    let text = text.get(reader.scratch());
    let known = T::WORDS.iter().find(|(_, word)| *word == text);
    known.map(|(value, _)| *value).ok_or_else(|| Fault::one_of(T::NAMES, text))
}

/// Reads a unique key whose text stands in the request as it is.
///
/// # Errors
/// `invalid_argument`: it holds escapes, which nothing would keep.
pub(crate) fn plain_unique<'a>(mut reader: impl Source<'a>) -> Read<Unique<'a>> {
    let fields = unique(&mut reader)?;
    reader.finish()?;
    let Text::Plain(key) = fields.key else {
        return Err(Fault::invalid("escapes cannot be read here: send the message as JSON").inside("key"));
    };
    let UniqueFields { window_ms, until, on_duplicate, .. } = fields;
    Ok(Unique { key: key.as_bytes(), window_ms, until, on_duplicate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::send::Batch;
    use crate::json::Reader;
    use sluice_engine::limits::Limits;

    fn read(body: &str) -> Result<usize, String> {
        Reader::new(body.as_bytes())
            .and_then(|reader| Batch::read(reader, &Limits::default()))
            .map(|_| 1)
            .map_err(|fault| format!("{}: {}", fault.field, fault.reason))
    }

    #[test]
    fn every_option_is_read() {
        let body = r#"{"payload":"","ordering_key":"o\u0041","fair_key":"f","limit_key":"l","cost":250,
            "unique":{"key":"u","window_ms":9,"until":"window","on_duplicate":"debounce"},
            "ttl_ms":7,"result_ttl_ms":8,"correlation_id":"c","reply_to":"r","hold":true,
            "depends_on":["00000080000g0000000g"],"depends_mode":"any","on_parent_failed":"run"}"#;
        let batch =
            Reader::new(body.as_bytes()).and_then(|reader| Batch::read(reader, &Limits::default())).unwrap();
        let (headers, options) = (batch.headers(), batch.options());
        let tags = batch.tags();
        let items = batch.items(&headers, &tags, &options);
        let unique = Unique {
            key: b"u",
            window_ms: 9,
            until: UniqueUntil::Window,
            on_duplicate: OnDuplicate::Debounce,
        };
        let expected = SendOptions {
            ordering_key: b"oA",
            fair_key: b"f",
            limit_key: b"l",
            cost: Cost(250),
            unique: Some(unique),
            expires: Expires::AfterMs(7),
            result_ttl_ms: 8,
            correlation_id: b"c",
            reply_to: "r",
            hold: true,
            depends_on: Some(DependsOn {
                ids: &[DependsOn::id_bytes("00000080000g0000000g".parse().unwrap())],
                places: &[],
                mode: DependsMode::Any,
                on_parent_failed: OnParentFailed::Run,
            }),
            chain: Chain::None,
        };
        assert_eq!(items[0].options, Some(&expected));
    }

    #[test]
    fn mistakes_are_named() {
        for (body, expected) in [
            (r#"{"payload":"","ordering_key":""}"#, "ordering_key: expected at least one character"),
            (
                r#"{"payload":"","ttl_ms":1,"expires_at_ms":2}"#,
                "expires_at_ms: ttl_ms and expires_at_ms are both",
            ),
            (r#"{"payload":"","cost":-1}"#, "cost: expected a number from 0 to 10000000"),
            (r#"{"payload":"","cost":10000001}"#, "cost: expected a number from 0 to 10000000"),
            (r#"{"payload":"","ttl_ms":0}"#, "ttl_ms: expected a number from 1 to"),
            (r#"{"payload":"","unique":{}}"#, "unique.key: a unique message needs its key"),
            (
                r#"{"payload":"","unique":{"key":"a","until":"x"}}"#,
                "unique.until: expected one of gone, window",
            ),
            (r#"{"payload":"","depends_on":[]}"#, "depends_on: expected 1 to 100 ids, got 0"),
            (
                r##"{"payload":"","depends_on":["#x"]}"##,
                "depends_on[0]: \"#x\" is not the place of a message",
            ),
            (r#"{"payload":"","depends_on":["zz"]}"#, "depends_on[0]: \"zz\" is not a message id"),
            (r#"{"payload":"","depends_mode":"any"}"#, "depends_mode: it means nothing without depends_on"),
            (
                r#"{"messages":[{"payload":"","on_parent_failed":"run"}]}"#,
                "messages[0].on_parent_failed: it means nothing without depends_on",
            ),
        ] {
            let told = read(body).unwrap_err();
            assert!(told.starts_with(expected), "{body}: {told}");
        }
    }
}
