//! JSON of the frequent requests, written into one buffer without a tree of values.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::base64;
use crate::documents::{DocumentChange, DocumentPatch, DocumentPut};
use crate::flows::QueueMessage;
use crate::json::plain_len;
use crate::message::{Message, MessageOptions, Report, Settle, SettleItem, Step};
use crate::types::Backoff;

/// A receipt of 45 characters, its quotes and its comma.
const RECEIPT_ROOM: usize = 48;

/// Milliseconds as the API counts them.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The body of a send.
pub(crate) fn send(messages: &[Message<'_>]) -> String {
    let bytes: usize = messages.iter().map(|m| m.payload.len() + m.payload.len() / 8 + 32).sum();
    let mut out = String::with_capacity(bytes + 32);
    if let [single] = messages {
        message(single, &mut out);
        return out;
    }
    out.push_str("{\"messages\":[");
    separated(messages, &mut out, message);
    out.push_str("]}");
    out
}

/// The body of a settle that mixes outcomes.
pub(crate) fn settle(items: &[SettleItem<'_>]) -> String {
    let mut out = String::with_capacity(items.len() * 72 + 16);
    out.push_str("{\"items\":[");
    separated(items, &mut out, settle_item);
    out.push_str("]}");
    out
}

/// A settlement with its outcome.
pub(crate) fn settle_item(item: &SettleItem<'_>, out: &mut String) {
    out.push_str("{\"receipt\":");
    string(&item.receipt, out);
    out.push_str(",\"outcome\":\"");
    out.push_str(item.settle.name());
    out.push('"');
    settle_fields(&item.settle, out);
    if item.add_cost > 0 {
        number(",\"add_cost\":", item.add_cost.into(), out);
    }
    out.push('}');
}

fn settle_fields(settle: &Settle, out: &mut String) {
    let (error, delay) = match settle {
        Settle::Ack => return,
        Settle::AckWith(result) => {
            octets([",\"result\":", ",\"result_base64\":"], &result.bytes, out);
            if let Some(content_type) = &result.content_type {
                out.push_str(",\"result_content_type\":");
                string(content_type, out);
            }
            return;
        }
        Settle::Nack { error, delay } => (error.as_str(), *delay),
        Settle::Release { delay } => ("", *delay),
        Settle::Reject { error } => (error.as_str(), None),
    };
    if !error.is_empty() {
        out.push_str(",\"error\":");
        string(error, out);
    }
    if let Some(delay) = delay {
        number(",\"delay_ms\":", millis(delay), out);
    }
}

/// The body of an ack of many.
pub(crate) fn receipts<'a>(receipts: impl IntoIterator<Item = &'a str>) -> String {
    let receipts = receipts.into_iter();
    let mut out = String::with_capacity(16 + receipts.size_hint().0.max(8) * RECEIPT_ROOM);
    out.push_str("{\"receipts\":[");
    let mut first = true;
    for receipt in receipts {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        string(receipt, &mut out);
    }
    out.push_str("]}");
    out
}

/// The body of an extend of many.
pub(crate) fn extend<'a>(items: impl IntoIterator<Item = (&'a str, Option<Duration>)>) -> String {
    let mut out = String::from("{\"items\":[");
    let mut first = true;
    for (receipt, lease) in items {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        out.push_str("{\"receipt\":");
        string(receipt, &mut out);
        if let Some(lease) = lease {
            number(",\"lease_ms\":", millis(lease), &mut out);
        }
        out.push('}');
    }
    out.push_str("]}");
    out
}

