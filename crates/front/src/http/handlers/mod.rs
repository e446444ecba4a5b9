//! The calls that are neither typed nor hot: figures, backup, and results as bodies.

pub(crate) mod admin;
pub(crate) mod prometheus;
pub(crate) mod results;
