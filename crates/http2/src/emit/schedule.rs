//! The order in which streams send (RFC 9218 §10).
//!
//! The more urgent go first. Among equals there are two lists: streams that share take turns of one frame;
//! those that were asked for in an order that matters go one after the other, by id. When both lists have
//! some, they take turns as well, so that neither starves.

use crate::streams::{Links, NONE, Priority, Streams, UNLINKED};

#[derive(Clone, Copy, Debug)]
struct SlotList {
    first: u32,
    last: u32,
}

impl SlotList {
    const EMPTY: Self = Self { first: NONE, last: NONE };
}

/// The streams that have something to send and a window to send it in.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// For each urgency, those in order and those that share.
    lists: [SlotList; 2 * Priority::URGENCIES],
    /// A bit for each list that has some.
    occupied: u16,
    /// True if it is the turn of the streams that share, where both lists of an urgency have some.
    sharing_turn: bool,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Self { lists: [SlotList::EMPTY; 2 * Priority::URGENCIES], occupied: 0, sharing_turn: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The stream that sends next; it keeps its place.
    pub(crate) fn first(&mut self) -> Option<u32> {
        if self.occupied == 0 {
            return None;
        }
        let urgency = self.occupied.trailing_zeros() / 2;
        let list = match (self.occupied >> (2 * urgency)) & 0b11 {
            0b01 => 2 * urgency,
            0b10 => 2 * urgency + 1,
            _ => {
                self.sharing_turn = !self.sharing_turn;
                2 * urgency + u32::from(self.sharing_turn)
            }
        };
        Some(self.lists[list as usize].first)
    }

    /// Puts a stream into the list of its priority, unless it stands in one.
    pub(crate) fn insert(&mut self, streams: &mut Streams, slot: u32) {
        let stream = &streams[slot];
        if stream.links.is_linked() {
            return;
        }
        let (id, priority) = (stream.id, stream.priority);
        let list = 2 * priority.urgency + u8::from(priority.incremental);
        let mut previous = self.lists[usize::from(list)].last;
        if !priority.incremental {
            while previous != NONE && streams[previous].id > id {
                previous = streams[previous].links.previous;
            }
        }
        self.link(streams, slot, list, previous);
    }

    /// After a stream has sent a frame and has more: those that share go behind the others.
    pub(crate) fn take_turns(&mut self, streams: &mut Streams, slot: u32) {
        if streams[slot].priority.incremental {
            self.remove(streams, slot);
            self.insert(streams, slot);
        }
    }

    /// Takes a stream out of its list, if it stands in one.
    pub(crate) fn remove(&mut self, streams: &mut Streams, slot: u32) {
        let Links { previous, next, list } = std::mem::take(&mut streams[slot].links);
        if list == UNLINKED {
            return;
        }
        let ends = &mut self.lists[usize::from(list)];
        match previous {
            NONE => ends.first = next,
            previous => streams[previous].links.next = next,
        }
        match next {
            NONE => ends.last = previous,
            next => streams[next].links.previous = previous,
        }
        if ends.first == NONE {
            self.occupied &= !(1 << list);
        }
    }

    fn link(&mut self, streams: &mut Streams, slot: u32, list: u8, previous: u32) {
        let ends = &mut self.lists[usize::from(list)];
        let next = match previous {
            NONE => std::mem::replace(&mut ends.first, slot),
            previous => std::mem::replace(&mut streams[previous].links.next, slot),
        };
        match next {
            NONE => ends.last = slot,
            next => streams[next].links.previous = slot,
        }
        streams[slot].links = Links { previous, next, list };
        self.occupied |= 1 << list;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams with these ids and priorities (urgency, incremental), put in in their order.
    fn scheduled(wanted: &[(u32, u8, bool)]) -> (Schedule, Streams) {
        let (mut schedule, mut streams) = (Schedule::new(), Streams::new());
        for &(id, urgency, incremental) in wanted {
            let slot = streams.insert(id, 0, 0);
            streams[slot].priority = Priority { urgency, incremental };
            schedule.insert(&mut streams, slot);
        }
        (schedule, streams)
    }

    /// The ids of the next `turns` frames, when every stream has more than that.
    fn turns(schedule: &mut Schedule, streams: &mut Streams, turns: usize) -> Vec<u32> {
        let turn = |_| {
            let slot = schedule.first().expect("some");
            schedule.take_turns(streams, slot);
            streams[slot].id
        };
        (0..turns).map(turn).collect()
    }

    #[test]
    fn rfc9218_10_the_more_urgent_go_first() {
        let (mut schedule, mut streams) = scheduled(&[(1, 7, true), (3, 0, false), (5, 3, true)]);
        for expected in [3, 5, 1] {
            assert_eq!(turns(&mut schedule, &mut streams, 2), [expected, expected]);
            let slot = schedule.first().expect("some");
            schedule.remove(&mut streams, slot);
        }
        assert!(schedule.is_empty());
    }

    #[test]
    fn rfc9218_10_incremental_ones_share() {
        let (mut schedule, mut streams) = scheduled(&[(1, 3, true), (5, 3, true), (3, 3, true)]);
        assert_eq!(turns(&mut schedule, &mut streams, 7), [1, 5, 3, 1, 5, 3, 1]);
    }

    #[test]
    fn rfc9218_10_others_go_one_after_the_other_by_id() {
        let (mut schedule, mut streams) = scheduled(&[(7, 3, false), (1, 3, false), (5, 3, false)]);
        for expected in [1, 5, 7] {
            assert_eq!(turns(&mut schedule, &mut streams, 3), [expected; 3]);
            let slot = schedule.first().expect("some");
            schedule.remove(&mut streams, slot);
        }
    }

    #[test]
    fn neither_kind_starves_the_other() {
        let (mut schedule, mut streams) = scheduled(&[(1, 3, false), (3, 3, true), (5, 3, true)]);
        assert_eq!(turns(&mut schedule, &mut streams, 6), [3, 1, 5, 1, 3, 1]);
    }

    #[test]
    fn a_stream_leaves_from_the_middle() {
        let (mut schedule, mut streams) = scheduled(&[(1, 3, true), (3, 3, true), (5, 3, true)]);
        let middle = streams.slot(3).expect("live");
        schedule.remove(&mut streams, middle);
        schedule.remove(&mut streams, middle);
        assert_eq!(turns(&mut schedule, &mut streams, 4), [1, 5, 1, 5]);
    }
}
