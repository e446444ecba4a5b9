//! Whoever changes the members: brings their number to the one wanted, and puts nodes that have lost
//! something or were removed under new numbers into the places of the former.

use std::cmp::{Ordering, Reverse};

use sluice_replica::plant::{Plant, is};
use sluice_replica::{Body, Change, Durable, Entry, Members, NodeId, PROTOCOL_NEWEST, Refused, wire};

use super::disk::Disk;
use super::world::{Event, World};

impl World {
    /// The place of the node with this number; `None`: no node has it any more.
    pub(crate) fn place(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    /// True: there are as many voters as are wanted, and no learners.
    pub(crate) fn is_whole(&self) -> bool {
        let members = self.checker.members();
        let is_here = members.voters().iter().all(|id| self.place(*id).is_some());
        is_here && members.voters().len() == self.wanted && members.learners().is_empty()
    }

    /// True: a majority of the voters stays when this node is lost for good, and the members are settled.
    pub(crate) fn can_lose(&self, node: usize) -> bool {
        let voters = self.checker.members().voters();
        let is_lost = |id: &&NodeId| self.place(**id).is_none_or(|place| place == node);
        voters.iter().filter(is_lost).count() * 2 < voters.len() && self.is_settled()
    }

    /// True: no change of the members is under way, and the last one is known on the disks of a majority of
    /// the voters. Before that, those before it may be needed to elect a leader.
    fn is_settled(&self) -> bool {
        let (voters, changed) = (self.checker.members().voters(), self.checker.changed());
        let here = self.nodes.iter().filter(|node| voters.contains(&node.id));
        let knowing = here
            .map(|node| &node.disk.durable)
            .filter(|durable| durable.hard_state.commit.max(durable.base.position.index) >= changed);
        knowing.count() * 2 > voters.len()
            && self.nodes.iter().all(|node| node.disk.changes_behind(changed) == 0)
            && !self.events.iter().any(|Reverse((_, _, event))| brings_change(event, changed))
    }

    /// Lets a node lose its disk, or what it has written lately. It returns under another number.
    pub(crate) fn lose(&mut self, node: usize) {
        self.crash(node);
        self.checker.coverage.losses += 1;
        let lost = self.nodes[node].disk.crash(&mut self.rng);
        self.graves.push((self.nodes[node].id, lost));
        if self.rng.chance(1, 2) {
            self.checker.coverage.fallbacks += 1;
            self.nodes[node].disk.fall_back();
        } else {
            self.nodes[node].disk = Disk::new(Durable::default());
        }
        self.nodes[node].applied = self.nodes[node].disk.durable.base.position.index;
        if !is(Plant::ForgetfulVoter) {
            self.rename(node);
        }
    }

    /// Gives a node a number that none has had.
    fn rename(&mut self, node: usize) {
        self.highest += 1;
        self.nodes[node].id = NodeId::new(self.highest).expect("numbers begin with 1");
        self.nodes[node].has_forgotten = true;
    }

    /// Asks a leader for the change that is due, or by chance for one that is not.
    pub(crate) fn change_members(&mut self, node: usize) -> Result<(), Refused> {
        let leader = self.nodes[node].replica.as_mut().expect("it leads");
        let members = leader.members().clone();
        let Some(change) = self.due(&members) else { return Ok(()) };
        let leader = self.nodes[node].replica.as_mut().expect("it leads");
        match leader.propose_members(change) {
            Ok(_) => self.checker.coverage.changes += 1,
            Err(Refused::Leads) => {
                let to = members.voters()[self.rng.index(members.voters().len())];
                self.hand_over(node, to)?;
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    /// The change that brings these members nearer to those wanted.
    fn due(&mut self, members: &Members) -> Option<Change> {
        let new: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        let new: Vec<NodeId> = new.into_iter().filter(|id| id.get() > members.highest()).collect();
        let new = (!new.is_empty()).then(|| new[self.rng.index(new.len())]);
        if let Some(old) = members.iter().find(|id| self.place(*id).is_none()) {
            return new.map(|new| Change::Replace { old, new });
        }
        let voter = members.voters()[self.rng.index(members.voters().len())];
        let learner = members.learners().first().copied();
        match (members.voters().len().cmp(&self.wanted), learner) {
            (Ordering::Less, Some(learner)) => Some(Change::Promote(learner)),
            (Ordering::Less, None) => new.map(Change::Add),
            (Ordering::Greater, _) if self.rng.chance(1, 2) => Some(Change::Demote(voter)),
            (Ordering::Greater, _) => Some(Change::Remove(voter)),
            (Ordering::Equal, Some(learner)) => Some(Change::Remove(learner)),
            (Ordering::Equal, None) if self.faulty && self.rng.chance(1, 20) => match new {
                Some(new) if self.rng.chance(1, 2) => Some(Change::Replace { old: voter, new }),
                _ if self.rng.chance(1, 2) => Some(Change::Demote(voter)),
                _ => Some(Change::Promote(voter)),
            },
            (Ordering::Equal, None) => None,
        }
    }

    /// Gives a node that was removed, or came too late with its number, another.
    pub(crate) fn bring_back(&mut self) {
        let members = self.checker.members();
        let Some(node) = self.nodes.iter().position(|node| members.is_removed(node.id)) else { return };
        if !self.is_settled() {
            return;
        }
        self.crash(node);
        let lost = self.nodes[node].disk.crash(&mut self.rng);
        self.graves.push((self.nodes[node].id, lost));
        self.nodes[node].applied = self.nodes[node].disk.durable.base.position.index;
        self.rename(node);
    }

    /// A new entry of the log is synced by a majority of the members in force, or of those before the last
    /// change, which the leader may not have applied.
    pub(crate) fn check_commit(&self, entry: &Entry) -> Result<(), String> {
        let index = entry.position.index;
        let holds = |durable: &Durable| {
            let behind = index.checked_sub(durable.base.position.index + 1);
            behind.is_none_or(|at| {
                durable.entries.get(at as usize).is_some_and(|other| other.position == entry.position)
            })
        };
        let is_majority = |members: &Members| self.count(members, &holds) * 2 > members.voters().len();
        if self.checker.members_before(index).any(is_majority) {
            return Ok(());
        }
        Err(format!("{entry:?} is committed, and not synced by a majority"))
    }

    /// A leader has the synced votes of a majority of its members.
    pub(crate) fn check_votes(&self, node: usize, term: u64) -> Result<(), String> {
        let leader = &self.nodes[node];
        let voted = |durable: &Durable| {
            let state = durable.hard_state;
            state.term > term || (state.term == term && state.vote == Some(leader.id))
        };
        let members = leader.replica.as_ref().expect("it leads").members();
        if self.count(members, &voted) * 2 > members.voters().len() {
            return Ok(());
        }
        Err(format!("node {node} leads term {term} without the votes of a majority"))
    }

    /// Number of voters for whose disk something is true, as it is or as it was when it was lost.
    fn count(&self, members: &Members, is: &dyn Fn(&Durable) -> bool) -> usize {
        let graves = self.graves.iter().map(|(id, durable)| (*id, durable));
        let disks = self.nodes.iter().map(|node| (node.id, &node.disk.durable)).chain(graves);
        disks.filter(|(id, durable)| members.voters().contains(id) && is(durable)).count()
    }
}

/// True: the event brings a change of the members behind this index.
fn brings_change(event: &Event, changed: u64) -> bool {
    let Event::Arrive { bytes, .. } = event else { return false };
    let Ok(message) = wire::decode(bytes, PROTOCOL_NEWEST) else { return false };
    let Body::Append { entries, .. } = message.body else { return false };
    entries.iter().any(|entry| entry.position.index > changed && entry.change().is_some())
}
