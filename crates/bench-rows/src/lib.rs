//! Operations of the engine that benchmarks measure one by one: what they take in time, allocations and
//! instructions.
//!
//! What lives here: the path that is measured, its rows, and their figures. What does not: tables and flags,
//! which are those of `sluice bench engine`, and anything with a server or a disk. So it builds in a moment,
//! also with optimisation: `examples/counts.rs` is what `scripts/bench-counts` runs.
//!
//! Map: `rig` the path, `rows` what is done, `measure` time and allocations of a row, `counts` instructions,
//! `stats` medians and percentiles.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod counts;
pub mod measure;
pub mod rig;
pub mod rows;
pub mod stats;
