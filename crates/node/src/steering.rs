//! Bringing the members of a log into line with the list of a cluster's nodes, a change at a time: what a
//! leader does next, and when the list goes on.

use std::collections::BTreeSet;

use sluice_replica::{Change, Follower, MEMBERS_MAX, Members, NodeId};

use crate::shard::replicated::changes::ShardMembers;

/// A node as the list has it, as far as the members of logs follow from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Number, from 1: another one each time that a machine joins.
    pub number: u64,
    /// Number of the node in whose place it comes.
    pub replaces: Option<u64>,
    /// Its wanted part.
    pub wanted: Wanted,
}

/// The part that a node is to have in every log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// A voter, once it has caught up.
    Voter,
    /// None: it is to be removed, and its peers still listen to it.
    Leaving,
    /// None: no log counts on it any more, and its peers refuse it.
    Removed,
}

/// The next step of the leader of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To change the members.
    Change(Change),
    /// To hand its leadership over, since it is to be removed itself.
    HandOver,
}

/// The nodes that would be left have no majority that is connected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoMajority {
    /// Number of those that are connected.
    pub reached: usize,
    /// Numbers of the others.
    pub lost: Vec<u64>,
}

impl NoMajority {
    /// True when nobody is left.
    pub fn is_last(&self) -> bool {
        self.reached == 0 && self.lost.is_empty()
    }
}

/// Bounds for the members of a shard, by those of others. Tokens, the policy and the list of nodes live in
/// shard 0: whoever leads another shard has to have it, and to hear of its changes.
#[derive(Clone, Copy, Debug)]
pub enum Place<'p> {
    /// Shard 0, with the nodes that are members of another shard: these stay in it.
    First(&'p BTreeSet<NodeId>),
    /// Another shard, with the members of shard 0, of which only voters come to vote in it.
    Other(&'p Members),
}

impl Place<'_> {
    fn may_vote(self, node: NodeId) -> bool {
        match self {
            Place::First(_) => true,
            Place::Other(first) => first.voters().contains(&node),
        }
    }

    fn may_leave(self, node: NodeId) -> bool {
        match self {
            Place::First(elsewhere) => !elsewhere.contains(&node),
            Place::Other(_) => true,
        }
    }
}

impl ShardMembers {
    /// True when a node that is reached may have the only whole copy of a payload that is damaged here.
    fn needs_copies_of(&self, node: NodeId) -> bool {
        let is_heard = |follower: &Follower| follower.node == node && follower.is_heard;
        self.may_have_copies.contains(&node) && self.followers.iter().any(is_heard)
    }
}

/// The next step of a leader with the number `own`; `None`: the members are as they are listed, or a node has
/// to catch up first, also where another is to be removed, or that one may have what is damaged here.
pub fn next(listed: &[Part], shard: &ShardMembers, own: NodeId, place: Place<'_>) -> Option<Step> {
    let members = &shard.members;
    if shard.is_changing || !listed.iter().any(|node| node.number == own.get()) {
        return None;
    }
    let wants = |wanted: Wanted| {
        let nodes = listed.iter().filter(move |node| node.wanted == wanted);
        nodes.filter_map(|node| NodeId::new(node.number)).collect::<BTreeSet<NodeId>>()
    };
    let voters = wants(Wanted::Voter);
    // Where as many come at once as there is no room for, others have to be done first.
    let has_room = members.iter().count() < MEMBERS_MAX;
    let mut new = voters.iter().filter(|node| node.get() > members.highest());
    if let Some(node) = new.next().filter(|_| has_room) {
        return Some(Step::Change(Change::Add(*node)));
    }
    let is_ready = |node: &&NodeId| {
        let follower = shard.followers.iter().find(|follower| follower.node == **node);
        let is_current = follower.is_some_and(|follower| follower.is_heard && follower.is_caught_up);
        voters.contains(node) && is_current && place.may_vote(**node)
    };
    if let Some(node) = members.learners().iter().find(is_ready) {
        return Some(Step::Change(Change::Promote(*node)));
    }
    // A shard may have counted on a node unseen by the one that took note of its removal.
    let leaving = [wants(Wanted::Leaving), wants(Wanted::Removed)];
    let mut leaving = leaving.iter().flatten().filter(|node| members.contains(**node));
    // One that has to stay until others vote does not keep those that take their room.
    let may_go = |node: NodeId| node == own || place.may_leave(node) && !shard.needs_copies_of(node);
    let node = leaving.find(|node| is_redundant(members, **node, voters.len()) && may_go(**node))?;
    Some(if *node == own { Step::HandOver } else { Step::Change(Change::Remove(*node)) })
}

