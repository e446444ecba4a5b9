//! Work on states that may block, and the engine that comes of a state.

use sluice_engine::Engine;
use sluice_replica::Work;

use super::inbox::Inbox;
use crate::shard::recover::{live_blobs, restore};

/// Does work of a member, and puts what came of it into the inbox of its shard. Blocks.
pub fn run(work: Work, inbox: &Inbox) {
    let mut worked = work.run();
    let engine = worked.restore(
        |snapshot| {
            let restored = restore(snapshot);
            restored
                .inspect_err(|error| tracing::error!(%error, "the state of another node is of no use"))
                .ok()
        },
        |engine, needs| live_blobs(engine).for_each(|(key, len)| needs(key, len)),
    );
    inbox.worked(worked, engine.map(Box::<Engine>::new));
}
