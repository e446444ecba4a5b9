//! Messages as they are stored: state, history, results.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base64;
use crate::changes::Changed;
use crate::consumers::Holder;
use crate::error::ClientError;
use crate::types::not_understood;

/// One ended attempt of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Outcome: `nacked`, `released`, `rejected` or `expired`.
    pub end: String,
    /// Time of the delivery, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// Time of its end, in milliseconds since the Unix epoch.
    pub ended_at_ms: u64,
    /// The error text, when one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A stored message, read without being delivered.
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
    /// Time of the send, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// Delayed: time at which it becomes ready. Held: earliest time of that, once it is approved. Leased: end
    /// of the lease. In milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Leased: its holder, if that has a name or is attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Blocked: what it waits for, `ordering_key`, `limit`, `parents` or `consumer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Ordering key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<String>,
    /// Fair key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_key: Option<String>,
    /// Limit key, against which the queue's limit per key counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_key: Option<String>,
    /// Cost of each of its deliveries under the rates of its queue's limit; `None`: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// Unique key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_key: Option<String>,
    /// Time at which it expires if it still waits, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// The queue in which it died, if that was another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_queue: Option<String>,
    /// Reason why it is dead or held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time at which it became dead or held, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_at_ms: Option<u64>,
    /// Leased: proof of the running delivery, for operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// True when the payload was asked for and is damaged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_damaged: bool,
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
    /// Correlation id, by which the sender recognises the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The queue that gets the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Progress that its holder has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Done: when it was acked, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at_ms: Option<u64>,
    /// Done: until when it is kept at least, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until_ms: Option<u64>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Leased: whether it was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Another one after each change.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Changes of the message with author and reason, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// Ended attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Attempt>,
    /// Fields of a newer server that this client does not know, and the backoff.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Stored {
    /// The payload's bytes; `None` when it was not asked for or could not be read.
    pub fn payload_bytes(&self) -> Result<Option<Cow<'_, [u8]>>, ClientError> {
        bytes_of(self.payload.as_deref(), self.payload_base64.as_deref())
    }
}

/// Bytes that are given as text or as base64.
pub(crate) fn bytes_of<'a>(
    text: Option<&'a str>,
    base64: Option<&str>,
) -> Result<Option<Cow<'a, [u8]>>, ClientError> {
    match (text, base64) {
        (Some(text), _) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
        (None, Some(text)) => base64::decode(text).map(|b| Some(Cow::Owned(b))).map_err(not_understood),
        (None, None) => Ok(None),
    }
}

/// Progress that the holder of a message has reported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// Note of the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// The outcome of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Awaited {
    /// `done`, `dead` or `pending`.
    pub state: String,
    /// Done: result of its ack, when that is UTF-8; [`Awaited::result_bytes`] returns either form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The same in base64, when it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
    /// Media type of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_content_type: Option<String>,
    /// Done: time of the ack, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at_ms: Option<u64>,
    /// Done: time until which the result is kept at least, in milliseconds since the Unix epoch; `None`: not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until_ms: Option<u64>,
    /// Dead: the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Dead: since this time, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_at_ms: Option<u64>,
    /// Pending: how far its holder says that it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// A search for messages of a queue. The default finds all of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MessageSearch<'a> {
    /// Filter that a message matches, such as `{"/state": "dead", "/tags": {"contains": "vip"}}`.
    pub filter: Option<Value>,
    /// Most messages of a page, up to 1,000; `None`: the server's default.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<&'a str>,
    /// True: messages come with payloads, content types, headers, tags and histories.
    pub payload: bool,
}

impl MessageSearch<'_> {
    /// The body of the request.
    pub(crate) fn body(&self) -> String {
        let mut fields = json!({"payload": self.payload});
        let optional = [
            ("where", self.filter.clone()),
            ("limit", self.limit.map(Value::from)),
            ("cursor", self.cursor.map(Value::from)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                fields[name] = value;
            }
        }
        fields.to_string()
    }
}

/// Messages that match, by id, and how far the search is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MessagesFound {
    /// The messages. There may be few of them, even none, and a next page.
    pub messages: Vec<Stored>,
    /// Number of messages that were looked at for this page.
    pub scanned: u64,
    /// Number of messages of the queue, in the state that the filter names, if it is one.
    pub total: u64,
    /// Place at which the next page begins; `None`: all messages were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Index of the queue that was used, `tags` or `errors`; `None`: messages were looked at one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

/// A page of messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredPage {
    /// Messages of the page; may be empty although there is a next page.
    pub messages: Vec<Stored>,
    /// Cursor of the next page; `None`: this is the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
