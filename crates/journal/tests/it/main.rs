//! The journal through its public door, on directories of the real file system.
#![allow(clippy::unwrap_used)]

mod ahead;
mod background;
mod bad_input;
mod crypt;
mod faulty;
mod handles;
mod install;
mod numbers;
mod read_back;
mod recovery;
mod repair;
mod rest;
mod rig;
mod space;
mod store;
mod told;

/// Counts for the tests that ask it to.
#[global_allocator]
static ALLOCATOR: sluice_alloc_count::Counting = sluice_alloc_count::Counting;
