//! Waiting pulls. A pull waits in the line of each of its queues and leaves all of them at once.
//!
//! Lines and the order of ends are cleaned lazily: an entry whose pull has left is skipped when it is met,
//! and when more than half of the entries are such, they are dropped together.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;
use sluice_engine::id::QueueId;
use smallvec::SmallVec;

use crate::shard::request::Pull;

/// Number of stale entries that is not worth a clean-up.
const STALE_MIN: usize = 64;

/// Ready messages that a pull has claimed, by queue.
pub(super) type Claims = SmallVec<[(QueueId, u32); 2]>;

/// The queues of a pull: mostly one.
pub(super) type QueueIds = SmallVec<[QueueId; 2]>;

/// A pull with its queues resolved.
#[derive(Debug)]
pub(super) struct WaitingPull {
    /// The request.
    pub(super) pull: Box<Pull>,
    /// Numbers of the pull's queues, in order; a queue that does not exist has none.
    pub(super) queues: QueueIds,
    /// Monotonic time at which it ends empty, in microseconds.
    pub(super) until_us: u64,
}

/// Key of a waiting pull. Ages grow, so that a slot in use again is told by its age, and keys sort by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct WaitKey {
    age: u64,
    slot: u32,
}

/// Pulls that wait for one queue, oldest first.
#[derive(Debug, Default)]
struct Line {
    places: VecDeque<WaitKey>,
    live: usize,
}

/// All waiting pulls of a shard.
#[derive(Debug, Default)]
pub(super) struct WaitingPulls {
    slots: Vec<Option<(u64, WaitingPull)>>,
    vacant: Vec<u32>,
    lines: FxHashMap<QueueId, Line>,
    ends: BinaryHeap<Reverse<(u64, WaitKey)>>,
    tickets: FxHashMap<u64, WaitKey>,
    /// Pulls with a queue that did not exist when they began to wait.
    incomplete: BTreeSet<WaitKey>,
    next_age: u64,
}

