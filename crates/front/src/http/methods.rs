//! The answer to a method that a path does not have.

use http::header::{ALLOW, HeaderValue};
use http::request::Parts;
use http::response::Response;
use http::{Method, StatusCode};
use sluice_calls::CallError;

use crate::net::body::Body;
use crate::net::errors::HttpError as _;
use crate::net::respond;

/// The answer to a method that a path does not have; `allow`: those that it has.
pub(super) fn other_method(head: &Parts, allow: &str) -> Response<Body> {
    let mut response = match head.method {
        Method::OPTIONS => respond::empty(StatusCode::NO_CONTENT),
        _ => {
            let method: String = head.method.as_str().chars().take(32).collect();
            CallError::new("method_not_allowed", format!("{method} is not allowed here: use {allow}"))
                .with(|o| {
                    o.text("method", &method);
                    o.text("allow", allow);
                })
                .into_response()
        }
    };
    let allow = format!("{allow}, OPTIONS");
    if let Ok(value) = HeaderValue::from_str(&allow) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
