//! Messages that wait for others, groups, and chains.
//!
//! The engine chooses when a message learns of the end of its parents: the model notes each end, checks that
//! no message is delivered before its parents allow it, and takes over which messages the engine has
//! cancelled or held for a failure, if that had to be. The steps of a chain leave no choice: each is sent in
//! the record that ends the step before it.

use sluice_engine::Engine;
use sluice_engine::command::{Deliver, Group, QueueItem, SendItem};
use sluice_engine::flow::FlowView;
use sluice_engine::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId, QueueId};
use sluice_engine::item::{Chain, DependsMode, OnParentFailed, SendOptions, Step};
use sluice_engine::outcome::Reply;
use sluice_engine::query::{MessageView, State};
use sluice_engine::settings::Quotas;

use super::item::{blob_len, valid_name};
use super::queues::Origin;
use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace};

/// Messages that one record may send by itself.
const SENT_MAX: u64 = 1_000;

/// Relations of one message to others.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Flow {
    /// Condition that the parents must meet; `None` once that is decided.
    waits: Option<Waits>,
    /// Parents, with their ends as far as known: true for done.
    parents: Vec<(MessageId, Option<bool>)>,
    is_callback: bool,
    /// Steps that follow the message.
    steps: Vec<NextStep>,
    on_failure: Option<NextStep>,
    /// Headers that the message is delivered with beside its own.
    headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Waits {
    mode: DependsMode,
    on_failed: OnParentFailed,
}

#[derive(Clone, PartialEq, Debug)]
struct NextStep {
    queue: String,
    /// Payload of the step; `None`: the result of the step before it.
    payload: Option<BlobRef>,
    headers: Vec<(String, String)>,
}

/// Consequence of the parents' ends for a message.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Verdict {
    Wait,
    Run,
    Failed,
}

impl Flow {
    /// Ends all relations of a message that has gone to a dead-letter queue: it waits for nothing, and
    /// nothing follows it, unless its next step was refused.
    pub(super) fn ends(&mut self, reason: &str) {
        let before = std::mem::take(self);
        if reason == "next_step_refused" {
            let Flow { steps, on_failure, headers, .. } = before;
            *self = Flow { steps, on_failure, headers, ..Flow::default() };
        }
    }

    /// True when parents may block the message.
    pub(super) fn may_block(&self) -> bool {
        self.waits.is_some()
    }

    /// Blobs in the log of its steps.
    pub(super) fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        self.steps.iter().chain(&self.on_failure).filter_map(|step| step.payload)
    }

    /// Checks that the engine shows these steps behind a message; returns what it shows.
    pub(super) fn compare_steps(&self, id: MessageId, engine: &Engine) -> Result<FlowView, String> {
        let Ok(view) = engine.flow_view(id) else { return Err(format!("message {id} has no flow to show")) };
        let queues: Vec<&str> = self.steps.iter().map(|step| step.queue.as_str()).collect();
        let on_failure = self.on_failure.as_ref().map(|step| &step.queue);
        let same = view.node.chain == queues && view.node.on_failure.as_ref() == on_failure;
        ensure!(same, "the engine shows {view:?}, the model has {self:?}");
        Ok(view)
    }

    fn verdict(&self) -> Verdict {
        let Some(Waits { mode, on_failed }) = self.waits else { return Verdict::Run };
        let count = |end| self.parents.iter().filter(|(_, ended)| *ended == end).count();
        let (open, done, failed) = (count(None), count(Some(true)), count(Some(false)));
        let (enough, hopeless) = match mode {
            DependsMode::All => (open == 0 && failed == 0, failed > 0),
            DependsMode::Any => (done > 0, open == 0),
        };
        match on_failed {
            _ if enough => Verdict::Run,
            OnParentFailed::Run if open == 0 => Verdict::Run,
            OnParentFailed::Cancel | OnParentFailed::Hold if hopeless => Verdict::Failed,
            _ => Verdict::Wait,
        }
    }

    /// The steps of an item of a record; their payloads follow the blobs of all items, in order.
    fn chain(options: Option<&SendOptions<'_>>, index: u64, next_blob: &mut u32) -> Flow {
        let Some(Chain::Given(chain)) = options.map(|options| options.chain) else { return Flow::default() };
        let mut step = |step: &Step<'_>| {
            let own = |name: &(&str, &str)| (name.0.to_owned(), name.1.to_owned());
            let mut next = NextStep { queue: step.queue.to_owned(), payload: None, headers: Vec::new() };
            if step.own_payload {
                next.payload = Some(BlobRef { index, item: *next_blob, len: blob_len(&step.item) });
                *next_blob += 1;
            } else {
                next.headers = step.item.headers.iter().map(own).collect();
            }
            next
        };
        let on_failure = chain.on_failure.map(&mut step);
        Flow { on_failure, steps: chain.steps.iter().map(step).collect(), ..Flow::default() }
    }
}

