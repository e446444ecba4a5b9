//! Frames from their bytes, and nodes over real connections.
#![allow(clippy::unwrap_used)] // A test that fails says where.

mod connections;
mod frames;
mod refused;
mod support;
