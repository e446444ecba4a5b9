//! Settling: its requests and answers, items that are refused one by one, and the order of the results.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sluice_engine::Error;
use sluice_engine::command::Settlement;
use sluice_engine::id::Receipt;
use sluice_engine::limit::COST_MAX;
use sluice_engine::limits::DELAY_MS_MAX;

use super::RECEIPT_EXAMPLE;
use crate::error::ErrorBody;
use crate::payload::{Octets, Text};
use crate::value::{True, Within, Word, words};

/// Cost that is added to that of a delivery.
pub type AddCost = Within<0, { COST_MAX as u64 }>;

/// Kind of a settlement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The work is done; the message is gone, or kept as done.
    Ack,
    /// The attempt has failed; the message is delivered again, or becomes a dead letter.
    Nack,
    /// The message goes back without an attempt.
    Release,
    /// The message becomes a dead letter at once.
    Reject,
}

words! {
    Outcome:
        "ack" = Outcome::Ack,
        "nack" = Outcome::Nack,
        "release" = Outcome::Release,
        "reject" = Outcome::Reject;
}

impl Outcome {
    /// The settlement with this outcome; the delay, in milliseconds, counts for a nack and a release alone.
    pub fn settlement(self, delay_ms: Option<u64>) -> Settlement {
        match self {
            Outcome::Ack => Settlement::Ack,
            Outcome::Nack => Settlement::Nack { delay_ms },
            Outcome::Release => Settlement::Release { delay_ms: delay_ms.unwrap_or(0) },
            Outcome::Reject => Settlement::Reject,
        }
    }
}

/// Declares the request to settle one delivery or many with one outcome: these fields, and the receipts.
macro_rules! settle_request {
    ($(#[$attribute:meta])* $name:ident { $($fields:tt)* }) => {
        #[derive(Clone, Debug, JsonSchema)]
        $(#[$attribute])*
        #[schemars(
            untagged,
            deny_unknown_fields,
            example = json!({"receipt": RECEIPT_EXAMPLE}),
            example = json!({"receipts": [RECEIPT_EXAMPLE]}),
        )]
        pub enum $name {
            /// One delivery.
            One {
                /// Receipt of the delivery.
                receipt: String,
                /// Cost of the work beyond that of the message; default 0.
                add_cost: Option<AddCost>,
                $($fields)*
            },
            /// Many deliveries.
            Many {
                /// Receipts of the deliveries, at least one.
                receipts: Vec<String>,
                /// Cost of the work of each beyond that of its message; default 0.
                add_cost: Option<AddCost>,
                $($fields)*
            },
        }
    };
}

settle_request! {
    /// Deliveries whose work is done.
    AckRequest {
        /// Result of the work as UTF-8 text, up to 256 KiB.
        result: Option<Text>,
        /// Result of the work as standard base64 with padding; not together with `result`.
        result_base64: Option<Octets>,
        /// Media type of the result.
        result_content_type: Option<String>,
    }
}

settle_request! {
    /// Deliveries whose attempt has failed.
    NackRequest {
        /// The error, for the history; cut at 4,096 bytes.
        error: Option<String>,
        /// Delay until the message is ready again, in milliseconds; default: its backoff.
        delay_ms: Option<Within<0, DELAY_MS_MAX>>,
    }
}

settle_request! {
    /// Deliveries to give back: they count as no attempt.
    ReleaseRequest {
        /// Delay until the message is ready again, in milliseconds; default 0.
        delay_ms: Option<Within<0, DELAY_MS_MAX>>,
    }
}

settle_request! {
    /// Deliveries whose messages become dead letters at once.
    RejectRequest {
        /// The error, for the history; cut at 4,096 bytes.
        error: Option<String>,
    }
}

/// Deliveries to settle, each with an outcome of its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({
    "items": [{"receipt": RECEIPT_EXAMPLE, "outcome": "nack", "error": "timeout", "delay_ms": 5_000}],
}))]
pub struct SettleRequest {
    /// At least one.
    pub items: Vec<SettleRequestItem>,
}

/// A delivery to settle.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SettleItem")]
pub struct SettleRequestItem {
    /// Receipt of the delivery.
    pub receipt: String,
    /// Kind of the settlement.
    pub outcome: Word<Outcome>,
    /// Cost of the work beyond that of the message; default 0.
    pub add_cost: Option<AddCost>,
    /// `nack` and `reject`: the error, for the history; cut at 4,096 bytes.
    pub error: Option<String>,
    /// `nack` and `release`: delay until the message is ready again, in milliseconds; default: the backoff
    /// for `nack`, 0 for `release`.
    pub delay_ms: Option<Within<0, DELAY_MS_MAX>>,
    /// `ack`: result of the work as UTF-8 text, up to 256 KiB.
    pub result: Option<Text>,
    /// `ack`: result of the work as standard base64 with padding; not together with `result`.
    pub result_base64: Option<Octets>,
    /// `ack`: media type of the result.
    pub result_content_type: Option<String>,
}

/// The results of the items of a request, in its order.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(example = json!({"results": [{"ok": true}, {"ok": true, "already_settled": true}]}))]
pub struct Results {
    /// One for each item.
    pub results: Vec<ItemResult>,
}

/// The result of an item.
#[derive(Clone, Debug, JsonSchema)]
pub struct ItemResult {
    /// True when it was done, now or before.
    pub ok: bool,
    /// True when this receipt had settled its message before; absent when it had not.
    pub already_settled: Option<True>,
    /// Why it was not done.
    pub error: Option<ErrorBody>,
}

/// The answer to a request with one receipt, or the results of many.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged, deny_unknown_fields, example = json!({}), example = json!({"already_settled": true}))]
pub enum Settled {
    /// One delivery.
    One {
        /// True when this receipt had settled its message before; absent when it had not.
        already_settled: Option<True>,
    },
    /// Many deliveries.
    Many(Results),
}

/// Items that were refused before the node saw them, with their place in the request.
pub type Refused = Vec<(usize, Error)>;
/// Items of the receipts that could be read, and errors of the others.
pub type Parsed<T> = (Vec<T>, Refused);

/// Results in the order of the request: those of the node, and between them those refused before.
pub fn in_order(done: Vec<Result<(), Error>>, refused: Refused) -> Vec<Result<(), Error>> {
    if refused.is_empty() {
        return done;
    }
    let mut rest = done.into_iter();
    let mut merged = Vec::with_capacity(rest.len() + refused.len());
    for (at, error) in refused {
        merged.extend(rest.by_ref().take(at - merged.len()));
        merged.push(Err(error));
    }
    merged.extend(rest);
    merged
}

/// Makes an item of each receipt that can be read, of its place and itself; the others are refused at theirs.
pub fn parse_receipts<'s, T>(
    texts: impl Iterator<Item = &'s str>,
    item: impl Fn(usize, Receipt) -> T,
) -> Parsed<T> {
    let mut good = Vec::with_capacity(texts.size_hint().0);
    let mut refused = Vec::new();
    for (at, text) in texts.enumerate() {
        match text.parse::<Receipt>() {
            Ok(receipt) => good.push(item(at, receipt)),
            Err(error) => refused.push((at, error)),
        }
    }
    (good, refused)
}
