//! Sends of plain messages: with a payload, headers, tags, priority, delay and keys at most, each as it may
//! be. They go to the engine as they lie in the frame, and nothing is made of them on the way.
//!
//! Whatever is not plain, or wrong in any way, is left to the decoder of the contract, which tells what is
//! wrong with it.

use std::str::from_utf8;

use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::item::SendOptions;
use sluice_engine::limits::{Limits, PRIORITY_MAX, TAGS_MAX};
use smallvec::SmallVec;

use crate::grpc::wire::{Raw, next_field};

/// Fields of `ClientFrame`.
mod frame {
    pub(super) const NUMBER: u32 = 1;
    pub(super) const SEND: u32 = 7;
}

/// Fields of `SendMany`.
mod send {
    pub(super) const QUEUE: u32 = 1;
    pub(super) const MESSAGES: u32 = 2;
    pub(super) const IDEMPOTENCY_KEY: u32 = 3;
}

/// Fields of `Message`.
mod message {
    pub(super) const PAYLOAD: u32 = 1;
    pub(super) const CONTENT_TYPE: u32 = 2;
    pub(super) const HEADERS: u32 = 3;
    pub(super) const TAGS: u32 = 4;
    pub(super) const PRIORITY: u32 = 5;
    pub(super) const DELAY_MS: u32 = 6;
    pub(super) const ORDERING_KEY: u32 = 10;
    pub(super) const FAIR_KEY: u32 = 11;
    pub(super) const LIMIT_KEY: u32 = 12;
    pub(super) const CORRELATION_ID: u32 = 17;
    pub(super) const REPLY_TO: u32 = 18;
}

/// A send, with what its messages have in flat lists that all of them share.
#[derive(Debug, Default)]
pub(in crate::grpc) struct Plain<'f> {
    pub(super) queue: &'f str,
    pub(super) idempotency_key: &'f [u8],
    messages: SmallVec<[Message<'f>; 1]>,
    headers: Vec<(&'f str, &'f str)>,
    tags: Vec<&'f str>,
    /// The options of those messages that have keys.
    options: Vec<SendOptions<'f>>,
}

/// One message.
#[derive(Debug, Default)]
struct Message<'f> {
    payload: &'f [u8],
    content_type: &'f str,
    /// Number of headers in the shared list that are the message's own.
    headers: usize,
    tags: usize,
    priority: u8,
    delay_ms: Option<u64>,
    has_options: bool,
}

impl<'f> Plain<'f> {
    /// A frame that sends plain messages: its number, and what it sends. `None`: it is anything else.
    pub(in crate::grpc) fn read(mut bytes: &'f [u8], limits: &Limits) -> Option<(u64, Plain<'f>)> {
        let (mut number, mut sends) = (None, None);
        while let Some(field) = next_field(&mut bytes).ok()? {
            match field {
                (frame::NUMBER, Raw::Number(given)) if number.is_none() => number = Some(given),
                (frame::SEND, Raw::Bytes(given)) if sends.is_none() => sends = Some(given),
                _ => return None,
            }
        }
        let mut bytes = sends?;
        let mut plain = Plain::default();
        while let Some(field) = next_field(&mut bytes).ok()? {
            match field {
                (send::QUEUE, Raw::Bytes(queue)) => plain.queue = from_utf8(queue).ok()?,
                (send::IDEMPOTENCY_KEY, Raw::Bytes(key)) => plain.idempotency_key = key,
                (send::MESSAGES, Raw::Bytes(message))
                    if plain.messages.len() < limits.batch_items as usize =>
                {
                    let message = plain.message(message, limits)?;
                    plain.messages.push(message);
                }
                _ => return None,
            }
        }
        Some((number?, plain))
    }

