//! The view of a message's flow: its parents, children and steps, in bounded time.

use crate::core::Core;
use crate::error::Error;
use crate::flow::{FLOW_DEPTH_MAX, FLOW_ITEMS_MAX, FlowNode, FlowParent, FlowView};
use crate::id::{MessageId, NamespaceId};
use crate::query::{GroupView, State};
use crate::queue::QueueModule;
use crate::queue::record::chain::read_steps;
use crate::queue::state::MessageSlot;
use crate::queue::state::flow::End;
use crate::store::slot::Slot;

/// Messages and queues that a view may still name.
struct Room {
    left: usize,
    exceeded: bool,
}

impl Room {
    /// Room for one more thing, if there is.
    fn take(&mut self) -> bool {
        self.exceeded |= self.left == 0;
        self.left = self.left.saturating_sub(1);
        !self.exceeded
    }
}

impl QueueModule {
    pub(crate) fn flow_view(&self, id: MessageId, core: &Core) -> Result<FlowView, Error> {
        let slot =
            self.message_slot(id, core).ok_or_else(|| Error::MessageNotFound { id: id.to_string() })?;
        let mut room = Room { left: FLOW_ITEMS_MAX, exceeded: false };
        let parents = self.flow_parents(slot, id.namespace, &mut room, core);
        let node = self.flow_node(slot, 0, &mut room, core);
        Ok(FlowView { node, parents, truncated: room.exceeded })
    }

    fn flow_parents(
        &self,
        slot: MessageSlot,
        namespace: NamespaceId,
        room: &mut Room,
        core: &Core,
    ) -> Vec<FlowParent> {
        let mut parents = Vec::new();
        let mut at = self.flow_of(slot).map_or(Slot::NIL, |flow| self.flows.slots.get(flow).edges);
        while at != Slot::NIL && room.take() {
            let edge = self.flows.edges.get(at);
            let parent = self.flows.parents.get(edge.parent);
            let id = MessageId { namespace, sequence: parent.sequence };
            let here = self.message_slot(id, core).map(|slot| (self.queue_of(slot), self.state_of(slot)));
            let done = parent.end.filter(|_| edge.told).map(|end| end == End::Done);
            parents.push(FlowParent { id, here, done });
            at = edge.next_parent;
        }
        parents
    }

    fn flow_node(&self, slot: MessageSlot, depth: usize, room: &mut Room, core: &Core) -> FlowNode {
        let message = self.messages.get(slot);
        let mut node = FlowNode {
            id: self.id_of_slot(slot, core),
            queue: self.queue_of(slot),
            state: self.state_of(slot),
            reason: message.reason.name(),
            chain: Vec::new(),
            on_failure: None,
            group: None,
            children: Vec::new(),
        };
        let Some(flow) = self.flow_of(slot).map(|flow| self.flows.slots.get(flow)) else { return node };
        if flow.chain != Slot::NIL {
            let chain = self.flows.chains.get(flow.chain);
            let queue = |step: crate::queue::record::chain::StepRecord<'_>| step.queue.to_owned();
            node.chain = read_steps(&chain.steps).take_while(|_| room.take()).map(queue).collect();
            node.on_failure = read_steps(&chain.on_failure).next().map(queue);
        }
        if flow.group {
            let (pending, done, dead) = (flow.open, flow.done, flow.failed);
            node.group = Some(GroupView { pending, done, dead, callback: node.state });
        }
        let mut at =
            if flow.parent == Slot::NIL { Slot::NIL } else { self.flows.parents.get(flow.parent).head };
        room.exceeded |= at != Slot::NIL && depth == FLOW_DEPTH_MAX;
        while at != Slot::NIL && depth < FLOW_DEPTH_MAX && room.take() {
            let edge = self.flows.edges.get(at);
            if !self.is_stale(edge.child) {
                node.children.push(self.flow_node(edge.child, depth + 1, room, core));
            }
            at = edge.next;
        }
        node
    }

    fn queue_of(&self, slot: MessageSlot) -> String {
        self.queues.get(self.messages.get(slot).queue).name.to_string()
    }

    fn state_of(&self, slot: MessageSlot) -> State {
        // A slot in use has a state.
        self.messages.get(slot).state.unwrap_or(State::Held)
    }
}
