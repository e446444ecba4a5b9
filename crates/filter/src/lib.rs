//! Filters over JSON: the conditions under which a JSON value is found, and the order in which values are
//! sorted. Pure: who filters reads the values, and says what time it is.
//!
//! - [`filter`]: a filter, and whether a value matches it
//! - [`parse`]: reading a filter from its JSON, within its limits
//! - [`pointer`]: places within a value (RFC 6901)
//! - [`compare`]: equality and order of numbers, texts and values
//! - [`instant`]: times, and those relative to now
//! - [`sort`]: the values by which something is sorted
//! - [`index`]: terms by which documents are indexed, and those that a filter needs
//! - [`tree`]: JSON whose objects tell a name that is given twice
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod compare;
mod filter;
mod index;
mod instant;
mod parse;
mod pointer;
mod sort;
mod tree;

pub use filter::Filter;
pub use index::{IndexRanges, IndexRank, IndexTerm, LIST_TERMS_MAX, RANGES_MAX, terms_of};
pub use parse::{DEPTH_MAX, FilterError, IN_MAX, TERMS_MAX};
pub use pointer::Pointer;
pub use sort::{SORT_TEXT_BYTES, SortValue};
