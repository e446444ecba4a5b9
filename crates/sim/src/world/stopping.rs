//! One transaction over the shards of a server whose driver stops between two records, each of them in turn.

use super::World;
use super::across::Across;
use super::config::Config;
use crate::across::{Stop, Stopped};
use crate::disk::Crash;
use crate::rng::Rng;

impl World {
    /// Drives one request over two shards until so many of its records are answered, stops there, and lets
    /// the leaders finish it.
    ///
    /// # Errors
    /// An invariant that does not hold.
    pub fn stopped_after(seed: u64, records: u32, how: Stop) -> Result<Stopped, String> {
        let mut rng = Rng::new(seed);
        let config = Config::calm(2, &mut rng);
        let across = Across::new(rng.fork());
        let mut world = World::with(config, rng, Some(across), None, false)?;
        while world.missing_namespace().is_some() {
            world.across()?;
            world.settle_all()?;
        }
        world.begin_across()?;
        let driven = world.across.as_ref().and_then(|across| across.driven.first_key_value());
        let Some((number, parts)) = driven.map(|(number, driving)| (*number, driving.parts())) else {
            return Err("nothing is driven".to_owned());
        };
        while world.driving(number).is_some_and(|driving| driving.told_count() < records) {
            world.drive(number)?;
            world.settle_all()?;
        }
        match how {
            Stop::Alone => world.across.iter_mut().for_each(Across::stop),
            Stop::Kill => world.crash(Crash::Kill)?,
            Stop::Power => world.crash(Crash::Power)?,
        }
        let done = world.end_across()?;
        Ok(Stopped { parts, is_done: done == 1 })
    }
}
