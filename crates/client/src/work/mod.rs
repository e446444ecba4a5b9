//! Units of work: documents that are read, and operations that are staged, until all of it is committed as
//! one transaction or nothing is.

mod staged;
mod tries;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client::Client;
use crate::documents::{Document, DocumentPatch, DocumentPut};
use crate::error::ClientError;
use crate::locks::LockRequest;
use crate::message::{Message, Settle};
use crate::work::staged::{Prepared, Staged, View};

pub(crate) use tries::{Terms, Unfinished, run};

/// The error of a unit of work: any error, also a text (`Err("no such order".into())`). A [`ClientError`] in
/// it, itself or as a source, that says `version_mismatch` or `lock_held` lets the unit be tried again.
pub type WorkError = Box<dyn std::error::Error + Send + Sync>;

/// A unit of work: documents are read through it, and operations are staged in it, which are committed as
/// one [`Transaction`](crate::Transaction) when the work is done. Until then nothing of it is seen by anybody
/// else. Clones share it.
///
/// The commit is refused if a document has changed that was read, whether it is written or not; then the work
/// is done again on what is there now. So units happen as if one after the other. Two reads are two moments
/// all the same: where another commits between them, the work sees states that never were there together,
/// and is done again.
///
/// A unit has at most 1,000 operations, reads of documents that are not written among them, with 16 MiB of
/// payloads, headers and contents; it remembers 64 MiB of what it has read. More is `batch_too_large`.
#[derive(Clone, Debug)]
pub struct Work {
    client: Client,
    staged: Arc<Mutex<Staged>>,
}

impl Work {
    /// A unit without operations; `receipt`: that of the message that it settles.
    fn new(client: &Client, receipt: Option<&str>) -> Work {
        // A node that is behind would show what was replaced long ago.
        Work { client: client.not_stale(), staged: Arc::new(Mutex::new(Staged::new(receipt))) }
    }

    fn staged(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the unit: nothing can be staged any more.
    fn end(&self) -> Prepared {
        self.staged().end()
    }

    /// The content of a document as this unit sees it: as it has written it, else as it was read.
    ///
    /// # Errors
    /// `invalid_argument`: this unit patches the document, and only the server knows the outcome. Those of
    /// [`Work::read`].
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ClientError> {
        let view = self.staged().view(key)?;
        match view {
            View::Written(content) => Ok(content),
            View::AsRead => Ok(self.read(key).await?.map(|document| document.content.clone())),
        }
    }

    /// A document as it was at the first read of this unit, whatever the unit has written since; `None`:
    /// there was none. It has to be so still when the unit is committed.
    ///
    /// # Errors
    /// `batch_too_large`.
    pub async fn read(&self, key: &str) -> Result<Option<Arc<Document>>, ClientError> {
        if let Some(seen) = self.staged().seen(key)? {
            return Ok(seen);
        }
        let found = self.client.document_get(key, None).await?;
        self.staged().see(key, found)
    }

    /// Writes a document, in the place of what this unit has written before. Where it was read, its content
    /// type, its attributes and its history stay, and the time after which it is gone begins anew; else it
    /// has none of them but the history, and replaces whatever is there.
    ///
    /// # Errors
    /// `batch_too_large`. `invalid_argument`: this unit patches the document.
    pub fn put(&self, key: &str, content: impl Into<Vec<u8>>) -> Result<(), ClientError> {
        self.staged().put(key, content.into(), None)
    }

    /// Writes a document with its content type and attributes, under a token if it has one; other conditions
    /// come from what was read.
    ///
    /// # Errors
    /// `invalid_argument`: another condition is given. Those of [`Work::put`].
    pub fn put_with(&self, key: &str, put: &DocumentPut<'_>) -> Result<(), ClientError> {
        self.staged().put_with(key, put)
    }

    /// Changes a document whose content is JSON, which has to be there. Where it was not read, changes of
    /// others do not matter: increments of many units all count, and none is tried again because of another.
    ///
    /// # Errors
    /// `invalid_argument`: this unit writes the document otherwise, or another condition than a token is
    /// given. `batch_too_large`.
    pub fn patch(&self, key: &str, patch: &DocumentPatch<'_>) -> Result<(), ClientError> {
        self.staged().patch(key, patch)
    }

    /// Deletes a document, in the place of what this unit has written. Where it was not read it has to be
    /// there.
    ///
    /// # Errors
    /// `invalid_argument`: this unit patches the document. `batch_too_large`.
    pub fn delete(&self, key: &str) -> Result<(), ClientError> {
        self.staged().delete(key)
    }

    /// Sends a message to a queue; one without a unique key.
    ///
    /// # Errors
    /// `batch_too_large`.
    pub fn send(&self, queue: &str, message: Message<'_>) -> Result<(), ClientError> {
        self.staged().send(queue, message)
    }

    /// Settles a message. Of a [`Worker`](crate::Worker) the message at hand is acked, unless it is settled
    /// here: with a result, or rejected together with what follows from that.
    ///
    /// # Errors
    /// `batch_too_large`.
    pub fn settle(&self, receipt: &str, settle: Settle) -> Result<(), ClientError> {
        self.staged().settle(receipt, settle)
    }

    /// Acquires locks, if they are free: `lock_held` lets the unit be tried again. The grant is among the
    /// results of [`Client::transact`].
    ///
    /// # Errors
    /// `batch_too_large`.
    pub fn acquire(&self, request: &LockRequest<'_>) -> Result<(), ClientError> {
        self.staged().acquire(request)
    }

    /// Releases a grant, which has to be held.
    ///
    /// # Errors
    /// `batch_too_large`.
    pub fn release(&self, token: &str) -> Result<(), ClientError> {
        self.staged().release(token)
    }
}
