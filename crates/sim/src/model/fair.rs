//! Fair keys: messages of one priority and different keys are served in turn.
//!
//! Turns are predicted exactly in queues without a limit to which no message with an ordering or limit key
//! has come. There each key with ready messages has a place in the ring of its priority. The first key
//! delivers as many messages as its weight, then goes to the end of the ring; a key whose first message
//! becomes ready starts at the end. So no key waits longer than one round, however many messages others have.

use std::collections::BTreeMap;

use sluice_engine::id::{MessageId, QueueId};

use super::Apply;
use super::{Line, Message, MessagePlace, ModelState, Queue};

/// The ready messages of one queue, priority and key.
pub(super) type LaneKey = (QueueId, u8, Vec<u8>);

/// Place of a key in the ring of its priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FairLane {
    /// Time at which it came to the end of the ring; the default during its turn. `None`: unknown, since one
    /// record has emptied and refilled the lane, or since other rules had decided before.
    since: Option<Line>,
    /// Messages that it may still deliver in this turn.
    left: u16,
}

impl Message {
    fn lane(&self) -> LaneKey {
        (self.queue, self.priority, self.keys.fair.clone())
    }

    fn line(&self) -> Option<Line> {
        if let MessagePlace::Ready { line } = self.place { Some(line) } else { None }
    }
}

impl ModelState {
    /// True when turns alone decide which message of a queue is next.
    pub(super) fn is_fair(&self, queue: QueueId) -> bool {
        self.takes_turns(queue) && self.queues[&queue].keyed
    }

    /// True when nothing but priorities and turns ever decided in a queue.
    fn takes_turns(&self, queue: QueueId) -> bool {
        let alone = |queue: &Queue| !queue.blocks && !queue.ends && queue.settings.limit.is_empty();
        self.queues.get(&queue).is_some_and(alone)
    }

    /// The first message of each lane of the highest priority, and the time since which the lane waits for
    /// its turn.
    fn first_of_lanes(&self, queue: QueueId) -> Vec<(LaneKey, Line, Option<Line>)> {
        let mut firsts: BTreeMap<LaneKey, Line> = BTreeMap::new();
        for (_, message) in self.messages_of(queue) {
            if let Some(line) = message.line() {
                let first = firsts.entry(message.lane()).or_insert(line);
                *first = line.min(*first);
            }
        }
        let highest = firsts.keys().map(|(_, priority, _)| *priority).max();
        firsts.retain(|(_, priority, _), _| Some(*priority) == highest);
        let since = |key: &LaneKey| self.lanes.get(key).and_then(|lane| lane.since);
        firsts.into_iter().map(|(key, line)| (key.clone(), line, since(&key))).collect()
    }

    /// The messages of which one must be delivered next.
    pub(super) fn next_in_turn(&self, queue: QueueId) -> Vec<&Message> {
        let lanes = self.first_of_lanes(queue);
        let longest = lanes.iter().filter_map(|(_, _, since)| *since).min();
        let may = |message: &&Message| {
            lanes.iter().any(|(key, line, since)| {
                message.line() == Some(*line)
                    && message.lane() == *key
                    && (since.is_none() || *since == longest)
            })
        };
        self.messages_of(queue).map(|(_, message)| message).filter(may).collect()
    }

    /// Makes the turns of a queue's lanes that have messages now unknown.
    pub(super) fn forget_turns(&mut self, queue: QueueId) {
        let here = self.lanes.iter_mut().filter(|((of, ..), _)| *of == queue);
        here.for_each(|(_, lane)| lane.since = None);
    }

    fn turn_of(&self, (queue, _, key): &LaneKey) -> u16 {
        self.queues[queue].settings.fair_weights.of(key)
    }
}

impl Apply<'_> {
    /// Takes a delivered message out of its lane, and updates the lane's turn.
    pub(super) fn gave(&mut self, id: MessageId) {
        let message = &self.world.messages[&id];
        if !self.world.takes_turns(message.queue) {
            return;
        }
        let key = message.lane();
        let lanes = self.world.first_of_lanes(message.queue);
        let has_more = lanes.iter().any(|(other, _, _)| *other == key);
        // The lane goes behind everything that became ready in this record, since deliveries come last.
        let (turn, end) = (self.world.turn_of(&key), self.late_line());
        let Some(lane) = self.world.lanes.get_mut(&key) else { return };
        lane.left = lane.left.saturating_sub(1);
        if !has_more {
            self.world.lanes.remove(&key);
        } else if lane.since.is_some() && lane.left == 0 {
            *lane = FairLane { since: Some(end), left: turn };
        } else if lane.since.is_some() {
            lane.since = Some(Line::default());
        }
    }

    /// Takes out a message that leaves its lane without delivery, in the middle of a record. A lane that has
    /// other messages, even such as came in this record, keeps its place in the ring.
    pub(super) fn leaves_lane(&mut self, id: MessageId) {
        let message = &self.world.messages[&id];
        let Some(line) = message.line() else { return };
        if !self.world.takes_turns(message.queue) {
            return;
        }
        let key = message.lane();
        let waits = |other: &MessageId| self.unsure.iter().any(|(unsure, ..)| unsure == other);
        let others = self.world.messages_of(key.0).filter(|(other, _)| **other != id && !waits(other));
        let others = others.filter(|(_, other)| other.lane() == key).filter_map(|(_, other)| other.line());
        let Some(next) = others.min() else {
            self.world.lanes.remove(&key);
            self.kept_lanes.remove(&key);
            return;
        };
        let lane = FairLane { since: Some(line.min(next)), left: self.world.turn_of(&key) };
        self.world.lanes.entry(key.clone()).or_insert(lane);
        self.kept_lanes.insert(key);
    }

    /// Puts lanes that have messages now and had none before at the end of their ring.
    pub(super) fn follow_lanes(&mut self) {
        let mut firsts: BTreeMap<LaneKey, Line> = BTreeMap::new();
        for message in self.world.messages.values() {
            if let Some(line) = message.line()
                && self.world.takes_turns(message.queue)
            {
                let first = firsts.entry(message.lane()).or_insert(line);
                *first = line.min(*first);
            }
        }
        let step = self.world.step;
        let before = std::mem::take(&mut self.world.lanes);
        for (key, first) in firsts {
            let left = self.world.turn_of(&key);
            let lane = match before.get(&key) {
                Some(lane) if first.step < step || self.kept_lanes.contains(&key) => *lane,
                None if first.step == step => FairLane { since: Some(first), left },
                _ => FairLane { since: None, left },
            };
            self.world.lanes.insert(key, lane);
        }
    }
}