impl WaitingPulls {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// Adds a pull behind those that wait already.
    pub(super) fn push(&mut self, waiter: WaitingPull) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        let place = WaitKey { age: self.next_age, slot };
        self.next_age += 1;
        for queue in &waiter.queues {
            let line = self.lines.entry(*queue).or_default();
            line.places.push_back(place);
            line.live += 1;
        }
        self.ends.push(Reverse((waiter.until_us, place)));
        self.tickets.insert(waiter.pull.ticket, place);
        if waiter.queues.len() < waiter.pull.queues.len() {
            self.incomplete.insert(place);
        }
        self.slots[slot as usize] = Some((place.age, waiter));
    }

    /// Takes the pull that has waited longest for this queue.
    pub(super) fn pop(&mut self, queue: QueueId) -> Option<WaitingPull> {
        loop {
            let place = self.lines.get_mut(&queue)?.places.pop_front()?;
            if let Some(waiter) = self.remove(place) {
                return Some(waiter);
            }
        }
    }

    /// True when a pull waits for this queue.
    pub(super) fn waits_for(&self, queue: QueueId) -> bool {
        self.lines.contains_key(&queue)
    }

    /// Takes a pull whose wait is over.
    pub(super) fn pop_ended(&mut self, monotonic_us: u64) -> Option<WaitingPull> {
        while let Some(Reverse((until_us, place))) = self.ends.peek().copied()
            && (until_us <= monotonic_us || !self.is_live(place))
        {
            self.ends.pop();
            if let Some(waiter) = self.remove(place) {
                return Some(waiter);
            }
        }
        None
    }

    /// Takes all pulls with a queue for which `of` is true.
    pub(super) fn take_if(&mut self, of: impl Fn(QueueId) -> bool) -> Vec<WaitingPull> {
        let lines = self.lines.iter().filter(|(queue, _)| of(**queue));
        let places: BTreeSet<WaitKey> = lines.flat_map(|(_, line)| line.places.iter().copied()).collect();
        places.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes all pulls with a queue that did not exist when they began to wait.
    pub(super) fn take_incomplete(&mut self) -> Vec<WaitingPull> {
        let places = std::mem::take(&mut self.incomplete);
        places.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes any pull.
    pub(super) fn pop_any(&mut self) -> Option<WaitingPull> {
        while let Some(Reverse((_, place))) = self.ends.pop() {
            if let Some(waiter) = self.remove(place) {
                return Some(waiter);
            }
        }
        None
    }

    /// Removes a pull whose caller has gone.
    pub(super) fn cancel(&mut self, ticket: u64) {
        if let Some(place) = self.tickets.get(&ticket).copied() {
            self.remove(place);
        }
    }

    /// Monotonic time at which the next pull ends, or earlier, in microseconds.
    pub(super) fn next_end_us(&self) -> Option<u64> {
        if self.len() == 0 { None } else { self.ends.peek().map(|Reverse((until_us, _))| *until_us) }
    }

    fn is_live(&self, place: WaitKey) -> bool {
        self.slots[place.slot as usize].as_ref().is_some_and(|(age, _)| *age == place.age)
    }

    fn remove(&mut self, place: WaitKey) -> Option<WaitingPull> {
        if !self.is_live(place) {
            return None;
        }
        let (_, waiter) = self.slots[place.slot as usize].take()?;
        self.vacant.push(place.slot);
        self.tickets.remove(&waiter.pull.ticket);
        if waiter.queues.len() < waiter.pull.queues.len() {
            self.incomplete.remove(&place);
        }
        for queue in &waiter.queues {
            self.leave(*queue);
        }
        if self.ends.len() > 2 * self.len() + STALE_MIN {
            let ends = std::mem::take(&mut self.ends);
            self.ends = ends.into_iter().filter(|Reverse((_, place))| self.is_live(*place)).collect();
        }
        Some(waiter)
    }

    /// Notes that a pull has left the line of this queue.
    fn leave(&mut self, queue: QueueId) {
        let Some(line) = self.lines.get_mut(&queue) else { return };
        line.live -= 1;
        if line.live == 0 {
            self.lines.remove(&queue);
        } else if line.places.len() > 2 * line.live + STALE_MIN {
            let slots = &self.slots;
            let is_live = |place: &WaitKey| {
                slots[place.slot as usize].as_ref().is_some_and(|(age, _)| *age == place.age)
            };
            line.places.retain(is_live);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::request::PullReply;
    use sluice_engine::id::NamespaceId;

    fn waiter(ticket: u64, queues: &[u32], until_us: u64) -> WaitingPull {
        let pull = Pull {
            ticket,
            namespace: NamespaceId::DEFAULT,
            queues: queues.iter().map(|queue| (queue.to_string().into(), 0)).collect(),
            max_messages: 1,
            max_bytes: 1,
            lease_ms: 0,
            wait_us: 0,
            consumer: "".into(),
            room: None,
            reply: PullReply::Once(tokio::sync::oneshot::channel().0),
        };
        WaitingPull {
            pull: Box::new(pull),
            queues: queues.iter().map(|queue| QueueId(*queue)).collect(),
            until_us,
        }
    }

    fn ticket(waiter: Option<WaitingPull>) -> Option<u64> {
        waiter.map(|waiter| waiter.pull.ticket)
    }

    #[test]
    fn a_pull_leaves_all_its_lines_at_once() {
        let mut waiting = WaitingPulls::default();
        waiting.push(waiter(1, &[7, 8], 100));
        waiting.push(waiter(2, &[8], 50));
        assert_eq!(ticket(waiting.pop(QueueId(7))), Some(1));
        assert!(!waiting.waits_for(QueueId(7)));
        assert_eq!(ticket(waiting.pop(QueueId(8))), Some(2));
        assert_eq!((waiting.len(), waiting.next_end_us()), (0, None));
    }

    #[test]
    fn pulls_end_in_the_order_of_their_ends_and_can_be_cancelled() {
        let mut waiting = WaitingPulls::default();
        for (ticket, until_us) in [(1, 30), (2, 10), (3, 20)] {
            waiting.push(waiter(ticket, &[7], until_us));
        }
        waiting.cancel(3);
        assert_eq!(ticket(waiting.pop_ended(9)), None);
        assert_eq!(ticket(waiting.pop_ended(30)), Some(2));
        assert_eq!(ticket(waiting.pop_ended(30)), Some(1));
        assert_eq!(ticket(waiting.pop_ended(30)), None);
    }

    #[test]
    fn what_has_left_is_forgotten() {
        let mut waiting = WaitingPulls::default();
        waiting.push(waiter(0, &[7, 9], 1));
        for ticket in 1..10_000 {
            waiting.push(waiter(ticket, &[7, 8], 1_000));
            waiting.cancel(ticket);
        }
        assert!(waiting.ends.len() < 200 && waiting.lines[&QueueId(7)].places.len() < 200);
        assert_eq!((waiting.slots.len(), waiting.lines.len()), (2, 2));
    }
}
