//! One transaction over several namespaces of a cluster whose driver stops between two records, each of them
//! in turn.

use std::cell::Cell;

use super::across::Across;
use super::{CLOSING_US, ClusterWorld, Disks, Event};
use crate::across::{Stop, Stopped};
use crate::disk::Crash;

impl ClusterWorld {
    /// Drives one request on the leader until so many of its records are answered, stops there, and lets the
    /// next leader finish it.
    ///
    /// # Errors
    /// An invariant that does not hold.
    pub fn stopped_after(seed: u64, records: u32, how: Stop) -> Result<Stopped, String> {
        let mut world = ClusterWorld::new(seed, None, Disks::Sound, false)?;
        world.judge.across.is_used();
        world.operator = None;
        world.is_closing = true;
        let step = Cell::new(0);
        (0..world.nodes.len()).try_for_each(|node| world.start(node))?;
        world.at(0, Event::Client);
        world.run_until(&step, CLOSING_US, "nobody leads", |world| world.leader().is_some())?;
        world.begin_across()?;
        let Some((node, parts)) = world.judge.across.first() else {
            return Err("nothing is driven".to_owned());
        };
        let is_there = |world: &mut ClusterWorld| world.judge.across.has_told(records);
        world.run_until(&step, CLOSING_US, "the driver does not go on", is_there)?;
        match how {
            Stop::Alone => world.judge.across.ends(node),
            Stop::Kill => world.crash_by(node, Crash::Kill),
            Stop::Power => world.crash_by(node, Crash::Power),
        }
        let is_over = |world: &mut ClusterWorld| {
            world.clients.open.is_empty() && world.is_whole() && world.is_across_settled()
        };
        world.run_until(&step, CLOSING_US, "it is not finished", is_over)?;
        let done = world.judge_across(&world.checker.replay())?;
        Ok(Stopped { parts, is_done: done == 1 })
    }
}

impl Across {
    /// Uses them whatever the seed says.
    fn is_used(&mut self) {
        self.draws();
    }

    /// Node and number of parts of the first request that is driven.
    fn first(&self) -> Option<(usize, usize)> {
        let (_, driver) = self.driven.first_key_value()?;
        Some((driver.node, driver.driving.parts()))
    }

    /// True when so many records of the one that is driven are answered, or nothing is driven any more.
    fn has_told(&self, records: u32) -> bool {
        self.driven.values().all(|driver| driver.driving.told_count() >= records)
    }
}
