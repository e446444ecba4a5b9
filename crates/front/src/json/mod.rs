//! JSON for the API: a strict pull reader that borrows from the body, and a writer that appends to a byte
//! vector.
//!
//! Why not a general library: a request has to be refused with the field's path, the value found and what is
//! right, unknown and repeated fields included, and a batch of messages must cost no allocation per message.

mod answer;
pub(crate) mod answers;
pub(crate) mod de;
pub(crate) mod error_details;
pub(crate) mod forward;
pub(crate) mod item_results;
pub(crate) mod message;
pub(crate) mod number;
mod reader;
mod scan;
mod source;
mod writer;

pub(crate) use answer::Json;
pub(crate) use reader::Reader;
pub(crate) use sluice_calls::fault::{Fault, Read, clip};
pub(crate) use writer::{Object, key, object, push_list, push_number, push_text};

#[cfg(test)]
mod tests;
