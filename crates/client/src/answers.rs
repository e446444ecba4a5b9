//! The answers of the hot calls: send, receive, settle and extend. Read by hand, and borrowed from the answer
//! where that can be.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use crate::base64;
use crate::error::ClientError;
use crate::json::{Read, Reader};
use crate::transactions::Begun;
use crate::types::{ErrorBody, not_understood};

/// Bytes that a delivered message takes in an answer, at least: for the room of the list.
const DELIVERED_BYTES: usize = 192;
/// Results for which room is made at once.
const RESULTS_ROOM_MAX: usize = 10_000;

/// The result of one item of a settle or an extend.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ItemResult {
    /// True when the item succeeded.
    pub ok: bool,
    /// True when this receipt had settled its message before; `ok` is true then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already_settled: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// Ids of sent messages, borrowed from the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct SentIds<'a> {
    /// One per message, in order.
    pub ids: Vec<Cow<'a, str>>,
    /// True when the idempotency key had been used for this request before.
    pub duplicate: bool,
    /// Places, from 0, of the messages of a list that are duplicates by their unique key: each has the id of
    /// the first with its key.
    pub duplicates: Vec<u32>,
}

/// The answer to a send, not yet decoded.
#[derive(Clone, Debug)]
pub struct SentBody(pub(crate) Bytes);

impl SentBody {
    /// The ids.
    pub fn decode(&self) -> Result<SentIds<'_>, ClientError> {
        understood(read_sent(&self.0))
    }
}

/// A delivered message, borrowed from the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct DeliveredRef<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// Receipt of this delivery, with which it is settled.
    pub receipt: Cow<'a, str>,
    /// Name of its queue.
    pub queue: Cow<'a, str>,
    /// Payload.
    pub payload: Cow<'a, [u8]>,
    /// Media type of the payload.
    pub content_type: Option<Cow<'a, str>>,
    /// Names and values.
    pub headers: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Priority, 0 to 9.
    pub priority: u8,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Deliveries so far, counted as attempts or not.
    pub deliveries: u32,
    /// Time of the send, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// End of the lease, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
    /// Optional fields, if it has any.
    pub details: Option<Box<Details>>,
}

/// The optional fields of a delivered message.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Details {
    /// Correlation id, by which the sender recognises the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Name of the queue to which its result is sent as a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Checkpoint that an earlier attempt has stored.
    #[serde(flatten, serialize_with = "checkpoint")]
    pub checkpoint: Option<Vec<u8>>,
    /// Name of the queue in which it became a dead letter before it was moved to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_queue: Option<String>,
    /// Reason why it became a dead letter there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `checkpoint` when the bytes are UTF-8, else `checkpoint_base64`.
fn checkpoint<S: serde::Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    let fields = bytes.iter().map(|bytes| match std::str::from_utf8(bytes) {
        Ok(text) => ("checkpoint", text.to_owned()),
        Err(_) => {
            let mut text = String::new();
            base64::append(bytes, &mut text);
            ("checkpoint_base64", text)
        }
    });
    serializer.collect_map(fields)
}

impl DeliveredRef<'_> {
    /// Converts into an owned message; a payload borrowed from `body` becomes a slice of it.
    fn detach(self, body: &Bytes) -> Delivered {
        let payload = match self.payload {
            Cow::Borrowed(payload) => body.slice_ref(payload),
            Cow::Owned(payload) => Bytes::from(payload),
        };
        let headers = self.headers.into_iter();
        Delivered {
            id: self.id.into_owned(),
            receipt: self.receipt.into_owned(),
            queue: self.queue.into_owned(),
            payload: Payload(payload),
            content_type: self.content_type.map(Cow::into_owned),
            headers: headers.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
            priority: self.priority,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            deliveries: self.deliveries,
            sent_at_ms: self.sent_at_ms,
            lease_until_ms: self.lease_until_ms,
            details: self.details,
        }
    }
}

/// The answer to a receive, not yet decoded.
#[derive(Clone, Debug)]
pub struct ReceivedBody(pub(crate) Bytes);

