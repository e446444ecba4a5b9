//! The tries of a unit of work: again on fresh reads while another is faster.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::error::ClientError;
use crate::message::Settle;
use crate::retry::{Safety, jittered, worth_repeating};
use crate::transactions::Committed;
use crate::work::staged::Prepared;
use crate::work::{Work, WorkError};

/// Times that a unit is done before it gives up: each time another was faster, for some 4 s in all.
const TRIES_MAX: u32 = 20;
/// Longest pause after the first try; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause after any try.
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// Pause before a commit without an answer is repeated, beyond the client's own patience.
const REPEAT_AFTER: Duration = Duration::from_millis(500);

/// The terms of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// Receipt of the message that the unit settles.
    pub(crate) receipt: Option<&'a str>,
    /// Time for which a commit is repeated that gets no answer, beyond the client's own patience.
    pub(crate) patience: Duration,
}

/// A unit that is done.
#[derive(Debug)]
pub(crate) struct Finished<T> {
    pub(crate) value: T,
    /// `None`: there was nothing to commit but the outcome.
    pub(crate) committed: Option<Committed>,
    /// Outcome of its message; without a receipt there is none.
    pub(crate) outcome: Option<Settle>,
}

/// The reason why a unit was not done.
#[derive(Debug)]
pub(crate) enum Unfinished {
    /// The work or the commit has failed: nothing was done.
    Failed(WorkError),
    /// The message cannot be settled any more: this try has done nothing. An earlier one may be committed,
    /// whose answer was lost.
    Lost(ClientError),
    /// The commit got no answer in time: it may have been done.
    Unanswered(ClientError),
}

impl From<Unfinished> for WorkError {
    fn from(unfinished: Unfinished) -> WorkError {
        match unfinished {
            Unfinished::Failed(error) => error,
            Unfinished::Lost(error) | Unfinished::Unanswered(error) => error.into(),
        }
    }
}

/// Does a unit of work and commits it, again on fresh reads after a conflict, while `may_go_on`.
///
/// All tries have one idempotency key, that of the message where there is one. So at most one of them is ever
/// committed, also if the request of a try that counts as refused is late on its way: it and those after it
/// are different requests under one key, and only what was committed is remembered.
pub(crate) async fn run<T, Fut>(
    client: &Client,
    terms: Terms<'_>,
    mut work: impl FnMut(Work) -> Fut,
    may_go_on: impl Fn() -> bool,
) -> Result<Finished<T>, Unfinished>
where
    Fut: Future<Output = Result<T, WorkError>>,
{
    let key = terms.receipt.map_or_else(|| client.idempotency_key(), str::to_owned);
    let mut tries = 0;
    loop {
        tries += 1;
        let unit = Work::new(client, terms.receipt);
        let done = work(unit.clone()).await;
        let prepared = unit.end();
        let refused = match done {
            Ok(value) if prepared.does_nothing_else() => {
                return Ok(Finished { value, committed: None, outcome: prepared.outcome });
            }
            Ok(value) => match commit(client, &prepared, &key, terms.patience).await {
                Ok(committed) => {
                    return Ok(Finished { value, committed: Some(committed), outcome: prepared.outcome });
                }
                Err(refused) => refused,
            },
            Err(error) if is_conflict(&*error) => Refused::Conflict(error),
            Err(error) => Refused::Finally(Unfinished::Failed(error)),
        };
        match refused {
            Refused::Conflict(_) if tries < TRIES_MAX && may_go_on() => {}
            Refused::Conflict(error) => return Err(Unfinished::Failed(error)),
            Refused::Finally(unfinished) => return Err(unfinished),
        }
        sleep(jittered(PAUSE_FIRST.saturating_mul(1 << (tries - 1)).min(PAUSE_MAX))).await;
    }
}

/// The reason why a try has done nothing.
enum Refused {
    /// Another was faster.
    Conflict(WorkError),
    Finally(Unfinished),
}

/// Commits what is staged. While no answer comes the same is asked again, under the same key: whoever did the
/// work anew would not know whether it was done.
async fn commit(
    client: &Client,
    prepared: &Prepared,
    key: &str,
    patience: Duration,
) -> Result<Committed, Refused> {
    let give_up = Instant::now() + patience;
    loop {
        let error = match client.commit(&prepared.transaction, Some(key)).await {
            Ok(committed) => return Ok(committed),
            Err(error) => error,
        };
        if !worth_repeating(&error, Safety::Repeatable) {
            return Err(prepared.judge(error));
        }
        if Instant::now() >= give_up {
            return Err(Refused::Finally(Unfinished::Unanswered(error)));
        }
        sleep(REPEAT_AFTER).await;
    }
}

impl Prepared {
    /// The meaning of a refusal.
    fn judge(&self, error: ClientError) -> Refused {
        let details = if let ClientError::Server { details, .. } = &error { Some(details) } else { None };
        let operation = details.and_then(|details| details["operation"].as_u64());
        let operation = operation.and_then(|operation| usize::try_from(operation).ok());
        let is_of_own = self.outcome.is_some() && operation == Some(0);
        let was_read = operation.is_some_and(|operation| self.of_read.contains(&operation));
        match error.code() {
            Some("lease_lost" | "already_settled" | "cancelled") if is_of_own => {
                Refused::Finally(Unfinished::Lost(error))
            }
            // Nobody else has the receipt: an earlier try was committed after all.
            Some("idempotency_mismatch") if self.outcome.is_some() => {
                Refused::Finally(Unfinished::Lost(error))
            }
            // The document is another one by now, or gone.
            Some("document_not_found" | "patch_failed") if was_read => Refused::Conflict(error.into()),
            _ if is_conflict(&error) => Refused::Conflict(error.into()),
            _ => Refused::Finally(Unfinished::Failed(error.into())),
        }
    }
}

/// True if an error, or a source of it, says that another was faster.
fn is_conflict(error: &(dyn Error + 'static)) -> bool {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<ClientError>() {
            return matches!(error.code(), Some("version_mismatch" | "lock_held"));
        }
        source = error.source();
    }
    false
}
