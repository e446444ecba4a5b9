//! The journal through its public door, on directories of the real file system.
#![allow(clippy::unwrap_used)]

mod ahead;
mod background;
mod crypt;
mod faulty;
mod handles;
mod recovery;
mod rig;
mod space;
mod store;
