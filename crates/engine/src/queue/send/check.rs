//! Checks of messages to send, alone and with others of their record, that do not look at the state.

use crate::blob::BlobHead;
use crate::command::{Deliver, Group, QueueItem, SchedulePut, Send, SendItem};
use crate::error::{Error, FieldPath};
use crate::id::NamespaceId;
use crate::item::{
    CHAIN_BYTES_MAX, Chain, DependsOn, Expires, KEY_BYTES_MAX, STEPS_MAX, SendOptions, Step, Steps,
    WINDOW_MS_MAX,
};
use crate::limit::COST_MAX;
use crate::limits::{
    ATTEMPTS_MAX, DELAY_MS_MAX, IDEMPOTENCY_KEY_BYTES_MAX, Limits, PARENTS_MAX, PRIORITY_MAX,
    SCHEDULE_SPEC_BYTES_MAX, SEND_PARENTS_MAX,
};
use crate::queue::record::item::write_chain;
use crate::rules::{
    at_most, at_most_of, between, between_of, check_content_type, check_items, check_tags, invalid, name_rule,
};

pub(crate) fn check_send(send: &Send<'_>, limits: &Limits) -> Result<(), Error> {
    name_rule("queue", send.queue)?;
    at_most_of(
        "bytes",
        "idempotency_key",
        send.idempotency_key.len() as u64,
        IDEMPOTENCY_KEY_BYTES_MAX as u64,
    )?;
    check_items("messages", send.items.len(), limits)?;
    let mut together = Together::default();
    for (at, item) in send.items.iter().enumerate() {
        let checked = together.add(send.namespace, item, at, limits);
        checked.map_err(|error| if send.items.len() == 1 { error } else { error.within(&path(at)) })?;
    }
    together.check(limits)
}

pub(crate) fn check_group(group: &Group<'_>, limits: &Limits) -> Result<(), Error> {
    at_most_of(
        "bytes",
        "idempotency_key",
        group.idempotency_key.len() as u64,
        IDEMPOTENCY_KEY_BYTES_MAX as u64,
    )?;
    if !group.members.is_empty() {
        check_items("messages", group.members.len(), limits)?;
    }
    let callback = check_of_several(group.callback.queue, &group.callback.item, limits);
    let bytes = callback.map_err(|error| error.within("callback."))?;
    let options = group.callback.item.options.copied().unwrap_or_default();
    if options.depends_on.is_some() {
        let reason = "a callback waits for the messages of its group: leave it out".into();
        return Err(invalid("callback.depends_on", reason));
    }
    let steps = options.chain.len();
    let mut together = Together { bytes, parents: 0, steps };
    for (at, QueueItem { queue, item }) in group.members.iter().enumerate() {
        let checked = together.add_of_several(group.namespace, (queue, item), at, limits);
        checked.map_err(|error| error.within(&path(at)))?;
    }
    together.check(limits)
}

/// The path of a message of several, with which the names of its fields begin.
fn path(at: usize) -> String {
    format!("messages[{at}].")
}

fn check_of_several(queue: &str, item: &SendItem<'_>, limits: &Limits) -> Result<u64, Error> {
    name_rule("queue", queue)?;
    if item.options.is_some_and(|options| options.unique.is_some()) {
        let reason = "a group and a transaction send no duplicates of other messages: leave it out".into();
        return Err(invalid("unique", reason));
    }
    check_send_item(item, limits)
}

/// Checks messages to several queues, of which none is the duplicate of another one, each with its place in
/// the request, for which `path` tells with what the names of its fields begin; returns the bytes of their
/// payloads and headers.
pub(crate) fn check_several<'i>(
    namespace: NamespaceId,
    messages: impl Iterator<Item = (usize, &'i str, &'i SendItem<'i>)>,
    path: impl Fn(usize) -> String,
    limits: &Limits,
) -> Result<u64, Error> {
    let mut together = Together::default();
    for (at, (place, queue, item)) in messages.enumerate() {
        let checked = together.add_of_several(namespace, (queue, item), at, limits);
        checked.map_err(|error| error.within(&path(place)))?;
    }
    together.check(limits)?;
    Ok(together.bytes)
}

/// Totals of the messages of one record.
#[derive(Default)]
struct Together {
    /// Bytes of payloads and headers.
    bytes: u64,
    parents: usize,
    steps: usize,
}

impl Together {
    /// Adds a message, the one with this number.
    fn add(
        &mut self,
        namespace: NamespaceId,
        item: &SendItem<'_>,
        at: usize,
        limits: &Limits,
    ) -> Result<(), Error> {
        self.bytes += check_send_item(item, limits)?;
        self.check_relations(namespace, item, at)
    }

