//! From outcomes and views to lines.

use sluice_engine::blob::MessageBlob;
use sluice_engine::command::Deliver;
use sluice_engine::event::{Event, EventDetail};
use sluice_engine::flow::{FlowNode, FlowParent, FlowView};
use sluice_engine::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId};
use sluice_engine::limit::Spent;
use sluice_engine::outcome::{Delivery, Ended, Reply};
use sluice_engine::query::{
    ConsumerView, Counters, LimitKeyView, LimitView, MessageView, NamespaceView, QueueView, ScheduleView,
    State,
};
use sluice_engine::settings::Backoff;

use super::{Player, START_US};

/// Blobs or deliveries that are listed one by one.
const LISTED_MAX: usize = 12;

impl Player {
    /// What the last command brought about.
    pub(super) fn outcome(&mut self) -> Vec<String> {
        let names = self.name_deliveries();
        let locks = self.lock_lines();
        let operations = self.operation_lines();
        let out = &self.driver.out;
        let mut lines = Vec::new();
        lines.extend(out.error.as_ref().map(|error| format!("error {}: {error}", error.code())));
        lines.extend(self.reply(out.reply));
        lines.extend(operations);
        lines.extend(locks);
        lines.extend(out.results.iter().map(|result| match result {
            Ok(()) => "ok".into(),
            Err(error) => format!("{}: {error}", error.code()),
        }));
        if names.len() > LISTED_MAX {
            lines.push(format!("{} to {}", names[0], names[names.len() - 1]));
        } else {
            let pulled = out.deliveries.iter().map(|delivery| (String::new(), delivery));
            let pushed = out.pushed.iter().map(|(to, delivery)| (format!("to {}: ", to.0), delivery));
            let deliveries = names.iter().zip(pulled.chain(pushed));
            lines.extend(
                deliveries.map(|(name, (to, delivery))| format!("{to}{}", self.delivery(name, delivery))),
            );
        }
        lines.extend(out.detached.iter().map(|consumer| format!("detached {}", consumer.0)));
        let cancelled = out.cancelled.iter();
        lines.extend(cancelled.map(|(to, receipt)| format!("cancelled {} of {}", id(receipt.id), to.0)));
        let ended = |end: &Ended| format!("{} ended {}", id(end.id), end.state.map_or("gone", State::name));
        lines.extend(out.ended.iter().map(ended));
        lines.extend(out.events.iter().map(|event| self.event(event)));
        if !out.released.is_empty() {
            lines.push(format!("released {}", blobs(&out.released)));
        }
        if !out.ready.is_empty() {
            let names: Vec<_> = out.ready.iter().map(|queue| self.driver.engine.queue_name(*queue)).collect();
            let names: Vec<_> = names.into_iter().map(|name| name.unwrap_or("(gone)")).collect();
            lines.push(format!("ready {}", names.join(" ")));
        }
        lines
    }

    fn event(&self, event: &Event) -> String {
        let queue = |queue| self.driver.engine.queue_name(queue).unwrap_or("(gone)");
        let what = match (event.id, &event.detail) {
            (Some(message), _) => id(message),
            (None, EventDetail::Many { messages, name, .. }) => format!("{messages} of {name}"),
            (None, _) => "(nothing)".into(),
        };
        let mut text = format!("event {} {what} in {}", event.kind.name(), queue(event.queue));
        if event.attempt > 0 {
            text.push_str(&format!(", attempt {}", event.attempt));
        }
        match &event.detail {
            EventDetail::None => {}
            EventDetail::Until(until_us) => text.push_str(&format!(", until {}", self.time(*until_us))),
            EventDetail::Lease { until_us, consumer } => {
                text.push_str(&format!(", lease until {}", self.time(*until_us)));
                let to = consumer.map_or_else(String::new, |consumer| format!(", to {}", consumer.0));
                text.push_str(&to);
            }
            EventDetail::Why(why) | EventDetail::Many { why, .. } => text.push_str(&format!(" ({why})")),
            EventDetail::From(from) => text.push_str(&format!(", from {}", queue(*from))),
        }
        text
    }

