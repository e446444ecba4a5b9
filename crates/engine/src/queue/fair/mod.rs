//! Fairness among the ready messages of a queue: deficit round robin over lanes, one lane per fair key and
//! priority.
//!
//! The lane at the head of the highest priority's ring gives as many messages as its key's weight, then goes
//! to the tail. A lane that gets its first message joins at the tail, so it waits one round at most, however
//! much the others hold. Messages without a fair key share the lane of the empty key. A weight that changes
//! holds from the lane's next turn.

pub(crate) mod recount;

use crate::core::Core;
use crate::limit::Cost;
use crate::queue::QueueModule;
use crate::queue::state::fair::Ring;
use crate::queue::state::{ExtrasSlot, LaneSlot, MessageSlot, PRIORITIES, QueueSlot};
use crate::settings::FairWeights;
use crate::store::list::{List, PLACE};
use crate::store::slot::Slot;

impl QueueModule {
    /// Puts a ready message, not a plain one in a plain queue, at the end of the line that it belongs to: its
    /// lane, in a queue that knows fair keys.
    pub(crate) fn push_ready(&mut self, slot: MessageSlot, core: &Core) {
        let message = self.messages.get(slot);
        let (queue_slot, priority) = (message.queue, usize::from(message.priority));
        let keys = self.extras.options(message.extras);
        let lane = keys.map_or(Slot::NIL, |options| options.fair);
        let limited = keys.map_or((Slot::NIL, Cost::default()), |options| (options.limit, options.cost));
        self.limit_ready(queue_slot, limited, core);
        if lane != Slot::NIL {
            self.begin_fairness(queue_slot);
        }
        if self.queues.get(queue_slot).fair.is_none() {
            let queue = self.queues.get_mut(queue_slot);
            queue.ready.lists[priority].push_back(&mut self.messages, slot);
            queue.ready.occupied |= 1 << priority;
            return;
        }
        let lane = if lane == Slot::NIL { self.plain_lane(queue_slot, priority) } else { lane };
        self.refresh_lane(lane);
        self.lanes.slots.get_mut(lane).messages.push_back(&mut self.messages, slot);
        self.list_lane(lane);
    }

    /// The lane of a message's fair key; `NIL`: it has none.
    #[inline]
    pub(crate) fn fair_lane(&self, extras: ExtrasSlot) -> LaneSlot {
        self.extras.options(extras).map_or(Slot::NIL, |options| options.fair)
    }

    /// On a queue's first fair key: its plain lists become lanes of the empty key.
    fn begin_fairness(&mut self, queue_slot: QueueSlot) {
        if self.queues.get(queue_slot).fair.is_some() {
            return;
        }
        self.queues.get_mut(queue_slot).fair = Some(Box::default());
        for priority in 0..PRIORITIES {
            let queue = self.queues.get_mut(queue_slot);
            let list = std::mem::take(&mut queue.ready.lists[priority]);
            if !list.is_empty() {
                let lane = self.plain_lane(queue_slot, priority);
                self.refresh_lane(lane);
                self.lanes.slots.get_mut(lane).messages = list;
                self.list_lane(lane);
            }
        }
    }

    /// The lane of messages without a fair key.
    fn plain_lane(&mut self, queue_slot: QueueSlot, priority: usize) -> LaneSlot {
        let queue = self.queues.get_mut(queue_slot);
        let Some(fair) = &mut queue.fair else { return Slot::NIL };
        if fair.plain[priority] == Slot::NIL {
            fair.plain[priority] = self.lanes.enter_plain(queue_slot, priority as u8);
        }
        fair.plain[priority]
    }

    /// Empties a lane whose messages were purged.
    fn refresh_lane(&mut self, lane: LaneSlot) {
        let known = self.lanes.slots.get(lane);
        let generation = self.queues.get(known.queue).waiting_generation;
        if known.generation != generation {
            let lane = self.lanes.slots.get_mut(lane);
            lane.generation = generation;
            lane.messages = List::default();
            lane.listed = false;
        }
    }

    /// Lets a lane which has messages take its turns.
    fn list_lane(&mut self, lane: LaneSlot) {
        let known = self.lanes.slots.get(lane);
        if known.listed {
            return;
        }
        let (queue_slot, priority) = (known.queue, usize::from(known.priority));
        let queue = self.queues.get_mut(queue_slot);
        queue.ready.occupied |= 1 << priority;
        let Some(fair) = &mut queue.fair else { return };
        let turn = queue.settings.fair_weights.of(self.lanes.key(lane));
        self.lanes.slots.get_mut(lane).left = turn;
        self.lanes.link(&mut fair.rings[priority], lane);
    }