impl Apply<'_> {
    /// True when a parent of an item does not exist, for which the send is refused.
    pub(super) fn lacks_a_parent(&self, namespace: NamespaceId, items: &[SendItem<'_>]) -> bool {
        let options = items.iter().filter_map(|item| item.options?.depends_on);
        let mut ids = options.flat_map(|depends_on| depends_on.ids().collect::<Vec<_>>());
        ids.any(|id| id.namespace != namespace || !self.world.messages.contains_key(&id))
    }

    /// The relations of a message that is being sent. `first`: first id of its send; `next_blob`: number of
    /// the next step's payload among the record's blobs.
    pub(super) fn flow_of(
        &self,
        options: Option<&SendOptions<'_>>,
        first: MessageId,
        next_blob: &mut u32,
    ) -> Flow {
        let mut flow = Flow::chain(options, self.index, next_blob);
        let Some(depends_on) = options.and_then(|options| options.depends_on) else { return flow };
        flow.waits = Some(Waits { mode: depends_on.mode, on_failed: depends_on.on_parent_failed });
        let place = |place: u32| MessageId { sequence: first.sequence + u64::from(place), ..first };
        let ids = depends_on.ids().chain(depends_on.places().map(place));
        flow.parents = ids.map(|id| (id, self.has_ended(id))).collect();
        flow
    }

    pub(super) fn has_ended(&self, id: MessageId) -> Option<bool> {
        match self.world.messages.get(&id)?.place {
            MessagePlace::Done { .. } => Some(true),
            MessagePlace::Dead { .. } => Some(false),
            _ => None,
        }
    }

    /// Notes the end of a message, done or not: only its first end counts for those that wait for it.
    pub(super) fn end_in_flows(&mut self, id: MessageId, done: bool) {
        for message in self.world.messages.values_mut() {
            for (parent, ended) in &mut message.flow.parents {
                if *parent == id && ended.is_none() {
                    *ended = Some(done);
                }
            }
        }
    }

    /// Checks that its parents allow the delivery of a message, and that it carries their results.
    pub(super) fn keeps_flow(&mut self, id: MessageId) -> Checked {
        let Some(message) = self.world.messages.get_mut(&id) else { return Ok(()) };
        let verdict = message.flow.verdict();
        ensure!(
            verdict == Verdict::Run,
            "message {id} was delivered before its parents let it: {:?}",
            message.flow
        );
        message.flow.waits = None;
        let flow = &message.flow;
        let mut expected = flow.headers.clone();
        if flow.is_callback {
            let count =
                |done| flow.parents.iter().filter(|(_, ended)| *ended == Some(done)).count().to_string();
            expected.push(("sluice-done".to_owned(), count(true)));
            expected.push(("sluice-dead".to_owned(), count(false)));
        }
        let details = self.engine.delivery_details(id).unwrap_or_default();
        let shown: Vec<(&str, &str)> =
            details.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let same = shown.iter().eq(expected
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect::<Vec<_>>()
            .iter());
        ensure!(same, "message {id} was delivered with {shown:?}, not {expected:?}");
        Ok(())
    }

    /// True when the engine may have cancelled a message for the failure of its parents, which the model may
    /// see only later in the record.
    pub(super) fn may_be_cancelled(&self, id: MessageId) -> bool {
        let waits = self.world.messages[&id].flow.waits;
        waits.is_some_and(|waits| waits.on_failed == OnParentFailed::Cancel)
    }

    /// Takes over the messages cancelled or held for the failure of their parents. After a tick all must be,
    /// unless the engine reports that it goes on at once. A cancelled message fails its own children in turn.
    pub(super) fn follow_children(&mut self, ticked: bool) -> Checked {
        let goes_on = self.engine.next_deadline().is_some_and(|next| next <= self.now_us);
        let must = ticked && !goes_on;
        loop {
            let failed = |(_, message): &(&MessageId, &Message)| message.flow.verdict() == Verdict::Failed;
            let ids: Vec<MessageId> = self.world.messages.iter().filter(failed).map(|(id, _)| *id).collect();
            let mut changed = false;
            for id in ids {
                changed |= self.follow_failed_child(id, must)?;
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Returns true if the message was cancelled or held.
    fn follow_failed_child(&mut self, id: MessageId, must: bool) -> Result<bool, String> {
        let message = &self.world.messages[&id];
        let (waits, place) = (message.flow.waits, message.place);
        let view = self.engine.message(id).ok();
        match (waits.map(|waits| waits.on_failed), view) {
            (Some(OnParentFailed::Cancel), None) => {
                self.total(id, |totals| totals.cancelled += 1);
                self.fail(id, "cancelled");
                self.remove(id);
                Ok(true)
            }
            (Some(OnParentFailed::Hold), Some(view)) if view.reason == Some("parent_failed") => {
                let due_us = if let MessagePlace::Delayed { until_us } = place { until_us } else { 0 };
                self.put(id, MessagePlace::Held { reason: "parent_failed" });
                self.keep_due(id, due_us);
                if let Some(message) = self.world.messages.get_mut(&id) {
                    message.flow.waits = None;
                    message.turn.strays();
                }
                Ok(true)
            }
            // A person who approves it has decided.
            (Some(OnParentFailed::Hold), _)
                if matches!(place, MessagePlace::Held { .. }) && !self.goes_on() =>
            {
                self.world.messages.entry(id).and_modify(|message| message.flow.waits = None);
                Ok(true)
            }
            (Some(OnParentFailed::Hold), _) if matches!(place, MessagePlace::Held { .. }) => Ok(false),
            (on_failed, view) => {
                ensure!(!must, "the parents of message {id} have failed, {on_failed:?}, and it is {view:?}");
                Ok(false)
            }
        }
    }

    /// Sends the next step of an acked message, if there is one. Returns false if that is refused; then the
    /// message is dead.
    pub(super) fn send_next_step(&mut self, id: MessageId, result: Option<BlobRef>) -> Result<bool, String> {
        let message = &self.world.messages[&id];
        let (queue, correlation_id) = (message.queue, correlation_id(id, message));
        let mut rest = message.flow.clone();
        if rest.steps.is_empty() {
            return Ok(true);
        }
        let step = rest.steps.remove(0);
        let blob = step.payload.or(result).unwrap_or(BlobRef::EMPTY);
        let carried = Flow { steps: rest.steps, on_failure: rest.on_failure, ..Flow::default() };
        let Some(sent) = self.sent_step(id.namespace, &correlation_id, &step, blob, (None, &carried)) else {
            ensure!(self.may_refuse(queue, &step.queue), "step {step:?} of message {id} was not sent");
            self.die(id, "next_step_refused");
            return Ok(false);
        };
        self.add_step(sent, correlation_id, &step, blob, carried)?;
        if let Some(message) = self.world.messages.get_mut(&id) {
            message.flow.steps.clear();
            message.flow.on_failure = None;
        }
        Ok(true)
    }

    /// Notes a failed message: the end of the record shows what followed.
    pub(super) fn fail(&mut self, id: MessageId, reason: &'static str) {
        if let Some(message) = self.world.messages.get(&id)
            && message.flow.on_failure.is_some()
        {
            self.failed.push((id, message.clone(), reason));
        }
    }

    /// Checks that whatever had to follow the failures of this record was sent, or was refused and counted.
    pub(super) fn follow_failures(&mut self) -> Checked {
        for (id, failed, reason) in std::mem::take(&mut self.failed) {
            let correlation_id = correlation_id(id, &failed);
            let Some(step) = failed.flow.on_failure else { continue };
            let blob = step.payload.unwrap_or(failed.blob);
            let beside = (Some(reason), &Flow::default());
            let Some(sent) = self.sent_step(id.namespace, &correlation_id, &step, blob, beside) else {
                ensure!(self.may_refuse(failed.queue, &step.queue), "nothing followed the failure of {id}");
                if let Some(queue) = self.world.queues.get_mut(&failed.queue) {
                    queue.totals.replies_lost += 1;
                }
                continue;
            };
            let details = self.engine.delivery_details(sent).unwrap_or_default();
            let from = self.world.queues.get(&failed.queue).map(|queue| queue.name.as_str());
            ensure!(
                details.reason == Some(reason) && Some(&*details.from_queue) == from,
                "{sent} follows the failure of {id} ({reason}) with {details:?}"
            );
            let origin = from.map(|queue| Origin { queue: queue.to_owned(), reason });
            self.add_step(sent, correlation_id, &step, blob, Flow::default())?;
            if let Some(message) = self.world.messages.get_mut(&sent) {
                message.origin = origin;
            }
            if let Some(message) = self.world.messages.get_mut(&id) {
                message.flow.steps.clear();
                message.flow.on_failure = None;
            }
        }
        Ok(())
    }

    /// The id of the message that is this step, if it was sent in this record.
    fn sent_step(
        &self,
        namespace: NamespaceId,
        correlation_id: &[u8],
        step: &NextStep,
        blob: BlobRef,
        (reason, carried): (Option<&str>, &Flow),
    ) -> Option<MessageId> {
        let text = |headers: &[(String, String)]| format!("{headers:?}");
        self.sent_by_engine(namespace, |view| {
            let details = self.engine.delivery_details(view.id).unwrap_or_default();
            view.blob == blob
                && details.reason == reason
                && self.engine.queue_name(view.queue) == Some(&step.queue)
                && *view.correlation_id == *correlation_id
                && format!("{:?}", details.headers) == text(&step.headers)
                && carried.compare_steps(view.id, self.engine).is_ok()
        })
    }

    /// A message that the engine has sent by itself in this record and that the model does not know yet.
    pub(super) fn sent_by_engine(
        &self,
        namespace: NamespaceId,
        is_it: impl Fn(&MessageView) -> bool,
    ) -> Option<MessageId> {
        let last = self.engine.last_sequence(namespace)?;
        // Steps found out of order have ids before the last known one.
        let from = last.saturating_sub(SENT_MAX).max(self.world.epoch << EPOCH_SHIFT);
        let ids = (from + 1..=last).map(|sequence| MessageId { namespace, sequence });
        let mut unknown = ids.filter(|id| !self.world.messages.contains_key(id));
        let sent_now = |view: MessageView| view.sent_at_us == self.now_us && is_it(&view);
        unknown.find(|id| self.engine.message(*id).is_ok_and(sent_now))
    }

    /// True when a message that the engine sends by itself may be refused.
    pub(super) fn may_refuse(&self, from: QueueId, to: &str) -> bool {
        let Some(queue) = self.world.queues.get(&from) else { return true };
        let quotas = self.world.namespaces.get(&queue.namespace).map(|namespace| namespace.quotas);
        let existing = self.world.queue_named(queue.namespace, to);
        quotas != Some(Quotas::default())
            || existing.is_some_and(|to| self.world.queues[&to].settings.closed || self.world.is_bounded(to))
            || (existing.is_none() && self.cannot_be_made(queue.namespace, to).is_some())
    }

    fn add_step(
        &mut self,
        id: MessageId,
        correlation_id: Vec<u8>,
        step: &NextStep,
        blob: BlobRef,
        mut flow: Flow,
    ) -> Checked {
        let queue = self.queue_for(id.namespace, &step.queue)?;
        flow.headers.clone_from(&step.headers);
        let mut message = Message { queue, flow, ..Message::new(blob) };
        message.asked.correlation_id = correlation_id;
        // Its order among everything that became ready in this record is not followed.
        if let Some(queue) = self.world.queues.get_mut(&queue) {
            (queue.keyed, queue.blocks) = (true, true);
        }
        self.give_id(id);
        self.place_sent(id, message, Deliver::Now);
        Ok(())
    }

    /// Applies a group: messages, and a callback that waits for all of them.
    pub(super) fn group(&mut self, group: &Group<'_>) -> Checked {
        if !self.world.namespaces.contains_key(&group.namespace) {
            return self.fails("namespace_not_found");
        }
        let all = || group.members.iter().chain(std::iter::once(group.callback));
        if all().any(|member| !valid_name(member.queue)) {
            return self.fails("invalid_name");
        }
        if let Some(refusal) = self.no_room_for_group(group.namespace, all()) {
            return self.fails(refusal);
        }
        self.succeeds()?;
        let count = group.members.len() as u32 + 1;
        let Reply::Sent { first, count: sent, duplicate: false } = self.outcome.reply else {
            return Err(format!("a group got {:?}", self.outcome.reply));
        };
        ensure!(sent == count, "{sent} ids for a group of {count}");
        let mut next_blob = count;
        for (number, member) in (0u32..).zip(all()) {
            let id = MessageId { sequence: first.sequence + u64::from(number), ..first };
            let queue = self.queue_for(group.namespace, member.queue)?;
            let mut flow = self.flow_of(member.item.options, first, &mut next_blob);
            if number + 1 == count {
                flow.is_callback = true;
                flow.waits = Some(Waits { mode: DependsMode::All, on_failed: OnParentFailed::Run });
                let members = (first.sequence..id.sequence).map(|sequence| MessageId { sequence, ..first });
                flow.parents = members.map(|id| (id, None)).collect();
            }
            let blob = BlobRef { index: self.index, item: number, len: blob_len(&member.item) };
            self.give_id(id);
            let message = Message { queue, flow, ..Message::of_item(blob, &member.item) };
            self.place_sent(id, message, member.item.deliver);
        }
        Ok(())
    }

    fn no_room_for_group<'g>(
        &self,
        namespace: NamespaceId,
        all: impl Iterator<Item = &'g QueueItem<'g>> + Clone,
    ) -> Option<&'static str> {
        let quotas = self.world.namespaces.get(&namespace)?.quotas;
        let missing: std::collections::BTreeSet<&str> = all
            .clone()
            .map(|member| member.queue)
            .filter(|queue| self.world.queue_named(namespace, queue).is_none())
            .collect();
        if !missing.is_empty() && !self.world.limits.auto_create {
            return Some("queue_not_found");
        }
        let (messages, bytes) = self.world.usage(namespace);
        let queues = self.world.queues.values().filter(|queue| queue.namespace == namespace).count();
        let more: u64 = all.clone().map(|member| u64::from(blob_len(&member.item))).sum();
        let over = |quota: u64, need: u64| quota > 0 && need > quota;
        let full = over(quotas.messages, messages + all.count() as u64)
            || over(quotas.bytes, bytes + more)
            || (!missing.is_empty() && over(quotas.queues, (queues + missing.len()) as u64));
        full.then_some("quota_exceeded")
    }
}

impl Message {
    /// Checks that the engine shows the message's steps and its blocked state.
    pub(super) fn compare_flow(&self, id: MessageId, engine: &sluice_engine::Engine) -> Checked {
        let view = self.flow.compare_steps(id, engine)?;
        let blocked = view.node.state == State::Blocked;
        ensure!(
            !blocked || self.keys.may_block() || self.flow.may_block(),
            "message {id} is blocked by nothing"
        );
        Ok(())
    }
}

/// The correlation id of a step that follows this message.
fn correlation_id(id: MessageId, message: &Message) -> Vec<u8> {
    match message.asked.correlation_id.as_slice() {
        [] => id.to_text().into(),
        own => own.to_vec(),
    }
}
