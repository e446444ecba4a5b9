//! Parses messages given as JSON objects of the HTTP API: lines of a send, members of a group, steps of a
//! chain.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use sluice_calls::near::nearest;
use sluice_client::{Backoff, Message, MessageOptions, QueueMessage, Step, Unique};
use sluice_front::http::MESSAGE_FIELDS;

use super::super::Result;
use super::super::bounded::{FILE_BYTES_MAX, read_file};
use super::{Fields, strict};

/// Advice for a JSON value in place of the payload's text.
const JSON_PAYLOAD: &str = "payload is a string: write a JSON payload as its text, such as \"payload\":\"{\\\"a\\\":1}\" with \
    \"content_type\":\"application/json\"; `sluice send --lines --content-type application/json` sends each \
        line as it is";

/// The result of parsing an object; the error describes what is wrong, in words.
type Parsed<T> = std::result::Result<T, String>;

/// The fields of a message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with the fields of a message")]
struct Object {
    payload: Option<String>,
    payload_base64: Option<String>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    priority: Option<u8>,
    delay_ms: Option<u64>,
    deliver_at_ms: Option<u64>,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    #[serde(flatten)]
    options: OptionFields,
}

/// Parses a message; flags set the fields that the object lacks.
pub(super) fn message(line: &[u8], flags: &Fields) -> Parsed<Message<'static>> {
    let fields = strict::value(line).map_err(|e| format!("not a message: {}", in_one_line(&e)))?;
    let (message, has_payload) = object(&fields)?.over(flags)?;
    if has_payload { Ok(message) } else { Err(no_payload()) }
}

fn object(fields: &Value) -> Parsed<Object> {
    Object::deserialize(fields)
        .map_err(|e| format!("not a message: {}", mistake(fields).unwrap_or_else(|| e.to_string())))
}

/// Recognises frequent mistakes and describes them better than serde does: a JSON value as the payload, a
/// field name of other queue systems.
fn mistake(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    if fields.get("payload").is_some_and(|payload| !payload.is_string()) {
        return Some(JSON_PAYLOAD.to_owned());
    }
    let unknown = fields.keys().find(|name| !MESSAGE_FIELDS.contains(&name.as_str()))?;
    let meant =
        nearest(unknown, MESSAGE_FIELDS).map_or_else(String::new, |name| format!(", did you mean `{name}`?"));
    Some(format!("unknown field `{unknown}`{meant}"))
}

/// Describes an error in the JSON of one line; the caller adds the number of the line.
fn in_one_line(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match told.strip_suffix(&place) {
        Some(told) => format!("{told}, at column {}", error.column()),
        None => told,
    }
}

fn no_payload() -> String {
    "payload or payload_base64 is missing".to_owned()
}

/// Parses a message with its queue.
pub(in crate::cli) fn queue_message(value: Value) -> Parsed<QueueMessage<'static>> {
    let step = step(value)?;
    if !step.own_payload {
        return Err(no_payload());
    }
    Ok(QueueMessage { queue: step.queue, message: step.message })
}

/// Parses a step of a chain.
pub(super) fn step(value: Value) -> Parsed<Step<'static>> {
    let Value::Object(mut fields) = value else { return Err("not a message: expected an object".to_owned()) };
    let Some(Value::String(queue)) = fields.remove("queue") else {
        return Err("queue is missing: name the queue of this message".to_owned());
    };
    let (message, own_payload) = object(&Value::Object(fields))?.over(&Fields::default())?;
    Ok(Step { queue: queue.into(), message, own_payload })
}

/// Parses a list of steps. An empty one is refused here, because a request cannot tell it from none.
pub(super) fn steps(values: Vec<Value>) -> Parsed<Vec<Step<'static>>> {
    if values.is_empty() {
        return Err("chain: expected 1 to 100 steps, got 0".to_owned());
    }
    let place = |(at, value)| step(value).map_err(|why| format!("chain[{at}]: {why}"));
    values.into_iter().enumerate().map(place).collect()
}

