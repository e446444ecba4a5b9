//! Sending: the JSON of messages, decoded without an allocation per message.

use http::StatusCode;
use http::header::HeaderMap;
use http::response::Response;
use hyper::body::Incoming;
use sluice_engine::Error;
use sluice_engine::change::TAGS_MAX;
use sluice_engine::command::{Deliver, Send, SendItem};
use sluice_engine::limits::{ATTEMPTS_MAX, IDEMPOTENCY_KEY_BYTES_MAX, Limits, PRIORITY_MAX};
use sluice_engine::options::SendOptions;
use sluice_engine::settings::Backoff;
use sluice_node::Sent;

use super::body::Body;
use super::call::Call;
use super::content::{BASE64_EXPECTED, decode_base64};
use super::errors::ApiError;
use super::json::{Fault, Read, Reader, Text, object, push_number};
use super::respond;
use super::send_options::Options;
use super::settings::read_backoff;
use crate::digest::send_digest;

/// Fields of a message.
pub(crate) const MESSAGE_FIELDS: &[&str] = &[
    "payload",
    "payload_base64",
    "content_type",
    "headers",
    "tags",
    "priority",
    "delay_ms",
    "deliver_at_ms",
    "max_attempts",
    "backoff",
    "ordering_key",
    "fair_key",
    "limit_key",
    "unique",
    "ttl_ms",
    "expires_at_ms",
    "result_ttl_ms",
    "correlation_id",
    "reply_to",
    "hold",
    "depends_on",
    "depends_mode",
    "on_parent_failed",
];

/// Fields at the top of a send: those of one message, or the list.
const SEND_FIELDS: &[&str] = &[
    "payload",
    "payload_base64",
    "content_type",
    "headers",
    "tags",
    "priority",
    "delay_ms",
    "deliver_at_ms",
    "max_attempts",
    "backoff",
    "ordering_key",
    "fair_key",
    "limit_key",
    "unique",
    "ttl_ms",
    "expires_at_ms",
    "result_ttl_ms",
    "correlation_id",
    "reply_to",
    "hold",
    "depends_on",
    "depends_mode",
    "on_parent_failed",
    "messages",
];

/// Fields of a group.
pub(crate) const GROUP_FIELDS: &[&str] = &["messages", "callback"];
/// Fields of its messages: those of a message, and its queue.
pub(crate) const GROUP_MESSAGE_FIELDS: &[&str] = &[
    "queue",
    "payload",
    "payload_base64",
    "content_type",
    "headers",
    "tags",
    "priority",
    "delay_ms",
    "deliver_at_ms",
    "max_attempts",
    "backoff",
    "ordering_key",
    "fair_key",
    "limit_key",
    "unique",
    "ttl_ms",
    "expires_at_ms",
    "result_ttl_ms",
    "correlation_id",
    "reply_to",
    "hold",
    "depends_on",
    "depends_mode",
    "on_parent_failed",
];

/// Latest time in microseconds that milliseconds can name.
const AT_MS_MAX: u64 = u64::MAX / 1_000;

/// `POST P/queues/{queue}/messages`
pub(crate) async fn send(call: &Call<'_>, body: Incoming) -> Result<Response<Body>, ApiError> {
    let upload = call.json(body, call.context.body_limits.send).await?;
    let batch = Batch::read(upload.bytes(), call.node().limits())?;
    let (headers, tags, options) = (batch.headers(), batch.tags(), batch.options());
    let items = batch.items(&headers, &tags, &options);
    let sent = propose(call, &items).await?;
    Ok(answer(&sent, batch.is_list))
}

/// Sends `items` to the queue in the path, under the idempotency key in the headers.
pub(crate) async fn propose(call: &Call<'_>, items: &[SendItem<'_>]) -> Result<Sent, ApiError> {
    let idempotency_key = idempotency_key(&call.head.headers)?;
    let request_digest = if idempotency_key.is_empty() { 0 } else { send_digest(call.name, items) };
    let send =
        Send { namespace: call.namespace_id()?, queue: call.name, idempotency_key, request_digest, items };
    Ok(call.node().send(&send).await?)
}

