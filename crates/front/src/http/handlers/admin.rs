//! The server itself: health and backup.

use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::figures;

use crate::http::route::call::Call;
use crate::net::body::Body;
use crate::net::respond;

/// `GET /v1/admin/backup`
pub(crate) async fn backup(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let stream = figures::backup(&call.permit).await?;
    let mut response = Response::new(Body::stream(stream));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"sluice.backup\""));
    Ok(response)
}

/// `GET /healthz`: whoever can answer is alive.
pub(crate) fn health() -> Response<Body> {
    respond::content(StatusCode::OK, "text/plain; charset=utf-8", &b"ok\n"[..])
}

/// `GET /readyz`
pub(crate) fn ready(call: &Call<'_>) -> Response<Body> {
    let (status, text) = match call.context.calls.ready() {
        true => (StatusCode::OK, &b"ready\n"[..]),
        false => (StatusCode::SERVICE_UNAVAILABLE, &b"not ready\n"[..]),
    };
    respond::content(status, "text/plain; charset=utf-8", text)
}
