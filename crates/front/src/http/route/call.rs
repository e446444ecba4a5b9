//! One call: what every handler gets.

use std::sync::Arc;

use http::request::Parts;
use http_body::Body as _;
use serde::Deserialize;
use sluice_calls::{CallError, Operation, Permit, Read};

use crate::http::codec::query::Params;
use crate::json::de::from_optional_body;
use crate::net::body::{BodyRules, Inbound, Upload, read};
use crate::net::context::Context;
use crate::net::in_flight::InFlight;
use crate::net::options::SMALL_BODY_BYTES_MAX;

/// A request whose caller may do what its path names; its body is not read yet.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    pub(crate) context: &'c Arc<Context>,
    pub(crate) in_flight: &'c Arc<InFlight>,
    pub(crate) head: &'c Parts,
    pub(crate) permit: Permit<'c>,
}

impl<'c> Call<'c> {
    /// The operation that is asked for.
    pub(crate) fn operation(&self) -> Operation {
        self.permit.operation()
    }

    /// The queue, message id or namespace in the path; empty if there is none.
    pub(crate) fn name(&self) -> &'c str {
        self.permit.name()
    }

    /// Reads the parameters behind the `?`; `known`: the names of all that the operation takes.
    pub(crate) fn query(&self, known: &'static [&'static str]) -> Read<Params<'c>> {
        Params::read(self.head.uri.query(), known)
    }

    /// Reads a body of any type.
    pub(crate) async fn upload(&self, body: &mut Inbound, bytes_max: usize) -> Result<Upload<'c>, CallError> {
        let rules = BodyRules { bytes_max, timeout: self.context.options.body_timeout };
        read(body, &self.head.headers, rules, &self.context.body_budget).await
    }

    /// Reads a body that is JSON, or empty.
    pub(crate) async fn json(&self, body: &mut Inbound, bytes_max: usize) -> Result<Upload<'c>, CallError> {
        if let Some(value) = self.head.headers.get(http::header::CONTENT_TYPE)
            && !is_json(value.as_bytes())
        {
            let got = String::from_utf8_lossy(value.as_bytes());
            let got: String = got.chars().take(64).collect();
            let message = format!(
                "Content-Type is {got:?}: send application/json (curl: --json), or use the raw routes"
            );
            return Err(
                CallError::new("unsupported_media_type", message).with(|o| o.text("content_type", &got))
            );
        }
        self.upload(body, bytes_max).await
    }

    /// Reads the body of a call that takes none: it is empty, blank, or an object without fields.
    pub(crate) async fn no_body(&self, body: &mut Inbound) -> Result<(), CallError> {
        if !body.is_end_stream() {
            let upload = self.json(body, SMALL_BODY_BYTES_MAX).await?;
            let NoFields {} = from_optional_body(upload.bytes())?;
        }
        Ok(())
    }
}

/// An object without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

/// True when a body of this type is read as JSON: `application/json`, or a type built on it (RFC 6839 §3.1),
/// with any parameters.
pub(crate) fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
        || (essence.len() > 5 && essence[essence.len() - 5..].eq_ignore_ascii_case(b"+json"))
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn json_is_known_by_its_type() {
        for good in ["application/json", "Application/JSON ; charset=utf-8", "application/cloudevents+json"] {
            assert!(is_json(good.as_bytes()), "{good}");
        }
        for bad in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", "+json"] {
            assert!(!is_json(bad.as_bytes()), "{bad}");
        }
    }
}
