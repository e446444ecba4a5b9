//! JSON of the hot answers: a pull reader that borrows from the answer.
//!
//! Why not serde, which reads all other answers: a worker's time went into decoding. This one checks the
//! octets once instead of each string by itself, finds the end of a string by blocks, and knows what it looks
//! for. Fields may come in any order; unknown ones are passed over, so that a newer server does no harm.

mod fault;
mod reader;
mod scan;

pub(crate) use fault::Read;
pub(crate) use reader::Reader;
pub(crate) use scan::plain_len;