    /// Adds a message to a queue of its own.
    fn add_of_several(
        &mut self,
        namespace: NamespaceId,
        (queue, item): (&str, &SendItem<'_>),
        at: usize,
        limits: &Limits,
    ) -> Result<(), Error> {
        self.bytes += check_of_several(queue, item, limits)?;
        self.check_relations(namespace, item, at)
    }

    /// Checks what a message has to do with others, apart from its steps by themselves.
    fn check_relations(
        &mut self,
        namespace: NamespaceId,
        item: &SendItem<'_>,
        at: usize,
    ) -> Result<(), Error> {
        let Some(options) = item.options else { return Ok(()) };
        self.steps += options.chain.len();
        let Some(depends_on) = &options.depends_on else { return Ok(()) };
        self.parents += depends_on.len();
        check_depends_on(namespace, depends_on, at)
    }

    fn check(&self, limits: &Limits) -> Result<(), Error> {
        for (what, size, limit) in [
            ("ids in depends_on", self.parents as u64, SEND_PARENTS_MAX as u64),
            ("steps of chains", self.steps as u64, limits.batch_items.into()),
            ("bytes of payloads and headers", self.bytes, limits.batch_bytes.into()),
        ] {
            if size > limit {
                return Err(Error::BatchTooLarge { what, size, limit });
            }
        }
        Ok(())
    }
}

/// Returns the bytes of payload and headers, those of its steps included.
pub(crate) fn check_send_item(item: &SendItem<'_>, limits: &Limits) -> Result<u64, Error> {
    let payload = item.payload.len() as u64;
    if payload > u64::from(limits.payload_bytes) {
        let (field, limit) = (FieldPath::default(), u64::from(limits.payload_bytes));
        return Err(Error::PayloadTooLarge { field, size: payload, limit });
    }
    let headers = check_headers(item, limits)?;
    if item.priority > PRIORITY_MAX {
        at_most("priority", u64::from(item.priority), u64::from(PRIORITY_MAX))?;
    }
    if item.max_attempts > ATTEMPTS_MAX {
        at_most("max_attempts", u64::from(item.max_attempts), u64::from(ATTEMPTS_MAX))?;
    }
    if let Deliver::AfterMs(delay_ms) = item.deliver {
        at_most("delay_ms", delay_ms, DELAY_MS_MAX)?;
    }
    if let Some(backoff) = &item.backoff {
        backoff.check("backoff")?;
    }
    let steps = match item.options {
        None => 0,
        Some(options) => {
            check_options(item, options)?;
            match options.chain {
                Chain::Given(steps) => check_chain(steps, limits)?,
                Chain::None | Chain::Laid(_) => 0,
            }
        }
    };
    Ok(payload + headers + steps)
}

/// Checks steps; returns the bytes of their payloads and headers.
fn check_chain(steps: &Steps<'_>, limits: &Limits) -> Result<u64, Error> {
    at_most_of("steps", "chain", steps.steps.len() as u64, STEPS_MAX as u64)?;
    if steps.steps.is_empty() && steps.on_failure.is_none() {
        return Err(invalid("chain", "it has no steps: leave it out".into()));
    }
    let mut bytes = 0;
    for (at, step) in steps.steps.iter().enumerate() {
        bytes += check_step(step, limits).map_err(|error| error.within(&format!("chain[{at}].")))?;
    }
    if let Some(step) = steps.on_failure {
        bytes += check_step(step, limits).map_err(|error| error.within("on_failure."))?;
    }
    let mut laid = Vec::with_capacity(256);
    write_chain(&mut laid, steps);
    at_most_of("bytes beside payloads", "chain", laid.len() as u64, CHAIN_BYTES_MAX as u64)?;
    Ok(bytes)
}

fn check_step(step: &Step<'_>, limits: &Limits) -> Result<u64, Error> {
    name_rule("queue", step.queue)?;
    let item = &step.item;
    let options = item.options.copied().unwrap_or_default();
    for (field, given, reason) in [
        ("unique", options.unique.is_some(), "the duplicate of another message cannot go on with a chain"),
        ("depends_on", options.depends_on.is_some(), "a step waits for the one before it and no other"),
        ("chain", options.chain != Chain::None, "a step has none of its own"),
        ("content_type", !step.own_payload && !item.content_type.is_empty(), OF_THE_RESULT),
        ("tags", !step.own_payload && !item.tags.is_empty(), "they are kept with a payload, and it has none"),
    ] {
        if given {
            return Err(invalid(field, format!("{reason}: leave it out")));
        }
    }
    check_send_item(item, limits)
}

const OF_THE_RESULT: &str = "it comes with the payload, which is the result of the step before";

fn check_options(item: &SendItem<'_>, options: &SendOptions<'_>) -> Result<(), Error> {
    for (name, key) in [
        ("ordering_key", options.ordering_key),
        ("fair_key", options.fair_key),
        ("limit_key", options.limit_key),
        ("correlation_id", options.correlation_id),
    ] {
        at_most_of("bytes", name, key.len() as u64, KEY_BYTES_MAX as u64)?;
    }
    at_most("cost", options.cost.0.into(), COST_MAX.into())?;
    if let Some(unique) = &options.unique {
        between_of("bytes", "unique.key", unique.key.len() as u64, 1, KEY_BYTES_MAX as u64)?;
        between("unique.window_ms", unique.window_ms, 1, WINDOW_MS_MAX)?;
    }
    at_most("result_ttl_ms", options.result_ttl_ms, WINDOW_MS_MAX)?;
    if !options.reply_to.is_empty() {
        name_rule("reply_to", options.reply_to)?;
    }
    check_expiry(item.deliver, options.expires)
}

/// Parents are in the same namespace, and of the same send only those before: so no message ever waits for
/// itself.
fn check_depends_on(namespace: NamespaceId, depends_on: &DependsOn<'_>, at: usize) -> Result<(), Error> {
    let field = "depends_on";
    between_of("ids", field, depends_on.len() as u64, 1, PARENTS_MAX as u64)?;
    if let Some(other) = depends_on.ids().find(|id| id.namespace != namespace) {
        return Err(invalid(field, format!("{other} belongs to another namespace than the message")));
    }
    let Some(place) = depends_on.places().find(|place| *place as usize >= at) else { return Ok(()) };
    let right = match at {
        0 => "the first message of a send can name none of it".into(),
        1 => "use \"#0\"".into(),
        at => format!("use \"#0\" to \"#{}\"", at - 1),
    };
    let reason = format!(
        "\"#{place}\" does not point back: a message may wait only for earlier ones, so that none waits for itself \
         in a cycle; {right}"
    );
    Err(invalid(field, reason))
}

/// A message that would expire before it may be delivered contradicts itself.
fn check_expiry(deliver: Deliver, expires: Expires) -> Result<(), Error> {
    if let Expires::AfterMs(ttl_ms) = expires {
        between("ttl_ms", ttl_ms, 1, DELAY_MS_MAX)?;
    }
    let contradiction = match (deliver, expires) {
        (Deliver::AfterMs(delay), Expires::AfterMs(ttl)) if ttl <= delay => {
            Some(("ttl_ms", format!("{ttl} is not after delay_ms {delay}")))
        }
        (Deliver::AtUs(deliver), Expires::AtUs(expires)) if expires <= deliver => {
            let reason = format!("{} is not after deliver_at_ms {}", expires / 1_000, deliver / 1_000);
            Some(("expires_at_ms", reason))
        }
        _ => None,
    };
    contradiction.map_or(Ok(()), |(name, reason)| Err(invalid(name, reason)))
}

fn check_headers(item: &SendItem<'_>, limits: &Limits) -> Result<u64, Error> {
    if !item.content_type.is_empty() {
        check_content_type("content_type", item.content_type)?;
    }
    if item.headers.is_empty() && item.tags.is_empty() {
        return Ok(0);
    }
    check_tags("tags", item.tags)?;
    let count = item.headers.len() as u64;
    let too_large = |what, size, limit| {
        let field = FieldPath::default();
        Err(Error::HeadersTooLarge { field, what, size, limit: u64::from(limit) })
    };
    if count > u64::from(limits.headers) {
        return too_large("headers", count, limits.headers);
    }
    if let Some(at) = item.headers.iter().position(|(name, _)| name.is_empty()) {
        return Err(invalid("headers", format!("header {at} has no name")));
    }
    let bytes = item.headers.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
    if bytes > u64::from(limits.headers_bytes) {
        return too_large("bytes of names and values", bytes, limits.headers_bytes);
    }
    debug_assert!(BlobHead::len_tagged(item.content_type, item.headers, item.tags) <= usize::from(u16::MAX));
    Ok(bytes + item.tags.iter().map(|tag| tag.len() as u64).sum::<u64>())
}

pub(crate) fn check_schedule(put: &SchedulePut<'_>, limits: &Limits) -> Result<(), Error> {
    name_rule("schedule", put.schedule)?;
    name_rule("queue", put.queue)?;
    at_most_of("bytes", "spec", put.spec.len() as u64, SCHEDULE_SPEC_BYTES_MAX as u64)?;
    let instead = |field: &str, other: &str| {
        let reason = format!("a schedule sends again and again: use {other}");
        Err(invalid(format!("message.{field}"), reason))
    };
    if matches!(put.item.deliver, Deliver::AtUs(_)) {
        return instead("deliver_at_ms", "delay_ms");
    }
    if put.item.options.is_some_and(|options| matches!(options.expires, Expires::AtUs(_))) {
        return instead("expires_at_ms", "ttl_ms");
    }
    if put.item.options.is_some_and(|options| options.depends_on.is_some()) {
        let reason = "a schedule sends again and again, others end once: leave it out".into();
        return Err(invalid("message.depends_on", reason));
    }
    if put.item.options.is_some_and(|options| options.chain != Chain::None) {
        let reason = "what a schedule sends carries no steps: let whoever gets it send them".into();
        return Err(invalid("message.chain", reason));
    }
    check_send_item(put.item, limits).map(|_| ()).map_err(|error| error.within("message."))
}
