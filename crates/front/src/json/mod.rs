//! JSON for the API: a strict pull reader that borrows from the body, and a writer that appends to a byte vector.
//!
//! Why not a general library: a request has to be refused with the field's path, the value found and what is right, unknown and
//! repeated fields included, and a batch of messages must cost no allocation per message.

pub(crate) mod de;
mod reader;
mod scan;
mod writer;

pub(crate) use reader::{Kind, Reader, Text};
pub(crate) use sluice_calls::fault::{Fault, Read, clip};
pub(crate) use writer::{Object, key, more_fields, object, push_list, push_number, push_text};

#[cfg(test)]
mod tests;