    fn reply(&self, reply: Reply) -> Option<String> {
        Some(match reply {
            Reply::None
            | Reply::Committed { .. }
            | Reply::Prepared
            | Reply::Finished { .. }
            | Reply::Decided { .. }
            | Reply::LockGranted { .. }
            | Reply::LockWaits { .. }
            | Reply::LockBroken { .. } => return None,
            Reply::UploadBegun { upload } => format!("upload {upload}"),
            Reply::DocumentWritten { .. } => return self.written(reply),
            Reply::Sent { first, count, duplicate } => {
                if !self.driver.out.duplicates.is_empty() {
                    return Some(self.sent_unique(duplicate));
                }
                let what = if duplicate { "sent before" } else { "sent" };
                let last = MessageId { sequence: first.sequence + u64::from(count) - 1, ..first };
                if count == 1 {
                    format!("{what} {}", id(first))
                } else {
                    format!("{what} {} to {}", id(first), id(last))
                }
            }
            Reply::Queue { queue, created } => {
                format!("{} queue {}", if created { "created" } else { "set" }, queue.0)
            }
            Reply::Defaults { created } => if created { "new pattern" } else { "set pattern" }.into(),
            Reply::Limit { created } => if created { "created limit" } else { "set limit" }.into(),
            Reply::Schedule { created } => if created { "created schedule" } else { "set schedule" }.into(),
            Reply::Consumer { consumer } => format!("consumer {}", consumer.0),
            Reply::Namespace { namespace } => format!("namespace {}", namespace.0),
            Reply::Count { messages } => format!("{messages} message(s)"),
        })
    }

    /// Items that are duplicates by their unique key stand in brackets.
    fn sent_unique(&self, repeat: bool) -> String {
        let out = &self.driver.out;
        let ids = (0u32..).zip(&out.ids).map(|(item, &given)| match out.duplicates.contains(&item) {
            true => format!("({})", id(given)),
            false => id(given),
        });
        let what = if repeat { "sent before" } else { "sent" };
        format!("{what} {}", ids.collect::<Vec<_>>().join(" "))
    }

    fn delivery(&self, name: &str, delivery: &Delivery) -> String {
        let queue = self.driver.engine.queue_name(delivery.queue).unwrap_or("(gone)");
        let mut text = format!(
            "{name} = {}/{} from {queue}: {} attempt {}/{}, delivery {}, priority {}, lease until {}",
            id(delivery.receipt.id),
            sequence(delivery.receipt.token),
            self.payload(&delivery.blob),
            delivery.attempt,
            delivery.max_attempts,
            delivery.deliveries,
            delivery.priority,
            self.time(delivery.lease_until_us),
        );
        let details = self.driver.engine.delivery_details(delivery.receipt.id).unwrap_or_default();
        text.push_str(&request(&details.correlation_id, &details.reply_to));
        text.push_str(&self.named(", checkpoint", details.checkpoint));
        for (name, value) in &details.headers {
            text.push_str(&format!(", {name}:{value}"));
        }
        if let Some(reason) = details.reason {
            text.push_str(&format!(", died in {} ({reason})", details.from_queue));
        }
        text.push_str(&self.named(", tagged", details.tags));
        text
    }

    /// A blob laid out as a payload, if there is one.
    fn named(&self, name: &str, blob: Option<BlobRef>) -> String {
        blob.map_or_else(String::new, |blob| format!("{name} {}", self.payload(&blob)))
    }

    /// Payload, content type and headers, as a journal still has them.
    pub(super) fn payload(&self, blob: &BlobRef) -> String {
        let stored = self.driver.blobs.get(blob).map(Vec::as_slice);
        let empty = (*blob == BlobRef::EMPTY).then_some(BlobRef::EMPTY_BYTES);
        let Some(bytes) = stored.or(empty) else { return "(blob is gone)".into() };
        let Some(blob) = MessageBlob::parse(bytes) else { return "(blob is damaged)".into() };
        let mut text = format!("{:?}", String::from_utf8_lossy(blob.payload));
        if blob.payload.len() > 40 {
            text = format!("({} bytes)", blob.payload.len());
        }
        if !blob.content_type.is_empty() {
            text.push_str(&format!(" {}", blob.content_type));
        }
        for (name, value) in blob.headers() {
            text.push_str(&format!(" {name}:{value}"));
        }
        for tag in blob.tags() {
            text.push_str(&format!(" #{tag}"));
        }
        text
    }

