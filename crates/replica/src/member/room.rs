//! Room on the disks of the members, by their reports.
//!
//! A leader takes batches that add data while its own disk and those of a majority have room for them. A
//! follower whose disk is full goes on with what the reserve of its disk allows, and falls behind then: the
//! majority does without it, and nothing is sent to it that it would drop. Where no majority is left that has
//! room, batches that add data are refused, and all disks have a part of their reserve for those that free
//! data. Once the reserves of a majority are spent, these are refused too, since they could not be committed.
//! A leader whose own disk is full hands over to a member that has more room and everything that is
//! committed.

use std::collections::BTreeMap;

use sluice_journal::{Class, DiskJournal, DiskRoom, Refused};

use super::Member;
use crate::entry::NodeId;
use crate::plant::{self, Plant};
use crate::ready::Role;
use crate::report::Report;

/// Time between two hand-overs for want of room by one member, as a multiple of an election's ticks. A member
/// takes nothing while it hands over, which lasts an election where the other one does not answer; and two
/// disks that are about to be full do not only hand the leadership back and forth.
const ELECTIONS_BETWEEN: u64 = 4;

/// Reports of the other members.
#[derive(Debug)]
pub(super) struct Room {
    /// For each member the tick at which it was heard of last, and the room of its disk then.
    heard: BTreeMap<NodeId, (u64, DiskRoom)>,
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
        self.heard.insert(from, (self.ticks, report.room));
    }

    /// Room of a member; `None`: it was not heard of lately.
    pub(super) fn of(&self, member: NodeId) -> Option<DiskRoom> {
        let (tick, room) = self.heard.get(&member)?;
        (tick + self.report_ticks >= self.ticks).then_some(*room)
    }

    /// True when one of these voters, this one not among them, is known to have less room than this, and
    /// those that have it are no majority with this one.
    fn is_short(&self, others: impl Iterator<Item = NodeId> + Clone, needed: DiskRoom) -> bool {
        let rooms = others.map(|other| self.of(other));
        let with_room = 1 + rooms.clone().filter(|room| *room >= Some(needed)).count();
        let voters = 1 + rooms.clone().count();
        rooms.into_iter().flatten().any(|room| room < needed) && 2 * with_room <= voters
    }
}

/// Room that a batch of this class needs.
fn needed(class: Class) -> DiskRoom {
    match class {
        Class::Growing => DiskRoom::Growing,
        Class::Draining => DiskRoom::Draining,
    }
}

impl Member {
    /// Report for others, without the clocks.
    pub(super) fn report(&self) -> Report {
        let room = match self.replica.standing().role {
            Role::Leader => self.taken(),
            Role::Follower | Role::Candidate => self.journal.disk_room(),
        };
        Report { room, is_quiet: self.quiet.is_told(), ..Report::default() }
    }

    /// Batches for which a majority, this member among them, has room.
    fn taken(&self) -> DiskRoom {
        let here = self.journal.disk_room();
        let is_taken = |class: &Class| here >= needed(*class) && !self.is_short(*class);
        let taken = [Class::Growing, Class::Draining].into_iter().find(is_taken);
        taken.map_or(DiskRoom::None, needed)
    }

    fn is_short(&self, class: Class) -> bool {
        let id = self.id;
        let voters = self.replica.members().voters().iter().copied();
        self.room.is_short(voters.filter(move |voter| *voter != id), needed(class))
    }

    /// Counts the room for a batch that this member proposes as taken.
    ///
    /// # Errors
    /// There is no room for it here, or on too few other members: then no byte counts as free.
    pub(super) fn take_room(&mut self, bytes: usize, class: Class) -> Result<(), Refused> {
        let ignores_others = class == Class::Growing && plant::is(Plant::IgnoreRoomOfOthers);
        if self.is_short(class) && !ignores_others {
            return Err(Refused::Full { free_bytes: 0, needed_bytes: bytes as u64 });
        }
        self.journal.admit(bytes, class)
    }

