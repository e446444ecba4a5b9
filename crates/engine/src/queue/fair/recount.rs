//! Recount of lanes and rings.

use crate::core::agree;
use crate::queue::QueueModule;
use crate::queue::state::MessageSlot;
use crate::queue::state::queue::Queue;
use crate::store::slot::Slot;

impl QueueModule {
    /// The messages of all lanes in a ring.
    pub(crate) fn recount_ring(&self, queue: &Queue, priority: usize) -> Result<Vec<MessageSlot>, String> {
        let Some(fair) = &queue.fair else { return Ok(Vec::new()) };
        if !queue.ready.lists[priority].is_empty() {
            return Err("messages stand beside the lanes".into());
        }
        let (mut listed, mut before, mut at) = (Vec::new(), Slot::NIL, fair.rings[priority].head);
        while at != Slot::NIL {
            let lane = self.lanes.slots.get(at);
            let right = lane.listed
                && lane.prev == before
                && lane.generation == queue.waiting_generation
                && usize::from(lane.priority) == priority
                && lane.left > 0
                && !lane.messages.is_empty();
            if !right {
                return Err(format!("lane {at} does not belong into its ring"));
            }
            for message in lane.messages.iter(&self.messages) {
                let of =
                    self.fair_lane(self.messages.get(message).extras).some().unwrap_or(fair.plain[priority]);
                agree("lane of a message", of.index().into(), at.index().into())?;
                listed.push(message);
            }
            (before, at) = (at, lane.next);
        }
        agree("tail of a ring", before.index().into(), fair.rings[priority].tail.index().into())?;
        Ok(listed)
    }

    /// Each lane has as many members as there are messages that name it.
    pub(crate) fn recount_lanes(&self) -> Result<(), String> {
        let mut members = vec![0; self.lanes.slots.slots() as usize];
        let plain = self.queues.iter().flat_map(|(_, queue)| &queue.fair).flat_map(|fair| fair.plain);
        let keyed = self.messages.iter().map(|(_, message)| self.fair_lane(message.extras));
        for lane in plain.chain(keyed).filter(|&lane| lane != Slot::NIL) {
            members[lane.index() as usize] += 1;
        }
        for (slot, lane) in self.lanes.slots.iter() {
            agree("members of a lane", members[slot.index() as usize], u64::from(lane.members))?;
        }
        self.lanes.idle.recount(&self.lanes.slots).map_err(|why| format!("lanes: {why}"))
    }
}
