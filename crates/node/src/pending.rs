//! Calls in flight: proposed, and not yet answered.

use sluice_engine::Error;
use sluice_engine::outcome::Reply;
use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::api::{Delivered, Sent};
use crate::receiving::PullGuard;
use crate::shard::request::Answer;
use crate::shard::request::unexpected;

/// A send in flight.
#[derive(Debug)]
pub struct Sending(pub(crate) oneshot::Receiver<Answer>);

impl Sending {
    /// Waits for the result. Dropping this does not undo the send.
    ///
    /// # Errors
    /// What the engine says of quotas, limits and idempotency.
    pub async fn done(self) -> Result<Sent, Error> {
        let Answer { result, duplicates, .. } = self.0.await.map_err(|_| Error::OutcomeUnknown {})?;
        match result? {
            Reply::Sent { first, count, duplicate } => Ok(Sent { first, count, duplicate, duplicates }),
            other => Err(unexpected(&other)),
        }
    }
}

/// A receive in flight. Dropping it gives back what was on its way.
pub struct Receiving(pub(crate) PullGuard);

impl Receiving {
    /// Waits for the messages; none when the wait has ended without one.
    ///
    /// # Errors
    /// `queue_not_found` where queues are not created by use; `overloaded`.
    pub async fn done(self) -> Result<Vec<Delivered>, Error> {
        self.0.wait().await
    }
}

/// Items in flight with a result each, as records that are short to apply.
#[derive(Debug)]
pub struct Settling(pub(crate) SmallVec<[Slice; 1]>);

/// Items of one record.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) items: usize,
    pub(crate) proposed: Result<oneshot::Receiver<Answer>, Error>,
}

impl Settling {
    /// Waits for one result per item, in order. The error of a record is the result of each of its items.
    /// Dropping this does not undo anything.
    ///
    /// # Errors
    /// The error of the whole, when every record failed.
    pub async fn done(self) -> Result<Vec<Result<(), Error>>, Error> {
        let (mut results, mut failures) = (Vec::new(), 0);
        for Slice { items, proposed } in self.0 {
            let answer = match proposed {
                Ok(receiver) => receiver.await.map_err(|_| Error::OutcomeUnknown {}),
                Err(error) => Err(error),
            };
            match answer.and_then(|answer| answer.into_item_results(items)) {
                Ok(of_slice) if results.is_empty() => results = of_slice,
                Ok(of_slice) => results.extend(of_slice),
                Err(error) => {
                    failures += items;
                    results.extend(std::iter::repeat_n(Err(error), items));
                }
            }
        }
        match results.first() {
            Some(Err(error)) if failures == results.len() => Err(error.clone()),
            _ => Ok(results),
        }
    }
}
