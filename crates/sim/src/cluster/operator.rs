//! Operation of the cluster while everything else goes wrong: machines are added, nodes are removed, machines
//! come into the places of others, some of which are gone for good, and nodes that were removed start again.

use sluice_node::steering::{Part, Wanted, check_removal, former};
use sluice_replica::NodeId;

use super::listing::Listing;
use super::node::Away;
use super::{ClusterWorld, Event, SECOND_US};
use crate::disk::Crash;
use crate::model::Checked;
use crate::rng::Rng;

/// Largest number of nodes.
const NODES_MAX: usize = 5;
/// Largest number of machines that a run uses.
const MACHINES_MAX: usize = 16;

/// The operator.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) rng: Rng,
    pub(super) listing: Listing,
    /// Smallest number of nodes: a majority of them has right clocks.
    fewest: usize,
    /// True: machines are gone for good, at times. No disk damages payloads then, of which it may have the
    /// only copy.
    loses_machines: bool,
}

impl Operator {
    /// The operator of a cluster that begins with so many nodes, in half of all runs.
    pub(super) fn new(nodes: usize, seed: u64) -> Option<Operator> {
        let mut rng = Rng::new(!seed);
        // With fewer than four nodes no clock is behind.
        let fewest = if nodes > 3 { 4 } else { 3 };
        let (is_there, loses_machines) = (rng.chance(1, 2), rng.chance(1, 2));
        is_there.then(|| Operator { rng, listing: Listing::new(nodes), fewest, loses_machines })
    }
}

impl ClusterWorld {
    /// Lets the operator do one thing.
    pub(super) fn change_cluster(&mut self) -> Checked {
        let Some(operator) = &mut self.operator else { return Ok(()) };
        let (delay, what) = (operator.rng.between(100_000, 3 * SECOND_US), operator.rng.below(10));
        self.at(delay, Event::Operate);
        let Some(leader) = self.newest_leader().filter(|_| self.faulty) else { return Ok(()) };
        match what {
            0..3 => self.join(None),
            3..6 => self.ask_to_remove(leader),
            6..9 => self.replace(),
            _ => self.bring_back(),
        }
    }

    /// True: a machine may be gone for good in this run.
    pub(super) fn loses_machines(&self) -> bool {
        self.operator.as_ref().is_some_and(|operator| operator.loses_machines)
    }

    /// The leader of the highest term.
    fn newest_leader(&self) -> Option<usize> {
        let leading = (0..self.nodes.len()).filter(|node| self.nodes[*node].leads());
        leading.max_by_key(|node| self.nodes[*node].term_led())
    }

    /// Lets a machine join that has nothing.
    fn join(&mut self, replaces: Option<u64>) -> Checked {
        let (since, place) = (self.checker.last() + 1, self.nodes.len());
        let Some(operator) = &mut self.operator else { return Ok(()) };
        let mut parts = operator.listing.newest().to_vec();
        let goes = |part: &Part| former(&parts, replaces).any(|former| former.number == part.number);
        let stays = parts.iter().filter(|part| part.wanted == Wanted::Voter && !goes(part)).count();
        if stays >= NODES_MAX || place >= MACHINES_MAX {
            return Ok(());
        }
        let highest = parts.iter().map(|part| part.number).max().unwrap_or_default();
        let id = NodeId::new(highest + 1).ok_or("numbers begin with 1")?;
        parts.push(Part { number: id.get(), replaces, wanted: Wanted::Voter });
        operator.listing.enter(since, parts);
        let joining = self.nodes[0].spare(id, self.plant, &mut operator.rng);
        let longest = if operator.rng.chance(1, 4) { 5 * SECOND_US } else { 300_000 };
        let delay = operator.rng.below(longest);
        self.nodes.push(joining);
        self.network.nodes += 1;
        self.trace(|| format!("  node {place} joins with the number {}, for {replaces:?}", id.get()));
        self.at(delay, Event::Start { node: place, life: 0 });
        Ok(())
    }

