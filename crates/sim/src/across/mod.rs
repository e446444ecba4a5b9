//! Transactions over several namespaces as worlds drive them, one record after the other, and what has to be
//! true of them whatever happens in between.
//!
//! Each request moves money between the accounts of its namespaces, and leaves its number on each of them. An
//! account is a document: its content is its balance and the numbers of all requests that have changed it. So
//! everything shows in the end: which requests are done where, and that no money has come or gone.
//!
//! [`requests`] requests and what was answered, [`driving`] one request being driven, [`tending`] the leader
//! of a shard that looks for those that nobody drives.

pub(crate) mod driving;
pub(crate) mod requests;
pub(crate) mod tending;

/// The end of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The driver stops, and its process goes on.
    Alone,
    /// The process is killed.
    Kill,
    /// The machine loses power.
    Power,
}

/// Outcome of a transaction whose driver has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// Number of its namespaces: it is prepared in all but one, then decided.
    pub parts: usize,
    /// True: it is done in all of them, false: in none.
    pub is_done: bool,
}
