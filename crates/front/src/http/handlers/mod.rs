//! The calls that are neither typed nor hot: figures, backup, and results and documents as bodies.

pub(crate) mod admin;
pub(crate) mod documents;
pub(crate) mod prometheus;
pub(crate) mod results;