impl ReceivedBody {
    /// Decodes the messages, borrowed from the answer.
    pub fn decode(&self) -> Result<Vec<DeliveredRef<'_>>, ClientError> {
        Ok(self.decode_enlisted()?.0)
    }

    /// Decodes the messages, and the transaction that was begun for them: see [`Client::receive_and_begin`].
    ///
    /// [`Client::receive_and_begin`]: crate::Client::receive_and_begin
    pub fn decode_enlisted(&self) -> Result<(Vec<DeliveredRef<'_>>, Option<Begun>), ClientError> {
        understood(read_received(&self.0))
    }

    /// Decodes the messages into values of their own; payloads share the answer's memory, see [`Payload`].
    pub fn detach(&self) -> Result<Vec<Delivered>, ClientError> {
        Ok(self.decode()?.into_iter().map(|message| message.detach(&self.0)).collect())
    }
}

/// Bytes of a payload; in JSON `payload` when they are UTF-8, else `payload_base64`.
///
/// They may be a piece of the answer that they came in, which stays in memory as long as one of its payloads
/// does: copy what is kept for long (`to_vec`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payload(pub Bytes);

#[derive(Serialize)]
struct PayloadWire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = match std::str::from_utf8(&self.0) {
            Ok(text) => PayloadWire { payload: Some(text), payload_base64: None },
            Err(_) => {
                let mut text = String::new();
                base64::append(&self.0, &mut text);
                PayloadWire { payload: None, payload_base64: Some(text) }
            }
        };
        wire.serialize(serializer)
    }
}

/// A delivered message: held by this consumer until its lease ends or it is settled.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Delivered {
    /// Its id.
    pub id: String,
    /// Receipt of this delivery, with which it is settled.
    pub receipt: String,
    /// Name of its queue.
    pub queue: String,
    /// Payload.
    #[serde(flatten)]
    pub payload: Payload,
    /// Media type of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Names and values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Priority, 0 to 9.
    pub priority: u8,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// Deliveries so far, counted as attempts or not.
    pub deliveries: u32,
    /// Time of the send, in milliseconds since the Unix epoch.
    pub sent_at_ms: u64,
    /// End of the lease, in milliseconds since the Unix epoch.
    pub lease_until_ms: u64,
    /// Optional fields, if it has any.
    #[serde(flatten)]
    pub details: Option<Box<Details>>,
}

/// Results of a settle or extend, as many as are `expected`, in order.
pub(crate) fn results(body: &[u8], expected: usize) -> Result<Vec<ItemResult>, ClientError> {
    let results = understood(read_results(body, expected))?;
    if results.len() == expected {
        return Ok(results);
    }
    Err(not_understood(format!("{expected} items were sent, {} results came back", results.len())))
}

fn understood<T>(read: Read<T>) -> Result<T, ClientError> {
    read.map_err(|fault| not_understood(fault.to_string()))
}

fn read_sent(body: &[u8]) -> Read<SentIds<'_>> {
    let mut reader = Reader::new(body)?;
    let (mut id, mut ids, mut duplicate, mut duplicates) = (None, None, None, None);
    reader.object(|reader, name| match name {
        "id" => reader.field(&mut id, |reader| reader.optional(Reader::string)),
        "ids" => reader.field(&mut ids, |reader| {
            let mut list = Vec::new();
            reader.array(|reader| reader.string().map(|id| list.push(id)))?;
            Ok(list)
        }),
        "duplicate" => reader.field(&mut duplicate, Reader::boolean),
        "duplicates" => reader.field(&mut duplicates, |reader| {
            let mut list = Vec::new();
            reader.array(|reader| reader.integer().map(|item: u32| list.push(item)))?;
            Ok(list)
        }),
        _ => reader.skip().map(drop),
    })?;
    reader.finish()?;
    let mut ids = ids.unwrap_or_default();
    ids.extend(id.flatten());
    Ok(SentIds { ids, duplicate: duplicate.unwrap_or(false), duplicates: duplicates.unwrap_or_default() })
}

fn read_received(body: &[u8]) -> Read<(Vec<DeliveredRef<'_>>, Option<Begun>)> {
    let mut reader = Reader::new(body)?;
    let (mut messages, mut transaction, mut expires_at_ms) = (None, None, None);
    reader.object(|reader, name| match name {
        "messages" => reader.field(&mut messages, |reader| {
            let mut list = Vec::with_capacity(body.len() / DELIVERED_BYTES);
            reader.array(|reader| read_delivered(reader).map(|message| list.push(message)))?;
            Ok(list)
        }),
        "transaction" => reader.field(&mut transaction, |reader| Ok(reader.string()?.into_owned())),
        "expires_at_ms" => reader.field(&mut expires_at_ms, Reader::integer),
        _ => reader.skip().map(drop),
    })?;
    let messages = reader.required(messages, "messages")?;
    reader.finish()?;
    let begun = transaction.zip(expires_at_ms);
    Ok((messages, begun.map(|(transaction, expires_at_ms)| Begun { transaction, expires_at_ms })))
}