/// True when nothing is to be done: in each shard those who are to vote do, and nobody else is a member.
pub fn are_settled(listed: &[Part], shards: &[ShardMembers]) -> bool {
    let voters = listed.iter().filter(|node| node.wanted == Wanted::Voter);
    let voters: BTreeSet<u64> = voters.map(|node| node.number).collect();
    let is_settled = |shard: &ShardMembers| {
        let members = &shard.members;
        let voting: BTreeSet<u64> = members.voters().iter().map(|node| node.get()).collect();
        !shard.is_changing && members.learners().is_empty() && voting == voters
    };
    let is_leaving = listed.iter().any(|node| node.wanted == Wanted::Leaving);
    !is_leaving && replaced(listed, shards).is_none() && shards.iter().all(is_settled)
}

/// True when the voters that are left without a node are a majority of those that are wanted: what is
/// acknowledged is nowhere on one machine alone while those that are to vote still catch up.
fn is_redundant(members: &Members, node: NodeId, wanted: usize) -> bool {
    !members.voters().contains(&node) || (members.voters().len() - 1) * 2 > wanted
}

/// The node that is to be removed next since another comes in its place: that one votes in all shards, or the
/// former has not come to vote in any.
pub fn replaced(listed: &[Part], shards: &[ShardMembers]) -> Option<u64> {
    let votes_in_all = |node: &Part| shards.iter().all(|shard| votes_in(shard, node.number));
    let votes_in_none = |node: &Part| !votes(shards, node.number);
    let present = |node: &&Part| node.wanted == Wanted::Voter;
    let pairs = listed.iter().filter(present).flat_map(|new| {
        let former = former(listed, new.replaces).filter(present);
        former.map(move |former| (new, former))
    });
    let mut replaced = pairs.filter(|(new, former)| votes_in_all(new) || votes_in_none(former));
    replaced.next().map(|(_, former)| former.number)
}

/// True when a node votes in a shard.
pub fn votes(shards: &[ShardMembers], number: u64) -> bool {
    shards.iter().any(|shard| votes_in(shard, number))
}

fn votes_in(shard: &ShardMembers, number: u64) -> bool {
    NodeId::new(number).is_some_and(|number| shard.members.voters().contains(&number))
}

/// The nodes in the place of which one comes that replaces this number: that node, and those in the place of
/// which it was to come itself.
pub fn former(listed: &[Part], replaces: Option<u64>) -> impl Iterator<Item = &Part> {
    let numbered = |number: Option<u64>| listed.iter().find(|node| Some(node.number) == number);
    std::iter::successors(numbered(replaces), move |node| numbered(node.replaces))
}

/// Checks that of the nodes which are left without one those that are `connected` are a majority. Nothing
/// depends on one that [`votes`] in no shard: callers let it go all the same, unless it is the last one.
///
/// # Errors
/// They are none; see [`NoMajority`].
pub fn check_removal(listed: &[Part], number: u64, connected: &[u64]) -> Result<(), NoMajority> {
    let left = listed.iter().filter(|node| node.wanted == Wanted::Voter && node.number != number);
    let (reached, lost): (Vec<u64>, Vec<u64>) =
        left.map(|node| node.number).partition(|node| connected.contains(node));
    if reached.len() > lost.len() { Ok(()) } else { Err(NoMajority { reached: reached.len(), lost }) }
}

