//! One seed from beginning to end.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cluster::{ClusterWorld, Disks};
use crate::owner::OwnerWorld;
use crate::plant::Plant;
use crate::world::{Stats, World};

/// Default number of steps of a run.
pub const STEPS: u64 = 1_500;

/// Kind of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A server with its clients.
    #[default]
    Server,
    /// A journal alone, under an owner who tells what is committed.
    Owner,
    /// Three or five nodes with one shard.
    Cluster,
    /// A cluster that acknowledges what is not synced yet, and whose machines forget some of it.
    Forgetful,
    /// A cluster whose disks are full or hang at times.
    BadDisks,
}

impl Kind {
    /// Option of the command line that chooses it, behind a space; empty: none is needed.
    fn option(self) -> &'static str {
        match self {
            Kind::Server => "",
            Kind::Owner => " --owner",
            Kind::Cluster => " --cluster",
            Kind::Forgetful => " --forgetful",
            Kind::BadDisks => " --bad-disks",
        }
    }
}

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The kind of its world.
    pub kind: Kind,
    /// The seed, which decides everything.
    pub seed: u64,
    /// Number of steps before the end; a cluster takes as many as it needs.
    pub steps: u64,
    /// The planted bug, if any.
    pub plant: Option<Plant>,
    /// True to print each step.
    pub verbose: bool,
}

/// A broken rule.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run.
    pub run: Run,
    /// Number of the step after which it was found.
    pub step: u64,
    /// Description of what is wrong.
    pub what: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {} failed at step {}: {}", self.run.seed, self.step, self.what)?;
        write!(f, "replay: cargo run -p sluice-sim --release -- --seed {} --verbose", self.run.seed)?;
        f.write_str(self.run.kind.option())?;
        if self.run.steps != STEPS {
            write!(f, " --steps {}", self.run.steps)?;
        }
        if let Some(plant) = self.run.plant {
            write!(f, " --plant {plant}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// Runs a seed.
///
/// # Errors
/// The first rule that was broken; a panic breaks one too.
pub fn run(run: Run) -> Result<Stats, Failure> {
    let step = Cell::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| go_through(run, &step)));
    let outcome = outcome.unwrap_or_else(|panic| Err(format!("a panic: {}", told(panic.as_ref()))));
    outcome.map_err(|what| Failure { run, step: step.get(), what })
}

fn go_through(run: Run, step: &Cell<u64>) -> Result<Stats, String> {
    match run.kind {
        Kind::Server => {
            let mut world = World::new(run.seed, run.plant, run.verbose)?;
            go_on(run, step, &mut world, World::step)?;
            world.finish()?;
            Ok(world.stats())
        }
        Kind::Owner => {
            let mut world = OwnerWorld::new(run.seed, run.plant, run.verbose)?;
            go_on(run, step, &mut world, OwnerWorld::step)?;
            world.finish()?;
            Ok(world.stats())
        }
        Kind::Cluster => go_through_cluster(run, Disks::Sound, step),
        Kind::Forgetful => go_through_cluster(run, Disks::Forgetful, step),
        Kind::BadDisks => go_through_cluster(run, Disks::Bad, step),
    }
}

fn go_through_cluster(run: Run, disks: Disks, step: &Cell<u64>) -> Result<Stats, String> {
    let mut world = ClusterWorld::new(run.seed, run.plant, disks, run.verbose)?;
    world.run(step)?;
    Ok(world.stats())
}

fn go_on<W>(
    run: Run,
    step: &Cell<u64>,
    world: &mut W,
    take: impl Fn(&mut W) -> Result<(), String>,
) -> Result<(), String> {
    for number in 1..=run.steps {
        step.set(number);
        take(world)?;
    }
    Ok(())
}

fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}
