//! What callers are told.

use sluice_engine::Error;
use sluice_engine::outcome::Reply;

use crate::api::Duplicates;
use crate::shard::delivery::Given;

/// What came of a proposal.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The whole.
    pub result: Result<Reply, Error>,
    /// Item by item where the command has items; empty when every item went well.
    pub results: Vec<Result<(), Error>>,
    /// Send: what was sent before, by its unique key.
    pub duplicates: Option<Box<Duplicates>>,
}

impl Answer {
    /// One result for each of so many items, in order.
    ///
    /// # Errors
    /// Why the command as a whole was refused.
    pub(crate) fn into_item_results(self, items: usize) -> Result<Vec<Result<(), Error>>, Error> {
        self.result?;
        Ok(if self.results.is_empty() { vec![Ok(()); items] } else { self.results })
    }

    /// The command as a whole was refused.
    pub(crate) fn refused(error: Error) -> Answer {
        Answer { result: Err(error), results: Vec::new(), duplicates: None }
    }
}

/// What a long-lived caller finds in its mailbox, with the number that it gave.
#[derive(Debug)]
pub enum Completion {
    /// Of a proposal.
    Answer(u64, Answer),
    /// Of a pull.
    Given(u64, Result<Vec<Given>, Error>),
}

/// The error of a reply that does not belong to its command.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::Internal { reason: format!("the engine answered {reply:?}") }
}
