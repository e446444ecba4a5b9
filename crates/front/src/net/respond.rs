//! Answers.

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::response::Response;

use super::body::Body;
use crate::json::Json;

pub(crate) const JSON: &str = "application/json";
/// State of a moment, and receipts are secrets: nothing of it belongs into a cache.
pub(crate) const NO_STORE: &str = "no-store";

impl From<Json> for Response<Body> {
    fn from(json: Json) -> Response<Body> {
        content(json.status, JSON, json.document)
    }
}

/// A JSON document.
pub(crate) fn json(status: StatusCode, out: Vec<u8>) -> Response<Body> {
    content(status, JSON, out)
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
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(NO_STORE));
    response
}

/// Octets of a client, under the content type that it gave them. Whoever looks at them with a browser must
/// not run them as a page of this server.
pub(crate) fn foreign(octets: Bytes, content_type: Option<&str>) -> Response<Body> {
    let content_type = content_type.filter(|text| !text.is_empty());
    let content_type = content_type.and_then(|text| HeaderValue::from_str(text).ok());
    let mut response = content(StatusCode::OK, "application/octet-stream", octets);
    let headers = response.headers_mut();
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    response
}

/// The answer with a body that is streamed.
pub(crate) fn streamed(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(NO_STORE));
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::new()));
    *response.status_mut() = status;
    response
}
