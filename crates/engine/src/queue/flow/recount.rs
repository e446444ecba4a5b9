//! Recount of parents, their children, and the edges between them.

use crate::core::{Core, agree};
use crate::queue::QueueModule;
use crate::queue::state::flow::End;
use crate::queue::state::message::BlockedBy;
use crate::store::slot::Slot;

impl QueueModule {
    pub(crate) fn recount_flows(&self, core: &Core) -> Result<(), String> {
        let flows = &self.flows;
        let (mut slots, mut edges, mut chains) = (0, 0, 0);
        for (slot, message) in self.messages.iter() {
            let Some(at) = self.flow_of(slot) else { continue };
            slots += 1;
            chains += u64::from(flows.slots.get(at).chain != Slot::NIL);
            let flow = flows.slots.get(at);
            let what = |field: &str| format!("message {}: {field}", message.sequence);
            let (mut counts, mut edge) = ([0u64; 3], flow.edges);
            while edge != Slot::NIL {
                let of = flows.edges.get(edge);
                let end = flows.parents.get(of.parent).end.filter(|_| of.told);
                counts[end.map_or(0, |end| 1 + usize::from(end == End::Failed))] += 1;
                if of.child != slot {
                    return Err(what("an edge of it leads to another message"));
                }
                (edge, edges) = (of.next_parent, edges + 1);
            }
            agree(&what("open parents"), counts[0], flow.open.into())?;
            agree(&what("done parents"), counts[1], flow.done.into())?;
            agree(&what("failed parents"), counts[2], flow.failed.into())?;
            if message.blocked_by() == Some(BlockedBy::Parents) && !self.is_stale(slot) && !flow.waiting {
                return Err(what("it is blocked by parents and waits for none"));
            }
            // That of a message that was purged is sent without it.
            if flow.pending != Slot::NIL && !self.is_stale(slot) {
                let pending = self.pending_sends.iter().find(|(pending, _)| *pending == flow.pending);
                if pending.is_none_or(|(_, pending)| pending.follows != self.id_of_slot(slot, core)) {
                    return Err(what("the step for its failure is not pending"));
                }
            }
            if flow.parent != Slot::NIL && flows.parents.get(flow.parent).flow != at {
                return Err(what("it is not the parent that it says"));
            }
        }
        agree("flows", slots, flows.slots.used().into())?;
        agree("chains", chains, flows.chains.used().into())?;
        agree("edges", edges, flows.edges.used().into())?;
        agree("edges of parents", self.recount_parents()?, edges)
    }

    fn recount_parents(&self) -> Result<u64, String> {
        let flows = &self.flows;
        let mut edges = 0;
        for (slot, parent) in flows.parents.iter() {
            let (mut at, mut last, mut passed) = (parent.head, Slot::NIL, parent.cursor == Slot::NIL);
            while at != Slot::NIL {
                let edge = flows.edges.get(at);
                passed |= at == parent.cursor;
                if edge.parent != slot || (!edge.told && parent.end.is_some() && !(passed && parent.working))
                {
                    return Err(format!("a child of message {} does not hear of it", parent.sequence));
                }
                (last, at, edges) = (at, edge.next, edges + 1);
            }
            if last != parent.tail || (parent.head == Slot::NIL && !parent.working) {
                return Err(format!("the children of message {} are not listed right", parent.sequence));
            }
        }
        Ok(edges)
    }
}