    /// True when a member is known to have no room for batches that this leader sends: see [`admit_copies`].
    pub(super) fn would_drop(&self, member: NodeId) -> bool {
        match self.room.of(member) {
            None | Some(DiskRoom::Copies | DiskRoom::Growing) => false,
            Some(DiskRoom::Draining) => self.taken() == DiskRoom::Growing,
            Some(DiskRoom::None) => true,
        }
    }

    /// Hands the leadership over where the disk here is full and that of a member has room for more, which
    /// has everything that is committed.
    pub(super) fn hand_over_for_room(&mut self) {
        let is_due = self.room.hand_over_at <= self.room.ticks;
        if !is_due || self.replica.standing().role != Role::Leader {
            return;
        }
        let here = self.journal.disk_room();
        let has = |member, room| self.room.of(member) >= Some(room) && self.replica.has_committed(member);
        let mut more = [DiskRoom::Growing, DiskRoom::Draining].into_iter().filter(|room| here < *room);
        let to = more.find_map(|room| self.replica.successor(|member| has(member, room)));
        if let Some(to) = to.filter(|_| !plant::is(Plant::KeepLeadingWithoutRoom)) {
            self.room.hand_over_at = self.room.ticks + ELECTIONS_BETWEEN * self.room.report_ticks;
            // A successor is a member, and only leaders have one.
            let _ = self.transfer_leader(to);
        }
    }
}

/// Counts the room for batches of a leader as taken. False: there is none, and they are dropped.
pub(super) fn admit_copies(journal: &mut DiskJournal, bytes: usize, report: &Report) -> bool {
    let admitted = match report.room {
        DiskRoom::Growing => journal.admit_copy(bytes),
        DiskRoom::None | DiskRoom::Draining | DiskRoom::Copies => journal.admit(bytes, Class::Draining),
    };
    admitted.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeId {
        NodeId::new(number).unwrap()
    }

    /// Reports of the nodes from 2 on.
    fn room(reports: &[DiskRoom]) -> Room {
        let mut room = Room::new(10);
        for (number, &reported) in (2..).zip(reports) {
            room.hear(node(number), &Report { room: reported, ..Report::default() });
        }
        room
    }

    fn is_short(room: &Room, voters: u64, class: Class) -> bool {
        room.is_short((2..=voters).map(node), needed(class))
    }

    #[test]
    fn a_majority_has_room_or_nobody_is_known_to_have_none() {
        use DiskRoom::{Copies, Growing, None};
        let is_short = |reports: &[DiskRoom], voters| is_short(&room(reports), voters, Class::Growing);
        assert!(!is_short(&[], 3), "nothing is known");
        assert!(!is_short(&[Growing, None], 3));
        assert!(is_short(&[Copies, None], 3));
        assert!(!is_short(&[None, Copies, Growing, Growing], 5));
        assert!(is_short(&[None, Copies, None, Growing], 5));
    }

    #[test]
    fn draining_goes_on_until_the_reserves_of_a_majority_are_spent() {
        use DiskRoom::{Copies, Draining, Growing, None};
        let is_short = |reports: &[DiskRoom], voters| is_short(&room(reports), voters, Class::Draining);
        assert!(!is_short(&[Draining, None], 3));
        assert!(!is_short(&[None, None, Copies, Growing], 5));
        assert!(is_short(&[None, None], 3));
        assert!(is_short(&[None], 3), "who is silent does not count");
    }

    #[test]
    fn who_is_not_heard_of_has_no_room_once_another_has_none() {
        let mut room = room(&[DiskRoom::Growing, DiskRoom::Growing]);
        (0..11).for_each(|_| room.tick());
        assert!(!is_short(&room, 3, Class::Growing), "two that are silent are nobody's want of room");
        room.hear(node(3), &Report::default());
        assert!(is_short(&room, 3, Class::Growing));
    }
}
