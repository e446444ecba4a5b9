//! End of a call: the status and its trailers. Code and message of the error are there as text, and with its
//! details as `google.rpc.Status` with `google.rpc.ErrorInfo` and, if it may be tried again,
//! `google.rpc.RetryInfo`.

use data_encoding::BASE64_NOPAD;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::codes;
use sluice_proto::framing::{PREFIX_BYTES, frame_with};

use super::wire::{put_bytes, put_number};
use crate::net::body::Body;

/// The media type of every answer.
pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const CODE: HeaderName = HeaderName::from_static("sluice-code");
/// `google.rpc.Code.UNKNOWN`.
const UNKNOWN: u8 = 2;
/// Longest message in a trailer, in characters: peers bound the size of all headers together, often at 8 KiB.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Most bytes of details; beyond that there are none, since peers may refuse the whole.
const DETAILS_BYTES_MAX: usize = 4 << 10;

/// The trailers of a call that went well.
pub(super) fn success() -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))])
}

/// The trailers of one that did not.
pub(super) fn failure(error: &CallError) -> HeaderMap {
    let status = codes::find(error.code()).map_or(UNKNOWN, |row| row.grpc);
    let message: String = error.message().chars().take(MESSAGE_CHARS_MAX).collect();
    let mut trailers = HeaderMap::from_iter([
        (STATUS, HeaderValue::from(u16::from(status))),
        (CODE, HeaderValue::from_static(error.code())),
    ]);
    if let Ok(message) = HeaderValue::from_bytes(&percent_encode(&message)) {
        trailers.insert(MESSAGE, message);
    }
    let details = details(status, &message, error);
    if details.len() <= DETAILS_BYTES_MAX
        && let Ok(details) = HeaderValue::from_str(&BASE64_NOPAD.encode(&details))
    {
        trailers.insert(DETAILS, details);
    }
    trailers
}

/// The status in the head of an answer that is nothing else; `None`: it comes as trailers.
pub(super) fn status_in(headers: &HeaderMap) -> Option<HeaderMap> {
    headers.get(STATUS)?;
    let fields = [STATUS, CODE, MESSAGE, DETAILS].into_iter();
    Some(fields.filter_map(|name| headers.get(&name).cloned().map(|value| (name, value))).collect())
}

/// An answer with one message that went well.
pub(super) fn success_with(message: Vec<u8>) -> Response<Body> {
    let mut out = Vec::with_capacity(PREFIX_BYTES + message.len());
    frame_with(&mut out, |out| out.extend_from_slice(&message));
    let mut response = Response::new(Body::with_trailers(out.into(), success()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// An answer that is nothing but its status.
pub(super) fn refusal(error: &CallError) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.headers_mut() = failure(error);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// `google.rpc.Status`.
fn details(status: u8, message: &str, error: &CallError) -> Vec<u8> {
    let mut info = Vec::new();
    put_bytes(&mut info, 1, error.code().as_bytes());
    put_bytes(&mut info, 2, b"sluice");
    for (name, value) in error.details().iter() {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, value.to_string().as_bytes());
        put_bytes(&mut info, 3, &entry);
    }
    let mut out = Vec::new();
    put_number(&mut out, 1, status.into());
    put_bytes(&mut out, 2, message.as_bytes());
    put_bytes(&mut out, 3, &any("type.googleapis.com/google.rpc.ErrorInfo", &info));
    if let Some(ms) = error.retry_after_ms() {
        let mut duration = Vec::new();
        put_number(&mut duration, 1, ms / 1_000);
        put_number(&mut duration, 2, ms % 1_000 * 1_000_000);
        let mut retry = Vec::new();
        put_bytes(&mut retry, 1, &duration);
        put_bytes(&mut out, 3, &any("type.googleapis.com/google.rpc.RetryInfo", &retry));
    }
    out
}

/// `google.protobuf.Any`.
fn any(type_url: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 1, type_url.as_bytes());
    put_bytes(&mut out, 2, value);
    out
}

/// Percent-encodes a status message: printable ASCII except `%` stays, all else becomes `%XX`.
fn percent_encode(text: &str) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(byte),
            _ => out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
    out
}