fn read_delivered<'a>(reader: &mut Reader<'a>) -> Read<DeliveredRef<'a>> {
    match reader.attempt(read_usual) {
        Some(message) => Ok(message),
        None => read_any(reader),
    }
}

/// A message in the very order and spacing in which the server writes it: a comparison a field, no search.
/// `None`: anything else, good or bad.
fn read_usual<'a>(reader: &mut Reader<'a>) -> Option<DeliveredRef<'a>> {
    let id = reader.after(b"{\"id\":").then(|| reader.string())?.ok()?;
    let receipt = reader.after(b",\"receipt\":").then(|| reader.string())?.ok()?;
    let queue = reader.after(b",\"queue\":").then(|| reader.string())?.ok()?;
    let payload = reader.after(b",\"payload\":").then(|| reader.string())?.ok()?;
    let content_type = match reader.after(b",\"content_type\":") {
        true => Some(reader.string().ok()?),
        false => None,
    };
    let headers = match reader.after(b",\"headers\":") {
        true => read_headers(reader).ok()?,
        false => BTreeMap::new(),
    };
    let priority = reader.after(b",\"priority\":").then(|| reader.integer())?.ok()?;
    let attempt = reader.after(b",\"attempt\":").then(|| reader.integer())?.ok()?;
    let max_attempts = reader.after(b",\"max_attempts\":").then(|| reader.integer())?.ok()?;
    let deliveries = reader.after(b",\"deliveries\":").then(|| reader.integer())?.ok()?;
    let sent_at_ms = reader.after(b",\"sent_at_ms\":").then(|| reader.integer())?.ok()?;
    let lease_until_ms = reader.after(b",\"lease_until_ms\":").then(|| reader.integer())?.ok()?;
    reader.after(b"}").then_some(DeliveredRef {
        id,
        receipt,
        queue,
        payload: octets(payload),
        content_type,
        headers,
        priority,
        attempt,
        max_attempts,
        deliveries,
        sent_at_ms,
        lease_until_ms,
        details: None,
    })
}

/// A message with its fields in any order, and others between them.
fn read_any<'a>(reader: &mut Reader<'a>) -> Read<DeliveredRef<'a>> {
    let (mut id, mut receipt, mut queue) = (None, None, None);
    let (mut payload, mut payload_base64) = (None, None);
    let (mut content_type, mut headers) = (None, None);
    let (mut priority, mut attempt, mut max_attempts, mut deliveries) = (None, None, None, None);
    let (mut sent_at_ms, mut lease_until_ms) = (None, None);
    let (mut correlation_id, mut reply_to, mut tags) = (None, None, None);
    let (mut checkpoint, mut checkpoint_base64) = (None, None);
    let (mut from_queue, mut reason) = (None, None);
    reader.object(|reader, name| match name {
        "id" => reader.field(&mut id, Reader::string),
        "receipt" => reader.field(&mut receipt, Reader::string),
        "queue" => reader.field(&mut queue, Reader::string),
        "payload" => reader.field(&mut payload, |reader| reader.optional(Reader::string)),
        "payload_base64" => reader.field(&mut payload_base64, |reader| reader.optional(read_base64)),
        "content_type" => reader.field(&mut content_type, |reader| reader.optional(Reader::string)),
        "headers" => reader.field(&mut headers, read_headers),
        "priority" => reader.field(&mut priority, Reader::integer),
        "attempt" => reader.field(&mut attempt, Reader::integer),
        "max_attempts" => reader.field(&mut max_attempts, Reader::integer),
        "deliveries" => reader.field(&mut deliveries, Reader::integer),
        "sent_at_ms" => reader.field(&mut sent_at_ms, Reader::integer),
        "lease_until_ms" => reader.field(&mut lease_until_ms, Reader::integer),
        "tags" => reader.field(&mut tags, read_tags),
        "correlation_id" => reader.field(&mut correlation_id, Reader::string),
        "reply_to" => reader.field(&mut reply_to, Reader::string),
        "checkpoint" => reader.field(&mut checkpoint, Reader::string),
        "from_queue" => reader.field(&mut from_queue, Reader::string),
        "reason" => reader.field(&mut reason, Reader::string),
        "checkpoint_base64" => reader.field(&mut checkpoint_base64, read_base64),
        _ => reader.skip().map(drop),
    })?;
    let payload = match (payload.flatten(), payload_base64.flatten()) {
        (Some(text), _) => octets(text),
        (None, Some(bytes)) => Cow::Owned(bytes),
        (None, None) => Cow::Borrowed(&[][..]),
    };
    let checkpoint = checkpoint.map(|text| text.into_owned().into_bytes()).or(checkpoint_base64);
    let details = Details {
        tags: tags.unwrap_or_default(),
        correlation_id: correlation_id.map(Cow::into_owned),
        reply_to: reply_to.map(Cow::into_owned),
        checkpoint,
        from_queue: from_queue.map(Cow::into_owned),
        reason: reason.map(Cow::into_owned),
    };
    Ok(DeliveredRef {
        id: reader.required(id, "id")?,
        receipt: reader.required(receipt, "receipt")?,
        queue: reader.required(queue, "queue")?,
        payload,
        content_type: content_type.flatten(),
        headers: headers.unwrap_or_default(),
        priority: priority.unwrap_or(0),
        attempt: reader.required(attempt, "attempt")?,
        max_attempts: reader.required(max_attempts, "max_attempts")?,
        deliveries: deliveries.unwrap_or(0),
        sent_at_ms: reader.required(sent_at_ms, "sent_at_ms")?,
        lease_until_ms: reader.required(lease_until_ms, "lease_until_ms")?,
        details: (details != Details::default()).then(|| Box::new(details)),
    })
}

