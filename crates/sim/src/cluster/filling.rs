//! Disks that are full at times, of one node, of a minority, or of all, or that hang.
//!
//! Whoever has no room refuses what adds data with `disk_full`, and nothing else goes wrong: calls are
//! answered in their time, acknowledged messages stay. Where a majority of the voters has room and
//! nothing else is wrong, sends go on, whoever led before. Where it has none, messages are settled out of
//! the reserves. While the disk of the leader hangs, another node leads.

use sluice_engine::Error;
use sluice_journal::Options;

use super::{ClusterWorld, Event, HEALING_US, SECOND_US};
use crate::model::Checked;
use crate::rng::Rng;

/// Size of a disk that is not full, in bytes.
const ROOMY: usize = usize::MAX;
/// Upper limit of the room that a disk has when it begins to be full, in bytes.
const LITTLE: u64 = 40 << 10;
/// Size of the reserve, in bytes.
const RESERVE: u64 = 256 << 10;
/// Longest time for which a disk hangs while other things go wrong, in microseconds.
const HANGING_US: u64 = 4 * SECOND_US;

/// Disks of a cluster that become full.
#[derive(Debug)]
pub(super) struct Filling {
    rng: Rng,
}

impl Filling {
    pub(super) fn new(seed: u64) -> Filling {
        Filling { rng: Rng::new(seed.rotate_left(32) ^ RESERVE) }
    }
}

/// Sets a reserve, and the margins that go with it.
pub(super) fn with_reserve(options: &mut Options) {
    options.reserve_bytes = RESERVE;
    options.low_water_bytes = RESERVE / 2;
    options.full_margin_bytes = RESERVE / 4;
}

impl ClusterWorld {
    /// Lets a disk become full or hang, or all have room again.
    pub(super) fn fill(&mut self) {
        let places = self.nodes.len();
        let leader = self.leader();
        let Some(filling) = &mut self.filling else { return };
        let delay = filling.rng.between(100_000, 4 * SECOND_US);
        let (what, any) = (filling.rng.below(10), filling.rng.index(places));
        self.at(delay, Event::Fill);
        if !self.faulty {
            return;
        }
        match what {
            0..2 => self.fill_disk(leader.unwrap_or(any)),
            2..4 => self.fill_disk(any),
            4 => (0..places).for_each(|node| self.fill_disk(node)),
            5 => self.free_disk(any),
            6 => self.hang_disk(leader.unwrap_or(any)),
            7 => self.hang_disk(any),
            _ => self.free_disks(),
        }
    }

    fn fill_disk(&mut self, node: usize) {
        let Some(filling) = &mut self.filling else { return };
        let owner = &mut self.nodes[node];
        let room = filling.rng.below(LITTLE) as usize;
        owner.disk.set_capacity(owner.disk.used() + room);
        owner.is_full = true;
        self.stats.filled += 1;
        self.trace(|| format!("  the disk of node {node} has room for {room} bytes"));
    }

    /// Lets the writes of a node wait for up to so long.
    fn hang_disk(&mut self, node: usize) {
        let Some(filling) = &mut self.filling else { return };
        self.nodes[node].hangs_until_us = self.now_us + filling.rng.below(HANGING_US);
        self.trace(|| format!("  the disk of node {node} hangs"));
    }

    pub(super) fn free_disk(&mut self, node: usize) {
        self.nodes[node].disk.set_capacity(ROOMY);
        self.nodes[node].is_full = false;
        self.nodes[node].hangs_until_us = 0;
    }

    pub(super) fn free_disks(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.free_disk(node));
    }

    /// Holds the cluster, in which all is well, to what it has to do on full disks and on one that hangs.
    pub(super) fn watch_bad_disks(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        let Some(filling) = &mut self.filling else { return Ok(()) };
        match filling.rng.below(4) {
            0 => self.watch_full_minority(step)?,
            1 => self.watch_full_majority(step)?,
            2 => self.watch_hanging_leader(step)?,
            _ => return Ok(()),
        }
        self.free_disks();
        self.watch_healing(step)
    }

    /// Fills as many disks as the cluster can do without, that of the leader among them.
    fn watch_full_minority(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        let mut voters = self.voters();
        if let Some(leader) = self.leader().and_then(|leader| voters.iter().position(|node| *node == leader))
        {
            voters.swap(0, leader);
        }
        voters.truncate(voters.len().saturating_sub(1) / 2);
        voters.into_iter().for_each(|node| self.fill_disk(node));
        // As long as there is room, a send tells nothing.
        let end_us = self.now_us + HEALING_US;
        let is_over = move |world: &mut ClusterWorld| world.now_us > end_us;
        self.run_until(step, 2 * HEALING_US, "time stands still", is_over)?;
        let before = self.judge.sends();
        let goes_on = move |world: &mut ClusterWorld| world.judge.sends() > before;
        self.run_until(step, HEALING_US, "no send is taken, and a majority has room", goes_on)
    }

    /// Fills all disks, at times but that of the leader. What is sent is refused, and what was sent is
    /// settled.
    fn watch_full_majority(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        let leader = self.leader();
        let is_spared = self.filling.as_mut().is_some_and(|filling| filling.rng.chance(1, 2));
        let full = self.voters().into_iter().filter(|node| !is_spared || Some(*node) != leader);
        full.for_each(|node| self.fill_disk(node));
        let before = (self.judge.stats.full, self.judge.acks);
        let is_so =
            move |world: &mut ClusterWorld| world.judge.stats.full > before.0 && world.judge.acks > before.1;
        self.run_until(step, HEALING_US, "full disks refuse no send, or let nothing be settled", is_so)
    }

    /// Lets the disk of the leader hang. Another node leads, and takes sends.
    fn watch_hanging_leader(&mut self, step: &std::cell::Cell<u64>) -> Checked {
        let Some(leader) = self.leader() else {
            return Err("a cluster that is whole has no leader".to_owned());
        };
        let term = self.nodes[leader].term_led();
        self.nodes[leader].hangs_until_us = self.now_us + 2 * HEALING_US;
        let is_replaced =
            move |world: &mut ClusterWorld| world.nodes.iter().any(|node| node.term_led() > term);
        self.run_until(step, HEALING_US, "nobody leads instead of a node whose disk hangs", is_replaced)?;
        let before = self.judge.sends();
        let goes_on = move |world: &mut ClusterWorld| world.judge.sends() > before;
        self.run_until(step, HEALING_US, "no send is taken, and one disk hangs", goes_on)
    }

    /// Places of the voters.
    fn voters(&self) -> Vec<usize> {
        let members = self.checker.members();
        members.voters().iter().filter_map(|voter| self.place(*voter)).collect()
    }
}

/// True for the refusal of a call for want of room.
pub(super) fn is_full<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::DiskFull { .. }))
}
