//! The end of a session whose namespace another node leads: what it has begun is answered, no frame is read
//! any more, and it ends with the leader's address.

use std::time::Duration;

use sluice_calls::CallError;
use sluice_engine::Error;
use tokio::time::{Instant, sleep};

use super::calls::{Done, SessionCalls};

/// Longest time for which the end waits for the leader to be known.
const LEADER_TIME: Duration = Duration::from_secs(2);
/// Pause between two looks.
const LEADER_PAUSE: Duration = Duration::from_millis(10);

/// True if an answer says that another node leads.
pub(super) fn names_leader(result: &Result<Done, CallError>) -> bool {
    match result {
        Err(error) | Ok(Done::Attached(_, Err(error))) => error.code() == "not_leader",
        Ok(Done::Detached(_, Err(error))) => matches!(error, Error::NotLeader { .. }),
        Ok(
            Done::Items(_) | Done::Sent(_) | Done::Attached(..) | Done::Detached(..) | Done::Answer { .. },
        ) => false,
    }
}

/// The error with which a session ends: the leader, as soon as it is known.
pub(super) async fn where_to(opened: Option<&SessionCalls>) -> CallError {
    let until = Instant::now() + LEADER_TIME;
    loop {
        if let Some(leader) = opened.and_then(SessionCalls::leader_elsewhere) {
            return Error::NotLeader { leader }.into();
        }
        if Instant::now() >= until {
            return Error::NoLeader {}.into();
        }
        sleep(LEADER_PAUSE).await;
    }
}
