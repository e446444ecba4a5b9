//! Raw sending and receiving: the payload is the body, the fields are headers.

use std::sync::Arc;

use bytes::Bytes;
use data_encoding::BASE64;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::hot::Delivered;
use sluice_calls::hot::receive::with_added;
use sluice_calls::hot::receive::{WAIT_MS_MAX, check_consumer};
use sluice_calls::settings::Backoff;
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{Deliver, SendItem};
use sluice_engine::error::FieldPath;
use sluice_engine::item::SendOptions;
use sluice_engine::limits::{ATTEMPTS_MAX, DELAY_MS_MAX, LEASE_MS_MAX, PRIORITY_MAX};

use super::codec::idempotency::idempotency_key;
use super::raw_options;
use crate::hot::options::AT_MS_MAX;
use crate::hot::receive::{Terms, take};
use crate::hot::source::Source as _;
use crate::http::route::call::Call;
use crate::json::answers::sent;
use crate::json::number::integer;
use crate::json::{Fault, Read, Reader, object, push_text};
use crate::net::body::{Body, Inbound};
use crate::net::respond;

/// Parameters of a raw receive.
pub(crate) const RECEIVE_PARAMS: &[&str] = &["wait_ms", "lease_ms", "consumer"];
/// Headers of a raw send, besides those of the message.
pub(crate) const SEND_HEADERS: &[&str] = &[
    "sluice-priority",
    "sluice-delay-ms",
    "sluice-deliver-at-ms",
    "sluice-max-attempts",
    "sluice-backoff",
    "sluice-ordering-key",
    "sluice-fair-key",
    "sluice-limit-key",
    "sluice-unique",
    "sluice-ttl-ms",
    "sluice-expires-at-ms",
    "sluice-result-ttl-ms",
    "sluice-correlation-id",
    "sluice-reply-to",
    "sluice-hold",
    TAG,
    "sluice-header-<name>",
];
/// Largest checkpoint that a header carries: many clients take no longer lines than its base64.
const CHECKPOINT_BYTES_MAX: usize = 8 << 10;
/// The fields of a message that no header of HTTP can carry, as base64 of a JSON object.
const FIELDS_BASE64: HeaderName = HeaderName::from_static("sluice-fields-base64");
/// The headers of a message that no header of HTTP can carry, as base64 of a JSON object.
const HEADERS_BASE64: HeaderName = HeaderName::from_static("sluice-headers-base64");
/// The header of a tag, which may repeat.
const TAG: &str = "sluice-tag";
/// Prefix of the name of a message's header.
const HEADER_PREFIX: &str = "sluice-header-";

/// `POST P/queues/{queue}/messages/raw`
pub(crate) async fn send(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let (mut headers, mut tags) = (Vec::new(), Vec::new());
    let mut options = SendOptions::default();
    let item = read_head(&call.head.headers, &mut headers, &mut tags, &mut options)?;
    let limit = call.context.body_limits().raw;
    let upload = call.upload(body, limit).await.map_err(|error| match error.code() {
        "body_too_large" => too_large(&call.head.headers, limit),
        _ => error,
    })?;
    let item = SendItem {
        payload: upload.bytes(),
        headers: &headers,
        tags: &tags,
        options: options.given(),
        ..item
    };
    let key = idempotency_key(&call.head.headers)?;
    let cleared = call.permit.onward([&item])?.cleared().await?;
    let stored = cleared.begin_send(key, &[item])?.done().await?;
    Ok(sent(&stored, false).into())
}

