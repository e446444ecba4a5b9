//! Frames of a client as the engine takes them. What is plain is taken as it lies in the frame; what has any of the fields that
//! have rules of their own goes through the decoder of the HTTP API, which knows them.

use std::str::{FromStr, from_utf8};

use bytes::Bytes;
use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::id::Receipt;
use sluice_engine::options::SendOptions;
use sluice_proto::v1::{Extension, Message, SendMany, Settlement};
use smallvec::SmallVec;

use crate::grpc::schema::schema;
use crate::grpc::to_json::{read_rows, write_object};
use crate::http::errors::ApiError;
use crate::http::json::{Fault, Read};

/// A text of a frame.
pub(super) fn text<'b>(bytes: &'b Bytes, field: &str) -> Read<&'b str> {
    from_utf8(bytes).map_err(|_| Fault::invalid("the text is not UTF-8").inside(field))
}

/// A receipt of a frame.
pub(super) fn receipt(bytes: &Bytes) -> Result<Receipt, sluice_engine::Error> {
    Receipt::from_str(&String::from_utf8_lossy(bytes))
}

/// The JSON that says the same as a message of the contract, for the decoders of the HTTP API.
pub(in crate::grpc) fn as_json(name: &str, message: &impl prost::Message) -> Result<Vec<u8>, ApiError> {
    let message_type = schema().named(name);
    let bytes = message.encode_to_vec();
    let mut json = Vec::with_capacity(bytes.len() * 2);
    write_object(message_type, &read_rows(message_type, &bytes)?, &mut json)?;
    Ok(json)
}

/// The JSON of a send without what stands in the path and headers over HTTP.
pub(in crate::grpc) fn send_as_json(send: &SendMany) -> Result<Vec<u8>, ApiError> {
    // A clone of bytes is a clone of their handle.
    let messages = SendMany { messages: send.messages.clone(), ..SendMany::default() };
    as_json("SendMany", &messages)
}

/// Whether a settlement is an ack and nothing else.
pub(super) fn is_plain_ack(settlement: &Settlement) -> bool {
    let Settlement { receipt: _, outcome, error, delay_ms, result, result_content_type } = settlement;
    outcome == "ack"
        && error.is_none()
        && delay_ms.is_none()
        && result.is_none()
        && result_content_type.is_none()
}

/// Whether an extension reports nothing, and names a lease only if that may be.
pub(super) fn is_plain_extension(extension: &Extension) -> bool {
    let Extension { receipt: _, lease_ms, progress, checkpoint } = extension;
    *lease_ms != Some(0) && progress.is_none() && checkpoint.is_none()
}

/// Plain messages, in flat lists that all of them share.
#[derive(Debug, Default)]
pub(in crate::grpc) struct Plain<'f> {
    messages: &'f [Message],
    headers: Vec<(&'f str, &'f str)>,
    tags: Vec<&'f str>,
    /// Of those that have keys.
    options: Vec<SendOptions<'f>>,
}

impl<'f> Plain<'f> {
    /// `None` when one of the messages is not plain; whatever is wrong with it, the other decoder tells.
    pub(in crate::grpc) fn read(messages: &'f [Message]) -> Option<Plain<'f>> {
        let mut plain = Plain { messages, ..Plain::default() };
        for message in messages {
            if !is_plain(message) {
                return None;
            }
            from_utf8(&message.content_type).ok()?;
            let first = plain.headers.len();
            for header in &message.headers {
                let (name, value) = (from_utf8(&header.name).ok()?, from_utf8(&header.value).ok()?);
                if plain.headers[first..].iter().any(|(other, _)| *other == name) {
                    return None;
                }
                plain.headers.push((name, value));
            }
            for tag in &message.tags {
                plain.tags.push(from_utf8(tag).ok()?);
            }
            if has_keys(message) {
                plain.options.push(options(message)?);
            }
        }
        Some(plain)
    }

    /// As the engine takes them.
    pub(in crate::grpc) fn items(&self) -> SmallVec<[SendItem<'_>; 1]> {
        let (mut headers, mut tags) = (self.headers.as_slice(), self.tags.as_slice());
        let mut options = self.options.iter();
        let items = self.messages.iter().map(|message| {
            let (own_headers, rest) = headers.split_at(message.headers.len());
            headers = rest;
            let (own_tags, rest) = tags.split_at(message.tags.len());
            tags = rest;
            SendItem {
                payload: &message.payload,
                // `read` has seen that it is text.
                content_type: from_utf8(&message.content_type).unwrap_or_default(),
                headers: own_headers,
                tags: own_tags,
                priority: message.priority.unwrap_or(0) as u8,
                deliver: message.delay_ms.map_or(Deliver::Now, Deliver::AfterMs),
                max_attempts: 0,
                backoff: None,
                options: if has_keys(message) { options.next() } else { None },
            }
        });
        items.collect()
    }
}

/// Payload, headers, tags, priority, delay and keys at most, each as it may be.
fn is_plain(message: &Message) -> bool {
    let Message { payload: _, content_type: _, headers, tags, priority, delay_ms: _, .. } = message;
    let no_rules = message.deliver_at_ms.is_none()
        && message.max_attempts.is_none()
        && message.backoff.is_none()
        && message.unique.is_none()
        && message.ttl_ms.is_none()
        && message.expires_at_ms.is_none()
        && message.result_ttl_ms.is_none()
        && message.hold.is_none()
        && message.depends_on.is_empty()
        && message.depends_mode.is_none()
        && message.on_parent_failed.is_none()
        && message.chain.is_empty()
        && message.on_failure.is_none();
    let few = headers.len() <= 64 && tags.len() <= sluice_engine::change::TAGS_MAX;
    no_rules && few && priority.is_none_or(|priority| priority <= sluice_engine::limits::PRIORITY_MAX.into())
}

fn has_keys(message: &Message) -> bool {
    let Message { ordering_key, fair_key, limit_key, correlation_id, reply_to, .. } = message;
    [ordering_key, fair_key, limit_key, correlation_id, reply_to].iter().any(|text| !text.is_empty())
}

fn options(message: &Message) -> Option<SendOptions<'_>> {
    let Message { ordering_key, fair_key, limit_key, correlation_id, reply_to, .. } = message;
    for key in [ordering_key, fair_key, limit_key, correlation_id] {
        from_utf8(key).ok()?;
    }
    Some(SendOptions {
        ordering_key,
        fair_key,
        limit_key,
        correlation_id,
        reply_to: from_utf8(reply_to).ok()?,
        ..SendOptions::default()
    })
}