/// `{"id"}` or `{"ids"}`. What a message by its unique key, or the request by its idempotency key, repeats is a duplicate.
pub(crate) fn answer(sent: &Sent, is_list: bool) -> Response<Body> {
    let mut out = Vec::with_capacity(64 + sent.count as usize * 23);
    object(&mut out, |o| {
        if is_list {
            o.list("ids", sent.ids(), |out, id| {
                out.push(b'"');
                out.extend_from_slice(&id.to_text());
                out.push(b'"');
            });
        } else {
            o.ascii("id", &sent.first.to_text());
        }
        o.boolean("duplicate", sent.duplicate || (!is_list && sent.duplicates.is_some()));
        if is_list && let Some(duplicates) = &sent.duplicates {
            o.list("duplicates", duplicates.items.iter(), |out, item| push_number(out, u64::from(*item)));
        }
    });
    respond::json(StatusCode::CREATED, out)
}

pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<&[u8], ApiError> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(b"") };
    let key = value.as_bytes();
    let visible = key.iter().all(|byte| (0x20..0x7f).contains(byte));
    if values.next().is_some() {
        return Err(Fault::new("duplicate_field", "the header is given twice")
            .inside("Idempotency-Key")
            .into());
    }
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX || !visible {
        let reason = format!("expected 1 to {IDEMPOTENCY_KEY_BYTES_MAX} characters of printable ASCII");
        return Err(Fault::invalid(reason).inside("Idempotency-Key").into());
    }
    Ok(key)
}

/// The messages of a request, in flat lists that all messages share.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    messages: Vec<Message<'a>>,
    headers: Vec<(Text<'a>, Text<'a>)>,
    tags: Vec<Text<'a>>,
    options: Vec<Options<'a>>,
    /// Texts that held escapes.
    scratch: String,
    /// Payloads that were base64.
    octets: Vec<u8>,
    /// Whether the request was a list.
    pub(crate) is_list: bool,
    /// Whether the last message is the callback of a group.
    has_callback: bool,
}

#[derive(Debug, Default)]
struct Message<'a> {
    payload: Payload<'a>,
    content_type: Option<Text<'a>>,
    /// From and to in the list of headers.
    headers: (usize, usize),
    /// From and to in the list of tags.
    tags: (usize, usize),
    priority: u8,
    deliver: Deliver,
    max_attempts: u16,
    backoff: Option<Backoff>,
    /// Place in the list of options.
    options: Option<usize>,
}

