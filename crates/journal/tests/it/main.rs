//! The journal through its public door, on directories of the real file system.
#![allow(clippy::unwrap_used)]

mod faulty;
mod recovery;
mod rig;
mod space;
mod store;
