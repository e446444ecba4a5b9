//! Responses of the HTTP API. Fields that a newer server adds are kept in `extra`, so that nothing is lost in passing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base64;
use crate::error::ClientError;

/// How the delay before the next attempt grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffKind {
    /// No delay.
    None,
    /// Always the base.
    Fixed,
    /// Base × attempts so far.
    Linear,
    /// Base × 2^(attempts so far − 1).
    Exponential,
}

impl fmt::Display for BackoffKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BackoffKind::None => "none",
            BackoffKind::Fixed => "fixed",
            BackoffKind::Linear => "linear",
            BackoffKind::Exponential => "exponential",
        })
    }
}

/// The delay before the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backoff {
    /// How it grows.
    pub kind: BackoffKind,
    /// The first delay, in milliseconds.
    pub base_ms: u64,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// Variation, 0 to 100.
    pub jitter_percent: u8,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { kind: BackoffKind::Exponential, base_ms: 1_000, cap_ms: 600_000, jitter_percent: 10 }
    }
}

/// The error object of an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Stable snake_case code.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// More about it; `null` when there is nothing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// What came of one item of a settle or extend.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ItemResult {
    /// Whether it took effect.
    pub ok: bool,
    /// Whether this receipt had settled its message before; `ok` is true then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already_settled: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// Ids of sent messages, borrowed from the answer.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct SentIds<'a> {
    /// One per message, in order.
    #[serde(borrow)]
    pub ids: Vec<&'a str>,
    /// Whether the idempotency key had been used for this request before.
    pub duplicate: bool,
}

/// The answer to a send, not yet decoded.
#[derive(Clone, Debug)]
pub struct SentBody(pub(crate) Bytes);

impl SentBody {
    /// The ids.
    pub fn decode(&self) -> Result<SentIds<'_>, ClientError> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            id: Option<&'a str>,
            #[serde(borrow, default)]
            ids: Vec<&'a str>,
            #[serde(default)]
            duplicate: bool,
        }
        let wire: Wire<'_> = parse(&self.0)?;
        let mut ids = wire.ids;
        ids.extend(wire.id);
        Ok(SentIds { ids, duplicate: wire.duplicate })
    }
}

/// Text that is borrowed from the answer unless it had escapes.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct DeliveredText<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// A message in this consumer's hands, borrowed from the answer.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct DeliveredRef<'a> {
    /// Its id.
    pub id: &'a str,
    /// Proof of this delivery: settle with it.
    pub receipt: &'a str,
    /// Name of its queue.
    pub queue: &'a str,
    #[serde(borrow)]
    payload: Option<DeliveredText<'a>>,
    payload_base64: Option<&'a str>,
    /// Media type of the payload.
    #[serde(borrow)]
    pub content_type: Option<DeliveredText<'a>>,
    /// Names and values.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// 0 to 9.
    #[serde(default)]
    pub priority: u8,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Deliveries so far, counted as attempts or not.
    #[serde(default)]
    pub deliveries: u32,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// When the lease ends, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
}

impl DeliveredRef<'_> {
    /// The payload's bytes.
    pub fn payload(&self) -> Result<Cow<'_, [u8]>, ClientError> {
        match (&self.payload, self.payload_base64) {
            (Some(text), _) => Ok(Cow::Borrowed(text.0.as_bytes())),
            (None, Some(text)) => base64::decode(text).map(Cow::Owned).map_err(not_understood),
            (None, None) => Ok(Cow::Borrowed(&[])),
        }
    }

    /// The same, owning its bytes.
    pub fn to_owned(&self) -> Result<Delivered, ClientError> {
        Ok(Delivered {
            id: self.id.to_owned(),
            receipt: self.receipt.to_owned(),
            queue: self.queue.to_owned(),
            payload: Payload(self.payload()?.into_owned()),
            content_type: self.content_type.as_ref().map(|t| t.0.clone().into_owned()),
            headers: self.headers.clone(),
            priority: self.priority,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            deliveries: self.deliveries,
            sent_at_ms: self.sent_at_ms,
            lease_until_ms: self.lease_until_ms,
        })
    }
}