#[derive(Debug, Default)]
enum Payload<'a> {
    #[default]
    Missing,
    Text(Text<'a>),
    Base64(Text<'a>),
    /// From and to in the octets.
    Octets(usize, usize),
}

impl<'a> Batch<'a> {
    /// Reads one message or a list of them.
    pub(crate) fn read(body: &'a [u8], limits: &Limits) -> Read<Batch<'a>> {
        let mut reader = Reader::new(body)?;
        let mut batch = Batch::default();
        let mut single = Message::default();
        let mut count = 0u64;
        let mut stray = None;
        reader.object(SEND_FIELDS, |reader, name| {
            if name != "messages" {
                stray = Some(name);
                return batch.message_field(reader, name, &mut single, limits);
            }
            batch.is_list = true;
            reader.array(|reader, _| {
                let mut message = Message::default();
                reader.object(MESSAGE_FIELDS, |reader, name| {
                    batch.message_field(reader, name, &mut message, limits)
                })?;
                message.check()?;
                batch.check_options(&message)?;
                count += 1;
                // What is over the limit is counted, to name the number, but not kept.
                if count <= u64::from(limits.batch_items) {
                    batch.messages.push(message);
                } else {
                    batch.headers.truncate(message.headers.0);
                    batch.tags.truncate(message.tags.0);
                    batch.options.truncate(message.options.unwrap_or(batch.options.len()));
                }
                Ok(())
            })
        })?;
        match (batch.is_list, stray) {
            (true, Some(name)) => return Err(Fault::conflict("messages", name)),
            (true, None) => {}
            (false, _) => {
                single.check()?;
                batch.check_options(&single)?;
                count = 1;
                batch.messages.push(single);
            }
        }
        batch.scratch = reader.finish()?;
        let limit = u64::from(limits.batch_items);
        if count == 0 {
            return Err(Fault::invalid("expected at least one message").inside("messages"));
        }
        if count > limit {
            return Err(Error::BatchTooLarge { what: "messages", size: count, limit }.into());
        }
        batch.decode_base64()?;
        Ok(batch)
    }

    /// Reads the messages of a group and its callback, which comes last here, with their queues.
    pub(crate) fn read_group(body: &'a [u8], limits: &Limits) -> Read<(Batch<'a>, Vec<Text<'a>>)> {
        let mut reader = Reader::new(body)?;
        let mut batch = Batch { is_list: true, has_callback: true, ..Batch::default() };
        let (mut queues, mut callback, mut count) = (Vec::new(), None, None);
        let limit = u64::from(limits.batch_items);
        reader.object(GROUP_FIELDS, |reader, name| {
            if name == "callback" {
                callback = Some(batch.group_message(reader, limits)?);
                return Ok(());
            }
            let count = count.insert(0);
            reader.array(|reader, _| {
                let (message, queue) = batch.group_message(reader, limits)?;
                *count += 1;
                // What is over the limit is counted, to name the number, but not kept.
                if *count <= limit {
                    batch.messages.push(message);
                    queues.push(queue);
                } else {
                    batch.headers.truncate(message.headers.0);
                    batch.tags.truncate(message.tags.0);
                    batch.options.truncate(message.options.unwrap_or(batch.options.len()));
                }
                Ok(())
            })
        })?;
        let size =
            count.ok_or_else(|| Fault::missing("messages", "a group needs its list, which may be empty"))?;
        let (message, queue) = callback.ok_or_else(|| {
            Fault::missing("callback", "a group needs the message that follows when it has ended")
        })?;
        if size > limit {
            return Err(Error::BatchTooLarge { what: "messages", size, limit }.into());
        }
        batch.messages.push(message);
        queues.push(queue);
        batch.scratch = reader.finish()?;
        batch.decode_base64()?;
        Ok((batch, queues))
    }

    fn group_message(&mut self, reader: &mut Reader<'a>, limits: &Limits) -> Read<(Message<'a>, Text<'a>)> {
        let (mut message, mut queue) = (Message::default(), None);
        reader.object(GROUP_MESSAGE_FIELDS, |reader, name| match name {
            "queue" => {
                queue = Some(reader.string()?);
                Ok(())
            }
            _ => self.message_field(reader, name, &mut message, limits),
        })?;
        message.check()?;
        self.check_options(&message)?;
        let queue = queue.ok_or_else(|| Fault::missing("queue", "say which queue the message goes to"))?;
        Ok((message, queue))
    }

    /// A text of this request.
    pub(crate) fn text(&self, text: Text<'a>) -> &str {
        text.get(&self.scratch)
    }

    /// Reads one message that lies within a larger body; [`Batch::finish`] must follow.
    pub(crate) fn read_one(reader: &mut Reader<'a>, limits: &Limits) -> Read<Batch<'a>> {
        let mut batch = Batch::default();
        let mut message = Message::default();
        reader
            .object(MESSAGE_FIELDS, |reader, name| batch.message_field(reader, name, &mut message, limits))?;
        message.check()?;
        batch.check_options(&message)?;
        batch.messages.push(message);
        Ok(batch)
    }

    /// Takes over the scratch of the reader that has read it.
    pub(crate) fn finish(&mut self, scratch: String) -> Read<()> {
        self.scratch = scratch;
        self.decode_base64()
    }

    fn message_field(
        &mut self,
        reader: &mut Reader<'a>,
        name: &'static str,
        message: &mut Message<'a>,
        limits: &Limits,
    ) -> Read<()> {
        match name {
            "payload" | "payload_base64" => {
                if !matches!(message.payload, Payload::Missing) {
                    return Err(Fault::conflict("payload", "payload_base64"));
                }
                let text = reader.string()?;
                message.payload = if name == "payload" { Payload::Text(text) } else { Payload::Base64(text) };
            }
            "content_type" => message.content_type = Some(reader.string()?),
            "headers" => message.headers = self.read_headers(reader, limits)?,
            "tags" => message.tags = self.read_tags(reader)?,
            "priority" => message.priority = reader.integer(0, u64::from(PRIORITY_MAX))? as u8,
            "delay_ms" | "deliver_at_ms" => {
                if message.deliver != Deliver::Now {
                    return Err(Fault::conflict("delay_ms", "deliver_at_ms"));
                }
                message.deliver = match name {
                    "delay_ms" => Deliver::AfterMs(reader.integer(0, u64::MAX)?),
                    _ => Deliver::AtUs(reader.integer(0, AT_MS_MAX)? * 1_000),
                };
            }
            "max_attempts" => message.max_attempts = reader.integer(1, u64::from(ATTEMPTS_MAX))? as u16,
            "backoff" => message.backoff = Some(read_backoff(reader)?),
            other => {
                let at = *message.options.get_or_insert(self.options.len());
                if at == self.options.len() {
                    self.options.push(Options::default());
                }
                if !self.options[at].field(reader, other)? {
                    return Err(Fault::unknown("field", other, MESSAGE_FIELDS));
                }
            }
        }
        Ok(())
    }

    fn check_options(&self, message: &Message<'a>) -> Read<()> {
        message.options.and_then(|at| self.options.get(at)).map_or(Ok(()), Options::check)
    }

    fn read_headers(&mut self, reader: &mut Reader<'a>, limits: &Limits) -> Read<(usize, usize)> {
        let from = self.headers.len();
        let mut count = 0u64;
        let limit = u64::from(limits.headers);
        reader.entries(|reader, key| {
            count += 1;
            if count > limit {
                return reader.string().map(|_| ());
            }
            let scratch = reader.scratch();
            let name = key.get(scratch);
            if self.headers[from..].iter().any(|(other, _)| other.get(scratch) == name) {
                return Err(Fault::new("duplicate_field", "the header is given twice").inside(name));
            }
            let value = match reader.string() {
                Ok(value) => value,
                Err(fault) => return Err(fault.inside(key.get(reader.scratch()))),
            };
            self.headers.push((key, value));
            Ok(())
        })?;
        if count > limit {
            return Err(Error::HeadersTooLarge { what: "headers", size: count, limit }.into());
        }
        Ok((from, self.headers.len()))
    }

    fn read_tags(&mut self, reader: &mut Reader<'a>) -> Read<(usize, usize)> {
        let from = self.tags.len();
        reader.array(|reader, at| {
            let tag = reader.string()?;
            if at >= TAGS_MAX {
                return Err(Fault::invalid(format!("too many tags: use at most {TAGS_MAX}")));
            }
            self.tags.push(tag);
            Ok(())
        })?;
        Ok((from, self.tags.len()))
    }

    fn decode_base64(&mut self) -> Read<()> {
        let callback = if self.has_callback { self.messages.len().checked_sub(1) } else { None };
        for (index, message) in self.messages.iter_mut().enumerate() {
            let Payload::Base64(text) = message.payload else { continue };
            let from = self.octets.len();
            if decode_base64(text.get(&self.scratch), &mut self.octets).is_err() {
                let fault = Fault::invalid(BASE64_EXPECTED).inside("payload_base64");
                return Err(if callback == Some(index) {
                    fault.inside("callback")
                } else if self.is_list {
                    fault.at(index).inside("messages")
                } else {
                    fault
                });
            }
            message.payload = Payload::Octets(from, self.octets.len());
        }
        Ok(())
    }

    /// The headers of all messages, for [`Batch::items`] to take from.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.get(&self.scratch), value.get(&self.scratch))).collect()
    }

    /// The tags, likewise.
    pub(crate) fn tags(&self) -> Vec<&str> {
        self.tags.iter().map(|tag| tag.get(&self.scratch)).collect()
    }

    /// The options of those messages that have any, likewise.
    pub(crate) fn options(&self) -> Vec<SendOptions<'_>> {
        self.options.iter().map(|options| options.as_engine(&self.scratch)).collect()
    }

    /// The messages as the engine takes them, with what [`Batch::headers`], [`Batch::tags`] and [`Batch::options`] gave.
    pub(crate) fn items<'s>(
        &'s self,
        headers: &'s [(&'s str, &'s str)],
        tags: &'s [&'s str],
        options: &'s [SendOptions<'s>],
    ) -> Vec<SendItem<'s>> {
        self.messages.iter().map(|message| self.item(message, headers, tags, options)).collect()
    }

    fn item<'s>(
        &'s self,
        message: &Message<'a>,
        headers: &'s [(&'s str, &'s str)],
        tags: &'s [&'s str],
        options: &'s [SendOptions<'s>],
    ) -> SendItem<'s> {
        let payload = match message.payload {
            Payload::Text(text) => text.get(&self.scratch).as_bytes(),
            Payload::Octets(from, to) => &self.octets[from..to],
            // `check` and `decode_base64` leave none of these.
            Payload::Missing | Payload::Base64(_) => b"",
        };
        SendItem {
            options: message.options.and_then(|at| options.get(at)),
            payload,
            content_type: message.content_type.map_or("", |text| text.get(&self.scratch)),
            headers: &headers[message.headers.0..message.headers.1],
            tags: &tags[message.tags.0..message.tags.1],
            priority: message.priority,
            deliver: message.deliver,
            max_attempts: message.max_attempts,
            backoff: message.backoff,
        }
    }
}