/// The body of an extend that tells of the work; a list of one, so that it is answered like the others.
pub(crate) fn report(receipt: &str, lease: Option<Duration>, report: &Report<'_>) -> String {
    let mut out = String::from("{\"items\":[{\"receipt\":");
    string(receipt, &mut out);
    if let Some(lease) = lease {
        number(",\"lease_ms\":", millis(lease), &mut out);
    }
    if let Some((percent, note)) = report.progress {
        number(",\"progress\":{\"percent\":", u64::from(percent), &mut out);
        if !note.is_empty() {
            out.push_str(",\"note\":");
            string(note, &mut out);
        }
        out.push('}');
    }
    if let Some(checkpoint) = report.checkpoint {
        octets([",\"checkpoint\":", ",\"checkpoint_base64\":"], checkpoint, &mut out);
    }
    if report.add_cost > 0 {
        number(",\"add_cost\":", report.add_cost.into(), &mut out);
    }
    out.push_str("}]}");
    out
}

/// Octets under the key for text, or under that for base64.
fn octets([text, base64]: [&str; 2], octets: &[u8], out: &mut String) {
    match std::str::from_utf8(octets) {
        Ok(plain) => {
            out.push_str(text);
            string(plain, out);
        }
        Err(_) => in_base64(base64, octets, out),
    }
}

/// Octets in base64 under a key.
fn in_base64(key: &str, octets: &[u8], out: &mut String) {
    out.push_str(key);
    out.push('"');
    base64::append(octets, out);
    out.push('"');
}

/// Bytes that JSON may add to any text: those who look at a request can read it.
const ESCAPES_FEW: usize = 1_024;

/// Bytes that JSON adds to a text.
fn escapes(text: &[u8]) -> usize {
    let of = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.iter().map(of).sum()
}

pub(crate) fn document_patch(patch: &DocumentPatch<'_>, request_id: &str) -> String {
    let mut fields = patch_fields(patch);
    fields.insert("request_id".to_owned(), request_id.into());
    Value::Object(fields).to_string()
}

/// The fields of a patch that a transaction has, too.
pub(crate) fn patch_fields(patch: &DocumentPatch<'_>) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    match &patch.change {
        DocumentChange::Merge(text) => field("merge_patch", Some((*text).into())),
        DocumentChange::Patch(text) => field("json_patch", Some((*text).into())),
        DocumentChange::Increment(increments) => {
            let one = |(pointer, by): &(&str, &str)| json!({"pointer": pointer, "by": by});
            field("increment", Some(increments.iter().map(one).collect()));
        }
    }
    field("if_version", patch.if_version.map(Value::from));
    field("if_etag", patch.if_etag.map(Value::from));
    field("token", patch.token.map(Value::from));
    fields
}

pub(crate) fn document(put: &DocumentPut<'_>, request_id: &str) -> String {
    let mut out = String::with_capacity(put.content.len() + put.content.len() / 3 + 256);
    out.push_str("{\"request_id\":");
    string(request_id, &mut out);
    document_fields(put, &mut out);
    out
}

/// The fields of a document after the first one, and the end of the object.
pub(crate) fn document_fields(put: &DocumentPut<'_>, out: &mut String) {
    // A long text of many characters that JSON escapes is longer than base64, and than a request may be.
    if escapes(put.content) <= (put.content.len() / 3).max(ESCAPES_FEW) {
        octets([",\"content\":", ",\"content_base64\":"], put.content, out);
    } else {
        in_base64(",\"content_base64\":", put.content, out);
    }
    let texts = [
        (",\"content_type\":", put.content_type),
        (",\"if_etag\":", put.if_etag),
        (",\"token\":", put.token),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            out.push_str(key);
            string(text, out);
        }
    }
    let numbers = [
        (",\"ttl_ms\":", put.ttl.map(millis)),
        (",\"history\":", put.history.map(u64::from)),
        (",\"if_version\":", put.if_version),
    ];
    for (key, value) in numbers {
        if let Some(value) = value {
            number(key, value, out);
        }
    }
    for (field, is_set) in [(",\"if_exists\":true", put.if_exists), (",\"if_absent\":true", put.if_absent)] {
        if is_set {
            out.push_str(field);
        }
    }
    if !put.attributes.is_empty() {
        pairs(",\"attributes\":{", &put.attributes, out);
    }
    out.push('}');
}

