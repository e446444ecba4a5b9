//! Requests of this node that wait for the answers of a peer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{REQUESTS_BYTES_MAX, REQUESTS_MAX};

/// Requests on one connection.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    answers: HashMap<u64, Answer>,
    /// Sum of the lengths of the requests, in bytes.
    bytes: usize,
}

/// Way of an answer to who waits for it, with the length of the request.
#[derive(Debug)]
struct Answer {
    to: oneshot::Sender<Bytes>,
    request_bytes: usize,
}

impl Waiting {
    fn remove(&mut self, number: u64) -> Option<Answer> {
        let answer = self.answers.remove(&number)?;
        self.bytes -= answer.request_bytes;
        Some(answer)
    }
}

/// A request that waits; forgotten when dropped.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    pub(crate) number: u64,
    pub(crate) answer: oneshot::Receiver<Bytes>,
    calls: &'c Calls,
}

impl Calls {
    /// Begins a request of a length in bytes; `None`: [`REQUESTS_MAX`] or [`REQUESTS_BYTES_MAX`] wait
    /// already.
    pub(crate) fn begin(&self, request_bytes: usize) -> Option<Call<'_>> {
        let mut waiting = self.lock();
        if waiting.answers.len() >= REQUESTS_MAX || waiting.bytes + request_bytes > REQUESTS_BYTES_MAX {
            return None;
        }
        waiting.bytes += request_bytes;
        waiting.last += 1;
        let number = waiting.last;
        let (to, answer) = oneshot::channel();
        waiting.answers.insert(number, Answer { to, request_bytes });
        Some(Call { number, answer, calls: self })
    }

    /// Takes in an answer. One that nobody waits for any more is dropped.
    pub(crate) fn answered(&self, number: u64, content: Bytes) {
        if let Some(answer) = self.lock().remove(number) {
            // Dropped meanwhile.
            let _ = answer.to.send(content);
        }
    }

    /// Ends all: their answers never come.
    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        waiting.answers.clear();
        waiting.bytes = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONTENT_BYTES_MAX;

    #[test]
    fn requests_are_bounded_by_number_and_by_length() {
        let calls = Calls::default();
        let long: Vec<_> = (0..8).map(|_| calls.begin(CONTENT_BYTES_MAX).unwrap()).collect();
        assert!(calls.begin(1).is_none());
        let first = long[0].number;
        calls.answered(first, Bytes::new());
        assert!(calls.begin(CONTENT_BYTES_MAX).is_some(), "room of one that was answered");
        drop(long);
        let short: Vec<_> = (0..REQUESTS_MAX).map(|_| calls.begin(1).unwrap()).collect();
        assert!(calls.begin(0).is_none());
        calls.end();
        drop(short);
        assert!(calls.begin(REQUESTS_BYTES_MAX).is_some(), "room of those that have ended");
    }
}
