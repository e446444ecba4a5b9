//! Requests of this node that wait for the answers of a peer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::REQUESTS_MAX;

/// Requests on one connection.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Bytes>>,
}

/// A request that waits; forgotten when dropped.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    pub(crate) number: u64,
    pub(crate) answer: oneshot::Receiver<Bytes>,
    calls: &'c Calls,
}

impl Calls {
    /// Begins a request; `None`: [`REQUESTS_MAX`] wait already.
    pub(crate) fn begin(&self) -> Option<Call<'_>> {
        let mut waiting = self.lock();
        if waiting.answers.len() >= REQUESTS_MAX {
            return None;
        }
        waiting.last += 1;
        let number = waiting.last;
        let (sender, answer) = oneshot::channel();
        waiting.answers.insert(number, sender);
        Some(Call { number, answer, calls: self })
    }

    /// Takes in an answer. One that nobody waits for any more is dropped.
    pub(crate) fn answered(&self, number: u64, content: Bytes) {
        if let Some(answer) = self.lock().answers.remove(&number) {
            // Dropped meanwhile.
            let _ = answer.send(content);
        }
    }

    /// Ends all: their answers never come.
    pub(crate) fn end(&self) {
        self.lock().answers.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.lock().answers.remove(&self.number);
    }
}
