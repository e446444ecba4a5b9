//! Random bulks (one change to all messages of a queue that match a filter), and the messages that match,
//! computed from what was sent and what can be seen.

use std::sync::Arc;

use sluice_engine::BlobRef;
use sluice_engine::change::Verb;
use sluice_engine::command::Command;
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::query::{MessageView, State};
use sluice_node::bulk::{BulkAction, BulkRequest};
use sluice_node::search::MessageFilter;

use super::Generator;
use super::change::{ChangeKind, ChangeOp, TAGS};
use super::names::QUEUES;
use super::names::wrong_name;
use super::seen::Seen;
use super::{Lend, SentBlob};

/// A requested bulk.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkOp {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// The messages that it changes.
    pub wanted: Wanted,
    action: ChangeKind,
    note: [(&'static str, &'static str); 2],
    /// True when nothing is changed.
    pub dry_run: bool,
    /// Upper limit of messages changed in a second.
    pub per_second: Option<u32>,
}

/// Messages of a queue, which have to meet every condition that is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Name of the queue.
    pub queue: String,
    state: Option<State>,
    /// A tag that they have.
    tag: Option<&'static str>,
    /// Name and value of a header that they have.
    header: Option<(&'static str, &'static str)>,
    sent_before_ms: Option<u64>,
    sent_after_ms: Option<u64>,
    attempts_min: Option<u16>,
    /// Text in the error of one of the remembered attempts.
    error_contains: Option<&'static str>,
}

impl Wanted {
    /// The conditions in the language of filters.
    fn filter(&self) -> String {
        let members = [
            self.state.map(|state| format!("\"/state\":\"{}\"", state.name())),
            self.tag.map(|tag| format!("\"/tags\":{{\"contains\":\"{tag}\"}}")),
            self.header.map(|(name, value)| format!("\"/headers/{name}\":\"{value}\"")),
            self.attempts_min.map(|least| format!("\"/attempts\":{{\"ge\":{least}}}")),
            self.error_contains.map(|text| format!("\"/errors\":{{\"contains\":\"{text}\"}}")),
            self.sent_before_ms.map(|at| format!("\"not\":{{\"/sent_at_ms\":{{\"ge\":{at}}}}}")),
            self.sent_after_ms.map(|at| format!("\"/sent_at_ms\":{{\"ge\":{at}}}")),
        ];
        format!("{{{}}}", members.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

impl BulkOp {
    /// The request as the node takes it.
    pub fn request(&self) -> BulkRequest {
        let [(_, by), (_, why)] = self.note;
        BulkRequest {
            namespace: self.namespace,
            queue: self.wanted.queue.as_str().into(),
            filter: Arc::new(
                MessageFilter::parse(&self.wanted.filter()).expect("it names fields of messages"),
            ),
            action: self.action.of_bulk(),
            by: by.to_owned(),
            why: why.to_owned(),
            dry_run: self.dry_run,
            per_second: self.per_second,
        }
    }

    /// True when the generator meant this to be refused by the check of the request.
    pub fn is_wrong(&self) -> bool {
        let nowhere = |to: &String| wrong_name(to) || *to == self.wanted.queue;
        self.wanted.state.is_some_and(|state| !self.applies_to(state))
            || matches!(&self.action, ChangeKind::Move(to) if nowhere(to))
    }

    /// The queue that its messages are moved to, if they are moved.
    pub fn target(&self) -> Option<&str> {
        match &self.action {
            ChangeKind::Move(to) => Some(to),
            _ => None,
        }
    }

    /// True when the action applies to messages in this state.
    pub fn applies_to(&self, state: State) -> bool {
        self.action.lend().verb().states().contains(&state)
    }

    /// True when the bulk counts messages in this state.
    pub fn counts(&self, state: State) -> bool {
        self.wanted.state.is_none_or(|wanted| wanted == state)
    }

    /// True when the filter needs the sent bytes, beside what the engine shows.
    pub fn needs_bytes(&self) -> bool {
        self.wanted.tag.is_some() || self.wanted.header.is_some() || self.wanted.error_contains.is_some()
    }

    /// True when its filter matches a message of its queue. `sent` knows the blobs.
    pub fn wants<'a>(&self, view: &MessageView, sent: impl Fn(BlobRef) -> Option<SentBlob<'a>>) -> bool {
        let Wanted { tag, header, sent_before_ms, sent_after_ms, attempts_min, error_contains, .. } =
            &self.wanted;
        let head = |blob| match sent(blob) {
            Some(SentBlob::Message { headers, tags, .. }) => (headers, tags),
            _ => (&[][..], &[][..]),
        };
        let says = |blob, text: &str| matches!(sent(blob), Some(SentBlob::Text(it)) if it.contains(text));
        let tags = head(view.tags.unwrap_or(view.blob)).1;
        let headers = head(view.blob).0;
        let mut errors = view.history.iter().filter_map(|attempt| attempt.error);
        let sent_at_ms = view.sent_at_us / 1_000;
        self.counts(view.state)
            && tag.is_none_or(|tag| tags.contains(&tag))
            && header.is_none_or(|header| headers.contains(&header))
            && sent_before_ms.is_none_or(|before| sent_at_ms < before)
            && sent_after_ms.is_none_or(|after| sent_at_ms >= after)
            && attempts_min.is_none_or(|least| view.attempts >= least)
            && error_contains.is_none_or(|text| errors.any(|error| says(error, text)))
    }
}

/// One record of a bulk.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkChange {
    /// The bulk.
    pub bulk: Arc<BulkOp>,
    change: ChangeOp,
}

impl BulkChange {
    /// The bulk's change of these messages, each provided that it has this version.
    pub fn new(bulk: &Arc<BulkOp>, items: &[(MessageId, u64)]) -> BulkChange {
        let change = ChangeOp::of(bulk.namespace, items, bulk.action.clone(), bulk.note);
        BulkChange { bulk: Arc::clone(bulk), change }
    }