/// The body of a group.
pub(crate) fn group(messages: &[QueueMessage<'_>], callback: &QueueMessage<'_>) -> String {
    let of_queue = |it: &QueueMessage<'_>, out: &mut String| queue_message(&it.queue, &it.message, true, out);
    let mut out = String::with_capacity(64 + messages.len() * 64);
    out.push_str("{\"messages\":[");
    separated(messages, &mut out, of_queue);
    out.push_str("],\"callback\":");
    of_queue(callback, &mut out);
    out.push('}');
    out
}

pub(crate) fn queue_message(queue: &str, message: &Message<'_>, with_payload: bool, out: &mut String) {
    out.push_str("{\"queue\":");
    string(queue, out);
    if with_payload {
        out.push(',');
        payload(&message.payload, out);
    }
    message_fields(message, out);
}

fn step(step: &Step<'_>, out: &mut String) {
    queue_message(&step.queue, &step.message, step.own_payload, out);
}

fn payload(payload: &[u8], out: &mut String) {
    octets(["\"payload\":", "\"payload_base64\":"], payload, out);
}

fn message(message: &Message<'_>, out: &mut String) {
    out.push('{');
    payload(&message.payload, out);
    message_fields(message, out);
}

/// The fields after the first one, and the end of the object.
fn message_fields(message: &Message<'_>, out: &mut String) {
    if let Some(content_type) = &message.content_type {
        out.push_str(",\"content_type\":");
        string(content_type, out);
    }
    if !message.headers.is_empty() {
        pairs(",\"headers\":{", &message.headers, out);
    }
    let fields = [
        (",\"priority\":", message.priority.map(u64::from)),
        (",\"delay_ms\":", message.delay_ms),
        (",\"deliver_at_ms\":", message.deliver_at_ms),
        (",\"max_attempts\":", message.max_attempts.map(u64::from)),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            number(key, value, out);
        }
    }
    if let Some(backoff) = &message.backoff {
        backoff_object(backoff, out);
    }
    if let Some(options) = &message.options {
        message_options(options, out);
    }
    out.push('}');
}

fn message_options(options: &MessageOptions<'_>, out: &mut String) {
    for (key, value) in [
        (",\"ordering_key\":", &options.ordering_key),
        (",\"fair_key\":", &options.fair_key),
        (",\"limit_key\":", &options.limit_key),
        (",\"correlation_id\":", &options.correlation_id),
        (",\"reply_to\":", &options.reply_to),
        (",\"depends_mode\":", &options.depends_mode),
        (",\"on_parent_failed\":", &options.on_parent_failed),
    ] {
        if let Some(value) = value {
            out.push_str(key);
            string(value, out);
        }
    }
    for (key, value) in [
        (",\"ttl_ms\":", options.ttl_ms),
        (",\"expires_at_ms\":", options.expires_at_ms),
        (",\"result_ttl_ms\":", options.result_ttl_ms),
        (",\"cost\":", options.cost.map(u64::from)),
    ] {
        if let Some(value) = value {
            number(key, value, out);
        }
    }
    if let Some(unique) = &options.unique {
        out.push_str(",\"unique\":");
        // An object of texts and numbers always serialises.
        out.push_str(&serde_json::to_string(unique).unwrap_or_default());
    }
    if options.hold {
        out.push_str(",\"hold\":true");
    }
    if !options.tags.is_empty() {
        out.push_str(",\"tags\":[");
        separated(&options.tags, out, |tag, out| string(tag, out));
        out.push(']');
    }
    if !options.depends_on.is_empty() {
        out.push_str(",\"depends_on\":[");
        separated(&options.depends_on, out, |id, out| string(id, out));
        out.push(']');
    }
    if !options.chain.is_empty() {
        out.push_str(",\"chain\":[");
        separated(&options.chain, out, step);
        out.push(']');
    }
    if let Some(on_failure) = &options.on_failure {
        out.push_str(",\"on_failure\":");
        step(on_failure, out);
    }
}

