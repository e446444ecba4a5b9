//! JSON and parameters of the API that several calls have in common.
//!
//! | module | |
//! |---|---|
//! | `query`, `query_de` | parameters behind the `?`, and typed requests from them |
//! | `content` | octets in a field: text, or base64 in the field's twin |
//! | `message` | the parts of a message: contents, tags, progress |
//! | `send_options`, `parents` | the optional fields of a message to send |
//! | `settings`, `setting_kinds` | settings of queues and namespaces |
//! | `item_results` | the results of a list of items |
//! | `document` | answers that stay the same as long as the server does |

pub(crate) mod content;
pub(crate) mod document;
pub(crate) mod item_results;
pub(crate) mod message;
mod parents;
pub(crate) mod query;
pub(crate) mod query_de;
pub(crate) mod send_options;
mod setting_kinds;
pub(crate) mod settings;
