//! Messages that wait for others: their parents.
//!
//! A message with parents is blocked until these are done; then it goes on through its other gates: ordering
//! key, time, limit. A parent's first end counts: a dead letter that is redriven and then done changes
//! nothing for those that were told of its death, while whoever is sent after the redrive waits for its
//! second end.
//!
//! The children of a parent that ends hear of it as a consequence. A child that is cancelled for it fails its
//! own children in turn, in the same way.

use crate::core::Core;
use crate::error::Error;
use crate::id::{MessageId, NamespaceId};
use crate::item::{DependsOn, OnParentFailed, SendOptions};
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::consequence::Consequence;
use crate::queue::state::flow::{End, Verdict};
use crate::queue::state::message::{BlockedBy, Reason};
use crate::queue::state::{FlowSlot, MessageSlot, ParentSlot};
use crate::store::slot::Slot;

impl QueueModule {
    /// Refuses parents that are not here, before anything is done.
    pub(crate) fn admit_parents(
        &self,
        at: u32,
        namespace: NamespaceId,
        options: &SendOptions<'_>,
        prefix: impl Fn() -> String,
        core: &Core,
    ) -> Result<(), Error> {
        let Some(depends_on) = &options.depends_on else { return Ok(()) };
        if depends_on.is_empty() || depends_on.places().any(|place| place >= at) {
            let reason = "a send record has parents that do not come before their child";
            return Err(Error::Internal { reason: reason.into() });
        }
        let missing = |id: &MessageId| id.namespace != namespace || self.message_slot(*id, core).is_none();
        let Some(id) = depends_on.ids().find(missing) else { return Ok(()) };
        Err(Error::ParentNotFound { field: format!("{}depends_on", prefix()), id: id.to_string() })
    }

    /// Lets a message that is being sent wait for its parents. In `out` lie the ids of its send, if they are
    /// no sequence.
    pub(crate) fn enter_parents(
        &mut self,
        slot: MessageSlot,
        depends_on: &DependsOn<'_>,
        core: &Core,
        out: &Outcome,
    ) {
        let flow = self.enter_flow(slot);
        let of_child = self.flows.slots.get_mut(flow);
        of_child.waiting = true;
        of_child.mode = depends_on.mode;
        of_child.on_parent_failed = depends_on.on_parent_failed;
        let namespace = self.queues.get(self.messages.get(slot).queue).namespace;
        let first = self.flows.first;
        let places = depends_on.places().map(|place| match out.ids.get(place as usize) {
            Some(id) => id.sequence,
            None => first + u64::from(place),
        });
        for sequence in depends_on.ids().map(|id| id.sequence).chain(places) {
            let found = self.indexes.get_mut(namespace).directory.find(sequence);
            let Some(parent_slot) = found else {
                let parent = self.flows.enter_gone(sequence);
                self.flows.connect(parent, slot, flow);
                continue;
            };
            let end = match self.messages.get(parent_slot).state {
                Some(State::Done) => Some(End::Done),
                Some(State::Dead) => Some(End::Failed),
                _ => None,
            };
            let parent_flow = self.enter_flow(parent_slot);
            let parent = self.flows.enter_parent(parent_flow, sequence, end);
            self.flows.connect(parent, slot, flow);
        }
        self.list_judgement(slot, core);
    }

    /// Lists the judgement of a message that has just got its parents.
    pub(crate) fn list_judgement(&mut self, slot: MessageSlot, core: &Core) {
        let id = self.id_of_slot(slot, core);
        self.list(Consequence::Judge(id));
    }

    /// The flow of a message, which it gets if it has none.
    pub(crate) fn enter_flow(&mut self, slot: MessageSlot) -> FlowSlot {
        if let Some(flow) = self.flow_of(slot) {
            return flow;
        }
        let extras = self.extras_slot(slot);
        let options = self.extras.enter_options(extras);
        let flow = self.flows.add();
        self.extras.options.get_mut(options).flow = flow;
        flow
    }

