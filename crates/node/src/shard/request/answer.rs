//! Answers to callers.

use sluice_engine::Error;
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;

use crate::api::Duplicates;
use crate::shard::delivery::Given;

/// Answer to a proposal.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Result of the command as a whole.
    pub result: Result<Reply, Error>,
    /// Result of each item; empty when all went well, or the command has no items.
    pub results: Vec<Result<(), Error>>,
    /// For a send: items that are duplicates by their unique key.
    pub duplicates: Option<Box<Duplicates>>,
    /// For a transaction: what came of its operations.
    pub operations: Option<Box<Operations>>,
}

/// Outcomes of the operations of a transaction.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// One for each, in order; none when the transaction was refused.
    pub done: Vec<OperationDone>,
    /// The place of the one that is to blame when it was, if it is one of them.
    pub refused_at: Option<u32>,
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

    /// The answer to a command that was refused as a whole.
    pub(crate) fn refused(error: Error) -> Answer {
        Answer { result: Err(error), results: Vec::new(), duplicates: None, operations: None }
    }
}

/// Answer to a caller with a mailbox, with the number that it gave to the request.
#[derive(Debug)]
pub enum Completion {
    /// To a proposal.
    Answer(u64, Answer),
    /// To a pull.
    Given(u64, Result<Vec<Given>, Error>),
}

/// Answer to a change that is done, as read behind it: what is refused by then may not say that nothing was.
pub(crate) fn of_done<T>(seen: Result<T, Error>) -> Result<T, Error> {
    seen.map_err(|error| match error {
        Error::NotLeader { .. } | Error::NoLeader {} | Error::Overloaded { .. } | Error::ShuttingDown {} => {
            Error::OutcomeUnknown {}
        }
        other => other,
    })
}

/// The error of a reply that does not belong to its command.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    Error::Internal { reason: format!("the engine answered {reply:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_done_is_not_told_to_be_refused() {
        for refused in [Error::NotLeader { leader: 2 }, Error::NoLeader {}, Error::ShuttingDown {}] {
            assert_eq!(of_done::<()>(Err(refused)), Err(Error::OutcomeUnknown {}));
        }
        let gone = Error::QueueNotFound { queue: "a".to_owned() };
        assert_eq!(of_done::<()>(Err(gone.clone())), Err(gone));
        assert_eq!(of_done(Ok(1)), Ok(1));
    }
}
