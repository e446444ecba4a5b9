//! What the API reads of a request besides its JSON, and documents that stay the same as long as the server
//! does.

pub(crate) mod document;
pub(crate) mod idempotency;
pub(crate) mod query;
pub(crate) mod query_de;
