//! One call: what every handler gets.

use std::sync::Arc;

use http::request::Parts;
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Peer};
use sluice_engine::NamespaceId;
use sluice_engine::query::NamespaceView;
use sluice_node::Node;

use super::table::Operation;
use crate::hot::permission::DEFAULT_NAMESPACE;
use crate::http::codec::query::Params;
use crate::json::Read;
use crate::net::body::{BodyRules, Inbound, Upload, read};
use crate::net::context::Context;
use crate::net::in_flight::InFlight;
use crate::net::options::{FIELDS_BYTES, PAGE_BYTES_MAX};

/// A request that has found its route; its body is not read yet.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    pub(crate) context: &'c Arc<Context>,
    pub(crate) in_flight: &'c Arc<InFlight>,
    pub(crate) head: &'c Parts,
    /// Who calls; that they may, as far as the path tells, has been seen to.
    pub(crate) caller: &'c Caller,
    /// The other end of the connection.
    pub(crate) peer: &'c Arc<Peer>,
    /// What is asked.
    pub(crate) operation: Operation,
    /// The namespace in the path; `None`: the default.
    pub(crate) namespace: Option<&'c str>,
    /// The queue, message id or namespace in the path; empty if there is none.
    pub(crate) name: &'c str,
}

impl<'c> Call<'c> {
    pub(crate) fn node(&self) -> &'c Node {
        &self.context.node
    }

    /// The number of the namespace that the path is in.
    pub(crate) fn namespace_id(&self) -> Result<NamespaceId, CallError> {
        match self.namespace {
            None => Ok(NamespaceId::DEFAULT),
            Some(name) => Ok(self.node().namespace_id(name)?),
        }
    }

    /// The name of the namespace that the path is in.
    pub(crate) fn namespace_name(&self) -> &'c str {
        self.namespace.unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The parameters behind the `?`: those that its operation knows.
    pub(crate) fn query(&self) -> Read<Params<'c>> {
        Params::read(self.head.uri.query(), self.operation.parameters())
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

    /// Sets room aside for an answer with up to so many messages; tells how many bytes it may have.
    pub(crate) fn room_for(&self, messages: usize) -> Result<usize, CallError> {
        let limits = self.node().limits();
        let each = limits.payload_bytes as usize + limits.headers_bytes as usize + FIELDS_BYTES;
        Ok(self.in_flight.share.reserve_up_to(messages.saturating_mul(each).min(PAGE_BYTES_MAX))?)
    }

    /// The namespaces of the node, by name.
    pub(crate) async fn namespaces(&self) -> Result<Vec<NamespaceView>, CallError> {
        Ok(self.node().namespaces().await?)
    }
}

/// Whether a body of this type is read as JSON: `application/json`, or a type built on it (RFC 6839 §3.1), with any parameters.
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