    /// Puts a ready message before all others of its line, and its lane before all others of its priority.
    pub(crate) fn move_to_front(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let (queue_slot, priority, extras) = (message.queue, usize::from(message.priority), message.extras);
        if self.queues.get(queue_slot).fair.is_none() {
            let list = &mut self.queues.get_mut(queue_slot).ready.lists[priority];
            list.unlink(&mut self.messages, slot);
            return list.push_front(&mut self.messages, slot);
        }
        let lane = self.fair_lane(extras).some().unwrap_or_else(|| self.plain_lane(queue_slot, priority));
        let list = &mut self.lanes.slots.get_mut(lane).messages;
        list.unlink(&mut self.messages, slot);
        list.push_front(&mut self.messages, slot);
        if let Some(fair) = &mut self.queues.get_mut(queue_slot).fair {
            let ring = &mut fair.rings[priority];
            self.lanes.unlink(ring, lane);
            self.lanes.link_first(ring, lane);
        }
    }

    /// Takes a ready message off its lane, in a queue that knows fair keys.
    pub(crate) fn unlink_from_lane(&mut self, slot: MessageSlot) {
        let message = self.messages.get(slot);
        let (queue_slot, priority) = (message.queue, usize::from(message.priority));
        let lane = self.fair_lane(message.extras);
        let lane = lane.some().unwrap_or_else(|| self.plain_lane(queue_slot, priority));
        self.unlink_from(lane, slot, queue_slot, priority);
    }

    /// The same when its lane is known.
    #[inline]
    fn unlink_from(&mut self, lane: LaneSlot, slot: MessageSlot, queue_slot: QueueSlot, priority: usize) {
        let known = self.lanes.slots.get_mut(lane);
        known.messages.unlink(&mut self.messages, slot);
        if known.messages.is_empty() {
            let queue = self.queues.get_mut(queue_slot);
            let Some(fair) = &mut queue.fair else { return };
            self.lanes.unlink(&mut fair.rings[priority], lane);
            if fair.rings[priority].head == Slot::NIL {
                queue.ready.occupied &= !(1 << priority);
            }
        }
    }

    /// Takes the first in line of a priority which has messages, in a queue that knows fair keys, and counts
    /// it as given in the turn of its lane.
    pub(crate) fn take_from_lane(&mut self, queue_slot: QueueSlot, priority: usize) -> MessageSlot {
        let Some(fair) = &self.queues.get(queue_slot).fair else { return Slot::NIL };
        let lane = fair.rings[priority].head;
        let slot = self.lanes.slots.get(lane).messages.head;
        self.unlink_from(lane, slot, queue_slot, priority);
        let known = self.lanes.slots.get_mut(lane);
        known.left -= 1;
        if known.listed && known.left == 0 {
            let queue = self.queues.get_mut(queue_slot);
            if let Some(fair) = &mut queue.fair {
                let ring = &mut fair.rings[priority];
                if ring.head != ring.tail {
                    self.lanes.unlink(ring, lane);
                    self.lanes.link(ring, lane);
                }
                let turn = queue.settings.fair_weights.of(self.lanes.key(lane));
                self.lanes.slots.get_mut(lane).left = turn;
            }
        }
        slot
    }

    /// The first in line of the highest priority that has messages.
    pub(crate) fn first_in_line(&self, queue_slot: QueueSlot) -> Option<MessageSlot> {
        let queue = self.queues.get(queue_slot);
        let priority = queue.ready.highest()?;
        Some(match &queue.fair {
            None => queue.ready.lists[priority].head,
            Some(fair) => self.lanes.slots.get(fair.rings[priority].head).messages.head,
        })
    }

    /// Up to `limit` messages in the order in which they would be given now.
    pub(crate) fn in_line(&self, queue_slot: QueueSlot, limit: usize) -> Vec<MessageSlot> {
        let queue = self.queues.get(queue_slot);
        let mut found = Vec::new();
        for priority in (0..PRIORITIES).rev() {
            match &queue.fair {
                None => {
                    found.extend(queue.ready.lists[priority].iter(&self.messages).take(limit - found.len()))
                }
                Some(fair) => {
                    self.in_turn(&fair.rings[priority], &queue.settings.fair_weights, limit, &mut found)
                }
            }
        }
        found
    }

    fn in_turn(&self, ring: &Ring, weights: &FairWeights, limit: usize, found: &mut Vec<MessageSlot>) {
        // Of more lanes than messages are asked for, the later ones do not get their turn.
        let mut turns = std::collections::VecDeque::new();
        let mut at = ring.head;
        while at != Slot::NIL && turns.len() < limit {
            let lane = self.lanes.slots.get(at);
            turns.push_back((lane.messages.head, lane.left, weights.of(self.lanes.key(at))));
            at = lane.next;
        }
        while let Some((mut slot, mut left, weight)) = turns.pop_front()
            && found.len() < limit
        {
            while slot != Slot::NIL && left > 0 && found.len() < limit {
                found.push(slot);
                slot = self.messages.get(slot).links[PLACE].next;
                left -= 1;
            }
            if slot != Slot::NIL {
                turns.push_back((slot, weight, weight));
            }
        }
    }
}
