//! Waits for the end of a message.

use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::query::{MessageView, State};
use sluice_journal::BlobRead;
use tokio::sync::oneshot;

/// A wait for the end of a message.
#[derive(Debug)]
pub struct ResultWait {
    /// Ticket for [`super::Request::Cancel`], unique in the process.
    pub ticket: u64,
    /// Id of the message.
    pub id: MessageId,
    /// Longest wait, in microseconds.
    pub wait_us: u64,
    /// Destination of the answer.
    pub reply: oneshot::Sender<Result<WaitOutcome, Error>>,
}

/// Result of a wait; blobs may still have to be read.
#[derive(Debug)]
pub struct WaitOutcome {
    /// State of the message: done, dead, or its state at the end of the wait.
    pub state: State,
    /// The message, if it still exists.
    pub view: Option<MessageView>,
    /// Result given with the ack, laid out as a payload.
    pub result: Option<BlobRead>,
    /// Note of its progress.
    pub note: Option<BlobRead>,
}
