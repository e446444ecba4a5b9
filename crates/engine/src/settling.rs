//! Ends of deliveries, and reports on work that goes on.

use crate::id::Receipt;

/// Outcome of a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settlement {
    /// Done.
    Ack,
    /// Failed; tried again after the backoff, or after the delay given.
    Nack {
        /// Overrides the backoff.
        delay_ms: Option<u64>,
    },
    /// Given back; the attempt does not count.
    Release {
        /// Ready after so many milliseconds; 0: at once.
        delay_ms: u64,
    },
    /// Given back for its holder by the server: as a release, but the receipt has settled nothing, so what
    /// the holder does with it from then on is refused.
    GiveBack {
        /// As of `Release`.
        delay_ms: u64,
    },
    /// Never to be tried again: to the dead letters.
    Reject,
}

/// One message to settle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SettleItem<'a> {
    /// The delivery.
    pub receipt: Receipt,
    /// Its end.
    pub settlement: Settlement,
    /// Error text for the history (nack, reject); may be empty.
    pub error: &'a str,
    /// Result of the work (ack).
    pub result: Option<Content<'a>>,
    /// Cost of the delivery beyond that of the message: 0 to [`crate::limit::COST_MAX`].
    pub add_cost: u32,
}

/// Bytes that a consumer hands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Content<'a> {
    /// Media type; empty: unstated.
    pub content_type: &'a str,
    /// Opaque bytes.
    pub bytes: &'a [u8],
}

/// Report of a lease's holder while it works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportItem<'a> {
    /// The delivery.
    pub receipt: Receipt,
    /// The new lease from now in milliseconds; 0: the queue's `lease_ms`.
    pub lease_ms: u64,
    /// Progress; `None`: as reported before.
    pub progress: Option<Progress<'a>>,
    /// Checkpoint for the next attempt; `None`: as reported before.
    pub checkpoint: Option<&'a [u8]>,
    /// Cost of the delivery beyond that of the message and of earlier reports: 0 to
    /// [`crate::limit::COST_MAX`].
    pub add_cost: u32,
}

/// Progress of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress<'a> {
    /// 0 to 100.
    pub percent: u8,
    /// A word about it; may be empty.
    pub note: &'a str,
}