/// The answer to a receive, not yet decoded.
#[derive(Clone, Debug)]
pub struct ReceivedBody(pub(crate) Bytes);

impl ReceivedBody {
    /// The messages, borrowed.
    pub fn decode(&self) -> Result<Vec<DeliveredRef<'_>>, ClientError> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            messages: Vec<DeliveredRef<'a>>,
        }
        Ok(parse::<Wire<'_>>(&self.0)?.messages)
    }
}

/// Bytes of a payload; in JSON `payload` when they are UTF-8, else `payload_base64`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payload(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
struct PayloadWire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = match std::str::from_utf8(&self.0) {
            Ok(text) => PayloadWire { payload: Some(text.to_owned()), payload_base64: None },
            Err(_) => {
                let mut text = String::new();
                base64::append(&self.0, &mut text);
                PayloadWire { payload: None, payload_base64: Some(text) }
            }
        };
        wire.serialize(serializer)
    }
}

/// A message in this consumer's hands.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Delivered {
    /// Its id.
    pub id: String,
    /// Proof of this delivery: settle with it.
    pub receipt: String,
    /// Name of its queue.
    pub queue: String,
    /// Its bytes.
    #[serde(flatten)]
    pub payload: Payload,
    /// Media type of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Names and values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// 0 to 9.
    pub priority: u8,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Deliveries so far, counted as attempts or not.
    pub deliveries: u32,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// When the lease ends, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
}

/// Settings of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueSettings {
    /// The lease of a receive that names none, in milliseconds.
    pub lease_ms: u64,
    /// Attempts of a message that names none.
    pub max_attempts: u32,
    /// Deliveries in all before a message becomes a dead letter.
    pub max_deliveries: u32,
    /// Backoff of a message that names none.
    pub backoff: Backoff,
}

/// A change of queue settings: what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QueueChange {
    /// See [`QueueSettings::lease_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// See [`QueueSettings::max_attempts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// See [`QueueSettings::max_deliveries`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_deliveries: Option<u32>,
    /// See [`QueueSettings::backoff`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// Messages of a queue by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Wait for their time.
    pub delayed: u64,
    /// Wait for a consumer.
    pub ready: u64,
    /// Held by a consumer.
    pub leased: u64,
    /// Wait for a person.
    pub held: u64,
    /// Dead letters.
    pub dead: u64,
    /// Wait on what blocks them: another message, or a limit.
    #[serde(default)]
    pub blocked: u64,
    /// Finished, and kept for a while.
    #[serde(default)]
    pub done: u64,
}

/// What a queue has ever done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Ever sent.
    pub sent: u64,
    /// Ever delivered.
    pub delivered: u64,
    /// Ever acked.
    pub acked: u64,
    /// Ever nacked.
    pub nacked: u64,
    /// Ever released.
    pub released: u64,
    /// Ever rejected.
    pub rejected: u64,
    /// Leases that ended by themselves.
    pub expired: u64,
    /// Ever turned into dead letters.
    pub died: u64,
    /// Ever redriven.
    pub redriven: u64,
    /// Ever dropped by purge or deletion.
    pub dropped: u64,
}

