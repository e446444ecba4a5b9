//! Calls by their place in the description of the API, for programs that read that.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::client::{Client, encoded, put_key};
use crate::error::ClientError;
use crate::retry::Safety;
use crate::types::parse;

/// A call as the description of the API names it (`GET /openapi.json`).
#[derive(Clone, Copy, Debug)]
pub struct AnyCall<'a> {
    /// Method of HTTP, such as `GET`.
    pub method: &'a str,
    /// Segments of the path behind `/v1`, not encoded.
    pub segments: &'a [&'a str],
    /// True: the call is in the client's namespace.
    pub in_namespace: bool,
    /// Names and values of the query.
    pub query: &'a [(String, String)],
    /// The body; `None`: none is sent.
    pub body: Option<&'a Value>,
    /// Idempotency key.
    pub key: Option<&'a str>,
    /// True: a repeat has no further effect, so that the call is repeated when its connection breaks.
    pub repeatable: bool,
    /// Time for which the server waits before it answers.
    pub wait: Duration,
}

impl Client {
    /// Makes a call and returns its answer.
    ///
    /// # Errors
    /// Those of the call; [`ClientError::Protocol`] when the answer is not JSON, or the method is none.
    pub async fn any(&self, asked: &AnyCall<'_>) -> Result<Value, ClientError> {
        let method = Method::from_bytes(asked.method.as_bytes()).map_err(|_| ClientError::Protocol {
            status: 0,
            reason: format!("{:?} is no method", asked.method),
        })?;
        let mut rest = String::new();
        for segment in asked.segments {
            rest.push('/');
            rest.push_str(&encoded(segment));
        }
        let mut path = if asked.in_namespace { self.path(&rest) } else { format!("/v1{rest}") };
        for (at, (name, value)) in asked.query.iter().enumerate() {
            path.push(if at == 0 { '?' } else { '&' });
            path.push_str(&format!("{}={}", encoded(name), encoded(value)));
        }
        let body = asked.body.map(Value::to_string).unwrap_or_default();
        let safety = if asked.repeatable { Safety::Repeatable } else { Safety::Once };
        let mut call = self.call(method, path, body);
        call.timeout = call.timeout.saturating_add(asked.wait);
        if let Some(key) = asked.key {
            put_key(&mut call, key)?;
        }
        parse(&self.run(call, safety).await?.body)
    }
}
