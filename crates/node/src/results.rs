//! Caller's side of waiting for a message's end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::query::State;
use tokio::sync::oneshot;

use crate::api::{Awaited, ProgressSeen};
use crate::blobs::{self, ReadFailure};
use crate::handle::Node;
use crate::shard::request::Request;
use crate::shard::request::{ResultWait, WaitOutcome};

/// Upper limit of a wait for a result.
const RESULT_WAIT_MAX: Duration = Duration::from_secs(60);
/// Wait suggested to a caller whose result could not be read now, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// Cancels the wait when the caller goes before the answer.
struct Waiting<'a> {
    node: &'a Node,
    shard: u32,
    ticket: u64,
    receiver: Option<oneshot::Receiver<Result<WaitOutcome, Error>>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            // Closed before the cancellation, which may overtake the request: the shard lines no closed one
            // up.
            receiver.close();
            self.node.push_surely(self.shard, Request::Cancel { ticket: self.ticket });
        }
    }
}

impl Node {
    /// Result of a message, waiting for its end if asked to. Dropping the future ends the wait.
    ///
    /// # Errors
    /// `message_not_found` when it never existed or is gone: acked without a result to keep, no longer kept,
    /// or purged. `payload_damaged` when the result does not verify; `overloaded` when too many wait.
    pub async fn await_result(&self, id: MessageId, wait: Duration) -> Result<Awaited, Error> {
        if wait > RESULT_WAIT_MAX {
            let reason = format!("{} is more than {} ms", wait.as_millis(), RESULT_WAIT_MAX.as_millis());
            return Err(Error::InvalidArgument { field: "wait_ms".to_owned(), reason });
        }
        let not_found = |_| Error::MessageNotFound { id: id.to_string() };
        let shard = self.inner.placement.shard_of(id.namespace).map_err(not_found)?;
        let ticket = self.inner.tickets.fetch_add(1, Ordering::Relaxed);
        let (reply, receiver) = oneshot::channel();
        self.push(shard, Request::Await(ResultWait { ticket, id, wait_us: wait.as_micros() as u64, reply }))?;
        let mut waiting = Waiting { node: self, shard, ticket, receiver: Some(receiver) };
        let Some(receiver) = &mut waiting.receiver else { return Err(Error::ShuttingDown {}) };
        let seen = receiver.await;
        waiting.receiver = None;
        load(id, seen.map_err(|_| Error::ShuttingDown {})??).await
    }
}

async fn load(id: MessageId, seen: WaitOutcome) -> Result<Awaited, Error> {
    let WaitOutcome { state, view, result, note } = seen;
    match state {
        State::Done => {
            let loaded = blobs::load(result.into_iter().collect()).await.pop().transpose();
            let result = loaded.map_err(|unread| match unread {
                ReadFailure::Damaged => Error::PayloadDamaged { id: id.to_string() },
                ReadFailure::Later => {
                    Error::Overloaded { what: "reads from the disk", retry_after_ms: RETRY_AFTER_MS }
                }
            })?;
            let view = view.as_ref();
            Ok(Awaited::Done {
                result,
                done_at_us: view.and_then(|view| view.done_at_us),
                kept_until_us: view.and_then(|view| view.kept_until_us),
            })
        }
        State::Dead => Ok(Awaited::Dead {
            reason: view.as_ref().and_then(|view| view.reason),
            at_us: view.as_ref().and_then(|view| view.reason_at_us),
        }),
        state => {
            let note = blobs::load(note.into_iter().collect()).await.pop().and_then(Result::ok);
            let progress = view.and_then(|view| view.progress).map(|progress| ProgressSeen {
                percent: progress.percent,
                note: note.map(|note| String::from_utf8_lossy(&note).into_owned()),
                at_us: progress.at_us,
            });
            Ok(Awaited::Pending { state, progress })
        }
    }
}
