//! The result of a message as the body of the answer.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::hot::receive::WAIT_MS_MAX;
use sluice_calls::results::{Awaited, wait};
use sluice_engine::blob::MessageBlob;

use crate::http::route::call::Call;
use crate::net::body::Body;
use crate::net::respond;

/// Parameters of a wait for a result.
pub(crate) const RESULT_PARAMS: &[&str] = &["wait_ms"];

/// `GET P/messages/{id}/result/raw`
pub(crate) async fn raw(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let wait_ms = call.query(RESULT_PARAMS)?.integer("wait_ms", 0, WAIT_MS_MAX, 0)?;
    let awaited = wait(&call.permit, wait_ms).await?;
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