/// A queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its settings.
    pub settings: QueueSettings,
    /// Messages by state.
    pub counts: Counts,
    /// What it has ever done.
    pub totals: Totals,
    /// Bytes of content types, headers and payloads.
    pub bytes: u64,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Age of the message that stands first in line, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_age_ms: Option<u64>,
    /// What a newer server added.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One ended attempt of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How it ended: `nacked`, `released`, `rejected`, `expired`.
    pub end: String,
    /// When it was delivered, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// When it ended, in milliseconds since the Unix epoch.
    pub ended_at_ms: u64,
    /// The error text, when one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A message that was looked at, not taken.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// Name of its queue.
    pub queue: String,
    /// `delayed`, `ready`, `leased`, `held`, `dead`, `blocked` or `done`.
    pub state: String,
    /// 0 to 9.
    #[serde(default)]
    pub priority: u8,
    /// Attempts begun.
    pub attempts: u32,
    /// Attempts allowed.
    pub max_attempts: u32,
    /// Deliveries, counted as attempts or not.
    #[serde(default)]
    pub deliveries: u32,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// Delayed: when it becomes ready. Leased: when the lease ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Why it is dead or held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it became dead or held, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_at_ms: Option<u64>,
    /// Leased: proof of the running delivery, for operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// The payload, when it is UTF-8 and was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload in base64, when it is not UTF-8 and was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// Media type of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Names and values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Bytes of content type, headers and payload.
    #[serde(default)]
    pub size_bytes: u64,
    /// Ended attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Attempt>,
    /// What a newer server added, and the backoff.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Stored {
    /// The payload's bytes; `None` when it was not asked for or could not be read.
    pub fn payload_bytes(&self) -> Result<Option<Cow<'_, [u8]>>, ClientError> {
        match (&self.payload, &self.payload_base64) {
            (Some(text), _) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
            (None, Some(text)) => base64::decode(text).map(|b| Some(Cow::Owned(b))).map_err(not_understood),
            (None, None) => Ok(None),
        }
    }
}

/// A page of messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredPage {
    /// What was found; may be empty although there is a next page.
    pub messages: Vec<Stored>,
    /// Where to go on; `None`: this was the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a namespace may hold; 0: no quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quotas {
    /// Queues.
    pub queues: u64,
    /// Messages in any state.
    pub messages: u64,
    /// Bytes of payloads and headers.
    pub bytes: u64,
}

/// A change of quotas: what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QuotaChange {
    /// See [`Quotas::queues`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u64>,
    /// See [`Quotas::messages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// See [`Quotas::bytes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A namespace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// The shard that it lives on.
    pub shard: u32,
    /// What it may hold.
    pub quotas: Quotas,
    /// Queues that it holds.
    pub queues: u64,
    /// Messages that it holds, in any state.
    pub messages: u64,
    /// Bytes that it holds.
    pub bytes: u64,
    /// When it was created, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub created_at_ms: u64,
    /// What a newer server added.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Decodes an answer of a call that succeeded.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|e| not_understood(e.to_string()))
}

fn not_understood(reason: String) -> ClientError {
    ClientError::Protocol { status: 200, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_borrowed_unless_it_has_escapes() {
        let body = ReceivedBody(Bytes::from_static(
            br#"{"messages":[{"id":"i","receipt":"r","queue":"q","payload":"plain","attempt":1,"max_attempts":5,
            "sent_at_ms":1,"lease_until_ms":2,"new_field":[1]},
            {"id":"i","receipt":"r","queue":"q","payload_base64":"/wA=","attempt":1,"max_attempts":5,
            "sent_at_ms":1,"lease_until_ms":2,"content_type":"a\"b"}]}"#,
        ));
        let messages = body.decode().unwrap();
        assert!(matches!(messages[0].payload, Some(DeliveredText(Cow::Borrowed("plain")))));
        assert_eq!(messages[1].payload().unwrap().as_ref(), &[0xff, 0x00]);
        let owned = messages[1].to_owned().unwrap();
        assert_eq!(serde_json::to_value(&owned).unwrap()["payload_base64"], "/wA=");
        assert_eq!(owned.content_type.as_deref(), Some("a\"b"));
    }

    #[test]
    fn one_id_or_several() {
        let one = SentBody(Bytes::from_static(br#"{"id":"a","duplicate":true}"#));
        assert_eq!(one.decode().unwrap(), SentIds { ids: vec!["a"], duplicate: true });
        let two = SentBody(Bytes::from_static(br#"{"ids":["a","b"],"duplicate":false}"#));
        assert_eq!(two.decode().unwrap().ids, ["a", "b"]);
    }
}
