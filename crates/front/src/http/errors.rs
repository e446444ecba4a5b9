//! Errors as answers: status, `Retry-After`, and `{"error":{"code","message","details"}}`.

use http::StatusCode;
use http::header::{ACCEPT_ENCODING, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::response::Response;
use serde_json::Value;
use sluice_engine::Error;
use sluice_engine::error::{Blame, FieldValue};

use super::body::Body;
use super::json::{Fault, Object, object, push_list, push_text};
use super::respond::{self, Json};
use crate::access::{Denied, TokenError};
use crate::codes;

/// An error on its way to the client.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    code: &'static str,
    message: String,
    /// A JSON object.
    details: Vec<u8>,
    retry_after_ms: Option<u64>,
    blame: Blame,
}

impl ApiError {
    /// An error of the front itself that is the caller's.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            code,
            message: message.into(),
            details: b"{}".to_vec(),
            retry_after_ms: None,
            blame: Blame::Caller,
        }
    }

    /// The same with details.
    pub(crate) fn with(mut self, fields: impl FnOnce(&mut Object<'_>)) -> ApiError {
        self.details.clear();
        object(&mut self.details, fields);
        self
    }

    /// A body that is larger than it may be.
    pub(crate) fn body_too_large(limit: usize) -> ApiError {
        ApiError::new("body_too_large", format!("the body of this request may have {limit} bytes"))
            .with(|o| o.number("limit", limit as u64))
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Whether the caller has not shown who they are, or may not have what they asked for.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(self.code, "unauthenticated" | "forbidden")
    }

    /// Whether somebody on the server's side has to know.
    pub(super) fn is_ours(&self) -> bool {
        // Pushing back is normal work, brought about by callers, and shows in the metrics.
        let pushes_back = matches!(
            self.code,
            "overloaded" | "queue_full" | "quota_exceeded" | "limit_exceeded" | "shutting_down"
        );
        self.blame != Blame::Caller && !pushes_back
    }

    /// The values in it, as text.
    pub(crate) fn details(&self) -> Vec<(String, String)> {
        let details: serde_json::Map<String, Value> =
            serde_json::from_slice(&self.details).unwrap_or_default();
        let text = |value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        details.into_iter().map(|(name, value)| (name, text(value))).collect()
    }

    /// When it may be tried again, if that helps.
    pub(crate) fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }

    /// What went wrong, in words.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        codes::find(self.code)
            .and_then(|row| StatusCode::from_u16(row.http).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The answer.
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut out = Vec::with_capacity(128 + self.message.len() + self.details.len());
        object(&mut out, |o| {
            o.object("error", |o| {
                o.text("code", self.code);
                o.text("message", &self.message);
                o.name("details").extend_from_slice(&self.details);
            });
        });
        let mut response = respond::json(self.status(), out);
        if self.code == "unauthenticated" {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code == "unsupported_content_encoding" {
            // RFC 9110 §15.5.16.
            response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Some(ms) = self.retry_after_ms {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000).max(1)));
        }
        response
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let mut details = Vec::new();
        object(&mut details, |o| details_of(&error, o));
        ApiError {
            code: error.code(),
            message: error.to_string(),
            details,
            retry_after_ms: retry_after_ms(&error),
            blame: error.blame(),
        }
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let Denied { code, message, retry_after_ms } = denied;
        let error = ApiError::new(code, message);
        match retry_after_ms {
            None => error,
            Some(ms) => ApiError { retry_after_ms, ..error.with(|o| o.number("retry_after_ms", ms)) },
        }
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Own(code, message) => ApiError::new(code, message),
            TokenError::Engine(error) => error.into(),
        }
    }
}

