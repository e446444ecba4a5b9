//! Everything that can be refused without looking at the state.

use super::chain::check_chain;
use super::consumers;
use crate::blob::BlobHead;
use crate::chain::Chain;
use crate::change::{TAG_BYTES_MAX, TAGS_MAX};
use crate::command::{
    Command, Deliver, Group, QueueItem, Receive, ReportItem, SchedulePut, Send, SendItem, SettleItem,
    Settlement,
};
use crate::error::Error;
use crate::id::{MessageId, NamespaceId};
use crate::limit::{IN_FLIGHT_MAX, LimitRules, RATE_COUNT_MAX, RATE_PERIOD_MS_MAX};
use crate::limits::{
    ATTEMPTS_MAX, CHECKPOINT_BYTES_MAX, DELAY_MS_MAX, ERROR_TEXT_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX,
    LEASE_MS_MAX, Limits, NAME_BYTES_MAX, PARENTS_MAX, PRIORITY_MAX, PROGRESS_NOTE_BYTES_MAX,
    RECEIVE_QUEUES_MAX, REDRIVE_PER_SECOND_MAX, RESULT_BYTES_MAX, RETAIN_DONE_COUNT_MAX,
    SCHEDULE_SPEC_BYTES_MAX, SEND_PARENTS_MAX,
};
use crate::options::{DependsOn, Expires, KEY_BYTES_MAX, SendOptions, WINDOW_MS_MAX};
use crate::settings::{Backoff, BackoffKind, FAIR_WEIGHT_MAX, FAIR_WEIGHTS_MAX, FairWeights, QueuePatch};

impl Command<'_> {
    /// Refuses what is wrong whatever the state is. Fronts and node call it before they propose.
    ///
    /// # Errors
    /// The error names the field, its value, and what would be right.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        match self {
            Command::Epoch { .. }
            | Command::Tick
            | Command::HoldDamaged { .. }
            | Command::ScheduleFire(_) => Ok(()),
            Command::SchedulePut(put) => check_schedule(put, limits),
            Command::ScheduleDelete { schedule, .. }
            | Command::SchedulePause { schedule, .. }
            | Command::ScheduleTrigger { schedule, .. } => name_rule("schedule", schedule),
            Command::Configure(limits) => limits.check(),
            Command::Send(send) => check_send(send, limits),
            Command::Group(group) => check_group(group, limits),
            Command::Receive(receive) => check_receive(receive, limits),
            Command::Settle { items, .. } => check_settle(items, limits),
            Command::Extend { items, .. } => {
                check_items("items", items.len(), limits)?;
                items.iter().try_for_each(|(_, lease_ms)| at_most("lease_ms", *lease_ms, LEASE_MS_MAX))
            }
            Command::Report { items, .. } => check_report(items, limits),
            Command::Change(change) => super::change::check(change),
            Command::Attach(attach) => consumers::check_attach(attach),
            Command::Credit { credit, .. } => consumers::check_credit(*credit),
            Command::Detach { grace_ms, .. } => consumers::check_grace(*grace_ms),
            Command::Resume { receipts, .. } => check_items("receipts", receipts.len(), limits),
            Command::NamespaceCreate { name, .. } => name_rule("namespace", name),
            Command::NamespaceSet { .. } | Command::NamespaceDelete { .. } => Ok(()),
            Command::QueueSet { queue, patch, .. } => {
                name_rule("queue", queue)?;
                check_patch(patch)
            }
            Command::LimitSet { limit, rules, .. } => {
                name_rule("limit", limit)?;
                check_rules(rules)
            }
            Command::DeadRedriveRate { queue, per_second, .. } => {
                name_rule("queue", queue)?;
                at_most("per_second", (*per_second).into(), REDRIVE_PER_SECOND_MAX.into())
            }
            Command::DefaultsSet { pattern, patch, .. } => {
                pattern_rule(pattern)?;
                check_patch(patch)
            }
            Command::DefaultsDelete { pattern, .. } => pattern_rule(pattern),
            Command::LimitDelete { limit, .. } => name_rule("limit", limit),
            Command::QueuePurge { queue, .. } | Command::QueueDelete { queue, .. } => {
                name_rule("queue", queue)
            }
            Command::DeadRedrive { queue, ids, .. } | Command::DeadDelete { queue, ids, .. } => {
                name_rule("queue", queue)?;
                check_ids(ids, limits)
            }
        }
    }
}

