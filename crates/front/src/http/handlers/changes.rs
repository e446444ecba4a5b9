//! Changing one message: cancel, hold, approve, deny, retry, move, and its fields.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_engine::Error;
use sluice_engine::change::{Change, ChangeAction, NewFields, Verb};
use sluice_engine::command::Deliver;
use sluice_engine::id::MessageId;
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX};

use crate::http::route::call::Call;
use crate::json::{Fault, Read, Reader, object};
use crate::net::body::{Body, Inbound};
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Fields of those changes that have none of their own.
pub(crate) const CHANGE_FIELDS: &[&str] = &["by", "why", "version"];
/// Fields of a move.
pub(crate) const MOVE_FIELDS: &[&str] = &["by", "why", "version", "to"];
/// Fields of a change of fields.
pub(crate) const SET_FIELDS: &[&str] =
    &["by", "why", "version", "priority", "delay_ms", "deliver_at_ms", "max_attempts", "tags"];
/// Latest time in microseconds that milliseconds can name.
const AT_MS_MAX: u64 = u64::MAX / 1_000;

/// What a request says of a change. Of one message it has a version, of many it has a filter.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) by: String,
    pub(crate) why: String,
    version: u64,
    pub(crate) to: Option<String>,
    pub(crate) priority: Option<u8>,
    pub(crate) deliver: Option<Deliver>,
    pub(crate) max_attempts: Option<u16>,
    pub(crate) tags: Option<Vec<String>>,
}

impl Said {
    /// Reads a field; false if it is none of these.
    pub(crate) fn field(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Read<bool> {
        match name {
            "by" => self.by = text(reader)?,
            "why" => self.why = text(reader)?,
            "version" => self.version = read_version(&text(reader)?)?,
            "to" => self.to = Some(text(reader)?),
            "priority" => self.priority = Some(reader.integer(0, u64::from(PRIORITY_MAX))? as u8),
            "delay_ms" | "deliver_at_ms" => {
                if self.deliver.is_some() {
                    return Err(Fault::conflict("delay_ms", "deliver_at_ms"));
                }
                self.deliver = Some(match name {
                    "delay_ms" => Deliver::AfterMs(reader.integer(0, DELAY_MS_MAX)?),
                    _ => Deliver::AtUs(reader.integer(0, AT_MS_MAX)? * 1_000),
                });
            }
            "max_attempts" => {
                self.max_attempts = Some(reader.integer(1, u64::from(ATTEMPTS_MAX))? as u16);
            }
            "tags" => self.tags = Some(texts(reader)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read(body: &[u8], fields: &'static [&'static str]) -> Read<Said> {
        let mut reader = Reader::new(body)?;
        let mut said = Said::default();
        if !reader.is_blank() {
            reader.object(fields, |reader, name| said.field(reader, name).map(|_| ()))?;
        }
        reader.finish()?;
        Ok(said)
    }
}

/// A text, as it is.
pub(crate) fn text(reader: &mut Reader<'_>) -> Read<String> {
    let text = reader.string()?;
    Ok(text.get(reader.scratch()).to_owned())
}

/// A list of texts.
pub(crate) fn texts(reader: &mut Reader<'_>) -> Read<Vec<String>> {
    let mut texts = Vec::new();
    reader.array(|reader, _| {
        texts.push(text(reader)?);
        Ok(())
    })?;
    Ok(texts)
}

/// A version as texts have it.
pub(crate) fn version_text(version: u64) -> String {
    format!("{version:016x}")
}

fn read_version(text: &str) -> Read<u64> {
    let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let version = if digits { u64::from_str_radix(text, 16).ok() } else { None };
    version
        .filter(|version| *version != 0)
        .ok_or_else(|| Fault::invalid("expected the version of the message as it was shown"))
}

/// `POST P/messages/{id}/{verb}`
pub(crate) async fn change(
    call: &Call<'_>,
    body: &mut Inbound,
    verb: Verb,
) -> Result<Response<Body>, CallError> {
    let id: MessageId = call.name.parse()?;
    let namespace = call.namespace_id()?;
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let fields = match verb {
        Verb::Move => MOVE_FIELDS,
        Verb::Change => SET_FIELDS,
        _ => CHANGE_FIELDS,
    };
    let said = Said::read(upload.bytes(), fields)?;
    // A message of another namespace is as good as none: ids must not be a way around namespaces.
    if id.namespace != namespace {
        return Err(Error::MessageNotFound { id: id.to_string() }.into());
    }
    call.allow_messages(Right::Operate, std::iter::once(id)).await?;
    match verb {
        Verb::Retry => call.allow_messages(Right::Send, std::iter::once(id)).await?,
        // What is denied is a dead letter, which may move to another queue.
        Verb::Deny => {
            for queue in call.node().queues_of(namespace, &[id]).await? {
                call.allow_dead_letters(&queue).await?;
            }
        }
        _ => {}
    }
    if let Some(to) = &said.to {
        call.allow_queue(Right::Operate, to)?;
        call.allow_queue(Right::Send, to)?;
    }
    let tags: Option<Vec<&str>> = said.tags.as_ref().map(|tags| tags.iter().map(String::as_str).collect());
    let action = match verb {
        Verb::Cancel => ChangeAction::Cancel,
        Verb::Hold => ChangeAction::Hold,
        Verb::Approve => ChangeAction::Approve,
        Verb::Deny => ChangeAction::Deny,
        Verb::Retry => ChangeAction::Retry,
        Verb::Move => ChangeAction::Move { to: said.to.as_deref().ok_or_else(missing_to)? },
        Verb::Change => ChangeAction::Set(NewFields {
            priority: said.priority,
            deliver: said.deliver,
            max_attempts: said.max_attempts,
            tags: tags.as_deref(),
        }),
    };
    let items = [(id, said.version)];
    let change = Change { namespace, items: &items, action, by: &said.by, why: &said.why };
    call.node().change(&change).await?.into_iter().collect::<Result<(), Error>>()?;
    let mut out = Vec::with_capacity(2);
    object(&mut out, |_| {});
    Ok(respond::json(StatusCode::OK, out))
}

pub(crate) fn missing_to() -> Box<Fault> {
    Fault::missing("to", "name the queue to move to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_mistakes_named() {
        let said = Said::read(br#"{"by":"ann","tags":["a","\u0062"],"delay_ms":5}"#, SET_FIELDS).unwrap();
        assert_eq!(said.tags.unwrap(), ["a", "b"]);
        assert_eq!((said.by.as_str(), said.deliver), ("ann", Some(Deliver::AfterMs(5))));
        assert_eq!(Said::read(b"", CHANGE_FIELDS).unwrap().version, 0);
        let version = version_text(7);
        let body = format!(r#"{{"version":"{version}"}}"#);
        assert_eq!(Said::read(body.as_bytes(), CHANGE_FIELDS).unwrap().version, 7);
        for (body, fields, code) in [
            (r#"{"to":"b"}"#, CHANGE_FIELDS, "unknown_field"),
            (r#"{"priority":10}"#, SET_FIELDS, "invalid_argument"),
            (r#"{"delay_ms":1,"deliver_at_ms":1}"#, SET_FIELDS, "conflicting_fields"),
            (r#"{"version":"7"}"#, CHANGE_FIELDS, "invalid_argument"),
            (r#"{"version":"0000000000000000"}"#, CHANGE_FIELDS, "invalid_argument"),
            (r#"{"tags":"a"}"#, SET_FIELDS, "wrong_type"),
        ] {
            assert_eq!(Said::read(body.as_bytes(), fields).unwrap_err().code, code, "{body}");
        }
    }
}