    /// Milliseconds since the beginning.
    pub(super) fn time(&self, us: u64) -> String {
        let us = us as i64 - START_US as i64;
        if us % 1_000 == 0 { format!("{}", us / 1_000) } else { format!("{}", us as f64 / 1_000.0) }
    }

    pub(super) fn short_view(&self, view: &MessageView) -> String {
        let mut text = format!("{} {} {}", id(view.id), view.state.name(), self.payload(&view.blob));
        if let Some(blocked_by) = view.blocked_by {
            text.push_str(&format!(" (by {blocked_by})"));
        }
        if let Some(reason) = view.reason {
            text.push_str(&format!(" ({reason})"));
        }
        if !view.from_queue.is_empty() {
            text.push_str(&format!(" from {}", view.from_queue));
        }
        if view.cancelled {
            text.push_str(" (cancelled)");
        }
        text
    }

    pub(super) fn full_view(&self, view: &MessageView) -> Vec<String> {
        let mut first = self.short_view(view);
        let deadline = view.deadline_us.map(|due| format!(" until {}", self.time(due)));
        first.push_str(&deadline.unwrap_or_default());
        let ends = view.expires_at_us.map(|at| format!(", ends at {}", self.time(at)));
        first.push_str(&ends.unwrap_or_default());
        let since = view.reason_at_us.map(|at| format!(" since {}", self.time(at)));
        first.push_str(&since.unwrap_or_default());
        let mut lines = vec![
            first,
            format!(
                "attempts {}/{}, deliveries {}, priority {}, sent at {}, backoff {}",
                view.attempts,
                view.max_attempts,
                view.deliveries,
                view.priority,
                self.time(view.sent_at_us),
                backoff(&view.backoff),
            ),
        ];
        let holder =
            view.holder.as_ref().map(|holder| format!("held by {} {:?}", holder.consumer.0, holder.name));
        lines.extend(holder);
        lines.extend(self.results(view));
        lines.extend(view.tags.map(|tags| format!("tagged {}", self.payload(&tags))));
        lines.extend(view.changes.iter().map(|changed| {
            let note = self.payload(&changed.note);
            format!("{} at {}: {note}", changed.verb.name(), self.time(changed.at_us))
        }));
        for attempt in &view.history {
            let error = attempt.error.as_ref().and_then(|error| self.driver.blobs.get(error));
            let error = error.map(|error| format!(": {:?}", String::from_utf8_lossy(error)));
            lines.push(format!(
                "attempt {} from {} to {} {:?}{}",
                attempt.number,
                self.time(attempt.started_at_us),
                self.time(attempt.ended_at_us),
                attempt.end,
                error.unwrap_or_default(),
            ));
        }
        lines
    }

    pub(super) fn schedule_view(&self, view: &ScheduleView) -> Vec<String> {
        let (item, options) = view.message.fields();
        let mut message =
            format!("{} to {}, priority {}", self.payload(&view.blob), view.queue, item.priority);
        if item.deliver != Deliver::Now {
            message.push_str(&format!(", {:?}", item.deliver));
        }
        message.push_str(&request(options.correlation_id, options.reply_to));
        let mut text = format!("spec {:?}", String::from_utf8_lossy(&view.spec));
        text.push_str(if view.paused { ", paused" } else { "" });
        let next = view.next_at_us.map(|at| format!(", next at {}", self.time(at)));
        text.push_str(&next.unwrap_or_default());
        let mut done = format!("fired {}, refused {}", view.fired, view.refused);
        if view.duplicates > 0 {
            done.push_str(&format!(", duplicates {}", view.duplicates));
        }
        let last = view.last_at_us.map(|at| format!(", last at {}", self.time(at)));
        done.push_str(&last.unwrap_or_default());
        done.push_str(&view.last_id.map(|last| format!(", sent {}", id(last))).unwrap_or_default());
        done.push_str(&view.last_error.as_ref().map(|code| format!(", error {code}")).unwrap_or_default());
        vec![text, message, done]
    }

