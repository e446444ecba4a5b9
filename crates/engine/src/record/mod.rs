//! Records: commands as bytes in the log. Layouts that are more than fields in a row are in
//! [`crate::queue::record`].
//!
//! Every body begins with a kind and the version of that kind's layout. A layout that changes gets the next
//! version; only that one is read, and others are refused.
//!
//! Blobs of a record: a send has one per item (see [`crate::blob`]), then one for each step of their chains
//! that has a payload of its own, a settle for each item its error text and its result (laid out like a
//! message's), each if there is one, a report for each item its note and its checkpoint in the same way, a
//! change one for who and why and one for tags, a schedule what it sends, a document its
//! content, a transaction those of its operations, the others have none.

mod check;
pub(crate) mod decode;
mod encode;
pub(crate) mod known;
pub(crate) mod table;

pub use crate::record::known::{
    changed_namespace, changes_decisions, check_behaviour, check_known, consensus_entry, is_two_phase,
    sets_limits, settled,
};