fn too_large(headers: &HeaderMap, limit: usize) -> CallError {
    let announced =
        headers.get(http::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match announced {
        Some(size) => {
            Error::PayloadTooLarge { field: FieldPath::default(), size, limit: limit as u64 }.into()
        }
        None => {
            CallError::new("payload_too_large", format!("the payload is over the limit of {limit} bytes"))
                .with(|o| o.number("limit", limit as u64))
        }
    }
}

/// Reads the fields of a message from headers; those of the message itself go into `pairs` and `tags`.
fn read_head<'h>(
    headers: &'h HeaderMap,
    pairs: &mut Vec<(&'h str, &'h str)>,
    tags: &mut Vec<&'h str>,
    options: &mut SendOptions<'h>,
) -> Read<SendItem<'h>> {
    let twice = |name| Fault::new("duplicate_field", "the header is given twice").inside(name);
    let is_field =
        |name: &&str| name.starts_with("sluice-") && *name != TAG && !name.starts_with(HEADER_PREFIX);
    let mut fields = headers.keys().map(HeaderName::as_str).filter(is_field);
    if let Some(name) = fields.find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
        return Err(twice(name));
    }
    let mut item = SendItem::default();
    if let Some(value) = headers.get(CONTENT_TYPE) {
        item.content_type = text(value).map_err(|fault| fault.inside("content-type"))?;
    }
    for (name, value) in headers {
        let name = name.as_str();
        if name == "traceparent" {
            pairs.push((name, text(value).map_err(|fault| fault.inside(name))?));
        } else if name == TAG {
            tags.push(text(value).map_err(|fault| fault.inside(name))?);
        } else if name.starts_with("sluice-") {
            read_field(&mut item, pairs, options, name, value).map_err(|fault| fault.inside(name))?;
        }
    }
    for (at, (name, _)) in pairs.iter().enumerate() {
        if pairs[..at].iter().any(|(other, _)| other == name) {
            return Err(twice(name));
        }
    }
    let both = headers.contains_key("sluice-delay-ms") && headers.contains_key("sluice-deliver-at-ms");
    if both {
        return Err(Fault::conflict("Sluice-Delay-Ms", "Sluice-Deliver-At-Ms"));
    }
    Ok(item)
}

fn read_field<'h>(
    item: &mut SendItem<'h>,
    pairs: &mut Vec<(&'h str, &'h str)>,
    options: &mut SendOptions<'h>,
    name: &'h str,
    value: &'h HeaderValue,
) -> Read<()> {
    let value = text(value)?;
    match name {
        "sluice-priority" => item.priority = integer(value, 0, u64::from(PRIORITY_MAX))? as u8,
        "sluice-delay-ms" => item.deliver = Deliver::AfterMs(integer(value, 0, DELAY_MS_MAX)?),
        "sluice-deliver-at-ms" => item.deliver = Deliver::AtUs(integer(value, 0, AT_MS_MAX)? * 1_000),
        "sluice-max-attempts" => item.max_attempts = integer(value, 1, u64::from(ATTEMPTS_MAX))? as u16,
        "sluice-backoff" => {
            let mut reader = Reader::new(value.as_bytes())?;
            item.backoff = Some(reader.value::<Backoff>()?.into());
            reader.finish()?;
        }
        _ => match name.strip_prefix(HEADER_PREFIX) {
            Some(name) if !name.is_empty() => pairs.push((name, value)),
            _ if raw_options::header(options, name, value)? => {}
            _ => {
                let unknown = Fault::unknown("header", name, SEND_HEADERS);
                return Err(Box::new(Fault { field: String::new(), ..*unknown }));
            }
        },
    }
    Ok(())
}

pub(super) fn text(value: &HeaderValue) -> Read<&str> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| Fault::invalid("the header's value is not UTF-8"))
}

/// `POST P/queues/{queue}/receive/raw`
pub(crate) async fn receive(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let params = call.query(RECEIVE_PARAMS)?;
    let wait_ms = params.integer("wait_ms", 0, WAIT_MS_MAX, 0)?;
    let lease_ms = params.integer("lease_ms", 1, LEASE_MS_MAX, 0)?;
    let consumer = params.text("consumer").unwrap_or_default();
    check_consumer(consumer).map_err(|fault| fault.inside("consumer"))?;
    // Options belong into the query: a body would be ignored, so it is refused.
    if !call.upload(body, 0).await?.bytes().is_empty() {
        return Err(CallError::body_too_large(0));
    }
    let (terms, room) = (Terms::new(1, wait_ms, lease_ms), Arc::clone(&call.in_flight.share));
    let delivered = take(call.permit.cleared_by_name()?, room, &terms, &[(call.name(), 0)], consumer).await?;
    match delivered.into_iter().next() {
        None => Ok(respond::empty(StatusCode::NO_CONTENT)),
        Some(message) => Ok(deliver(&message)),
    }
}