    /// The messages.
    pub fn ids(&self) -> impl Iterator<Item = MessageId> {
        self.change.ids()
    }
}

impl Lend for BulkChange {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        self.change.lend(f);
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        self.change.blob(number)
    }
}

impl ChangeKind {
    fn of_bulk(&self) -> BulkAction {
        let owned = |tags: &Vec<&str>| tags.iter().map(|tag| (*tag).to_owned()).collect();
        match self {
            ChangeKind::Plain(Verb::Cancel) => BulkAction::Cancel,
            ChangeKind::Plain(Verb::Hold) => BulkAction::Hold,
            ChangeKind::Plain(Verb::Approve) => BulkAction::Approve,
            ChangeKind::Plain(Verb::Deny) => BulkAction::Deny,
            ChangeKind::Plain(_) => BulkAction::Retry,
            ChangeKind::Move(to) => BulkAction::Move { to: to.clone() },
            ChangeKind::Set { priority, deliver, max_attempts, cost, tags } => BulkAction::Set {
                priority: *priority,
                deliver: *deliver,
                max_attempts: *max_attempts,
                cost: *cost,
                tags: tags.as_ref().map(owned),
            },
        }
    }
}

impl Generator {
    /// Draws a bulk.
    pub fn bulk(&mut self, seen: &Seen<'_>) -> BulkOp {
        let action = self.action();
        let states = action.lend().verb().states();
        let (namespace, queue) = self.bulk_queue(seen, states);
        let now_ms = seen.now_us() / 1_000;
        // Indexes have terms here that are none of tags: see `search`.
        let by_tag = self.searches.is_none();
        let rng = &mut self.rng;
        let ago_ms = now_ms.saturating_sub(rng.weighted(&[(2, 0), (2, 100), (1, 5_000)]));
        let value = rng.weighted(&[(3, "00-aa-bb-01"), (1, "00-aa-bb-02")]);
        let text = rng.weighted(&[(3, "not work"), (1, "timeout")]);
        let states = if rng.chance(1, 30) { &State::ALL } else { states };
        let wanted = Wanted {
            queue,
            state: rng.chance(1, 4).then(|| *rng.pick(states)),
            tag: rng.chance(1, 10).then(|| *rng.pick(&TAGS)).filter(|_| by_tag),
            header: rng.chance(1, 14).then_some(("traceparent", value)),
            sent_before_ms: rng.chance(1, 8).then_some(ago_ms + 50),
            sent_after_ms: rng.chance(1, 8).then_some(ago_ms.saturating_sub(2_000)),
            attempts_min: rng.chance(1, 12).then(|| rng.between(1, 2) as u16),
            error_contains: rng.chance(1, 12).then_some(text),
        };
        let dry_run = rng.chance(1, 10);
        let per_second = rng.weighted(&[(6, None), (1, Some(50)), (1, Some(1_000))]);
        BulkOp { namespace, wanted, action, note: self.note(), dry_run, per_second }
    }

    /// A queue, mostly one with a message in one of these states.
    fn bulk_queue(&mut self, seen: &Seen<'_>, states: &[State]) -> (NamespaceId, String) {
        let ids = seen.messages_in(states);
        if ids.is_empty() || self.rng.chance(1, 8) {
            return (self.a_namespace(seen), (*self.rng.pick(&QUEUES)).to_owned());
        }
        let id = *self.rng.pick(&ids);
        (id.namespace, seen.queue_of(id).unwrap_or_default())
    }
}
