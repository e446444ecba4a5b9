//! Parts of requests other than JSON, and documents that stay the same as long as the server runs.

pub(crate) mod document;
pub(crate) mod idempotency;
pub(crate) mod query;
pub(crate) mod query_de;
