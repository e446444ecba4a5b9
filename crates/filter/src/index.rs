//! Indexes over JSON documents: the terms by which a document is stored in the index of one pointer, and the
//! ranges of terms that a filter needs of it.
//!
//! A lookup finds candidates, each of which is then matched with the whole filter. So a term may stand for
//! more than one value, and a range may be wider than the filter; but each document that matches must have a
//! term within the ranges, or it is lost.
//!
//! - `term`: the terms of a document, and their layout, which is stored and thus fixed
//! - `hash`: the hash in them
//! - `ranges`: sets of terms, as ranges
//! - `needs`: the terms that the parts of a filter need
//! - `lookup`: the ranges of a whole filter, and their rank

mod hash;
mod lookup;
mod needs;
mod ranges;
mod term;

pub use lookup::{IndexRanges, IndexRank, RANGES_MAX};
pub use term::{IndexTerm, LIST_TERMS_MAX, terms_of};
