//! The end of a commit, also of one whose caller is gone before there is an outcome: then a task of its own
//! waits for that, so that the transaction does not stay open until its time is over. A repeat that comes
//! before gets the outcome.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::MutexGuard;

use super::give_back;
use crate::codes::find;
use crate::error::CallError;
use crate::open_transactions::{InFlight, Open, OpenTransactions, Staged};

/// A commit in flight in the hands of a call. When that is given up without an outcome, a task waits for it.
pub(super) struct InHand<'o> {
    /// `None`: it is not proposed yet, or has an outcome.
    pub(super) in_flight: MutexGuard<'o, Option<InFlight>>,
    open: &'o Arc<Open>,
    all: &'o OpenTransactions,
}

impl<'o> InHand<'o> {
    /// Takes the commit of a transaction in hand.
    pub(super) fn new(
        in_flight: MutexGuard<'o, Option<InFlight>>,
        open: &'o Arc<Open>,
        all: &'o OpenTransactions,
    ) -> InHand<'o> {
        InHand { in_flight, open, all }
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        if let Some(in_flight) = &mut *self.in_flight
            && let Ok(runtime) = Handle::try_current()
            && in_flight.attend()
        {
            runtime.spawn(attend(Arc::clone(self.open), self.all.clone()));
        }
    }
}

/// Waits for the outcome of a commit whose caller is gone, and ends the transaction by it, unless a repeat
/// has.
async fn attend(open: Arc<Open>, all: OpenTransactions) {
    let landed = async {
        if let Some(in_flight) = &mut *open.in_flight.lock().await {
            in_flight.land().await;
        }
    };
    tokio::select! {
        biased;
        () = landed => {}
        // A repeat has got the outcome, or it took too long.
        () = open.has_ended() => return,
    }
    let Ok(held) = open.lock(&all).await else { return };
    // One that is in flight still is another one, which a repeat has begun.
    let landed = open.in_flight.lock().await.take_if(|in_flight| in_flight.has_landed());
    let Some(mut landed) = landed else { return };
    let error = landed.done().await.err().map(|refused| CallError::from(refused.error));
    conclude(&all, &open, &held.staged, error.as_ref()).await;
}

/// Ends a transaction by the outcome of its commit: `None`, or the refusal. After some refusals it goes on.
/// Returns when messages that go back are back.
pub(super) async fn conclude(
    all: &OpenTransactions,
    open: &Open,
    staged: &Staged,
    error: Option<&CallError>,
) {
    match error {
        Some(error) if may_go_better(error) && all.go_on(open) => {}
        None => {
            staged.enlisted().iter().for_each(|enlisted| enlisted.set_settled());
            all.end(&open.id);
        }
        Some(_) => {
            all.end(&open.id);
            give_back(staged).await;
        }
    }
}

/// True for a refusal after which the same commit may be done: nothing in it is to blame. Where the outcome
/// is unknown, the leadership has ended, and the transaction with it.
fn may_go_better(error: &CallError) -> bool {
    error.code() != "outcome_unknown"
        && find(error.code()).is_some_and(|code| matches!(code.http, 429 | 500..))
}