impl From<Box<Fault>> for ApiError {
    fn from(fault: Box<Fault>) -> Self {
        let prefix = if fault.field.is_empty() { String::new() } else { format!("{}: ", fault.field) };
        let mut error = match fault.engine {
            Some(error) => ApiError::from(error),
            None => ApiError::new(fault.code, fault.reason).with(|o| {
                if !fault.field.is_empty() {
                    o.text("field", &fault.field);
                }
                if !fault.allowed.is_empty() {
                    o.list("allowed", fault.allowed, |out, name| push_text(out, name));
                }
            }),
        };
        error.message.insert_str(0, &prefix);
        error
    }
}

/// Appends the result of one item: `{"ok":true}`, or with the error.
pub(crate) fn push_result(out: &mut Vec<u8>, result: &Result<(), Error>) {
    match result {
        Ok(()) => out.extend_from_slice(br#"{"ok":true}"#),
        Err(Error::AlreadySettled { .. }) => {
            out.extend_from_slice(br#"{"ok":true,"already_settled":true}"#);
        }
        Err(error) => object(out, |o| {
            o.boolean("ok", false);
            o.object("error", |o| {
                o.text("code", error.code());
                o.text("message", &error.to_string());
                o.object("details", |o| details_of(error, o));
            });
        }),
    }
}

/// The answer to a list of items.
pub(crate) fn results(results: &[Result<(), Error>]) -> Json {
    let mut out = Vec::with_capacity(16 + results.len() * 12);
    object(&mut out, |o| push_list(o.name("results"), results, push_result));
    Json::new(StatusCode::OK, out)
}

fn details_of(error: &Error, o: &mut Object<'_>) {
    error.fields(|name, value| match value {
        FieldValue::Text(text) => o.text(name, text),
        FieldValue::Number(number) => o.number(name, number),
    });
}

fn retry_after_ms(error: &Error) -> Option<u64> {
    const LATER_MS: u64 = 1_000;
    match error {
        Error::Overloaded { retry_after_ms, .. } => Some(*retry_after_ms),
        Error::ShuttingDown {} | Error::JournalFailed { .. } | Error::OutcomeUnknown {} => Some(LATER_MS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_error_keeps_its_fields() {
        let error = ApiError::from(Error::BatchTooLarge { what: "messages", size: 3, limit: 2 });
        assert_eq!(error.status(), 413);
        assert_eq!(error.details, br#"{"what":"messages","size":3,"limit":2}"#);
        assert!(!error.is_ours());
    }

    #[test]
    fn what_callers_bring_about_is_no_error_of_the_server() {
        let how = "reject";
        let full = Error::QueueFull { queue: "q".into(), what: "messages", limit: 1, held: 1, how, more: 1 };
        let limit = Error::LimitExceeded { what: "consumers", limit: 1 };
        let quota = Error::QuotaExceeded { what: "messages", limit: 1, held: 1, more: 1 };
        for error in [full, limit, quota, Error::Overloaded { what: "requests", retry_after_ms: 1 }] {
            assert!(!ApiError::from(error.clone()).is_ours(), "{error}");
        }
        for error in
            [Error::DiskFull { free_bytes: 1, needed_bytes: 1 }, Error::Internal { reason: String::new() }]
        {
            assert!(ApiError::from(error.clone()).is_ours(), "{error}");
        }
    }

    #[test]
    fn overload_says_when_to_come_back() {
        let error = ApiError::from(Error::Overloaded { what: "requests", retry_after_ms: 1_200 });
        let response = error.into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "2");
    }

    #[test]
    fn a_fault_names_place_and_what_is_allowed() {
        let error = ApiError::from(Fault::unknown("field", "x", &["a", "b"]).at(3).inside("messages"));
        assert_eq!(error.message, "messages[3].x: unknown field: known here are a, b");
        assert_eq!(error.details, br#"{"field":"messages[3].x","allowed":["a","b"]}"#);
        let error = ApiError::from(Box::<Fault>::from(Error::ShuttingDown {}).inside("a"));
        assert!(error.message.starts_with("a: the server is shutting down"));
        assert_eq!(error.status(), 503);
    }
}
