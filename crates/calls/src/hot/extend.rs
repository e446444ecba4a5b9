//! Extending leases, with reports on the work: the request.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sluice_engine::limits::LEASE_MS_MAX;

use super::RECEIPT_EXAMPLE;
use crate::payload::{Octets, Text};
use crate::value::Within;

/// One delivery to extend, or many.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(
    untagged,
    deny_unknown_fields,
    example = json!({"receipt": RECEIPT_EXAMPLE, "lease_ms": 60_000}),
    example = json!({"items": [{"receipt": RECEIPT_EXAMPLE, "progress": {"percent": 40}}]}),
)]
pub enum ExtendRequest {
    /// One delivery.
    One(Extension),
    /// Many deliveries.
    Many {
        /// At least one.
        items: Vec<Extension>,
    },
}

/// A delivery to extend, and a report on its work.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// Receipt of the delivery.
    pub receipt: String,
    /// The lease from now on, in milliseconds; the queue's unless told.
    pub lease_ms: Option<Within<1, LEASE_MS_MAX>>,
    /// How far the work has come.
    pub progress: Option<ProgressReport>,
    /// What the next attempt can go on from, as UTF-8 text of up to 256 KiB.
    pub checkpoint: Option<Text>,
    /// What the next attempt can go on from, as standard base64 with padding; not together with
    /// `checkpoint`.
    pub checkpoint_base64: Option<Octets>,
}

/// How far the work on a message has come.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressReport {
    /// 0 to 100.
    pub percent: Within<0, 100>,
    /// A note on it, of up to 1,024 bytes.
    pub note: Option<String>,
}
