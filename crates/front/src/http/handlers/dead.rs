//! What a person decides about dead letters.

use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_engine::id::MessageId;
use sluice_engine::limits::REDRIVE_PER_SECOND_MAX;
use sluice_engine::{Error, Limits};

use super::queues::count;
use crate::http::route::call::Call;
use crate::json::{Fault, Read, Reader};
use crate::net::body::{Body, Inbound};

/// Fields of delete.
pub(crate) const CHOICE_FIELDS: &[&str] = &["ids", "all"];
/// Fields of redrive.
pub(crate) const REDRIVE_FIELDS: &[&str] = &["ids", "all", "per_second"];

/// `POST P/queues/{queue}/dead/redrive`
pub(crate) async fn redrive(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, call.context.body_limits.items).await?;
    call.allow_queue(Right::Send, call.name)?;
    let namespace = call.namespace_id()?;
    let messages = match read_redrive(upload.bytes(), call.node().limits())? {
        (_, Some(per_second)) => call.node().dead_redrive_rate(namespace, call.name, per_second).await?,
        (ids, None) => call.node().dead_redrive(namespace, call.name, &ids).await?,
    };
    Ok(count("redriven", messages))
}

/// `DELETE P/queues/{queue}/dead/redrive`
pub(crate) async fn end_redrive(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let messages = call.node().dead_redrive_rate(call.namespace_id()?, call.name, 0).await?;
    Ok(count("left", messages))
}

/// `POST P/queues/{queue}/dead/delete`
pub(crate) async fn delete(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, call.context.body_limits.items).await?;
    let ids = read_choice(upload.bytes(), call.node().limits())?;
    let messages = call.node().dead_delete(call.namespace_id()?, call.name, &ids).await?;
    Ok(count("deleted", messages))
}

/// The ids chosen; empty means all, which has to be said.
pub(crate) fn read_choice(body: &[u8], limits: &Limits) -> Read<Vec<MessageId>> {
    read(body, limits, CHOICE_FIELDS).map(|(ids, _)| ids)
}

/// The ids chosen, or the rate at which all are to be redriven.
fn read_redrive(body: &[u8], limits: &Limits) -> Read<(Vec<MessageId>, Option<u32>)> {
    let (ids, per_second) = read(body, limits, REDRIVE_FIELDS)?;
    if per_second.is_some() && !ids.is_empty() {
        return Err(Fault::conflict("ids", "per_second"));
    }
    Ok((ids, per_second))
}

fn read(
    body: &[u8],
    limits: &Limits,
    fields: &'static [&'static str],
) -> Read<(Vec<MessageId>, Option<u32>)> {
    let mut reader = Reader::new(body)?;
    let mut per_second = None;
    let mut all = None;
    let mut ids: Option<Vec<MessageId>> = None;
    let mut count = 0u64;
    let limit = u64::from(limits.batch_items);
    reader.object(fields, |reader, name| {
        if name == "per_second" {
            per_second = Some(reader.integer(1, REDRIVE_PER_SECOND_MAX.into())? as u32);
            return Ok(());
        }
        if name == "all" {
            all = Some(reader.boolean()?);
            return Ok(());
        }
        let list = ids.insert(Vec::new());
        reader.array(|reader, _| {
            let text = reader.string()?;
            let id = text.get(reader.scratch()).parse::<MessageId>()?;
            count += 1;
            if count <= limit {
                list.push(id);
            }
            Ok(())
        })
    })?;
    reader.finish()?;
    if count > limit {
        return Err(Error::BatchTooLarge { what: "ids", size: count, limit }.into());
    }
    match (ids, all) {
        (Some(_), Some(_)) => Err(Fault::conflict("ids", "all")),
        (Some(ids), None) if ids.is_empty() => Err(Fault::invalid("expected at least one id").inside("ids")),
        (Some(ids), None) => Ok((ids, per_second)),
        (None, Some(true)) => Ok((Vec::new(), per_second)),
        (None, Some(false)) => Err(Fault::invalid("all can only be true: or give ids").inside("all")),
        (None, None) => Err(Fault::missing("ids", "give ids, or \"all\": true")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_has_to_be_said() {
        let read = |body: &str| read_choice(body.as_bytes(), &Limits { batch_items: 1, ..Limits::default() });
        assert_eq!(read(r#"{"all":true}"#).unwrap(), []);
        let id = MessageId { namespace: sluice_engine::NamespaceId(1), sequence: 3 };
        assert_eq!(read(&format!(r#"{{"ids":["{id}"]}}"#)).unwrap(), [id]);
        assert_eq!(read(&format!(r#"{{"ids":["{id}","{id}"]}}"#)).unwrap_err().code, "batch_too_large");
        for (body, code) in [
            ("{}", "missing_field"),
            (r#"{"ids":[]}"#, "invalid_argument"),
            (r#"{"all":false}"#, "invalid_argument"),
            (r#"{"all":true,"ids":[]}"#, "conflicting_fields"),
            (r#"{"ids":["x"]}"#, "invalid_message_id"),
            ("", "invalid_json"),
        ] {
            assert_eq!(read(body).unwrap_err().code, code, "{body}");
        }
        let rated = |body: &str| read_redrive(body.as_bytes(), &Limits::default());
        assert_eq!(rated(r#"{"all":true,"per_second":5}"#).unwrap(), (vec![], Some(5)));
        let both = format!(r#"{{"ids":["{id}"],"per_second":5}}"#);
        assert_eq!(rated(&both).unwrap_err().code, "conflicting_fields");
        assert_eq!(rated(r#"{"per_second":5}"#).unwrap_err().code, "missing_field");
        assert_eq!(rated(r#"{"all":true,"per_second":0}"#).unwrap_err().code, "invalid_argument");
    }
}