/// Reads a whole file, or stdin for `-`. Returns the bytes and the name for messages.
pub(in crate::cli) fn read_all(path: &Path) -> Result<(Vec<u8>, String)> {
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let text = read_file(path, FILE_BYTES_MAX)?;
    Ok((text, name))
}

impl Object {
    /// Builds the message, with the missing fields from the flags, and says whether it has a payload.
    fn over(self, flags: &Fields) -> Parsed<(Message<'static>, bool)> {
        let payload = match (self.payload, self.payload_base64) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(text)) => Some(
                data_encoding::BASE64
                    .decode(text.as_bytes())
                    .map_err(|e| format!("payload_base64 is not base64: {e}"))?,
            ),
            (None, None) => None,
            (Some(_), Some(_)) => return Err("payload and payload_base64 exclude each other".to_owned()),
        };
        let has_payload = payload.is_some();
        let mut message = flags.message(payload.unwrap_or_default());
        if self.delay_ms.is_some() || self.deliver_at_ms.is_some() {
            (message.delay_ms, message.deliver_at_ms) = (self.delay_ms, self.deliver_at_ms);
        }
        message.content_type = self.content_type.map(Into::into).or(message.content_type);
        message.priority = self.priority.or(message.priority);
        message.max_attempts = self.max_attempts.or(message.max_attempts);
        message.backoff = self.backoff.or(message.backoff);
        message.options = self.options.over(message.options.take())?;
        message.headers.retain(|(name, _)| !self.headers.contains_key(name.as_ref()));
        message.headers.extend(self.headers.into_iter().map(|(n, v)| (n.into(), v.into())));
        Ok((message, has_payload))
    }
}

/// Optional fields of an object: keys, expiry, and the handling of the result.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OptionFields {
    tags: Option<Vec<String>>,
    ordering_key: Option<String>,
    fair_key: Option<String>,
    limit_key: Option<String>,
    cost: Option<u32>,
    unique: Option<Unique<'static>>,
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    result_ttl_ms: Option<u64>,
    correlation_id: Option<String>,
    reply_to: Option<String>,
    hold: Option<bool>,
    depends_on: Option<Vec<String>>,
    depends_mode: Option<String>,
    on_parent_failed: Option<String>,
    chain: Option<Vec<Value>>,
    on_failure: Option<Value>,
}

