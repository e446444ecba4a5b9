//! Answers.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::response::Response;

use super::body::Body;

/// A JSON document.
pub(crate) fn json(status: StatusCode, out: Vec<u8>) -> Response<Body> {
    content(status, "application/json", out)
}

/// Anything with a content type.
pub(crate) fn content(
    status: StatusCode,
    content_type: &'static str,
    out: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::full(out.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // State of a moment, and receipts are secrets: nothing of it belongs into a cache.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `{}`, what an order that succeeded answers.
pub(crate) fn empty_object() -> Response<Body> {
    content(StatusCode::OK, "application/json", Bytes::from_static(b"{}"))
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::new()));
    *response.status_mut() = status;
    response
}
