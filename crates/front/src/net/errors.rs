//! Errors as answers: status, `Retry-After`, and `{"error":{"code","message","details"}}`.

use http::StatusCode;
use http::header::{ACCEPT_ENCODING, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::response::Response;
use sluice_calls::{CallError, codes};

use super::body::Body;
use super::respond;
use crate::json::error_details::write_details;
use crate::json::object;

/// The error of a call in HTTP.
pub(crate) trait HttpError {
    /// The status of the answer.
    fn status(&self) -> StatusCode;
    /// The answer.
    fn into_response(self) -> Response<Body>;
}

impl HttpError for CallError {
    fn status(&self) -> StatusCode {
        codes::find(self.code())
            .and_then(|row| StatusCode::from_u16(row.http).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn into_response(self) -> Response<Body> {
        let mut out = Vec::with_capacity(256 + self.message().len());
        object(&mut out, |o| {
            o.object("error", |o| {
                o.text("code", self.code());
                o.text("message", self.message());
                o.object("details", |o| write_details(self.details(), o));
            });
        });
        let mut response = respond::json(self.status(), out);
        if self.code() == "unauthenticated" {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code() == "unsupported_content_encoding" {
            // RFC 9110 §15.5.16.
            response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Some(ms) = self.retry_after_ms() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000).max(1)));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use sluice_engine::Error;

    use super::*;

    #[test]
    fn overload_says_when_to_come_back() {
        let error = CallError::from(Error::Overloaded { what: "requests", retry_after_ms: 1_200 });
        let response = error.into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "2");
    }

    #[test]
    fn details_are_an_object_in_the_order_of_the_error() {
        let error = CallError::from(Error::BatchTooLarge { what: "messages", size: 3, limit: 2 });
        assert_eq!(error.status(), 413);
        let body = error.into_response().into_body().into_bytes().to_vec();
        let text = String::from_utf8(body).unwrap();
        assert!(text.ends_with(r#""details":{"what":"messages","size":3,"limit":2}}}"#), "{text}");
    }
}
