//! Requests of a replica that wait: for a leader, or for the proof that this node leads still.

use std::collections::VecDeque;

use sluice_engine::Error;

use super::request::Request;
use crate::mailbox::Letter;

/// Upper limit of requests.
const REQUESTS_MAX: usize = 4_096;
/// Bytes of requests from which no further one waits.
const BYTES_MAX: usize = 64 << 20;
/// Wait suggested to the caller of a refused request, in milliseconds.
const RETRY_AFTER_MS: u64 = 500;

/// A line of requests, in the order in which they came and in which their waits end.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Requests with the monotonic time at which the wait of each ends, in microseconds.
    line: VecDeque<(u64, Request)>,
    bytes: usize,
    /// Number of commands among them.
    commands: usize,
}

impl Held {
    /// Number of requests.
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// True when there is no request.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// True when a request waits that becomes a record.
    pub(super) fn has_commands(&self) -> bool {
        self.commands > 0
    }

    /// Adds a request, or refuses it where too many wait.
    pub(super) fn push(&mut self, until_us: u64, request: Request) {
        if self.line.len() >= REQUESTS_MAX || self.bytes >= BYTES_MAX {
            return request.refuse(&Error::Overloaded { what: "requests", retry_after_ms: RETRY_AFTER_MS });
        }
        self.bytes += request.bytes();
        self.commands += usize::from(request.is_command());
        self.line.push_back((until_us, request));
    }

    /// Takes the first request, with the end of its wait.
    pub(super) fn pop(&mut self) -> Option<(u64, Request)> {
        let (until_us, request) = self.line.pop_front()?;
        self.bytes -= request.bytes();
        self.commands -= usize::from(request.is_command());
        Some((until_us, request))
    }

    /// Takes the first request if its wait is over.
    pub(super) fn pop_ended(&mut self, monotonic_us: u64) -> Option<Request> {
        let is_over = self.next_end_us().is_some_and(|until_us| until_us <= monotonic_us);
        if is_over { self.pop().map(|(_, request)| request) } else { None }
    }

    /// Monotonic time at which the next wait is over, in microseconds.
    pub(super) fn next_end_us(&self) -> Option<u64> {
        self.line.front().map(|(until_us, _)| *until_us)
    }

    /// Refuses all requests: the shard ends.
    pub(super) fn end(&mut self) {
        while let Some((_, request)) = self.pop() {
            request.refuse(&Error::ShuttingDown {});
        }
    }
}

/// A panic of the shard's thread leaves nobody without an answer.
impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}
