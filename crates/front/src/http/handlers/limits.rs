//! Limits of a namespace: look, set, delete.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_engine::limit::{IN_FLIGHT_MAX, LimitRules, RATE_COUNT_MAX, RATE_PERIOD_MS_MAX, Rate};
use sluice_engine::query::{LimitKeyView, LimitView};

use super::messages::read_cursor;
use crate::http::route::call::Call;
use crate::json::{Fault, Object, Read, Reader, object, push_text};
use crate::net::body::{Body, Inbound};
use crate::net::context::now_ms;
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Fields of what a limit allows.
pub(crate) const LIMIT_FIELDS: &[&str] = &["in_flight", "in_flight_per_key", "rate", "rate_per_key"];
/// Fields of a rate.
pub(crate) const RATE_FIELDS: &[&str] = &["count", "period_ms", "burst"];
/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["after", "limit"];
/// Parameters of one limit.
pub(crate) const SHOW_PARAMS: &[&str] = &["key", "waiting", "cursor", "limit"];
/// Most limits or keys of a page.
const PAGE_MAX: u64 = 1_000;
const PAGE_DEFAULT: u64 = 100;

/// `GET P/limits`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    // One more than asked for tells whether there is a next page.
    let mut limits = call.node().limits_of(call.namespace_id()?, params.text("after"), limit + 1).await?;
    let more = limits.len() > limit;
    limits.truncate(limit);
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("limits", &limits, |out, limit| object(out, |o| write_limit(o, limit)));
        if let Some(last) = limits.last().filter(|_| more) {
            o.text("next", &last.name);
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/limits/{limit}`: the limit with a page of its keys, or one of them.
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let most = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    let waiting = params.boolean("waiting", false)?;
    let cursor = read_cursor(params.text("cursor"))?;
    let (node, namespace) = (call.node(), call.namespace_id()?);
    let limit = node.limit(namespace, call.name).await?;
    let (keys, next) = match params.text("key") {
        Some(key) => (node.limit_key(namespace, call.name, key).await?.into_iter().collect(), None),
        None => {
            let page = node.limit_keys(namespace, call.name, waiting, cursor, most).await?;
            (page.items, page.next)
        }
    };
    let mut out = Vec::new();
    object(&mut out, |o| {
        write_limit(o, &limit);
        o.list("keys", &keys, |out, key| object(out, |o| write_key(o, key)));
        if let Some(next) = next {
            o.text("next", &next.to_string());
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `PUT P/limits/{limit}`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let rules = read_rules(upload.bytes())?;
    let (limit, created) = call.node().limit_set(call.namespace_id()?, call.name, rules).await?;
    let mut out = Vec::new();
    object(&mut out, |o| write_limit(o, &limit));
    Ok(respond::json(if created { StatusCode::CREATED } else { StatusCode::OK }, out))
}

/// `DELETE P/limits/{limit}`
pub(crate) async fn delete(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    call.node().limit_delete(call.namespace_id()?, call.name).await?;
    let mut out = Vec::new();
    object(&mut out, |_| {});
    Ok(respond::json(StatusCode::OK, out))
}

/// What is not named is not limited.
fn read_rules(body: &[u8]) -> Read<LimitRules> {
    let mut reader = Reader::new(body)?;
    let mut rules = LimitRules::default();
    if reader.is_blank() {
        return Ok(rules);
    }
    reader.object(LIMIT_FIELDS, |reader, name| {
        match name {
            "in_flight" => rules.in_flight = Some(read_count(reader, IN_FLIGHT_MAX)?),
            "in_flight_per_key" => rules.in_flight_per_key = Some(read_count(reader, IN_FLIGHT_MAX)?),
            "rate" => rules.rate = Some(read_rate(reader)?),
            "rate_per_key" => rules.rate_per_key = Some(read_rate(reader)?),
            other => return Err(Fault::unknown("field", other, LIMIT_FIELDS)),
        }
        Ok(())
    })?;
    reader.finish()?;
    Ok(rules)
}

/// 0 is left to the engine's check, which says what would be right.
fn read_count(reader: &mut Reader<'_>, max: u32) -> Read<u32> {
    reader.integer(0, u64::from(max)).map(|count| count as u32)
}

fn read_rate(reader: &mut Reader<'_>) -> Read<Rate> {
    let (mut count, mut period_ms, mut burst) = (None, None, None);
    reader.object(RATE_FIELDS, |reader, name| {
        match name {
            "count" => count = Some(read_count(reader, RATE_COUNT_MAX)?),
            "period_ms" => period_ms = Some(reader.integer(0, RATE_PERIOD_MS_MAX)?),
            "burst" => burst = Some(read_count(reader, RATE_COUNT_MAX)?),
            other => return Err(Fault::unknown("field", other, RATE_FIELDS)),
        }
        Ok(())
    })?;
    let missing = |field| Fault::missing(field, "a rate is so many deliveries in a period");
    let count = count.ok_or_else(|| missing("count"))?;
    let period_ms = period_ms.ok_or_else(|| missing("period_ms"))?;
    Ok(Rate { count, period_ms, burst: burst.unwrap_or(count) })
}

fn write_limit(o: &mut Object<'_>, limit: &LimitView) {
    o.text("name", &limit.name);
    o.object("settings", |o| {
        for (name, count) in
            [("in_flight", limit.rules.in_flight), ("in_flight_per_key", limit.rules.in_flight_per_key)]
        {
            if let Some(count) = count {
                o.number(name, u64::from(count));
            }
        }
        for (name, rate) in [("rate", limit.rules.rate), ("rate_per_key", limit.rules.rate_per_key)] {
            let Some(rate) = rate else { continue };
            o.object(name, |o| {
                o.number("count", u64::from(rate.count));
                o.number("period_ms", rate.period_ms);
                o.number("burst", u64::from(rate.burst));
            });
        }
    });
    o.list("queues", &limit.queues, |out, queue| push_text(out, queue));
    o.number("in_flight", limit.in_flight);
    o.number("waiting", limit.waiting);
    write_next(o, limit.next_at_us);
}

fn write_key(o: &mut Object<'_>, key: &LimitKeyView) {
    o.text("key", &String::from_utf8_lossy(&key.key));
    o.number("in_flight", key.in_flight);
    o.number("waiting", key.waiting);
    write_next(o, key.next_at_us);
}

/// Rounded up: at that millisecond it is allowed. The engine tells of its latest record; while nothing
/// happens, the time may have come since.
fn write_next(o: &mut Object<'_>, next_at_us: Option<u64>) {
    if let Some(at_ms) = next_at_us.map(|at_us| at_us.div_ceil(1_000)).filter(|at_ms| *at_ms > now_ms()) {
        o.number("next_at_ms", at_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_not_limited() {
        assert_eq!(read_rules(b"{}").unwrap(), LimitRules::default());
        let rules = read_rules(br#"{"in_flight":3,"rate_per_key":{"count":5,"period_ms":1000}}"#).unwrap();
        assert_eq!(rules.rate_per_key, Some(Rate { count: 5, period_ms: 1_000, burst: 5 }));
        assert_eq!((rules.in_flight, rules.in_flight_per_key, rules.rate), (Some(3), None, None));
    }

    #[test]
    fn half_a_rate_is_named() {
        let fault = read_rules(br#"{"rate":{"count":5}}"#).unwrap_err();
        assert_eq!((fault.code, fault.field.as_str()), ("missing_field", "rate.period_ms"));
    }
}
