//! Consumers of a namespace: look, detach.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_engine::Error;
use sluice_engine::command::{DETACH_GRACE_MS, DETACH_GRACE_MS_MAX};
use sluice_engine::id::ConsumerId;
use sluice_engine::query::{ConsumerState, ConsumerView, HeldView, Holder};

use crate::http::route::call::Call;
use crate::json::{Fault, Object, object, push_text};
use crate::net::body::Body;
use crate::net::respond;

/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["after", "limit"];
/// Parameters of one consumer.
pub(crate) const SHOW_PARAMS: &[&str] = &["limit"];
/// Parameters of detaching.
pub(crate) const DETACH_PARAMS: &[&str] = &["grace_ms"];
/// Most consumers or messages of a page.
const PAGE_MAX: u64 = 1_000;
const PAGE_DEFAULT: u64 = 100;

/// `GET P/consumers`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    let after = params.text("after").map(|text| {
        let number = text.parse().map(ConsumerId);
        number.map_err(|_| Fault::invalid("not the `next` of a page".to_owned()).inside("after"))
    });
    let (node, namespace) = (call.node(), call.namespace_id()?);
    // One more than asked for tells whether there is a next page.
    let mut consumers = node.consumers(namespace, after.transpose()?, limit + 1).await?;
    let more = consumers.len() > limit;
    consumers.truncate(limit);
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("consumers", &consumers, |out, consumer| object(out, |o| write_consumer(o, consumer)));
        if let Some(last) = consumers.last().filter(|_| more) {
            o.text("next", &last.id.0.to_string());
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/consumers/{consumer}`: the consumer with the messages that it has held for longest.
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let limit = call.query()?.integer("limit", 1, PAGE_MAX, PAGE_DEFAULT)? as usize;
    let consumer = read_consumer(call.name)?;
    let (consumer, held) = call.node().consumer_with_held(call.namespace_id()?, consumer, limit).await?;
    let mut out = Vec::new();
    object(&mut out, |o| {
        write_consumer(o, &consumer);
        o.list("holds", &held, |out, held| object(out, |o| write_held(o, held)));
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `DELETE P/consumers/{consumer}`
pub(crate) async fn detach(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let grace_ms = params.integer("grace_ms", 0, DETACH_GRACE_MS_MAX, DETACH_GRACE_MS)?;
    call.node().detach(call.namespace_id()?, read_consumer(call.name)?, grace_ms).await?;
    let mut out = Vec::new();
    object(&mut out, |_| {});
    Ok(respond::json(StatusCode::OK, out))
}

fn read_consumer(name: &str) -> Result<ConsumerId, Error> {
    name.parse().map(ConsumerId).map_err(|_| Error::ConsumerNotFound { consumer: name.to_owned() })
}

fn write_consumer(o: &mut Object<'_>, consumer: &ConsumerView) {
    o.text("id", &consumer.id.0.to_string());
    o.text("name", &consumer.name);
    o.text("state", consumer.state.name());
    if consumer.state != ConsumerState::Pulling {
        o.list("queues", &consumer.queues, |out, queue| push_text(out, queue));
        o.number("credit", consumer.credit.into());
    }
    o.number("in_flight", consumer.in_flight.into());
    if consumer.lease_ms > 0 {
        o.number("lease_ms", consumer.lease_ms);
    }
    o.number("since_at_ms", consumer.since_us / 1_000);
    if let Some(oldest_us) = consumer.oldest_lease_us {
        o.number("oldest_leased_at_ms", oldest_us / 1_000);
    }
}

fn write_held(o: &mut Object<'_>, held: &HeldView) {
    o.text("id", &held.id.to_string());
    o.text("queue", &held.queue);
    o.number("attempt", held.attempt.into());
    o.number("leased_at_ms", held.leased_at_us / 1_000);
    o.number("lease_until_ms", held.lease_until_us / 1_000);
}

/// Who holds a message.
pub(crate) fn write_holder(o: &mut Object<'_>, holder: &Holder) {
    o.object("holder", |o| {
        o.text("consumer", &holder.consumer.0.to_string());
        o.text("name", &holder.name);
    });
}