/// Names: 1 to 128 of `A-Z a-z 0-9 . _ -`.
pub(crate) fn name_rule(what: &'static str, name: &str) -> Result<(), Error> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.as_bytes().iter().all(allowed) {
        return Ok(());
    }
    Err(Error::InvalidName { what, name: name.chars().take(NAME_BYTES_MAX + 1).collect() })
}

/// Patterns of names: a name in which `*` may stand.
fn pattern_rule(pattern: &str) -> Result<(), Error> {
    let name = pattern.replace('*', "-");
    name_rule("pattern", &name).map_err(|_| {
        let shown: String = pattern.chars().take(NAME_BYTES_MAX + 1).collect();
        let rule =
            format!("use 1 to {NAME_BYTES_MAX} of A-Z a-z 0-9 . _ - and * for any number of characters");
        invalid("pattern", format!("{shown:?} is not valid: {rule}"))
    })
}

pub(super) fn invalid(field: impl Into<String>, reason: String) -> Error {
    Error::InvalidArgument { field: field.into(), reason }
}

pub(super) fn at_most(field: &str, value: u64, max: u64) -> Result<(), Error> {
    if value <= max {
        return Ok(());
    }
    Err(invalid(field, format!("{value} is too much: use at most {max}")))
}

pub(super) fn between(field: &str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(invalid(field, format!("{value} is out of range: use {min} to {max}")))
}

fn check_items(what: &'static str, items: usize, limits: &Limits) -> Result<(), Error> {
    if items == 0 {
        return Err(invalid(what, "the list is empty: give at least one".into()));
    }
    if items as u64 > u64::from(limits.batch_items) {
        let limit = u64::from(limits.batch_items);
        return Err(Error::BatchTooLarge { what, size: items as u64, limit });
    }
    Ok(())
}

fn check_send(send: &Send<'_>, limits: &Limits) -> Result<(), Error> {
    name_rule("queue", send.queue)?;
    at_most("idempotency_key bytes", send.idempotency_key.len() as u64, IDEMPOTENCY_KEY_BYTES_MAX as u64)?;
    check_items("messages", send.items.len(), limits)?;
    let mut together = Together::default();
    for (at, item) in send.items.iter().enumerate() {
        let prefix = if send.items.len() == 1 { String::new() } else { format!("messages[{at}].") };
        together.bytes += check_send_item(item, &prefix, limits)?;
        together.check_relations(send.namespace, item, at, &prefix)?;
    }
    together.check(limits)
}

fn check_group(group: &Group<'_>, limits: &Limits) -> Result<(), Error> {
    at_most("idempotency_key bytes", group.idempotency_key.len() as u64, IDEMPOTENCY_KEY_BYTES_MAX as u64)?;
    if !group.members.is_empty() {
        check_items("messages", group.members.len(), limits)?;
    }
    let bytes = check_group_item(group.callback, "callback.", limits)?;
    let options = group.callback.item.options.copied().unwrap_or_default();
    if options.depends_on.is_some() {
        let reason = "a callback waits for the messages of its group: leave it out".into();
        return Err(invalid("callback.depends_on", reason));
    }
    let steps = options.chain.len();
    let mut together = Together { bytes, parents: 0, steps };
    for (at, member) in group.members.iter().enumerate() {
        let prefix = format!("messages[{at}].");
        together.bytes += check_group_item(member, &prefix, limits)?;
        together.check_relations(group.namespace, &member.item, at, &prefix)?;
    }
    together.check(limits)
}

fn check_group_item(member: &QueueItem<'_>, prefix: &str, limits: &Limits) -> Result<u64, Error> {
    name_rule("queue", member.queue)?;
    if member.item.options.is_some_and(|options| options.unique.is_some()) {
        let reason = "the duplicate of another message cannot belong to a group: leave it out".into();
        return Err(invalid(format!("{prefix}unique"), reason));
    }
    check_send_item(&member.item, prefix, limits)
}

/// What the messages of one record have together.
#[derive(Default)]
struct Together {
    /// Of payloads and headers.
    bytes: u64,
    parents: usize,
    steps: usize,
}

