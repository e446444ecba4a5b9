//! The consumers of a session, by the client's numbers. Frames for one take effect in their order: while an
//! Attach or a Detach is on its way, those behind it wait for their turn.

use std::collections::{HashMap, VecDeque};

use super::attach::{AttachRequest, Queues};
use super::delivering::AttachedConsumer;

/// Consumers of one session.
pub(super) const CONSUMERS_MAX: usize = 1_000;

/// A frame about one consumer.
#[derive(Debug)]
pub(super) enum Turn {
    Attach(Box<AttachRequest>),
    /// Credit: most messages that it may hold.
    Credit(u32),
    /// The time of grace, in milliseconds.
    Detach(u64),
}

/// A number that is in use.
#[derive(Debug)]
struct ConsumerSlot {
    queues: Queues,
    /// `None`: its Attach is on its way.
    attached: Option<AttachedConsumer>,
    /// True while an Attach or a Detach is not answered.
    is_changing: bool,
    /// Frames behind that, with their numbers.
    waiting: Waiting,
}

/// Frames whose turn it is, with their numbers.
pub(super) type Waiting = VecDeque<(u64, Turn)>;

/// The consumers of a session.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    slots: HashMap<u32, ConsumerSlot>,
    /// Frames that wait, over all of them.
    waiting: usize,
}

impl Consumers {
    /// Number of frames that wait behind an Attach or a Detach.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// True if the session may have one more consumer.
    pub(super) fn has_room(&mut self) -> bool {
        if self.slots.len() >= CONSUMERS_MAX {
            self.slots.retain(|_, slot| slot.is_there());
        }
        self.slots.len() < CONSUMERS_MAX
    }

    /// Lets a frame wait if it has to; else it is its turn.
    pub(super) fn take_turn(&mut self, number: u64, consumer: u32, turn: Turn) -> Option<Turn> {
        match self.slots.get_mut(&consumer) {
            Some(slot) if slot.is_changing => {
                slot.waiting.push_back((number, turn));
                self.waiting += 1;
                None
            }
            _ => Some(turn),
        }
    }

    /// The consumer that is attached under a number.
    pub(super) fn attached(&self, consumer: u32) -> Option<&AttachedConsumer> {
        self.slots.get(&consumer)?.attached.as_ref().filter(|attached| attached.is_live())
    }

    /// Registers a consumer whose Attach has begun.
    pub(super) fn attaches(&mut self, consumer: u32, queues: Queues) {
        let slot = ConsumerSlot { queues, attached: None, is_changing: true, waiting: Waiting::new() };
        self.slots.insert(consumer, slot);
    }

    /// Marks a consumer whose Detach has begun.
    pub(super) fn detaches(&mut self, consumer: u32) {
        if let Some(slot) = self.slots.get_mut(&consumer) {
            slot.asks_to_end(true);
            slot.is_changing = true;
        }
    }

    /// Ends an Attach that succeeded; returns the frames that waited for it.
    pub(super) fn is_attached(&mut self, consumer: u32, attached: AttachedConsumer) -> Waiting {
        self.settled(consumer, |slot| slot.attached = Some(attached))
    }

    /// Ends a Detach that was refused; returns the frames that waited for it.
    pub(super) fn stays(&mut self, consumer: u32) -> Waiting {
        self.settled(consumer, |slot| slot.asks_to_end(false))
    }

    fn settled(&mut self, consumer: u32, change: impl FnOnce(&mut ConsumerSlot)) -> Waiting {
        let Some(slot) = self.slots.get_mut(&consumer) else { return Waiting::new() };
        change(slot);
        slot.is_changing = false;
        self.waiting -= slot.waiting.len();
        std::mem::take(&mut slot.waiting)
    }

    /// Removes a consumer that was detached or could not be attached; returns the frames that waited for
    /// that.
    pub(super) fn is_gone(&mut self, consumer: u32) -> Waiting {
        let Some(slot) = self.slots.remove(&consumer) else { return Waiting::new() };
        self.waiting -= slot.waiting.len();
        slot.waiting
    }

    /// The queues that consumers get messages from, or are about to; those of one that is being detached do
    /// not count.
    pub(super) fn queues(&self) -> impl Iterator<Item = &str> {
        let receiving =
            |slot: &&ConsumerSlot| slot.is_there() && !(slot.is_changing && slot.attached.is_some());
        self.slots.values().filter(receiving).flat_map(|slot| slot.queues.iter().map(|queue| &**queue))
    }
}

impl ConsumerSlot {
    /// True unless the server or another client has detached it.
    fn is_there(&self) -> bool {
        self.attached.as_ref().is_none_or(AttachedConsumer::is_live)
    }

    /// Notes that the client has asked to detach it, or that this was refused.
    fn asks_to_end(&self, asked: bool) {
        if let Some(attached) = &self.attached {
            attached.asks_to_end(asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(names: &[&str]) -> Queues {
        names.iter().map(|name| Box::from(*name)).collect()
    }

    #[test]
    fn only_the_queues_of_those_that_are_there_are_known() {
        let mut consumers = Consumers::default();
        consumers.attaches(1, queues(&["a", "b"]));
        consumers.attaches(2, queues(&["c"]));
        assert_eq!(consumers.queues().count(), 3);
        assert!(consumers.take_turn(5, 1, Turn::Credit(1)).is_none());
        assert!(consumers.take_turn(6, 1, Turn::Detach(0)).is_none());
        assert!(consumers.take_turn(7, 3, Turn::Credit(1)).is_some(), "nothing to wait for");
        assert_eq!(consumers.waiting(), 2);
        // Refused: those behind it have their turn, and nothing of it is left.
        let numbers: Vec<u64> = consumers.is_gone(1).into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [5, 6]);
        assert_eq!((consumers.waiting(), consumers.queues().collect::<Vec<_>>()), (0, vec!["c"]));
    }

    #[test]
    fn there_are_so_many_at_most() {
        let mut consumers = Consumers::default();
        for number in 0..CONSUMERS_MAX as u32 {
            assert!(consumers.has_room());
            consumers.attaches(number, queues(&["a"]));
        }
        assert!(!consumers.has_room());
    }
}