/// Nodes that no shard counts on any more: of each shard that is led here a majority knows it. The members
/// have to be read behind [`crate::Node::catch_up`]: whoever lags may not have heard of a member yet.
pub fn gone(listed: &[Part], shards: &[ShardMembers]) -> Vec<u64> {
    let is_open = |shard: &ShardMembers| shard.is_changing && !shard.followers.is_empty();
    let is_member = |number: &u64| {
        let number = NodeId::new(*number);
        number.is_some_and(|number| shards.iter().any(|shard| shard.members.contains(number)))
    };
    if shards.iter().any(is_open) {
        return Vec::new();
    }
    let leaving = listed.iter().filter(|node| node.wanted == Wanted::Leaving).map(|node| node.number);
    leaving.filter(|number| !is_member(number)).collect()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn id(number: u64) -> NodeId {
        NodeId::new(number).unwrap()
    }

    /// The next step in the only shard.
    fn step(listed: &[Part], shard: &ShardMembers, own: NodeId) -> Option<Step> {
        next(listed, shard, own, Place::First(&BTreeSet::new()))
    }

    fn listed(number: u64, wanted: Wanted) -> Part {
        Part { number, replaces: None, wanted }
    }

    fn shard(voters: &[u64], learners: &[u64], highest: u64, caught_up: &[u64]) -> ShardMembers {
        let ids = |numbers: &[u64]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
        let follower = |node: &NodeId| Follower {
            node: *node,
            is_voter: voters.contains(&node.get()),
            is_heard: true,
            has_room: true,
            is_known: true,
            needs_state: false,
            is_caught_up: caught_up.contains(&node.get()),
            records: 0,
            bytes: 0,
            missing_since_us: None,
        };
        let members = Members::new(ids(voters), ids(learners), highest).unwrap();
        let followers = members.iter().map(|node| follower(&node)).collect();
        ShardMembers { members, followers, is_changing: false, may_have_copies: BTreeSet::new() }
    }

    #[test]
    fn a_node_that_is_listed_is_added_and_promoted_when_it_has_caught_up() {
        let all = [1, 2, 3].map(|number| listed(number, Wanted::Voter));
        let change = |change| Some(Step::Change(change));
        assert_eq!(step(&all, &shard(&[1], &[], 1, &[]), id(1)), change(Change::Add(id(2))));
        assert_eq!(step(&all, &shard(&[1], &[2], 2, &[2]), id(1)), change(Change::Add(id(3))));
        assert_eq!(step(&all, &shard(&[1], &[2, 3], 3, &[3]), id(1)), change(Change::Promote(id(3))));
        assert_eq!(step(&all, &shard(&[1, 3], &[2], 3, &[]), id(1)), None);
        assert_eq!(step(&all, &shard(&[1, 2, 3], &[], 3, &[2, 3]), id(1)), None);
        let changing = ShardMembers { is_changing: true, ..shard(&[1], &[], 1, &[]) };
        assert_eq!(step(&all, &changing, id(1)), None);
        // A list that this node is not in yet is not its own.
        assert_eq!(step(&all[1..], &shard(&[1], &[], 1, &[]), id(1)), None);
        assert_eq!(step(&[], &shard(&[1], &[], 1, &[]), id(1)), None);
    }

    #[test]
    fn all_is_settled_when_those_listed_vote_and_nobody_else_is_a_member() {
        let all = [1, 2, 3].map(|number| listed(number, Wanted::Voter));
        let voting = shard(&[1, 2, 3], &[], 3, &[]);
        assert!(are_settled(&all, &[voting.clone(), voting.clone()]));
        assert!(!are_settled(&all, &[voting.clone(), shard(&[1, 2], &[3], 3, &[3])]));
        assert!(!are_settled(&all[..2], from_ref(&voting)));
        assert!(!are_settled(&all, &[ShardMembers { is_changing: true, ..voting.clone() }]));
        let removed = [all[0], all[1], all[2], listed(4, Wanted::Removed)];
        assert!(are_settled(&removed, from_ref(&voting)));
        let leaving = [all[0], all[1], all[2], listed(4, Wanted::Leaving)];
        assert!(!are_settled(&leaving, from_ref(&voting)));
        let replacing = [all[0], all[1], Part { replaces: Some(1), ..all[2] }];
        assert!(!are_settled(&replacing, &[voting]));
    }

    #[test]
    fn where_there_is_no_room_for_a_node_others_are_done_first() {
        let mut all = [1, 2, 3, 4, 5, 6, 7, 8].map(|number| listed(number, Wanted::Voter));
        let full = |caught_up| shard(&[1, 2, 3, 4, 5], &[6, 7], 7, caught_up);
        assert_eq!(step(&all, &full(&[6]), id(1)), Some(Step::Change(Change::Promote(id(6)))));
        assert_eq!(step(&all, &full(&[]), id(1)), None);
        all[6].wanted = Wanted::Leaving;
        assert_eq!(step(&all, &full(&[]), id(1)), Some(Step::Change(Change::Remove(id(7)))));
        // A voter that leaves has to wait for those who are to vote, which wait for room.
        let mut few = [1, 2, 3, 8, 9].map(|number| listed(number, Wanted::Voter)).to_vec();
        few[1].wanted = Wanted::Leaving;
        few.extend([4, 5, 6, 7].map(|number| listed(number, Wanted::Leaving)));
        let full = shard(&[1, 2, 3], &[4, 5, 6, 7], 7, &[]);
        assert_eq!(step(&few, &full, id(1)), Some(Step::Change(Change::Remove(id(4)))));
    }

    #[test]
    fn a_node_that_leaves_is_removed_and_a_leader_hands_over_first() {
        let mut all = [1, 2, 3].map(|number| listed(number, Wanted::Voter));
        all[2].wanted = Wanted::Leaving;
        let whole = shard(&[1, 2, 3], &[], 3, &[2, 3]);
        assert_eq!(step(&all, &whole, id(1)), Some(Step::Change(Change::Remove(id(3)))));
        assert_eq!(step(&all, &whole, id(3)), Some(Step::HandOver));
        // It is asked for a copy of a damaged payload first, unless it cannot be reached.
        let mut repairing = ShardMembers { may_have_copies: [id(3)].into(), ..whole.clone() };
        assert_eq!(step(&all, &repairing, id(1)), None);
        repairing.followers.iter_mut().for_each(|follower| follower.is_heard = false);
        assert_eq!(step(&all, &repairing, id(1)), Some(Step::Change(Change::Remove(id(3)))));
        assert_eq!(gone(&all, &[shard(&[1, 2], &[], 3, &[]), whole]), Vec::<u64>::new());
        let without = shard(&[1, 2], &[], 3, &[]);
        assert_eq!(gone(&all, &[without.clone(), without.clone()]), [3]);
        assert_eq!(step(&all, &without, id(1)), None);
        let open = ShardMembers { is_changing: true, ..without.clone() };
        assert_eq!(gone(&all, &[without.clone(), open]), [0; 0]);
        // It was taken for removed where this shard had not counted on it yet.
        all[2].wanted = Wanted::Removed;
        assert_eq!(
            step(&all, &shard(&[1, 2, 3], &[], 3, &[2, 3]), id(1)),
            Some(Step::Change(Change::Remove(id(3))))
        );
        // A number that was given before never comes back.
        all[2].wanted = Wanted::Voter;
        assert_eq!(step(&all, &without, id(1)), None);
    }

    #[test]
    fn a_voter_is_removed_once_a_majority_of_the_nodes_that_stay_vote_without_it() {
        let mut all = [1, 2, 3, 4].map(|number| listed(number, Wanted::Voter));
        all[1].wanted = Wanted::Leaving;
        assert_eq!(step(&all, &shard(&[1, 2], &[3, 4], 4, &[]), id(1)), None);
        let remove = Some(Step::Change(Change::Remove(id(2))));
        assert_eq!(step(&all, &shard(&[1, 2, 3], &[4], 4, &[]), id(1)), remove);
        // Leaders that leave would hand the shard to each other meanwhile.
        all[2].wanted = Wanted::Leaving;
        for leader in [2, 3] {
            assert_eq!(step(&all, &shard(&[2, 3], &[1, 4], 4, &[]), id(leader)), None);
        }
        all[2].wanted = Wanted::Voter;
        // One that never came to vote may go.
        assert_eq!(step(&all, &shard(&[1], &[2, 3, 4], 4, &[]), id(1)), remove);
        all[2].wanted = Wanted::Removed;
        all[3].wanted = Wanted::Removed;
        assert_eq!(step(&all, &shard(&[1, 2], &[], 4, &[]), id(1)), remove, "one is wanted");
    }

    #[test]
    fn a_removal_leaves_a_majority_that_is_connected() {
        let lost = |number, left: &[u64], connected: &[u64]| {
            let all: Vec<Part> = left.iter().map(|number| listed(*number, Wanted::Voter)).collect();
            check_removal(&all, number, connected).err().map(|error| error.lost)
        };
        assert_eq!(lost(3, &[1, 2], &[1, 2]), None);
        assert_eq!(lost(3, &[1, 2, 3], &[1, 2, 3]), None);
        assert_eq!(lost(2, &[1, 2, 3], &[1, 2]), Some(vec![3]));
        assert_eq!(lost(1, &[1], &[1]), Some(vec![]));
        assert_eq!(lost(2, &[1, 2], &[1, 2]), None);
        assert_eq!(lost(5, &[1, 2, 3, 4], &[1, 2]), Some(vec![3, 4]));
    }

    #[test]
    fn a_node_is_removed_when_the_one_in_its_place_votes_everywhere() {
        let mut all = [1, 2, 3, 4].map(|number| listed(number, Wanted::Voter));
        all[3].replaces = Some(2);
        let (learns, votes) = (shard(&[1, 2, 3], &[4], 4, &[]), shard(&[1, 2, 3, 4], &[], 4, &[]));
        assert_eq!(replaced(&all, &[learns, votes.clone()]), None);
        assert_eq!(replaced(&all, &[votes.clone(), votes.clone()]), Some(2));
        all[1].wanted = Wanted::Leaving;
        assert_eq!(replaced(&all, &[votes]), None);
    }

    #[test]
    fn a_node_that_is_replaced_before_it_votes_goes_with_the_one_in_whose_place_it_came() {
        let mut all = [1, 2, 3, 4, 5].map(|number| listed(number, Wanted::Voter));
        (all[3].replaces, all[4].replaces) = (Some(2), Some(4));
        let shards = || [shard(&[1, 2, 3, 5], &[4], 5, &[])];
        assert_eq!(replaced(&all, &shards()), Some(4));
        all[3].wanted = Wanted::Leaving;
        assert_eq!(replaced(&all, &shards()), Some(2));
        // One that never comes to vote makes room at once.
        all[3].wanted = Wanted::Voter;
        let both_learn = [shard(&[1, 2, 3], &[4, 5], 5, &[])];
        assert_eq!(replaced(&all, &both_learn), Some(4));
        all[3].wanted = Wanted::Leaving;
        assert_eq!(replaced(&all, &both_learn), None);
    }

    #[test]
    fn whoever_may_lead_another_shard_has_the_first_one() {
        let mut all = [1, 2, 3].map(|number| listed(number, Wanted::Voter));
        let joining = shard(&[1], &[2, 3], 3, &[2, 3]);
        let first = |voters: &[u64], learners: &[u64]| shard(voters, learners, 3, &[]).members;
        let other = |first: &Members| next(&all, &joining, id(1), Place::Other(first));
        assert_eq!(other(&first(&[1], &[2, 3])), None);
        assert_eq!(other(&first(&[1, 3], &[2])), Some(Step::Change(Change::Promote(id(3)))));
        // Whoever leaves is a member of the first shard until it is one of no other.
        all[2].wanted = Wanted::Leaving;
        let whole = shard(&[1, 2, 3], &[], 3, &[2, 3]);
        let first = |own, elsewhere: &[u64]| {
            let elsewhere = elsewhere.iter().map(|number| id(*number)).collect();
            next(&all, &whole, id(own), Place::First(&elsewhere))
        };
        assert_eq!(first(1, &[1, 2, 3]), None);
        assert_eq!(first(1, &[1, 2]), Some(Step::Change(Change::Remove(id(3)))));
        assert_eq!(first(3, &[1, 2, 3]), Some(Step::HandOver), "others may lead");
        let other = next(&all, &whole, id(1), Place::Other(&whole.members));
        assert_eq!(other, Some(Step::Change(Change::Remove(id(3)))));
    }
}