impl Together {
    /// Checks what a message has to do with others, apart from its steps by themselves.
    fn check_relations(
        &mut self,
        namespace: NamespaceId,
        item: &SendItem<'_>,
        at: usize,
        prefix: &str,
    ) -> Result<(), Error> {
        let Some(options) = item.options else { return Ok(()) };
        self.steps += options.chain.len();
        let Some(depends_on) = &options.depends_on else { return Ok(()) };
        self.parents += depends_on.len();
        check_depends_on(namespace, depends_on, at, prefix)
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
pub(super) fn check_send_item(item: &SendItem<'_>, prefix: &str, limits: &Limits) -> Result<u64, Error> {
    let payload = item.payload.len() as u64;
    if payload > u64::from(limits.payload_bytes) {
        return Err(Error::PayloadTooLarge { size: payload, limit: u64::from(limits.payload_bytes) });
    }
    let headers = check_headers(item, prefix, limits)?;
    let field = |name: &str| format!("{prefix}{name}");
    if item.priority > PRIORITY_MAX {
        at_most(&field("priority"), u64::from(item.priority), u64::from(PRIORITY_MAX))?;
    }
    if item.max_attempts > ATTEMPTS_MAX {
        at_most(&field("max_attempts"), u64::from(item.max_attempts), u64::from(ATTEMPTS_MAX))?;
    }
    if let Deliver::AfterMs(delay_ms) = item.deliver {
        at_most(&field("delay_ms"), delay_ms, DELAY_MS_MAX)?;
    }
    if let Some(backoff) = &item.backoff {
        backoff_rule(&field("backoff"), backoff)?;
    }
    let steps = match item.options {
        None => 0,
        Some(options) => {
            check_options(item, options, prefix)?;
            match options.chain {
                Chain::Given(steps) => check_chain(steps, prefix, limits)?,
                Chain::None | Chain::Laid(_) => 0,
            }
        }
    };
    Ok(payload + headers + steps)
}

fn check_options(item: &SendItem<'_>, options: &SendOptions<'_>, prefix: &str) -> Result<(), Error> {
    let field = |name: &str| format!("{prefix}{name}");
    for (name, key) in [
        ("ordering_key", options.ordering_key),
        ("fair_key", options.fair_key),
        ("limit_key", options.limit_key),
        ("correlation_id", options.correlation_id),
    ] {
        at_most(&field(&format!("{name} bytes")), key.len() as u64, KEY_BYTES_MAX as u64)?;
    }
    if let Some(unique) = &options.unique {
        between(&field("unique.key bytes"), unique.key.len() as u64, 1, KEY_BYTES_MAX as u64)?;
        between(&field("unique.window_ms"), unique.window_ms, 1, WINDOW_MS_MAX)?;
    }
    at_most(&field("result_ttl_ms"), options.result_ttl_ms, WINDOW_MS_MAX)?;
    if !options.reply_to.is_empty() {
        name_rule("reply_to", options.reply_to)?;
    }
    check_expiry(item.deliver, options.expires, prefix)
}

/// Parents are in the same namespace, and of the same send only those before: so no message ever waits for itself.
fn check_depends_on(
    namespace: NamespaceId,
    depends_on: &DependsOn<'_>,
    at: usize,
    prefix: &str,
) -> Result<(), Error> {
    let field = format!("{prefix}depends_on");
    between(&format!("{field} ids"), depends_on.len() as u64, 1, PARENTS_MAX as u64)?;
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
fn check_expiry(deliver: Deliver, expires: Expires, prefix: &str) -> Result<(), Error> {
    let field = |name: &str| format!("{prefix}{name}");
    if let Expires::AfterMs(ttl_ms) = expires {
        between(&field("ttl_ms"), ttl_ms, 1, DELAY_MS_MAX)?;
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
    contradiction.map_or(Ok(()), |(name, reason)| Err(invalid(field(name), reason)))
}

fn check_headers(item: &SendItem<'_>, prefix: &str, limits: &Limits) -> Result<u64, Error> {
    check_content_type(&format!("{prefix}content_type"), item.content_type)?;
    if item.headers.is_empty() && item.tags.is_empty() {
        return Ok(0);
    }
    check_tags(&format!("{prefix}tags"), item.tags)?;
    let count = item.headers.len() as u64;
    if count > u64::from(limits.headers) {
        return Err(Error::HeadersTooLarge {
            what: "headers",
            size: count,
            limit: u64::from(limits.headers),
        });
    }
    if let Some(at) = item.headers.iter().position(|(name, _)| name.is_empty()) {
        return Err(invalid(format!("{prefix}headers"), format!("header {at} has no name")));
    }
    let bytes = item.headers.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
    if bytes > u64::from(limits.headers_bytes) {
        let limit = u64::from(limits.headers_bytes);
        return Err(Error::HeadersTooLarge { what: "bytes of names and values", size: bytes, limit });
    }
    debug_assert!(BlobHead::len_tagged(item.content_type, item.headers, item.tags) <= usize::from(u16::MAX));
    Ok(bytes + item.tags.iter().map(|tag| tag.len() as u64).sum::<u64>())
}

/// What tags must obey; `field` names them in the error.
pub(super) fn check_tags(field: &str, tags: &[&str]) -> Result<(), Error> {
    at_most(&format!("number of {field}"), tags.len() as u64, TAGS_MAX as u64)?;
    for (at, tag) in tags.iter().enumerate() {
        between(&format!("{field}[{at}] bytes"), tag.len() as u64, 1, TAG_BYTES_MAX as u64)?;
        if tags[..at].contains(tag) {
            return Err(invalid(format!("{field}[{at}]"), format!("{tag:?} is given twice")));
        }
    }
    Ok(())
}

/// What a backoff must obey; `field` names it in the error.
pub(crate) fn backoff_rule(field: &str, backoff: &Backoff) -> Result<(), Error> {
    at_most(&format!("{field}.jitter_percent"), u64::from(backoff.jitter_percent), 100)?;
    at_most(&format!("{field}.base_ms"), backoff.base_ms, DELAY_MS_MAX)?;
    at_most(&format!("{field}.cap_ms"), backoff.cap_ms, DELAY_MS_MAX)?;
    if backoff.kind != BackoffKind::None && backoff.base_ms > backoff.cap_ms {
        let reason = format!("{} is above cap_ms {}", backoff.base_ms, backoff.cap_ms);
        return Err(invalid(format!("{field}.base_ms"), reason));
    }
    Ok(())
}

fn check_receive(receive: &Receive<'_>, limits: &Limits) -> Result<(), Error> {
    between("max", u64::from(receive.max_messages), 1, u64::from(limits.receive_messages))?;
    at_most("lease_ms", receive.lease_ms, LEASE_MS_MAX)?;
    at_most("consumer bytes", receive.consumer.len() as u64, NAME_BYTES_MAX as u64)?;
    between("number of queues", receive.queues.len() as u64, 1, RECEIVE_QUEUES_MAX as u64)?;
    for (name, _) in receive.queues {
        name_rule("queue", name)?;
    }
    let weighted = receive.queues.iter().filter(|(_, weight)| *weight > 0).count();
    if weighted > 0
        && weighted < receive.queues.len()
        && let Some((name, _)) = receive.queues.iter().find(|(_, weight)| *weight == 0)
    {
        let reason =
            format!("queue {name:?} has none, others have: give every queue a weight of 1 to 65535, or none");
        return Err(invalid("weight", reason));
    }
    Ok(())
}

fn check_schedule(put: &SchedulePut<'_>, limits: &Limits) -> Result<(), Error> {
    name_rule("schedule", put.schedule)?;
    name_rule("queue", put.queue)?;
    at_most("spec bytes", put.spec.len() as u64, SCHEDULE_SPEC_BYTES_MAX as u64)?;
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
    check_send_item(put.item, "message.", limits).map(|_| ())
}

fn check_settle(items: &[SettleItem<'_>], limits: &Limits) -> Result<(), Error> {
    check_items("items", items.len(), limits)?;
    let bytes = |item: &SettleItem<'_>| item.error.len() + item.result.map_or(0, |result| result.bytes.len());
    check_bytes("bytes of error texts and results", items.iter().map(bytes).sum(), limits)?;
    for item in items {
        at_most("error bytes", item.error.len() as u64, ERROR_TEXT_BYTES_MAX as u64)?;
        if let Some(result) = &item.result {
            check_content_type("result_content_type", result.content_type)?;
            at_most("result bytes", result.bytes.len() as u64, RESULT_BYTES_MAX as u64)?;
            if item.settlement != Settlement::Ack {
                return Err(invalid("result", "only an ack takes one: leave it out".into()));
            }
        }
        match item.settlement {
            Settlement::Nack { delay_ms: Some(delay_ms) } | Settlement::Release { delay_ms } => {
                at_most("delay_ms", delay_ms, DELAY_MS_MAX)?;
            }
            Settlement::Ack | Settlement::Nack { delay_ms: None } | Settlement::Reject => {}
        }
    }
    Ok(())
}

fn check_report(items: &[ReportItem<'_>], limits: &Limits) -> Result<(), Error> {
    check_items("items", items.len(), limits)?;
    let bytes = |item: &ReportItem<'_>| {
        item.progress.map_or(0, |progress| progress.note.len()) + item.checkpoint.map_or(0, <[u8]>::len)
    };
    check_bytes("bytes of notes and checkpoints", items.iter().map(bytes).sum(), limits)?;
    for item in items {
        at_most("lease_ms", item.lease_ms, LEASE_MS_MAX)?;
        if let Some(progress) = &item.progress {
            at_most("progress.percent", u64::from(progress.percent), 100)?;
            at_most("progress.note bytes", progress.note.len() as u64, PROGRESS_NOTE_BYTES_MAX as u64)?;
        }
        if let Some(checkpoint) = item.checkpoint {
            at_most("checkpoint bytes", checkpoint.len() as u64, CHECKPOINT_BYTES_MAX as u64)?;
        }
    }
    Ok(())
}

/// What the items of one record carry together.
fn check_bytes(what: &'static str, bytes: usize, limits: &Limits) -> Result<(), Error> {
    if bytes as u64 <= u64::from(limits.batch_bytes) {
        return Ok(());
    }
    Err(Error::BatchTooLarge { what, size: bytes as u64, limit: limits.batch_bytes.into() })
}

fn check_content_type(field: &str, content_type: &str) -> Result<(), Error> {
    if content_type.len() <= usize::from(u8::MAX) {
        return Ok(());
    }
    Err(invalid(field, format!("{} bytes are too many: use at most 255", content_type.len())))
}

fn check_patch(patch: &QueuePatch) -> Result<(), Error> {
    if let Some(lease_ms) = patch.lease_ms {
        between("lease_ms", lease_ms, 1, LEASE_MS_MAX)?;
    }
    if let Some(max_attempts) = patch.max_attempts {
        between("max_attempts", u64::from(max_attempts), 1, u64::from(ATTEMPTS_MAX))?;
    }
    if let Some(max_deliveries) = patch.max_deliveries {
        between("max_deliveries", u64::from(max_deliveries), 1, u64::from(u16::MAX))?;
    }
    if let Some(limit) = patch.limit.as_deref().filter(|limit| !limit.is_empty()) {
        name_rule("limit", limit)?;
    }
    if let Some(name) = patch.dead_letter_queue.as_deref().filter(|name| !name.is_empty()) {
        name_rule("dead_letter_queue", name)?;
    }
    if let Some(weights) = &patch.fair_weights {
        check_fair_weights(weights)?;
    }
    if let Some(retain_ms) = patch.retain_done_ms {
        at_most("retain_done_ms", retain_ms, DELAY_MS_MAX)?;
    }
    if let Some(max_age_ms) = patch.max_age_ms {
        at_most("max_age_ms", max_age_ms, DELAY_MS_MAX)?;
    }
    if let Some(count) = patch.retain_done_count {
        at_most("retain_done_count", count.into(), RETAIN_DONE_COUNT_MAX.into())?;
    }
    patch.backoff.as_ref().map_or(Ok(()), |backoff| backoff_rule("backoff", backoff))
}

fn check_rules(rules: &LimitRules) -> Result<(), Error> {
    for (field, count) in [("in_flight", rules.in_flight), ("in_flight_per_key", rules.in_flight_per_key)] {
        if let Some(count) = count {
            none_refused(field, count.into(), IN_FLIGHT_MAX.into())?;
        }
    }
    for (field, rate) in [("rate", rules.rate), ("rate_per_key", rules.rate_per_key)] {
        let Some(rate) = rate else { continue };
        none_refused(&format!("{field}.count"), rate.count.into(), RATE_COUNT_MAX.into())?;
        none_refused(&format!("{field}.period_ms"), rate.period_ms, RATE_PERIOD_MS_MAX)?;
        none_refused(&format!("{field}.burst"), rate.burst.into(), RATE_COUNT_MAX.into())?;
        if !rate.is_sound() {
            let reason = format!(
                "a burst of {} takes more than ten years at {} each {} ms",
                rate.burst, rate.count, rate.period_ms
            );
            return Err(invalid(format!("{field}.burst"), reason));
        }
    }
    Ok(())
}

/// What is limited to nothing is better paused.
fn none_refused(field: &str, value: u64, max: u64) -> Result<(), Error> {
    if value == 0 {
        let reason = "0 would let nothing through: use at least 1, or pause the queue".into();
        return Err(invalid(field, reason));
    }
    between(field, value, 1, max)
}

fn check_fair_weights(weights: &FairWeights) -> Result<(), Error> {
    at_most("fair_weights entries", weights.len() as u64, FAIR_WEIGHTS_MAX as u64)?;
    for (key, weight) in weights.iter() {
        at_most("fair_weights key bytes", key.len() as u64, KEY_BYTES_MAX as u64)?;
        let field = format!("fair_weights.{}", String::from_utf8_lossy(key));
        between(&field, u64::from(weight), 1, u64::from(FAIR_WEIGHT_MAX))?;
    }
    Ok(())
}

fn check_ids(ids: &[MessageId], limits: &Limits) -> Result<(), Error> {
    if ids.is_empty() { Ok(()) } else { check_items("ids", ids.len(), limits) }
}

impl Limits {
    /// Refuses limits that the engine's layouts cannot carry, or with which nothing could be done.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the limit.
    pub fn check(&self) -> Result<(), Error> {
        between("limits.payload_bytes", u64::from(self.payload_bytes), 1, 1 << 30)?;
        at_most("limits.headers", u64::from(self.headers), 255)?;
        at_most("limits.headers_bytes", u64::from(self.headers_bytes), 60 << 10)?;
        between("limits.batch_items", u64::from(self.batch_items), 1, 10_000)?;
        between("limits.batch_bytes", u64::from(self.batch_bytes), 1, 1 << 30)?;
        between("limits.receive_messages", u64::from(self.receive_messages), 1, 10_000)?;
        between("limits.queues", u64::from(self.queues), 1, 10_000_000)?;
        between("limits.namespaces", u64::from(self.namespaces), 2, 1_000_000)?;
        between("limits.messages", self.messages, 1, 4_000_000_000)?;
        at_most("limits.idempotency_keys", u64::from(self.idempotency_keys), 1 << 30)?;
        at_most("limits.idempotency_window_ms", self.idempotency_window_ms, DELAY_MS_MAX)?;
        if self.batch_bytes < self.payload_bytes {
            let reason = format!("{} is below payload_bytes {}", self.batch_bytes, self.payload_bytes);
            return Err(invalid("limits.batch_bytes", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Receipt;

    #[test]
    fn the_defaults_pass_their_own_check() {
        assert_eq!(Limits::default().check(), Ok(()));
        // Even the largest heads fit the two bytes of their length.
        let largest = 2 + 1 + 255 + 1 + 255 * 4 + (60 << 10) + TAGS_MAX * (4 + TAG_BYTES_MAX);
        assert!(largest <= usize::from(u16::MAX));
    }

    #[test]
    fn names_follow_the_rule() {
        let long = "n".repeat(128);
        for good in ["a", "A-b_c.9", long.as_str()] {
            assert_eq!(name_rule("queue", good), Ok(()), "{good}");
        }
        let long = "n".repeat(129);
        for bad in ["", "$sys", "a b", "ü", "a/b", long.as_str()] {
            assert!(name_rule("queue", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn error_texts_together_are_bounded() {
        let id = MessageId { namespace: NamespaceId::DEFAULT, sequence: 1 };
        let error = "e".repeat(ERROR_TEXT_BYTES_MAX);
        let item = SettleItem {
            receipt: Receipt { id, token: 1 },
            settlement: Settlement::Reject,
            error: &error,
            result: None,
        };
        let limits = Limits::default();
        let most = limits.batch_bytes as usize / ERROR_TEXT_BYTES_MAX;
        assert_eq!(check_settle(&vec![item; most], &limits), Ok(()));
        let refused = check_settle(&vec![item; most + 1], &limits);
        assert!(
            matches!(refused, Err(Error::BatchTooLarge { what: "bytes of error texts and results", .. })),
            "{refused:?}"
        );
    }
}
