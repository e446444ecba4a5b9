//! The node through its handle: what fronts rely on.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod delivery;
mod durability;
mod namespaces;
mod newer;
mod support;