    /// Asks for a node to be removed, the leader at times.
    fn ask_to_remove(&mut self, leader: usize) -> Checked {
        let own = self.nodes[leader].id().get();
        let Some(operator) = &mut self.operator else { return Ok(()) };
        let staying = operator.listing.staying();
        let is_in_place = |part: &&Part| {
            former(operator.listing.newest(), part.replaces).all(|former| former.wanted == Wanted::Removed)
        };
        let may_go: Vec<u64> = staying.iter().filter(is_in_place).map(|part| part.number).collect();
        if staying.len() <= operator.fewest || may_go.is_empty() {
            return Ok(());
        }
        let is_leader = may_go.contains(&own) && operator.rng.chance(1, 2);
        let number = if is_leader { own } else { *operator.rng.pick(&may_go) };
        if !self.remove(leader, number) {
            self.stats.refused += 1;
        }
        Ok(())
    }

    /// Marks a node that is to be removed, unless too few would be left, or it has what others have damaged.
    /// False: it is not marked.
    pub(super) fn remove(&mut self, leader: usize, number: u64) -> bool {
        let Some(operator) = &self.operator else { return false };
        let connected = self.connected(leader);
        let is_majority = check_removal(operator.listing.newest(), number, &connected).is_ok();
        let place = self.nodes.iter().position(|node| node.id().get() == number);
        let may_go = is_majority && place.is_none_or(|place| self.has_copies_besides(place));
        if may_go {
            self.set_wanted(number, Wanted::Leaving);
        }
        may_go
    }

    /// Numbers of the nodes that a node hears, and its own.
    fn connected(&self, node: usize) -> Vec<u64> {
        let is_heard = |other: &usize| {
            let link = self.nodes[node].links.get(other);
            *other == node || link.is_some_and(|link| link.is_connected())
        };
        (0..self.nodes.len()).filter(is_heard).map(|other| self.nodes[other].id().get()).collect()
    }

    /// Lets a machine come in the place of a node, which may be gone for good.
    fn replace(&mut self) -> Checked {
        let Some(operator) = &mut self.operator else { return Ok(()) };
        let staying = operator.listing.staying();
        let number = operator.rng.pick(&staying).number;
        let is_lost = operator.loses_machines && operator.rng.chance(1, 2);
        let before = self.nodes.len();
        self.join(Some(number))?;
        let place = self.nodes.iter().position(|node| node.id().get() == number);
        if let Some(place) =
            place.filter(|place| is_lost && before < self.nodes.len() && self.can_lose(*place))
        {
            self.trace(|| format!("  node {place} is gone for good"));
            self.crash_by(place, Crash::Power);
            self.nodes[place].away = Some(Away::Lost);
        }
        Ok(())
    }

    /// True: the members are as they are wanted, and this is the only one that is lost.
    fn can_lose(&self, node: usize) -> bool {
        let id = self.nodes[node].id();
        let members = self.checker.members();
        let is_lost =
            |id: &NodeId| self.place(*id).is_none_or(|place| self.nodes[place].away == Some(Away::Lost));
        members.voters().contains(&id)
            && members.voters().len() >= 3
            && members.learners().is_empty()
            && !members.iter().any(|id| is_lost(&id))
            && self.operator.as_ref().is_some_and(|operator| {
                operator.listing.newest().iter().all(|part| part.wanted != Wanted::Leaving)
            })
    }

    /// Starts a node that was removed.
    fn bring_back(&mut self) -> Checked {
        let Some(operator) = &mut self.operator else { return Ok(()) };
        let is_removed = |node: &usize| self.nodes[*node].away == Some(Away::Removed);
        let removed: Vec<usize> = (0..self.nodes.len()).filter(is_removed).collect();
        if removed.is_empty() {
            return Ok(());
        }
        let node = *operator.rng.pick(&removed);
        let life = self.nodes[node].life;
        self.nodes[node].away = None;
        self.stats.returned += 1;
        self.at(0, Event::Start { node, life });
        Ok(())
    }
}