impl Message<'_> {
    fn check(&self) -> Read<()> {
        match self.payload {
            Payload::Missing => {
                Err(Fault::missing("payload", "a message needs payload (text) or payload_base64 (octets)"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> String {
        let fault = Batch::read(body.as_bytes(), &Limits::default()).unwrap_err();
        format!("{} {}: {}", fault.code, fault.field, fault.reason)
    }

    #[test]
    fn one_message_with_everything() {
        let body = br#"{"payload":"a\"b","content_type":"text/plain","headers":{"x":"1","y":"\u00e9"},
            "priority":9,"deliver_at_ms":5,"max_attempts":3,"backoff":{"kind":"fixed","base_ms":7}}"#;
        let batch = Batch::read(body, &Limits::default()).unwrap();
        let headers = batch.headers();
        let options = batch.options();
        let tags = batch.tags();
        let items = batch.items(&headers, &tags, &options);
        assert!(!batch.is_list);
        assert_eq!(items[0].payload, b"a\"b");
        assert_eq!(items[0].content_type, "text/plain");
        assert_eq!(items[0].headers, [("x", "1"), ("y", "é")]);
        assert_eq!((items[0].priority, items[0].max_attempts), (9, 3));
        assert_eq!(items[0].deliver, Deliver::AtUs(5_000));
        assert_eq!(items[0].backoff.unwrap().base_ms, 7);
    }

    #[test]
    fn a_group_has_queues_and_a_callback() {
        let body = br#"{"callback":{"queue":"c","payload":"z"},"messages":[{"queue":"a","payload":"x"}]}"#;
        let (batch, queues) = Batch::read_group(body, &Limits::default()).unwrap();
        let (headers, tags, options) = (batch.headers(), batch.tags(), batch.options());
        let payloads: Vec<&[u8]> =
            batch.items(&headers, &tags, &options).iter().map(|item| item.payload).collect();
        assert_eq!(payloads, [b"x", b"z"]);
        assert_eq!(queues.iter().map(|queue| batch.text(*queue)).collect::<Vec<_>>(), ["a", "c"]);
        for (body, expected) in [
            (r#"{"messages":[]}"#, "missing_field callback: a group needs the message"),
            (r#"{"callback":{"queue":"c","payload":""}}"#, "missing_field messages: a group needs its list"),
            (r#"{"messages":[{"payload":""}]}"#, "missing_field messages[0].queue: say which queue"),
            (
                r#"{"messages":[],"callback":{"queue":"c","payload_base64":"?"}}"#,
                "invalid_argument callback.payload_base64",
            ),
        ] {
            let fault = Batch::read_group(body.as_bytes(), &Limits::default()).unwrap_err();
            let told = format!("{} {}: {}", fault.code, fault.field, fault.reason);
            assert!(told.starts_with(expected), "{body}: {told}");
        }
    }

    #[test]
    fn a_list_keeps_payloads_and_headers_apart() {
        let body = br#"{"messages":[{"payload":"","headers":{"a":"1"}},{"payload_base64":"/wA="},
            {"payload_base64":"","headers":{"a":"2"}}]}"#;
        let batch = Batch::read(body, &Limits::default()).unwrap();
        let headers = batch.headers();
        let options = batch.options();
        let tags = batch.tags();
        let items = batch.items(&headers, &tags, &options);
        assert!(batch.is_list);
        let payloads: Vec<&[u8]> = items.iter().map(|item| item.payload).collect();
        assert_eq!(payloads, [&b""[..], &[255, 0], b""]);
        assert_eq!(items[2].headers, [("a", "2")]);
        assert!(items[1].headers.is_empty());
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let cases = [
            ("[]", "wrong_type : expected an object, got an array"),
            ("{}", "missing_field payload: a message needs payload (text) or payload_base64 (octets)"),
            (r#"{"payload":{"a":1}}"#, "wrong_type payload: expected a string, got an object"),
            (
                r#"{"payload":"a","payload_base64":"b"}"#,
                "conflicting_fields payload_base64: payload and payload_base64 are both given: give one of the two",
            ),
            (
                r#"{"messages":[{"payload":"","delay_ms":1,"deliver_at_ms":2}]}"#,
                "conflicting_fields messages[0].deliver_at_ms: delay_ms and deliver_at_ms are both given: give one of the two",
            ),
            (
                r#"{"messages":[],"payload":"a"}"#,
                "conflicting_fields : messages and payload are both given: give one of the two",
            ),
            (r#"{"messages":[]}"#, "invalid_argument messages: expected at least one message"),
            (
                r#"{"messages":[{"payload":""},{"payload_base64":"_w=="}]}"#,
                "invalid_argument messages[1].payload_base64: expected standard base64 with padding (RFC 4648 section 4)",
            ),
            (
                r#"{"payload":"","priority":10}"#,
                "invalid_argument priority: expected a number from 0 to 9, got 10",
            ),
            (
                r#"{"payload":"","headers":{"a":1}}"#,
                "wrong_type headers.a: expected a string, got the number 1",
            ),
            (
                r#"{"payload":"","headers":{"a":"","a":""}}"#,
                "duplicate_field headers.a: the header is given twice",
            ),
            (
                r#"{"payload":"","delay_ms":null}"#,
                "wrong_type delay_ms: expected an integer, got null (leave the field out instead)",
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(fault(body), expected, "{body}");
        }
        assert!(
            fault(r#"{"payload":"","delay":1}"#)
                .starts_with("unknown_field delay: unknown field: known here are payload,")
        );
    }

    #[test]
    fn what_is_over_a_limit_is_counted_but_not_kept() {
        let limits = Limits { batch_items: 2, headers: 1, ..Limits::default() };
        let body = r#"{"messages":[{"payload":""},{"payload":""},{"payload":""},{"payload":""}]}"#;
        let fault = Batch::read(body.as_bytes(), &limits).unwrap_err();
        assert_eq!(fault.engine, Some(Error::BatchTooLarge { what: "messages", size: 4, limit: 2 }));
        let body = r#"{"payload":"","headers":{"a":"","b":""}}"#;
        let fault = Batch::read(body.as_bytes(), &limits).unwrap_err();
        assert_eq!(fault.engine, Some(Error::HeadersTooLarge { what: "headers", size: 2, limit: 1 }));
    }

    #[test]
    fn noise_never_panics() {
        let seed = br#"{"messages":[{"payload":"a\u00e9","headers":{"a":"b"},"backoff":{"kind":"none"}},{"payload_base64":"/wA=","delay_ms":5}]}"#;
        let mut random = crate::http::testing::Random(11);
        let mut good = 0;
        for _ in 0..50_000 {
            let mut body = seed.to_vec();
            random.mutate(&mut body);
            if let Ok(batch) = Batch::read(&body, &Limits::default()) {
                let headers = batch.headers();
                good += batch.items(&headers, &batch.tags(), &batch.options()).len();
            }
        }
        assert!(good > 100, "the mutations leave nothing good: {good}");
    }
}
