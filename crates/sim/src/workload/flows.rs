//! Random relations of messages: parents, groups, chains.

use sluice_engine::command::{Command, Group, QueueItem, SendItem};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::item::{Chain, DependsMode, DependsOn, OnParentFailed, SendOptions, Step, Steps};
use sluice_engine::limits::PRIORITY_MAX;

use super::Generator;
use super::keys::KEYED_QUEUES;
use super::names::QUEUES;
use super::seen::Seen;
use super::{Item, Lend, Op, SentBlob};

/// Relations of a message to send.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Relations {
    ids: Vec<[u8; 12]>,
    places: Vec<[u8; 4]>,
    mode: DependsMode,
    on_parent_failed: OnParentFailed,
    /// True when the first of the steps follows a failure.
    first_follows_failure: bool,
    steps: Vec<OwnStep>,
}

/// A step of a chain.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct OwnStep {
    queue: &'static str,
    /// Payload; `None`: the result of the step before it.
    payload: Option<Vec<u8>>,
    headers: Vec<(&'static str, &'static str)>,
}

/// Messages with a callback: the last item.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupOp {
    namespace: NamespaceId,
    /// The members; the callback is the last one.
    members: Vec<(&'static str, Item)>,
}

impl Relations {
    fn steps(&self) -> Vec<Step<'_>> {
        self.steps.iter().map(OwnStep::lend).collect()
    }

    fn chain<'a>(&self, steps: &'a [Step<'a>]) -> Steps<'a> {
        match steps.split_first() {
            Some((first, steps)) if self.first_follows_failure => Steps { steps, on_failure: Some(first) },
            _ => Steps { steps, on_failure: None },
        }
    }

    fn over<'a>(&'a self, options: SendOptions<'a>, chain: &'a Steps<'a>) -> SendOptions<'a> {
        let depends_on = DependsOn {
            ids: &self.ids,
            places: &self.places,
            mode: self.mode,
            on_parent_failed: self.on_parent_failed,
        };
        SendOptions {
            depends_on: (!depends_on.is_empty()).then_some(depends_on),
            chain: if self.steps.is_empty() { Chain::None } else { Chain::Given(chain) },
            ..options
        }
    }
}

impl OwnStep {
    fn lend(&self) -> Step<'_> {
        let payload = self.payload.as_deref().unwrap_or_default();
        let item = SendItem { payload, headers: &self.headers, ..SendItem::default() };
        Step { queue: self.queue, own_payload: self.payload.is_some(), item }
    }
}

/// Calls `f` with messages and all their relations.
pub(super) fn with_items<R>(items: &[&Item], f: impl FnOnce(Vec<SendItem<'_>>) -> R) -> R {
    let steps: Vec<Vec<Step<'_>>> = items.iter().map(|item| item.relations.steps()).collect();
    let chains: Vec<Steps<'_>> =
        items.iter().zip(&steps).map(|(item, steps)| item.relations.chain(steps)).collect();
    let options: Vec<SendOptions<'_>> =
        items.iter().zip(&chains).map(|(item, chain)| item.relations.over(item.options, chain)).collect();
    f(items.iter().zip(&options).map(|(item, options)| item.lend(options)).collect())
}

/// The blob with this number of a record that sends these messages: those of steps follow those of all
/// messages.
pub(super) fn blob_of<'a>(items: &[&'a Item], number: usize) -> Option<SentBlob<'a>> {
    if let Some(item) = items.get(number) {
        return Some(item.blob());
    }
    let steps = items.iter().flat_map(|item| &item.relations.steps);
    let mut own = steps.filter_map(|step| {
        let payload = step.payload.as_deref()?;
        Some(SentBlob::Message { content_type: "", headers: &step.headers, tags: &[], payload })
    });
    own.nth(number - items.len())
}

impl Lend for GroupOp {
    fn lend(&self, f: &mut dyn FnMut(&Command<'_>)) {
        let items: Vec<&Item> = self.members.iter().map(|(_, item)| item).collect();
        with_items(&items, |items| {
            let queues = self.members.iter().map(|(queue, _)| *queue);
            let mut members: Vec<QueueItem<'_>> =
                queues.zip(items).map(|(queue, item)| QueueItem { queue, item }).collect();
            let callback = members.pop().expect("a group has a callback");
            let namespace = self.namespace;
            f(&Command::Group(Group {
                namespace,
                idempotency_key: b"",
                request_digest: 0,
                members: &members,
                callback: &callback,
            }));
        });
    }

    fn blob(&self, number: usize) -> Option<SentBlob<'_>> {
        let items: Vec<&Item> = self.members.iter().map(|(_, item)| item).collect();
        blob_of(&items, number)
    }
}

impl Generator {
    /// Draws relations of the messages of a send: some have steps; and in queues with keys, whose order is
    /// not followed, some wait for others of the send or sent before.
    pub(super) fn relate(
        &mut self,
        items: &mut [Item],
        queue: &str,
        namespace: NamespaceId,
        seen: &Seen<'_>,
    ) {
        let known = seen.ids_of(namespace);
        for (at, item) in items.iter_mut().enumerate() {
            self.give_steps(&mut item.relations);
            if KEYED_QUEUES.contains(&queue) && self.rng.chance(1, 8) {
                self.give_parents(&mut item.relations, at, &known);
            }
        }
    }

    fn give_parents(&mut self, relations: &mut Relations, at: usize, known: &[MessageId]) {
        for _ in 0..self.rng.between(1, 3) {
            if at > 0 && self.rng.chance(1, 2) {
                relations.places.push((self.rng.index(at) as u32).to_le_bytes());
            } else if !known.is_empty() {
                relations.ids.push(DependsOn::id_bytes(*self.rng.pick(known)));
            }
        }
        relations.mode = *self.rng.pick(&[DependsMode::All, DependsMode::Any]);
        let actions = [OnParentFailed::Cancel, OnParentFailed::Hold, OnParentFailed::Run];
        relations.on_parent_failed = *self.rng.pick(&actions);
    }

    fn give_steps(&mut self, relations: &mut Relations) {
        if self.rng.chance(1, 6) {
            relations.steps = (0..self.rng.between(1, 3)).map(|_| self.step()).collect();
            relations.first_follows_failure = self.rng.chance(1, 2);
        }
    }

    fn step(&mut self) -> OwnStep {
        OwnStep {
            queue: self.rng.pick::<&str>(&KEYED_QUEUES),
            payload: self.rng.chance(1, 3).then(|| self.some_bytes()),
            headers: if self.rng.chance(1, 3) { vec![("step", "1")] } else { Vec::new() },
        }
    }

    /// Draws a group, which may be empty.
    pub(super) fn group(&mut self, seen: &Seen<'_>) -> Op {
        let namespace = self.a_namespace(seen);
        let mut members: Vec<_> = (0..self.rng.below(5)).map(|_| self.member(&QUEUES)).collect();
        members.push(self.member(&KEYED_QUEUES));
        Op::Group(GroupOp { namespace, members })
    }

    fn member(&mut self, queues: &[&'static str]) -> (&'static str, Item) {
        let queue = *self.rng.pick(queues);
        let mut item = self.item(queue);
        item.priority = item.priority.min(PRIORITY_MAX);
        self.give_steps(&mut item.relations);
        (queue, item)
    }
}
