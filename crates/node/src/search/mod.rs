//! Searching the messages of a queue by a filter, as searches and bulks do.
//!
//! A message is looked at as one JSON object, whose names are those that callers see. The shard tells
//! pages of its index between two batches; a message that its index cannot decide is read off the shard's
//! thread, and then matched. A message of which bytes that decide are damaged does not match.
//!
//! - `fields`: the names, and where the value of each lies
//! - `filter`: a filter over messages
//! - `terms`: what a filter needs of all that matches, by which the index of a queue finds messages
//! - `page`: a part of a queue, with the locations of the bytes that the filter needs
//! - `matching`: reading those bytes, and matching
//! - `work`: a call of a search, which `search_calls` drives

mod fields;
mod filter;
mod matching;
mod page;
mod terms;
mod work;

pub use filter::MessageFilter;
pub use page::{Hit, Page, PageSeen};
pub use work::{Found, Search};

pub(crate) use matching::in_turn;
pub(crate) use page::{Portion, SeenMessage, find};
pub(crate) use work::Work;