fn deliver(message: &Delivered) -> Response<Body> {
    let blob = MessageBlob::parse(&message.blob);
    let payload = blob.map_or(Bytes::new(), |blob| message.blob.slice_ref(blob.payload));
    let content_type = blob.map(|blob| blob.content_type).filter(|text| is_plain(text));
    let mut response = respond::foreign(payload, content_type);
    put_fields(response.headers_mut(), message);
    let headers = response.headers_mut();
    let delivery = &message.delivery;
    let mut put = |name: &'static str, value: Result<HeaderValue, _>| {
        if let Ok(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("sluice-message-id", HeaderValue::from_bytes(&delivery.receipt.id.to_text()));
    put("sluice-receipt", HeaderValue::from_bytes(&delivery.receipt.to_text()));
    put("sluice-queue", HeaderValue::from_str(&message.queue));
    put("sluice-priority", Ok(u64::from(delivery.priority).into()));
    put("sluice-attempt", Ok(u64::from(delivery.attempt).into()));
    put("sluice-max-attempts", Ok(u64::from(delivery.max_attempts).into()));
    put("sluice-deliveries", Ok(u64::from(delivery.deliveries).into()));
    put("sluice-sent-at-ms", Ok((delivery.sent_at_us / 1_000).into()));
    put("sluice-lease-until-ms", Ok((delivery.lease_until_us / 1_000).into()));
    if let Some(details) = &message.details {
        if !details.reply_to.is_empty() {
            put("sluice-reply-to", HeaderValue::from_str(&details.reply_to));
        }
        if let Some(checkpoint) = details.checkpoint.as_ref().and_then(|bytes| MessageBlob::parse(bytes)) {
            let bytes = checkpoint.payload;
            put("sluice-checkpoint-bytes", Ok((bytes.len() as u64).into()));
            if bytes.len() <= CHECKPOINT_BYTES_MAX {
                put("sluice-checkpoint-base64", HeaderValue::from_str(&BASE64.encode(bytes)));
            }
        }
        if let Some(reason) = details.reason {
            put("sluice-from-queue", HeaderValue::from_str(&details.from_queue));
            put("sluice-reason", Ok(HeaderValue::from_static(reason)));
        }
    }
    if let Some(blob) = blob {
        let added = message.details.as_ref().map_or(&[][..], |details| &details.headers);
        put_pairs(headers, HEADER_PREFIX, HEADERS_BASE64, |_| true, with_added(blob.headers(), added));
    }
    response
}

/// Correlation id and tags, each in a header of its own; those of them that HTTP cannot carry, and such a
/// content type, together in [`FIELDS_BASE64`].
fn put_fields(headers: &mut HeaderMap, message: &Delivered) {
    let content_type = MessageBlob::parse(&message.blob).map_or("", |blob| blob.content_type);
    let correlation_id = message.details.as_ref().map_or(&[][..], |details| &details.correlation_id);
    let correlation_id = String::from_utf8_lossy(correlation_id);
    let mut json = Vec::new();
    object(&mut json, |o| {
        if !is_plain(content_type) {
            o.text("content_type", content_type);
        }
        match HeaderValue::from_str(&correlation_id) {
            Ok(_) if correlation_id.is_empty() => {}
            Ok(value) if is_plain(&correlation_id) => {
                headers.insert(HeaderName::from_static("sluice-correlation-id"), value);
            }
            _ => o.text("correlation_id", &correlation_id),
        }
        let mut rest = Vec::new();
        for tag in message.tagged().into_iter().flat_map(|blob| blob.tags()) {
            match HeaderValue::from_str(tag).ok().filter(|_| is_plain(tag)) {
                Some(value) => {
                    headers.append(HeaderName::from_static(TAG), value);
                }
                None => rest.push(tag),
            }
        }
        if !rest.is_empty() {
            o.list("tags", rest, push_text);
        }
    });
    if json != b"{}"
        && let Ok(value) = HeaderValue::from_str(&BASE64.encode(&json))
    {
        headers.insert(FIELDS_BASE64, value);
    }
}

/// Each header of a message, or attribute of a document, under its name behind a prefix; those that HTTP
/// cannot carry, or whose name `fits` not, together in `together`, as base64 of a JSON object.
pub(super) fn put_pairs<'m>(
    headers: &mut HeaderMap,
    prefix: &str,
    together: HeaderName,
    fits: impl Fn(&str) -> bool,
    pairs: impl Iterator<Item = (&'m str, &'m str)>,
) {
    let mut rest = Vec::new();
    for (name, value) in pairs {
        match carried(prefix, name, value).filter(|_| fits(name)) {
            // Names that differ only in case meet here, and the second must not push the first out.
            Some((http_name, http_value)) if !headers.contains_key(&http_name) => {
                headers.insert(http_name, http_value);
            }
            _ => rest.push((name, value)),
        }
    }
    if !rest.is_empty() {
        let mut json = Vec::new();
        object(&mut json, |o| rest.iter().for_each(|(name, value)| o.foreign(name, value)));
        if let Ok(value) = HeaderValue::from_str(&BASE64.encode(&json)) {
            headers.insert(together, value);
        }
    }
}

