//! Random changes that people make to messages, of one or of many at once.

use sluice_engine::Engine;
use sluice_engine::change::{Change, ChangeAction, NewFields, Verb};
use sluice_engine::command::{Command, Deliver};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::SendOptions;
use sluice_engine::limit::Cost;

use super::Generator;
use super::names::wrong_name;
use super::seen::Seen;
use super::{Lend, Op, SentBlob};

/// Tags that messages are sent with, or get later.
pub(super) const TAGS: [&str; 3] = ["red", "blue", "invoice"];
/// Upper limit of messages in a change of many.
const MANY: u64 = 40;

/// A change of some messages.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeOp {
    namespace: NamespaceId,
    items: Vec<(MessageId, u64)>,
    /// True when the person has read the messages before, and changes only the versions read.
    seen: bool,
    action: ChangeKind,
    note: [(&'static str, &'static str); 2],
}

impl ChangeOp {
    /// A person's decision to approve or deny held messages of a namespace.
    pub fn decide(namespace: NamespaceId, ids: &[MessageId], go: bool) -> ChangeOp {
        let items: Vec<_> = ids.iter().map(|id| (*id, 0)).collect();
        let action = ChangeKind::Plain(if go { Verb::Approve } else { Verb::Cancel });
        ChangeOp::of(namespace, &items, action, [("by", ""), ("why", "")])
    }

    /// A change of known messages, each provided that it has this version.
    pub(super) fn of(
        namespace: NamespaceId,
        items: &[(MessageId, u64)],
        action: ChangeKind,
        note: [(&'static str, &'static str); 2],
    ) -> ChangeOp {
        ChangeOp { namespace, items: items.to_vec(), seen: false, action, note }
    }

    /// The messages.
    pub(super) fn ids(&self) -> impl Iterator<Item = MessageId> {
        self.items.iter().map(|(id, _)| *id)
    }
}

/// The kind of a change.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ChangeKind {
    Plain(Verb),
    Move(String),
    Set {
        priority: Option<u8>,
        deliver: Option<Deliver>,
        max_attempts: Option<u16>,
        cost: Option<Cost>,
        tags: Option<Vec<&'static str>>,
    },
}

impl ChangeKind {
    pub(super) fn lend(&self) -> ChangeAction<'_> {
        match self {
            ChangeKind::Plain(Verb::Cancel) => ChangeAction::Cancel,
            ChangeKind::Plain(Verb::Hold) => ChangeAction::Hold,
            ChangeKind::Plain(Verb::Approve) => ChangeAction::Approve,
            ChangeKind::Plain(Verb::Deny) => ChangeAction::Deny,
            ChangeKind::Plain(_) => ChangeAction::Retry,
            ChangeKind::Move(to) => ChangeAction::Move { to },
            ChangeKind::Set { priority, deliver, max_attempts, tags, cost } => ChangeAction::Set(NewFields {
                priority: *priority,
                deliver: *deliver,
                max_attempts: *max_attempts,
                cost: *cost,
                tags: tags.as_deref(),
            }),
        }
    }
}

impl ChangeOp {
    /// Reads the messages, and makes the change depend on their versions.
    pub(super) fn look(&mut self, engine: &Engine) {
        if self.seen {
            for (id, version) in &mut self.items {
                *version = engine.message(*id).map_or(1, |view| view.version);
            }
        }
    }
}

impl Lend for ChangeOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        let [(_, by), (_, why)] = self.note;
        let (namespace, items) = (self.namespace, &*self.items);
        f(&Command::Change(Change { namespace, items, action: self.action.lend(), by, why }));
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        let noted = self.note.iter().any(|(_, text)| !text.is_empty());
        let note = noted.then(|| SentBlob::head(&self.note, &[]));
        let tags = match &self.action {
            ChangeKind::Set { tags: Some(tags), .. } if !tags.is_empty() => Some(SentBlob::head(&[], tags)),
            _ => None,
        };
        note.into_iter().chain(tags).nth(number)
    }

    fn is_wrong(&self) -> bool {
        matches!(&self.action, ChangeKind::Move(to) if wrong_name(to))
    }
}

impl Generator {
    /// Draws a change of one message or of many.
    pub(super) fn change(&mut self, seen: &Seen<'_>) -> Op {
        let action = self.action();
        let mut ids = if self.rng.chance(9, 10) {
            seen.messages_in(action.lend().verb().states())
        } else {
            seen.messages_in(&sluice_engine::query::State::ALL)
        };
        let namespace = ids.first().map_or_else(|| self.a_namespace(seen), |id| id.namespace);
        ids.retain(|id| id.namespace == namespace);
        let count = if self.rng.chance(1, 6) { self.rng.between(2, MANY) as usize } else { 1 };
        let first = self.rng.index(ids.len().max(1));
        let mut items: Vec<(MessageId, u64)> =
            ids.iter().skip(first).take(count).map(|id| (*id, 0)).collect();
        if items.is_empty() {
            items.push((MessageId { namespace, sequence: 12_345 }, 0));
        }
        let note = self.note();
        Op::Change(ChangeOp { namespace, items, seen: self.rng.chance(1, 3), action, note })
    }

    /// The note of a change: by whom, and why.
    pub(super) fn note(&mut self) -> [(&'static str, &'static str); 2] {
        let [by, why] = self.rng.weighted(&[(3, ["", ""]), (1, ["ann", ""]), (1, ["", "a mistake"])]);
        [("by", by), ("why", why)]
    }

    pub(super) fn action(&mut self) -> ChangeKind {
        let verbs = [
            (3, Some(Verb::Cancel)),
            (3, Some(Verb::Hold)),
            (4, Some(Verb::Approve)),
            (1, Some(Verb::Deny)),
            (2, Some(Verb::Retry)),
            (3, Some(Verb::Move)),
            (3, None),
        ];
        match self.rng.weighted(&verbs) {
            Some(Verb::Move) => ChangeKind::Move(self.a_queue()),
            Some(verb) => ChangeKind::Plain(verb),
            None => self.new_fields(),
        }
    }

    fn new_fields(&mut self) -> ChangeKind {
        let rng = &mut self.rng;
        let max_attempts = rng.chance(1, 3).then(|| rng.below(4) as u16);
        let deliver = [Deliver::Now, Deliver::AfterMs(400), Deliver::AfterMs(20_000), Deliver::AtUs(1)];
        let deliver = rng.chance(1, 2).then(|| *rng.pick(&deliver));
        let mut priority = rng.chance(1, 2).then(|| rng.between(0, 2) as u8);
        let tags = self.rng.chance(1, 3).then(|| self.tags());
        let cost = self.rng.chance(1, 4).then(|| self.a_cost());
        if max_attempts.is_none() && deliver.is_none() && tags.is_none() && cost.is_none() {
            priority = priority.or(Some(1));
        }
        ChangeKind::Set { priority, deliver, max_attempts, tags, cost }
    }

    /// Some tags, each once; perhaps none.
    pub(super) fn tags(&mut self) -> Vec<&'static str> {
        TAGS.into_iter().filter(|_| self.rng.chance(1, 3)).collect()
    }

    /// Sends some messages held.
    pub(super) fn ask_for_hold(&mut self, options: &mut SendOptions<'static>) {
        options.hold = self.rng.chance(1, 30);
    }
}
