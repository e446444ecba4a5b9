//! Room on the disks of the members, by their reports.
//!
//! A leader takes batches that add data while its own disk and those of a majority have room for them. A
//! follower whose disk is full goes on with what the reserve of its disk allows, and falls behind then: the
//! majority does without it. Where no majority is left that has room, batches that add data are refused, and
//! all disks have a part of their reserve for those that free data. A leader whose own disk is full hands
//! over to a member that has room and everything that is committed.

use std::collections::BTreeMap;

use sluice_journal::{Class, DiskJournal, Refused};

use super::Member;
use crate::entry::NodeId;
use crate::plant::{self, Plant};
use crate::ready::Role;
use crate::report::Report;

/// Time between two hand-overs for want of room by one member, as a multiple of an election's ticks: two
/// disks that are about to be full do not hand the leadership back and forth.
const ELECTIONS_BETWEEN: u64 = 20;

/// Reports of the other members.
#[derive(Debug)]
pub(super) struct Room {
    /// For each member the tick at which it was heard of last, and whether its disk had room then.
    heard: BTreeMap<NodeId, (u64, bool)>,
    /// Number of ticks so far.
    ticks: u64,
    /// Number of ticks after which a report counts no more.
    report_ticks: u64,
    /// Tick before which the leadership is not handed over again.
    hand_over_at: u64,
}

impl Room {
    pub(super) fn new(election_ticks: usize) -> Room {
        Room { heard: BTreeMap::new(), ticks: 0, report_ticks: election_ticks as u64, hand_over_at: 0 }
    }

    pub(super) fn tick(&mut self) {
        self.ticks += 1;
    }

    /// Takes the report of another member.
    pub(super) fn hear(&mut self, from: NodeId, report: &Report) {
        self.heard.insert(from, (self.ticks, report.takes_growing));
    }

    /// Room of a member; `None`: it was not heard of lately.
    pub(super) fn of(&self, member: NodeId) -> Option<bool> {
        let (tick, has_room) = self.heard.get(&member)?;
        (tick + self.report_ticks >= self.ticks).then_some(*has_room)
    }

    /// True when one of these voters, this one not among them, is known to have no room, and those that have
    /// are no majority with this one.
    fn is_short(&self, others: impl Iterator<Item = NodeId> + Clone) -> bool {
        let rooms = others.map(|other| self.of(other));
        let with_room = 1 + rooms.clone().filter(|room| *room == Some(true)).count();
        let voters = 1 + rooms.clone().count();
        rooms.into_iter().any(|room| room == Some(false)) && 2 * with_room <= voters
    }
}

impl Member {
    /// Report for others, without the clocks.
    pub(super) fn report(&self) -> Report {
        let takes_growing = match self.replica.standing().role {
            Role::Leader => self.takes_growing(),
            Role::Follower | Role::Candidate => self.journal.takes_growing(),
        };
        Report { takes_growing, is_quiet: self.quiet.is_told(), ..Report::default() }
    }

    /// True when a majority, this member among them, has room for batches that add data.
    fn takes_growing(&self) -> bool {
        self.journal.takes_growing() && !self.room.is_short(self.other_voters())
    }

    fn other_voters(&self) -> impl Iterator<Item = NodeId> + Clone {
        let id = self.id;
        self.replica.members().voters().iter().copied().filter(move |voter| *voter != id)
    }

    /// Counts the room for a batch that this member proposes as taken.
    ///
    /// # Errors
    /// There is no room for it here, or on too few other members: then no byte counts as free.
    pub(super) fn take_room(&mut self, bytes: usize, class: Class) -> Result<(), Refused> {
        let is_growing = class == Class::Growing && !plant::is(Plant::IgnoreRoomOfOthers);
        if is_growing && self.room.is_short(self.other_voters()) {
            return Err(Refused::Full { free_bytes: 0, needed_bytes: bytes as u64 });
        }
        self.journal.admit(bytes, class)
    }

    /// Hands the leadership over where the disk here is full and that of a member is not which has everything
    /// that is committed.
    pub(super) fn hand_over_for_room(&mut self) {
        let is_due = self.room.hand_over_at <= self.room.ticks;
        if !is_due || self.replica.standing().role != Role::Leader || self.journal.takes_growing() {
            return;
        }
        let has_room = |member| self.room.of(member) == Some(true);
        let to = self.replica.successor(|member| has_room(member) && self.replica.has_committed(member));
        if let Some(to) = to.filter(|_| !plant::is(Plant::KeepLeadingWithoutRoom)) {
            self.room.hand_over_at = self.room.ticks + ELECTIONS_BETWEEN * self.room.report_ticks;
            // A successor is a member, and only leaders have one.
            let _ = self.transfer_leader(to);
        }
    }
}

/// Counts the room for batches of a leader as taken. False: there is none, and they are dropped.
pub(super) fn admit_copies(journal: &mut DiskJournal, bytes: usize, report: &Report) -> bool {
    let admitted = match report.takes_growing {
        true => journal.admit_copy(bytes),
        false => journal.admit(bytes, Class::Draining),
    };
    admitted.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeId {
        NodeId::new(number).unwrap()
    }

    fn room(reports: &[(u64, bool)]) -> Room {
        let mut room = Room::new(10);
        for (number, takes_growing) in reports {
            room.hear(node(*number), &Report { takes_growing: *takes_growing, ..Report::default() });
        }
        room
    }

    fn is_short(room: &Room, voters: u64) -> bool {
        room.is_short((2..=voters).map(node))
    }

    #[test]
    fn a_majority_has_room_or_nobody_is_known_to_have_none() {
        assert!(!is_short(&room(&[]), 3), "nothing is known");
        assert!(!is_short(&room(&[(2, true), (3, false)]), 3));
        assert!(is_short(&room(&[(2, false), (3, false)]), 3));
        assert!(!is_short(&room(&[(2, false), (3, false), (4, true), (5, true)]), 5));
        assert!(is_short(&room(&[(2, false), (3, false), (4, false), (5, true)]), 5));
    }

    #[test]
    fn who_is_not_heard_of_has_no_room_once_another_has_none() {
        let mut room = room(&[(2, true), (3, true)]);
        (0..11).for_each(|_| room.tick());
        assert!(!is_short(&room, 3), "two that are silent are nobody's want of room");
        room.hear(node(3), &Report::default());
        assert!(is_short(&room, 3));
    }
}