fn octets(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn read_base64(reader: &mut Reader<'_>) -> Read<Vec<u8>> {
    let text = reader.string()?;
    base64::decode(&text).map_err(|reason| reader.fault(&reason))
}

fn read_headers<'a>(reader: &mut Reader<'a>) -> Read<BTreeMap<Cow<'a, str>, Cow<'a, str>>> {
    let mut headers = BTreeMap::new();
    reader.entries(|reader, name| {
        let value = reader.string()?;
        headers.insert(name, value);
        Ok(())
    })?;
    Ok(headers)
}

fn read_results(body: &[u8], expected: usize) -> Read<Vec<ItemResult>> {
    let mut reader = Reader::new(body)?;
    let mut results = None;
    reader.object(|reader, name| match name {
        "results" => reader.field(&mut results, |reader| {
            let mut list = Vec::with_capacity(expected.min(RESULTS_ROOM_MAX));
            reader.array(|reader| read_result(reader).map(|result| list.push(result)))?;
            Ok(list)
        }),
        _ => reader.skip().map(drop),
    })?;
    let results = reader.required(results, "results")?;
    reader.finish()?;
    Ok(results)
}

fn read_result(reader: &mut Reader<'_>) -> Read<ItemResult> {
    if reader.after(b"{\"ok\":true}") {
        return Ok(ItemResult { ok: true, already_settled: false, error: None });
    }
    let (mut ok, mut already_settled, mut error) = (None, None, None);
    reader.object(|reader, name| match name {
        "ok" => reader.field(&mut ok, Reader::boolean),
        "already_settled" => reader.field(&mut already_settled, Reader::boolean),
        "error" => reader.field(&mut error, |reader| reader.optional(read_error)),
        _ => reader.skip().map(drop),
    })?;
    Ok(ItemResult {
        ok: reader.required(ok, "ok")?,
        already_settled: already_settled.unwrap_or(false),
        error: error.flatten(),
    })
}

fn read_tags(reader: &mut Reader<'_>) -> Read<Vec<String>> {
    let mut tags = Vec::new();
    reader.array(|reader| reader.string().map(|tag| tags.push(tag.into_owned())))?;
    Ok(tags)
}

/// Errors are rare and hold anything, so they need not be read fast.
fn read_error(reader: &mut Reader<'_>) -> Read<ErrorBody> {
    let text = reader.skip()?;
    serde_json::from_str(text).map_err(|error| reader.fault(&error.to_string()))
}

#[cfg(test)]
mod tests;