    /// The flow of a message; `None`: it has neither parents, children nor steps.
    #[inline]
    pub(crate) fn flow_of(&self, slot: MessageSlot) -> Option<FlowSlot> {
        let options = self.extras.options(self.messages.get(slot).extras)?;
        Some(options.flow).filter(|&flow| flow != Slot::NIL)
    }

    /// A message has died and goes to the queue for dead letters, where it waits for nothing. Nothing follows
    /// it, unless it was acked and its next step was refused: then it goes on from there.
    pub(crate) fn forward_in_flows(
        &mut self,
        slot: MessageSlot,
        reason: Reason,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let Some(flow) = self.flow_of(slot) else { return };
        if reason != Reason::NextStepRefused {
            self.shed_chain(flow, core, out);
        }
        self.flows.slots.get_mut(flow).waiting = false;
        self.end_in_flows(flow, End::Failed);
    }

    /// Notes how a message has ended, and lists telling its children, unless an end was noted before.
    pub(crate) fn end_in_flows(&mut self, flow: FlowSlot, end: End) {
        let slot = self.flows.slots.get(flow).parent;
        if slot == Slot::NIL || self.flows.parents.get(slot).end.is_some() {
            return;
        }
        let parent = self.flows.parents.get_mut(slot);
        parent.end = Some(end);
        parent.cursor = parent.head;
        parent.working = true;
        self.list(Consequence::TellChildren(slot));
    }

    /// Tells children of a parent's end; true when all know.
    pub(crate) fn tell_children(
        &mut self,
        slot: ParentSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        loop {
            let parent = self.flows.parents.get(slot);
            let (at, end) = (parent.cursor, parent.end);
            if at == Slot::NIL {
                self.flows.end_work(slot);
                return true;
            }
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let edge = self.flows.edges.get_mut(at);
            let told = std::mem::replace(&mut edge.told, true);
            let (child, next) = (edge.child, edge.next);
            self.flows.parents.get_mut(slot).cursor = next;
            if !told {
                self.tell_child(child, end, core, out);
            }
        }
    }

    fn tell_child(&mut self, child: MessageSlot, end: Option<End>, core: &mut Core, out: &mut Outcome) {
        let Some(flow) = self.flow_of(child) else { return };
        let flow = self.flows.slots.get_mut(flow);
        flow.open -= 1;
        match end {
            Some(End::Done) => flow.done += 1,
            _ => flow.failed += 1,
        }
        self.judge(child, core, out);
    }

    /// Does what follows from the ends of a message's parents, if it still waits for them.
    pub(crate) fn judge(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        let Some(at) = self.flow_of(slot) else { return };
        let flow = self.flows.slots.get_mut(at);
        let (verdict, on_parent_failed) = (flow.verdict(), flow.on_parent_failed);
        if !flow.waiting || verdict == Verdict::Wait {
            return;
        }
        let message = self.messages.get(slot);
        if verdict == Verdict::Failed && message.state == Some(State::Dead) {
            // Redriven, it does what it says of the failure.
            return;
        }
        flow.waiting = false;
        if self.is_stale(slot) {
            return;
        }
        let message = self.messages.get(slot);
        let blocked = message.blocked_by() == Some(BlockedBy::Parents);
        // Held by a person, or for its damaged payload: it goes on when it is let go.
        let held = message.state == Some(State::Held);
        match (verdict, on_parent_failed) {
            (Verdict::Failed, OnParentFailed::Hold) if blocked => {
                self.hold(slot, Reason::ParentFailed, core, out);
            }
            (Verdict::Failed, OnParentFailed::Cancel) if blocked || held => {
                self.remove_cancelled(slot, core, out)
            }
            (Verdict::Run, _) if blocked => {
                let time_us = message.time_us;
                self.leave(slot);
                self.admit(slot, time_us, core, out);
            }
            _ if held => self.claim_ordering(slot),
            _ => {}
        }
    }
}
