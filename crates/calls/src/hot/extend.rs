//! Extending leases, with reports on the work: the request.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sluice_engine::limits::LEASE_MS_MAX;

use super::RECEIPT_EXAMPLE;
use super::settle::AddCost;
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
    /// The lease from now on, in milliseconds; default: the queue's.
    pub lease_ms: Option<Within<1, LEASE_MS_MAX>>,
    /// Progress of the work.
    pub progress: Option<ProgressReport>,
    /// Checkpoint for the next attempt, as UTF-8 text of up to 256 KiB.
    pub checkpoint: Option<Text>,
    /// Checkpoint for the next attempt, as standard base64 with padding; not together with `checkpoint`.
    pub checkpoint_base64: Option<Octets>,
    /// Cost of the work beyond that of the message and of earlier reports; default 0.
    pub add_cost: Option<AddCost>,
}

/// Progress of the work on a message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressReport {
    /// 0 to 100.
    pub percent: Within<0, 100>,
    /// A note on it, of up to 1,024 bytes.
    pub note: Option<String>,
}
