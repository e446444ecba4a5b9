//! What the fuzz targets share, and what makes their seeds.
//!
//! Map: [`disk`] a disk in memory, [`image`] a small data directory on it, with everything a data directory
//! can have, [`framing`] how an input is cut into records or changes.

pub mod disk;
pub mod framing;
pub mod image;
