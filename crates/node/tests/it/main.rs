//! The node through its handle: what fronts rely on.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod backlog;
mod bulk;
mod closing;
mod consumers;
mod delivery;
mod directory;
mod durability;
mod ending;
mod events;
mod halfway;
mod keys;
mod largest;
mod namespaces;
mod newer;
mod overload;
mod replicas;
mod replicated;
mod results;
mod rig;
mod schedules;
mod shard;
mod slices;
mod starts;
mod support;
mod waits;
