//! A command's work as a transaction: what the command stages is committed together with the ack of its
//! message, or nothing of it is.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use sluice_client::{Client, ClientError, Job, Settle, SettleItem, Transaction};
use tokio::time::sleep;

use super::child::{CommandSetup, attempt};

/// Longest time for which the transaction of a command is open.
const TTL_MAX: Duration = Duration::from_secs(1_800);
/// Time for the commit, beyond that which the command may take.
const TIME_TO_COMMIT: Duration = Duration::from_secs(60);
/// Times that a command runs for one delivery, while others change what it has read.
const TRIES: u32 = 20;
/// Times that a command runs for one delivery whose transaction was over before its end: the leader has
/// changed. More often than that, the command has ended it itself.
const TRIES_LOST: u32 = 3;
/// Pause before the server is asked again that has not answered.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest pause before a command runs once more; each is drawn anew.
const PAUSE_MS_MAX: u64 = 200;
/// Pause before a message is delivered again for which no transaction could be begun.
const BEGIN_AGAIN: Duration = Duration::from_secs(5);
/// Codes of refusals that no later try cures.
const INCURABLE: [&str; 3] = ["unauthenticated", "forbidden", "namespace_not_found"];

/// Runs the command in a transaction, and again when others were faster. `None`: nothing that it staged was
/// done, since it has settled the message itself, beside the transaction.
pub(super) async fn run(client: &Client, setup: &CommandSetup, job: &Job) -> Option<Settle> {
    // After a crash of this worker what was staged is held no longer than the command could have run.
    let ttl = setup.timeout.map_or(TTL_MAX, |limit| TTL_MAX.min(limit.saturating_add(TIME_TO_COMMIT)));
    let (mut tried, mut lost) = (0, 0);
    loop {
        let begun = Instant::now();
        let transaction = match client.transaction_begin(ttl).await {
            Ok(begun) => begun.transaction,
            Err(error) => return Some(not_begun(setup, &error)),
        };
        let settle = attempt(setup, job, Some(&transaction)).await;
        if !matches!(settle, Settle::Ack | Settle::AckWith(_)) {
            // One that cannot be rolled back ends with its time.
            let _ = client.transaction_rollback(&transaction).await;
            return Some(settle);
        }
        let may_wait = || begun.elapsed() < ttl && !setup.stop.is_stopped();
        let error = match commit(client, &transaction, job, &settle, may_wait).await {
            // The ack of a message that is settled with this receipt changes nothing.
            Ok(()) => return Some(Settle::Ack),
            Err(NotDone::Unanswered(error)) => {
                setup.report.not_answered(&job.message, &error);
                // Of a message that is settled it changes nothing.
                return Some(Settle::Release { delay: None });
            }
            Err(NotDone::Refused(error)) => error,
        };
        // It is over already, unless the ack could not be staged.
        while let Err(error) = client.transaction_rollback(&transaction).await
            && is_unanswered(&error)
            && may_wait()
        {
            sleep(AGAIN).await;
        }
        if is_settled(&error, job) {
            return None;
        }
        tried += 1;
        lost += u32::from(is_lost(&error));
        let is_too_late = is_lost(&error) && begun.elapsed() >= ttl;
        if !is_conflict(&error) || is_too_late || tried == TRIES || lost == TRIES_LOST {
            return Some(not_committed(&error));
        }
        if job.lost.is_stopped() || setup.stop.is_stopped() {
            return Some(Settle::Release { delay: None });
        }
        sleep(pause()).await;
    }
}

/// The reason why a commit is not known to be done.
enum NotDone {
    /// Nothing was done.
    Refused(ClientError),
    /// Nobody has said whether it was.
    Unanswered(ClientError),
}

/// Commits what the command has staged, with the ack. A commit that nobody answers is asked for again while
/// that `may_wait`: it is done once.
async fn commit(
    client: &Client,
    transaction: &str,
    job: &Job,
    settle: &Settle,
    may_wait: impl Fn() -> bool,
) -> Result<(), NotDone> {
    let ack = Transaction::new().settle(SettleItem::of(job.message.receipt.as_str(), settle.clone()));
    client.transaction_stage(transaction, &ack).await.map_err(NotDone::Refused)?;
    loop {
        match client.transaction_commit(transaction).await {
            Ok(_) => return Ok(()),
            Err(error) if !is_unanswered(&error) => return Err(NotDone::Refused(error)),
            Err(error) if !may_wait() => return Err(NotDone::Unanswered(error)),
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// True when nothing was done, and another try may go better: others have changed what the command has read,
/// the transaction has ended with the leader, or the server was away before the commit.
fn is_conflict(error: &ClientError) -> bool {
    let is_of_others = matches!(error.code(), Some("version_mismatch" | "lock_held"));
    is_lost(error) || is_of_others || is_unanswered(error)
}

/// True when the server could not be reached, or was not able to answer at present.
fn is_unanswered(error: &ClientError) -> bool {
    match error {
        ClientError::Transport { .. } => true,
        ClientError::Server { status, code, .. } => *status == 503 || code == "overloaded",
        _ => false,
    }
}

/// True when the command has settled its message itself, beside the transaction.
fn is_settled(error: &ClientError, job: &Job) -> bool {
    let ClientError::Server { code, details, .. } = error else { return false };
    code == "already_settled" && details["receipt"] == job.message.receipt.as_str()
}

fn is_lost(error: &ClientError) -> bool {
    error.code() == Some("transaction_lost")
}

/// The outcome of a message for which no transaction was begun: the command has not run.
fn not_begun(setup: &CommandSetup, error: &ClientError) -> Settle {
    if error.code().is_some_and(|code| INCURABLE.contains(&code)) {
        setup.give_up(format!("cannot begin a transaction: {error}"));
        return Settle::Release { delay: None };
    }
    setup.report.not_begun(error);
    Settle::Release { delay: Some(BEGIN_AGAIN) }
}

/// The outcome of a message whose command has done its work in vain.
fn not_committed(error: &ClientError) -> Settle {
    let why = match is_lost(error) {
        true => ", which a command neither ends nor needs for 30 minutes or more",
        false => "",
    };
    Settle::Nack { error: format!("cannot commit the transaction{why}: {error}"), delay: None }
}

fn pause() -> Duration {
    Duration::from_millis(RandomState::new().hash_one(()) % PAUSE_MS_MAX)
}