    fn message(&mut self, mut bytes: &'f [u8], limits: &Limits) -> Option<Message<'f>> {
        let mut of = Message::default();
        let (first, mut options) = (self.headers.len(), SendOptions::default());
        while let Some((field, value)) = next_field(&mut bytes).ok()? {
            match (field, value) {
                (message::PAYLOAD, Raw::Bytes(payload)) => of.payload = payload,
                (message::CONTENT_TYPE, Raw::Bytes(text)) => of.content_type = from_utf8(text).ok()?,
                (message::HEADERS, Raw::Bytes(header)) if of.headers < limits.headers as usize => {
                    let header = header_of(header)?;
                    if self.headers[first..].iter().any(|(name, _)| *name == header.0) {
                        return None;
                    }
                    self.headers.push(header);
                    of.headers += 1;
                }
                (message::TAGS, Raw::Bytes(tag)) if of.tags < TAGS_MAX => {
                    self.tags.push(from_utf8(tag).ok()?);
                    of.tags += 1;
                }
                (message::PRIORITY, Raw::Number(priority)) if priority <= PRIORITY_MAX.into() => {
                    of.priority = priority as u8;
                }
                (message::DELAY_MS, Raw::Number(delay_ms)) => of.delay_ms = Some(delay_ms),
                (message::ORDERING_KEY, Raw::Bytes(key)) => options.ordering_key = checked(key)?,
                (message::FAIR_KEY, Raw::Bytes(key)) => options.fair_key = checked(key)?,
                (message::LIMIT_KEY, Raw::Bytes(key)) => options.limit_key = checked(key)?,
                (message::CORRELATION_ID, Raw::Bytes(id)) => options.correlation_id = checked(id)?,
                (message::REPLY_TO, Raw::Bytes(queue)) => options.reply_to = from_utf8(queue).ok()?,
                _ => return None,
            }
        }
        let keys = [options.ordering_key, options.fair_key, options.limit_key, options.correlation_id];
        if keys.iter().any(|key| !key.is_empty()) || !options.reply_to.is_empty() {
            of.has_options = true;
            self.options.push(options);
        }
        Some(of)
    }

    /// The messages in the engine's form.
    pub(in crate::grpc) fn items(&self) -> SmallVec<[SendItem<'_>; 1]> {
        let (mut headers, mut tags) = (self.headers.as_slice(), self.tags.as_slice());
        let mut options = self.options.iter();
        let items = self.messages.iter().map(|message| {
            let (own_headers, rest) = headers.split_at(message.headers);
            headers = rest;
            let (own_tags, rest) = tags.split_at(message.tags);
            tags = rest;
            SendItem {
                payload: message.payload,
                content_type: message.content_type,
                headers: own_headers,
                tags: own_tags,
                priority: message.priority,
                deliver: message.delay_ms.map_or(Deliver::Now, Deliver::AfterMs),
                max_attempts: 0,
                backoff: None,
                options: if message.has_options { options.next() } else { None },
            }
        });
        items.collect()
    }
}

/// A key, which is text.
fn checked(key: &[u8]) -> Option<&[u8]> {
    from_utf8(key).ok().map(str::as_bytes)
}

/// Name and value of a `Header`.
fn header_of(mut bytes: &[u8]) -> Option<(&str, &str)> {
    let mut header = ("", "");
    while let Some(field) = next_field(&mut bytes).ok()? {
        match field {
            (1, Raw::Bytes(name)) => header.0 = from_utf8(name).ok()?,
            (2, Raw::Bytes(value)) => header.1 = from_utf8(value).ok()?,
            _ => return None,
        }
    }
    Some(header)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use sluice_proto::v1::client_frame::Frame;
    use sluice_proto::v1::{ClientFrame, Header, Message, SendMany};

    use super::*;

    fn sent(messages: Vec<Message>) -> Vec<u8> {
        let send = SendMany { queue: "q".into(), messages, idempotency_key: "once".into() };
        ClientFrame { number: 300, frame: Some(Frame::Send(send)) }.encode_to_vec()
    }

    fn header(name: &'static str) -> Header {
        Header { name: name.into(), value: "v".into() }
    }

    #[test]
    fn what_is_plain_is_taken_as_it_lies_there() {
        let keyed = Message {
            payload: "a".into(),
            content_type: "text/plain".into(),
            headers: vec![header("one"), header("two")],
            tags: vec!["t".into()],
            priority: Some(9),
            delay_ms: Some(5),
            fair_key: "f".into(),
            ..Message::default()
        };
        let bytes = sent(vec![keyed, Message { payload: "b".into(), ..Message::default() }]);
        let (number, plain) = Plain::read(&bytes, &Limits::default()).unwrap();
        assert_eq!((number, plain.queue, plain.idempotency_key), (300, "q", &b"once"[..]));
        let items = plain.items();
        assert_eq!(
            (items[0].payload, items[0].content_type, items[0].priority),
            (&b"a"[..], "text/plain", 9)
        );
        assert_eq!((items[0].headers, items[0].tags), (&[("one", "v"), ("two", "v")][..], &["t"][..]));
        assert_eq!((items[0].deliver, items[0].options.unwrap().fair_key), (Deliver::AfterMs(5), &b"f"[..]));
        assert_eq!((items[1].payload, items[1].headers.len(), items[1].tags.len()), (&b"b"[..], 0, 0));
        assert_eq!((items[1].deliver, items[1].options.is_none()), (Deliver::Now, true));
    }

    #[test]
    fn everything_else_is_left_to_the_other_decoder() {
        let plain = Message { payload: "a".into(), ..Message::default() };
        let others = [
            Message { max_attempts: Some(3), ..plain.clone() },
            Message { deliver_at_ms: Some(3), ..plain.clone() },
            Message { hold: Some(false), ..plain.clone() },
            Message { priority: Some(10), ..plain.clone() },
            Message { headers: vec![header("one"), header("one")], ..plain.clone() },
            Message { headers: vec![Header { name: vec![0xff].into(), value: "v".into() }], ..plain.clone() },
            Message { tags: vec!["t".into(); TAGS_MAX + 1], ..plain.clone() },
            Message { ordering_key: vec![0xff].into(), ..plain.clone() },
            Message { depends_on: vec!["#0".into()], ..plain.clone() },
        ];
        let limits = Limits::default();
        for other in others {
            let bytes = sent(vec![plain.clone(), other]);
            assert!(Plain::read(&bytes, &limits).is_none());
        }
        let few = Limits { batch_items: 1, ..Limits::default() };
        let bytes = sent(vec![plain; 2]);
        assert!(Plain::read(&bytes, &few).is_none() && Plain::read(&bytes, &limits).is_some());
        for length in 0..bytes.len() {
            assert!(Plain::read(&bytes[..length], &limits).is_none(), "cut at {length}");
        }
    }
}
