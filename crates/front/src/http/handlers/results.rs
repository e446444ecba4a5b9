//! What came of a message: waiting for its end, and its result.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::id::MessageId;
use sluice_node::Awaited;
use sluice_node::api::ProgressSeen;

use crate::hot::permission::{Asking, Scope};
use crate::hot::receive::WAIT_MS_MAX;
use crate::http::codec::message::{write_content, write_progress, write_times};
use crate::http::route::call::Call;
use crate::json::{Object, object};
use crate::net::body::Body;
use crate::net::respond;

/// Parameters of a wait for a result.
pub(crate) const RESULT_PARAMS: &[&str] = &["wait_ms"];
/// What a wait can find.
pub(crate) const RESULT_STATES: &[&str] = &["done", "dead", "pending"];

/// `GET P/messages/{id}/result`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let awaited = wait(call).await?;
    let mut out = Vec::with_capacity(128);
    object(&mut out, |o| write(o, &awaited));
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/messages/{id}/result/raw`
pub(crate) async fn raw(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let awaited = wait(call).await?;
    let (state, mut response) = match &awaited {
        Awaited::Done { result: Some(result), .. } => ("done", octets(result)),
        Awaited::Done { result: None, .. } => ("done", respond::empty(StatusCode::NO_CONTENT)),
        Awaited::Dead { .. } => ("dead", respond::empty(StatusCode::NO_CONTENT)),
        Awaited::Pending { .. } => ("pending", respond::empty(StatusCode::NO_CONTENT)),
    };
    let state = HeaderValue::from_static(state);
    response.headers_mut().insert(HeaderName::from_static("sluice-state"), state);
    Ok(response)
}

fn octets(result: &Bytes) -> Response<Body> {
    let blob = MessageBlob::parse(result);
    let payload = blob.map_or(Bytes::new(), |blob| result.slice_ref(blob.payload));
    respond::foreign(payload, blob.map(|blob| blob.content_type))
}

/// Waits as long as the client and the server do.
async fn wait(call: &Call<'_>) -> Result<Awaited, CallError> {
    let wait_ms = call.query()?.integer("wait_ms", 0, WAIT_MS_MAX, 0)?;
    let id: MessageId = call.name.parse()?;
    // A message of another namespace is as good as none: ids must not be a way around namespaces.
    if id.namespace != call.namespace_id()? {
        return Err(Error::MessageNotFound { id: id.to_string() }.into());
    }
    call.allow_messages(Right::Result, std::iter::once(id)).await?;
    call.room_for(1)?;
    let wait = call.node().await_result(id, Duration::from_millis(wait_ms));
    if wait_ms == 0 {
        return Ok(wait.await?);
    }
    let standing = call.standing(Right::Result, || Scope::Message);
    let awaited = tokio::select! {
        biased;
        denied = standing.lost() => return Err(denied.into()),
        awaited = wait => awaited?,
        () = call.context.stopping() => call.node().await_result(id, Duration::ZERO).await?,
    };
    let caller = standing.check()?;
    if !caller.is_as(call.caller) {
        // Other rules count by now.
        let asking = Asking { caller: &caller, ..call.asking() };
        asking.allow_messages(call.node(), id.namespace, Right::Result, std::iter::once(id)).await?;
    }
    Ok(awaited)
}

fn write(o: &mut Object<'_>, awaited: &Awaited) {
    match awaited {
        Awaited::Done { result, done_at_us, kept_until_us } => {
            o.text("state", "done");
            if let Some(result) = result {
                write_content(o, ["result", "result_base64", "result_content_type"], result);
            }
            write_times(o, *done_at_us, *kept_until_us);
        }
        Awaited::Dead { reason, at_us } => {
            o.text("state", "dead");
            if let Some(reason) = reason {
                o.text("reason", reason);
            }
            if let Some(at_us) = at_us {
                o.number("reason_at_ms", at_us / 1_000);
            }
        }
        Awaited::Pending { progress, .. } => {
            o.text("state", "pending");
            if let Some(ProgressSeen { percent, note, at_us }) = progress {
                write_progress(o, *percent, note.as_deref(), *at_us);
            }
        }
    }
}
