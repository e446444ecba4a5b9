//! What a person decides about dead letters.

use http::response::Response;
use hyper::body::Incoming;
use sluice_engine::id::MessageId;
use sluice_engine::{Error, Limits};

use super::body::Body;
use super::call::Call;
use super::errors::ApiError;
use super::json::{Fault, Read, Reader};
use super::queues::count;

/// Fields of redrive and delete.
pub(crate) const CHOICE_FIELDS: &[&str] = &["ids", "all"];

/// `POST P/queues/{queue}/dead/redrive`
pub(crate) async fn redrive(call: &Call<'_>, body: Incoming) -> Result<Response<Body>, ApiError> {
    let ids = read_body(call, body).await?;
    let messages = call.node().dead_redrive(call.namespace_id()?, call.name, &ids).await?;
    Ok(count("redriven", messages))
}

/// `POST P/queues/{queue}/dead/delete`
pub(crate) async fn delete(call: &Call<'_>, body: Incoming) -> Result<Response<Body>, ApiError> {
    let ids = read_body(call, body).await?;
    let messages = call.node().dead_delete(call.namespace_id()?, call.name, &ids).await?;
    Ok(count("deleted", messages))
}

async fn read_body(call: &Call<'_>, body: Incoming) -> Result<Vec<MessageId>, ApiError> {
    let upload = call.json(body, call.context.body_limits.items).await?;
    Ok(read_choice(upload.bytes(), call.node().limits())?)
}

/// The ids chosen; empty means all, which has to be said.
pub(super) fn read_choice(body: &[u8], limits: &Limits) -> Read<Vec<MessageId>> {
    let mut reader = Reader::new(body)?;
    let mut all = None;
    let mut ids: Option<Vec<MessageId>> = None;
    let mut count = 0u64;
    let limit = u64::from(limits.batch_items);
    reader.object(CHOICE_FIELDS, |reader, name| {
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
        (Some(ids), None) => Ok(ids),
        (None, Some(true)) => Ok(Vec::new()),
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
    }
}
