//! The caller of a call, and the object that it is about.

use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderValue};
use http::request::Parts;
use sluice_calls::access::{Caller, Peer};

/// Caller of a request, and what the request is about.
pub(super) struct By<'p> {
    pub(super) peer: &'p Arc<Peer>,
    pub(super) caller: Caller,
    /// For the audit log.
    pub(super) target: String,
}

/// The proof that came with a call.
pub(super) fn authorization(head: &Parts) -> Option<&[u8]> {
    head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes)
}

/// The object of a call for the audit log.
pub(super) fn target(path: &str, namespace: &str, name: &str) -> String {
    format!("{path} {namespace}/{name}")
}