    /// What is asked and told of a message's result, in one line; none if that is nothing.
    fn results(&self, view: &MessageView) -> Option<String> {
        let mut text = request(&view.correlation_id, &view.reply_to);
        if let Some(progress) = view.progress {
            text.push_str(&format!(", progress {}% at {}", progress.percent, self.time(progress.at_us)));
            let note = progress.note.and_then(|note| self.driver.blobs.get(&note));
            text.push_str(
                &note.map_or_else(String::new, |note| format!(" {:?}", String::from_utf8_lossy(note))),
            );
        }
        text.push_str(&self.named(", checkpoint", view.checkpoint));
        text.push_str(&self.named(", result", view.result));
        let done = view.done_at_us.map(|at| format!(", done at {}", self.time(at)));
        text.push_str(&done.unwrap_or_default());
        let kept = view.kept_until_us.map(|until| format!(", kept until {}", self.time(until)));
        text.push_str(&kept.unwrap_or_default());
        text.strip_prefix(", ").map(str::to_owned)
    }

    pub(super) fn queue_view(&self, view: &QueueView) -> Vec<String> {
        let settings = &view.settings;
        let mut lines = vec![format!(
            "queue {} lease_ms={} max_attempts={} max_deliveries={} backoff={}",
            view.id.0,
            settings.lease_ms,
            settings.max_attempts,
            settings.max_deliveries,
            backoff(&settings.backoff)
        )];
        let weights = &settings.fair_weights;
        let weights: Vec<_> = weights
            .iter()
            .map(|(key, weight)| format!("{}:{weight}", String::from_utf8_lossy(key)))
            .collect();
        if !weights.is_empty() {
            lines.push(format!("fair_weights {}", weights.join(",")));
        }
        if !settings.limit.is_empty() {
            lines.push(format!("limit {}", settings.limit));
        }
        if !settings.dead_letter_queue.is_empty() {
            lines.push(format!("dead letters to {}", settings.dead_letter_queue));
        }
        if let Some(redriving) = view.redriving {
            lines.push(format!("redriving {} per second, {} left", redriving.per_second, redriving.left));
        }
        let marks = [(settings.paused, "paused"), (settings.closed, "closed")];
        lines.extend(marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark.to_owned()));
        lines.extend(counters(&view.counters));
        let by = [
            ("ordering keys", view.blocked_by_ordering_key),
            ("limit keys", view.blocked_by_limit),
            ("parents", view.blocked_by_parents),
            ("consumers", view.blocked_by_consumer),
        ];
        lines.extend(
            by.iter()
                .filter(|(_, count)| *count > 0)
                .map(|(what, count)| format!("blocked by {what}: {count}")),
        );
        lines.extend(view.oldest_ready_at_us.map(|at| format!("first in line sent at {}", self.time(at))));
        lines
    }
}

fn request(correlation_id: &[u8], reply_to: &str) -> String {
    let mut text = String::new();
    if !correlation_id.is_empty() {
        text.push_str(&format!(", correlation id {}", String::from_utf8_lossy(correlation_id)));
    }
    if !reply_to.is_empty() {
        text.push_str(&format!(", reply to {reply_to}"));
    }
    text
}

pub(super) fn flow(view: &FlowView) -> Vec<String> {
    let end = |done| if done { "done" } else { "failed" };
    let mut lines = Vec::new();
    for FlowParent { id: parent, here, done } in &view.parents {
        let here = here.as_ref().map_or("gone".into(), |(queue, state)| format!("{queue} {}", state.name()));
        let ended = done.map_or(String::new(), |done| format!(", ended {}", end(done)));
        lines.push(format!("waits for {} {here}{ended}", id(*parent)));
    }
    flow_node(&view.node, 0, &mut lines);
    if view.truncated {
        lines.push("and more".into());
    }
    lines
}

fn flow_node(node: &FlowNode, depth: usize, lines: &mut Vec<String>) {
    let mut text = format!("{}{} {} {}", "  ".repeat(depth), id(node.id), node.queue, node.state.name());
    if let Some(reason) = node.reason {
        text.push_str(&format!(" ({reason})"));
    }
    if !node.chain.is_empty() {
        text.push_str(&format!(", then {}", node.chain.join(", ")));
    }
    if let Some(queue) = &node.on_failure {
        text.push_str(&format!(", on failure {queue}"));
    }
    if let Some(group) = &node.group {
        text.push_str(&format!(
            ", group of {} pending, {} done, {} dead",
            group.pending, group.done, group.dead
        ));
    }
    lines.push(text);
    node.children.iter().for_each(|child| flow_node(child, depth + 1, lines));
}