impl OptionFields {
    /// Merges both; fields of the object override flags.
    fn over(
        self,
        flags: Option<Box<MessageOptions<'static>>>,
    ) -> Parsed<Option<Box<MessageOptions<'static>>>> {
        let mut all = flags.unwrap_or_default();
        let take = |own: Option<String>, place: &mut Option<Cow<'static, str>>| {
            if let Some(own) = own {
                *place = Some(own.into());
            }
        };
        if let Some(tags) = self.tags {
            all.tags = tags.into_iter().map(Into::into).collect();
        }
        take(self.ordering_key, &mut all.ordering_key);
        take(self.fair_key, &mut all.fair_key);
        take(self.limit_key, &mut all.limit_key);
        take(self.correlation_id, &mut all.correlation_id);
        take(self.reply_to, &mut all.reply_to);
        all.cost = self.cost.or(all.cost);
        all.unique = self.unique.or(all.unique.take());
        if self.ttl_ms.is_some() || self.expires_at_ms.is_some() {
            (all.ttl_ms, all.expires_at_ms) = (self.ttl_ms, self.expires_at_ms);
        }
        all.result_ttl_ms = self.result_ttl_ms.or(all.result_ttl_ms);
        all.hold = self.hold.unwrap_or(all.hold);
        if let Some(depends_on) = self.depends_on {
            if depends_on.is_empty() {
                return Err("depends_on: expected 1 to 100 ids, got 0".to_owned());
            }
            all.depends_on = depends_on.into_iter().map(Into::into).collect();
        }
        take(self.depends_mode, &mut all.depends_mode);
        take(self.on_parent_failed, &mut all.on_parent_failed);
        if let Some(chain) = self.chain {
            all.chain = steps(chain)?;
        }
        if let Some(on_failure) = self.on_failure {
            all.on_failure = Some(step(on_failure).map_err(|why| format!("on_failure: {why}"))?);
        }
        Ok((*all != MessageOptions::default()).then_some(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_overrides_the_flags() {
        let flags = Fields {
            priority: Some(1),
            delay: Some(std::time::Duration::from_secs(1)),
            header: vec![("a".into(), "flag".into()), ("b".into(), "flag".into())],
            ..Fields::default()
        };
        let line = br#"{"payload_base64":"/wA=","priority":9,"deliver_at_ms":5,"headers":{"a":"line"}}"#;
        let message = message(line, &flags).unwrap();
        assert_eq!(message.payload.as_ref(), &[0xff, 0]);
        assert_eq!((message.priority, message.delay_ms, message.deliver_at_ms), (Some(9), None, Some(5)));
        let headers: Vec<_> = message.headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(headers, ["b=flag", "a=line"]);
    }

    #[test]
    fn mistakes_that_are_often_made_are_told_with_what_is_right() {
        for (line, expected) in [
            (
                r#"{"payload":{"a":1}}"#,
                "not a message: payload is a string: write a JSON payload as its text",
            ),
            (r#"{"payload":1}"#, "not a message: payload is a string"),
            (r#"{"payload":"","delay":1}"#, "not a message: unknown field `delay`, did you mean `delay_ms`?"),
            (
                r#"{"payload":"","max_retries":1}"#,
                "not a message: unknown field `max_retries`, did you mean `max_attempts`?",
            ),
            (
                r#"{"payload":"","headers":{"a":"1","a":"2"}}"#,
                "not a message: headers.a is given twice, at column 36",
            ),
            (
                r#"{"payload":"","priority":null}"#,
                "not a message: priority is null: leave the field out instead, at column 29",
            ),
            (r#"{"payload":"","depends_on":[]}"#, "depends_on: expected 1 to 100 ids, got 0"),
            (r#"{"payload":"","chain":[]}"#, "chain: expected 1 to 100 steps, got 0"),
            (
                r#"{"payload":"","chain":[{"queue":"b","depends_on":[]}]}"#,
                "chain[0]: depends_on: expected 1 to 100 ids, got 0",
            ),
            ("[1]", "not a message: invalid type: sequence, expected an object with the fields of a message"),
            (r#"{"payload":"a""#, "not a message: EOF while parsing an object, at column 14"),
            (r#"{"payload":"","priority":"x"}"#, "not a message: invalid type: string \"x\", expected u8"),
        ] {
            let told = message(line.as_bytes(), &Fields::default()).unwrap_err();
            assert!(told.starts_with(expected), "{told}");
        }
    }

    #[test]
    fn what_is_listed_is_a_field() {
        for name in MESSAGE_FIELDS {
            let fields = serde_json::json!({ *name: null });
            let told = Object::deserialize(&fields).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(!told.contains("unknown field"), "{told}");
        }
    }

    #[test]
    fn steps_are_read_with_their_queues_and_mistakes_with_their_places() {
        let line = br#"{"payload":"a","chain":[{"queue":"b"},{"queue":"c","payload":"own","fair_key":"f"}],
            "on_failure":{"queue":"d"}}"#;
        let options = message(line, &Fields::default()).unwrap().options.unwrap();
        let shown: Vec<_> = options.chain.iter().map(|step| (&*step.queue, step.own_payload)).collect();
        assert_eq!(shown, [("b", false), ("c", true)]);
        assert_eq!(options.chain[1].message.options.as_ref().unwrap().fair_key.as_deref(), Some("f"));
        assert_eq!(options.on_failure, Some(Step::to("d")));
        for (line, expected) in [
            (r#"{"payload":"a","chain":[{"payload":"b"}]}"#, "chain[0]: queue is missing"),
            (r#"{"payload":"a","chain":[{"queue":"b"},3]}"#, "chain[1]: not a message: expected an object"),
            (
                r#"{"payload":"a","on_failure":{"queue":"b","x":1}}"#,
                "on_failure: not a message: unknown field `x`",
            ),
        ] {
            let told = message(line.as_bytes(), &Fields::default()).unwrap_err();
            assert!(told.starts_with(expected), "{told}");
        }
    }
}