/// True if HTTP carries a header's value unchanged: printable ASCII without blanks around it.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value
}

fn carried(prefix: &str, name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    if !is_plain(value) {
        return None;
    }
    let name = HeaderName::from_bytes(format!("{prefix}{name}").as_bytes()).ok()?;
    Some((name, HeaderValue::from_str(value).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        headers
    }

    #[test]
    fn fields_are_read_from_headers() {
        let headers = head(&[
            ("Content-Type", "application/pdf"),
            ("Sluice-Priority", "7"),
            ("Sluice-Delay-Ms", "500"),
            ("Sluice-Max-Attempts", "2"),
            ("Sluice-Backoff", r#"{"kind":"none"}"#),
            ("Sluice-Header-Customer", "zwölf"),
            ("traceparent", "00-1-2-00"),
            ("Accept", "*/*"),
        ]);
        let mut pairs = Vec::new();
        let item = read_head(&headers, &mut pairs, &mut Vec::new(), &mut SendOptions::default()).unwrap();
        assert_eq!((item.content_type, item.priority, item.max_attempts), ("application/pdf", 7, 2));
        assert_eq!(item.deliver, Deliver::AfterMs(500));
        assert!(item.backoff.is_some());
        pairs.sort_unstable();
        assert_eq!(pairs, [("customer", "zwölf"), ("traceparent", "00-1-2-00")]);
    }

    #[test]
    fn bad_headers_are_named() {
        let fault = |pairs: &[(&str, &str)]| {
            let headers = head(pairs);
            let fault = read_head(&headers, &mut Vec::new(), &mut Vec::new(), &mut SendOptions::default())
                .unwrap_err();
            (fault.code, fault.field)
        };
        let named = |code, field: &str| (code, field.to_owned());
        assert_eq!(fault(&[("sluice-priority", "10")]), named("invalid_argument", "sluice-priority"));
        assert_eq!(fault(&[("sluice-prioriti", "1")]), named("unknown_field", "sluice-prioriti"));
        assert_eq!(fault(&[("sluice-header-", "1")]), named("unknown_field", "sluice-header-"));
        assert_eq!(
            fault(&[("sluice-header-a", "1"), ("sluice-header-a", "2")]),
            named("duplicate_field", "a")
        );
        assert_eq!(fault(&[("sluice-delay-ms", "1"), ("sluice-deliver-at-ms", "1")]).0, "conflicting_fields");
        for name in ["sluice-priority", "sluice-delay-ms", "sluice-ttl-ms", "sluice-unique", "sluice-hold"] {
            assert_eq!(fault(&[(name, "1"), (name, "1")]), named("duplicate_field", name));
        }
    }

    #[test]
    fn tags_may_repeat() {
        let headers = head(&[("sluice-tag", "a"), ("sluice-tag", "b")]);
        let mut tags = Vec::new();
        read_head(&headers, &mut Vec::new(), &mut tags, &mut SendOptions::default()).unwrap();
        assert_eq!(tags, ["a", "b"]);
    }

    #[test]
    fn headers_that_http_cannot_carry_are_not_lost() {
        let mut headers = HeaderMap::new();
        let pairs = [("a", "1"), ("A", "2"), ("b c", "3"), ("d", "zwölf"), ("e", " x")];
        put_pairs(&mut headers, HEADER_PREFIX, HEADERS_BASE64, |_| true, pairs.into_iter());
        assert_eq!(headers["sluice-header-a"], "1");
        let json = BASE64.decode(headers["sluice-headers-base64"].as_bytes()).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value, serde_json::json!({"A": "2", "b c": "3", "d": "zwölf", "e": " x"}));
    }
}