pub(super) fn limit(view: &LimitView, time: impl Fn(u64) -> String) -> String {
    let next = view.next_at_us.map(|at| format!(", next at {}", time(at))).unwrap_or_default();
    let queues = view.queues.join(" ");
    let spent = spent(view.spent);
    format!(
        "{} of [{queues}]: in flight {}, waiting {}{spent}{next}",
        view.name, view.in_flight, view.waiting
    )
}

pub(super) fn limit_key(view: &LimitKeyView, time: impl Fn(u64) -> String) -> String {
    let next = view.next_at_us.map(|at| format!(", next at {}", time(at))).unwrap_or_default();
    let key = String::from_utf8_lossy(&view.key);
    let spent = spent(view.spent);
    format!("{key}: in flight {}, waiting {}{spent}{next}", view.in_flight, view.waiting)
}

fn spent(spent: Option<Spent>) -> String {
    let spent = spent.map_or(0, |spent| spent.at(0));
    if spent > 0 { format!(", spent {spent}") } else { String::new() }
}

pub(super) fn consumer(view: &ConsumerView, time: impl Fn(u64) -> String) -> String {
    let oldest = view.oldest_lease_us.map(|at| format!(", oldest since {}", time(at))).unwrap_or_default();
    format!(
        "{} {:?} {} [{}]: in flight {}/{}{oldest}",
        view.id.0,
        view.name,
        view.state.name(),
        view.queues.join(" "),
        view.in_flight,
        view.credit
    )
}

pub(super) fn sequence(sequence: u64) -> String {
    format!("{}.{}", sequence >> EPOCH_SHIFT, sequence & ((1 << EPOCH_SHIFT) - 1))
}

pub(super) fn id(id: MessageId) -> String {
    match id.namespace {
        NamespaceId::DEFAULT => sequence(id.sequence),
        NamespaceId(number) => format!("{number}:{}", sequence(id.sequence)),
    }
}

fn blobs(blobs: &[BlobRef]) -> String {
    let mut listed: Vec<_> =
        blobs.iter().take(LISTED_MAX).map(|blob| format!("{}#{}", blob.index, blob.item)).collect();
    if blobs.len() > LISTED_MAX {
        listed = vec![format!("{} blobs", blobs.len())];
    }
    listed.join(" ")
}

fn backoff(backoff: &Backoff) -> String {
    format!(
        "{}:{}:{}:{}",
        format!("{:?}", backoff.kind).to_lowercase(),
        backoff.base_ms,
        backoff.cap_ms,
        backoff.jitter_percent
    )
}

/// Messages by state; of the rarer states only those that there are some in.
pub(super) fn states(counters: &Counters) -> String {
    let count = |state: State| counters.states[state as usize];
    let shown = |state: &State| count(*state) > 0 || !matches!(state, State::Blocked | State::Done);
    let texts =
        State::ALL.into_iter().filter(shown).map(|state| format!("{} {}", state.name(), count(state)));
    texts.collect::<Vec<_>>().join(", ")
}

pub(super) fn counters(counters: &Counters) -> Vec<String> {
    let c = counters;
    let rare = [
        ("replies lost", c.replies_lost),
        ("cancelled", c.cancelled),
        ("moved in", c.moved_in),
        ("moved out", c.moved_out),
    ];
    let rare = rare.into_iter().filter(|(_, count)| *count > 0);
    let rare: String = rare.map(|(name, count)| format!(", {name} {count}")).collect();
    vec![
        format!("{}, bytes {}", states(c), c.bytes),
        format!(
            "sent {}, delivered {}, acked {}, nacked {}, released {}, rejected {}, expired {}, died {}, redriven {}, \
             dropped {}{rare}",
            c.sent,
            c.delivered,
            c.acked,
            c.nacked,
            c.released,
            c.rejected,
            c.expired,
            c.died,
            c.redriven,
            c.dropped
        ),
    ]
}

pub(super) fn namespace(view: &NamespaceView) -> String {
    format!(
        "{} {} on shard {}: queues {}/{}, messages {}/{}, bytes {}/{}",
        view.id.0,
        view.name,
        view.shard,
        view.queues,
        view.quotas.queues,
        view.messages,
        view.quotas.messages,
        view.bytes,
        view.quotas.bytes
    )
}
