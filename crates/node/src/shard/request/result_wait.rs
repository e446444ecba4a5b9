//! Waits for the end of a message.

use sluice_engine::Error;
use sluice_engine::id::MessageId;
use sluice_engine::query::{MessageView, State};
use sluice_journal::BlobRead;
use tokio::sync::oneshot;

/// A caller that wants to know what became of a message.
#[derive(Debug)]
pub struct ResultWait {
    /// Names it to [`super::Request::Cancel`]; unique in the process.
    pub ticket: u64,
    /// Which message.
    pub id: MessageId,
    /// How long it may wait, in microseconds.
    pub wait_us: u64,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Result<WaitOutcome, Error>>,
}

/// What was seen of a message; its bytes may still have to be read.
#[derive(Debug)]
pub struct WaitOutcome {
    /// Done, dead, or where it stands when the time is over.
    pub state: State,
    /// The message, if it is still there.
    pub view: Option<MessageView>,
    /// Its result: laid out as a payload.
    pub result: Option<BlobRead>,
    /// The note of its progress.
    pub note: Option<BlobRead>,
}