fn backoff_object(backoff: &Backoff, out: &mut String) {
    let _ = write!(
        out,
        ",\"backoff\":{{\"kind\":\"{}\",\"base_ms\":{},\"cap_ms\":{},\"jitter_percent\":{}}}",
        backoff.kind, backoff.base_ms, backoff.cap_ms, backoff.jitter_percent
    );
}

pub(crate) fn separated<T>(items: &[T], out: &mut String, mut each: impl FnMut(&T, &mut String)) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        each(item, out);
    }
}

/// An object of names and values, behind its key and its brace.
fn pairs<T: AsRef<str>>(key: &str, pairs: &[(T, T)], out: &mut String) {
    out.push_str(key);
    separated(pairs, out, |(name, value), out| {
        string(name.as_ref(), out);
        out.push(':');
        string(value.as_ref(), out);
    });
    out.push('}');
}

pub(crate) fn number(key: &str, value: u64, out: &mut String) {
    out.push_str(key);
    // Writing to a String cannot fail.
    let _ = write!(out, "{value}");
}

/// A JSON string: runs that need no escape are copied whole.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_len(rest.as_bytes()));
        out.push_str(plain);
        let Some(byte) = special.bytes().next() else { break };
        rest = &special[1..];
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Unique;
    use serde_json::{Value, json};

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_string_survives() {
        let all: String =
            (0u32..0x300).filter_map(char::from_u32).chain("\u{1F600}\u{FFFD}".chars()).collect();
        let mut out = String::new();
        string(&all, &mut out);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), all);
    }

    #[test]
    fn results_and_reports_are_written() {
        use crate::message::WorkResult;
        let result = WorkResult { content_type: Some("image/x".into()), bytes: vec![0xff, 0] };
        let item = SettleItem { add_cost: 3, ..SettleItem::of("r", Settle::AckWith(result)) };
        let expected = json!({"receipt": "r", "outcome": "ack", "result_base64": "/wA=",
            "result_content_type": "image/x", "add_cost": 3});
        assert_eq!(parsed(&settle(&[item])), json!({"items": [expected]}));
        let told = Report { progress: Some((40, "half")), checkpoint: Some(b"row 2"), add_cost: 4 };
        let item = json!({"receipt": "r", "lease_ms": 5, "progress": {"percent": 40, "note": "half"},
            "checkpoint": "row 2", "add_cost": 4});
        assert_eq!(parsed(&report("r", Some(Duration::from_millis(5)), &told)), json!({"items": [item]}));
    }

    #[test]
    fn one_message_stands_alone_and_several_in_a_list() {
        assert_eq!(parsed(&send(&[Message::new(b"a\"b")])), json!({"payload": "a\"b"}));
        let two = send(&[Message::new(b"a"), Message::new(&[0xff, 0x00])]);
        assert_eq!(parsed(&two), json!({"messages": [{"payload": "a"}, {"payload_base64": "/wA="}]}));
    }

    #[test]
    fn a_group_is_its_messages_and_its_callback() {
        let member = QueueMessage { queue: "a".into(), message: Message::new(b"x") };
        let callback = QueueMessage { queue: "c".into(), message: Message::new(b"") };
        let expected =
            json!({"messages": [{"queue": "a", "payload": "x"}], "callback": {"queue": "c", "payload": ""}});
        assert_eq!(parsed(&group(&[member], &callback)), expected);
    }

    #[test]
    fn every_field_of_a_message_is_written() {
        let plain = Message { priority: Some(3), ..Message::default() };
        let message = Message {
            payload: b"x".as_slice().into(),
            content_type: Some("text/plain".into()),
            headers: vec![("a".into(), "1".into()), ("b".into(), "\n".into())],
            priority: Some(9),
            delay_ms: Some(5),
            deliver_at_ms: Some(6),
            max_attempts: Some(7),
            backoff: Some(Backoff::default()),
            options: Some(Box::new(MessageOptions {
                tags: vec!["t".into(), "\"".into()],
                ordering_key: Some("o".into()),
                fair_key: Some("f".into()),
                limit_key: Some("l".into()),
                cost: Some(0),
                unique: Some(Unique { key: "u".into(), window_ms: Some(8), ..Unique::default() }),
                ttl_ms: Some(9),
                expires_at_ms: Some(10),
                result_ttl_ms: Some(11),
                correlation_id: Some("c".into()),
                reply_to: Some("r".into()),
                hold: true,
                depends_on: vec!["#0".into(), "i".into()],
                depends_mode: Some("any".into()),
                on_parent_failed: Some("hold".into()),
                chain: vec![Step::to("a"), Step::with_payload("b", Message::new(b"own"))],
                on_failure: Some(Step { message: plain, ..Step::to("c") }),
            })),
        };
        let expected = json!({"payload": "x", "content_type": "text/plain", "headers": {"a": "1", "b": "\n"},
            "priority": 9, "delay_ms": 5, "deliver_at_ms": 6, "max_attempts": 7,
            "ordering_key": "o", "fair_key": "f", "limit_key": "l", "cost": 0, "unique": {"key": "u", "window_ms": 8},
            "ttl_ms": 9, "expires_at_ms": 10, "result_ttl_ms": 11, "correlation_id": "c", "reply_to": "r",
            "hold": true, "tags": ["t", "\""], "depends_on": ["#0", "i"], "depends_mode": "any", "on_parent_failed": "hold",
            "chain": [{"queue": "a"}, {"queue": "b", "payload": "own"}], "on_failure": {"queue": "c", "priority": 3}, "backoff": {"kind": "exponential", "base_ms": 1000, "cap_ms": 600_000, "jitter_percent": 10}});
        assert_eq!(parsed(&send(&[message])), expected);
    }

    #[test]
    fn every_field_of_a_document_is_written() {
        let put = DocumentPut {
            content: b"x\n",
            content_type: Some("text/plain"),
            attributes: vec![("a", "1"), ("b", "\"")],
            ttl: Some(Duration::from_secs(1)),
            history: Some(0),
            if_version: Some(2),
            if_etag: Some("3"),
            if_exists: true,
            if_absent: true,
            token: Some("t"),
            request_id: None,
        };
        let expected = json!({"request_id": "r", "content": "x\n", "content_type": "text/plain",
            "attributes": {"a": "1", "b": "\""}, "ttl_ms": 1_000, "history": 0, "if_version": 2, "if_etag": "3",
            "if_exists": true, "if_absent": true, "token": "t"});
        assert_eq!(parsed(&document(&put, "r")), expected);
        for (content, field) in [
            (&b""[..], json!({"request_id": "r", "content": ""})),
            (&[0xff, 0], json!({"request_id": "r", "content_base64": "/wA="})),
            (b"a\0\n", json!({"request_id": "r", "content": "a\0\n"})),
        ] {
            assert_eq!(parsed(&document(&DocumentPut::new(content), "r")), field);
        }
        for escaped in [b'"', b'\n', b'\0', 0x0c] {
            let written = document(&DocumentPut::new(&[escaped; 10_000]), "r");
            assert!(written.contains("content_base64") && written.len() < 14_000, "{escaped}");
        }
    }

    #[test]
    fn settles_carry_error_and_delay() {
        let items = [
            SettleItem::ack("r1"),
            SettleItem {
                add_cost: 0,
                receipt: "r2".into(),
                settle: Settle::Nack { error: "no".into(), delay: Some(Duration::from_secs(1)) },
            },
            SettleItem::of("r3", Settle::Release { delay: None }),
        ];
        let expected = json!({"items": [{"receipt": "r1", "outcome": "ack"},
            {"receipt": "r2", "outcome": "nack", "error": "no", "delay_ms": 1000},
            {"receipt": "r3", "outcome": "release"}]});
        assert_eq!(parsed(&settle(&items)), expected);
        assert_eq!(parsed(&receipts(["a", "b"])), json!({"receipts": ["a", "b"]}));
        assert_eq!(parsed(&extend([("a", None)])), json!({"items": [{"receipt": "a"}]}));
    }
}
