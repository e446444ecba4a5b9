//! The calls that are neither typed nor hot: figures, backup, and results, documents and attachments as
//! bodies.

pub(crate) mod admin;
pub(crate) mod attachments;
pub(crate) mod documents;
mod range;
pub(crate) mod results;
