//! The messages of a body: one, or those of a client that sends a stream of them.

use std::time::Duration;

use bytes::Bytes;
use sluice_calls::{CallError, Fault};
use sluice_proto::framing::{Deframer, frame_with};
use tokio::time::Instant;

use super::wire::INVALID;
use crate::net::body::{Inbound, next_data};
use crate::net::passing::Passable;

/// The messages of a body, of which one is in memory.
pub(super) struct Messages {
    body: Inbound,
    deframer: Deframer,
    timeout: Duration,
}

impl Messages {
    /// Messages of up to `bytes_max` bytes, each of which may take `timeout`, and longer the more of it came.
    pub(super) fn of(body: Inbound, bytes_max: usize, timeout: Duration) -> Messages {
        Messages { body, deframer: Deframer::new(bytes_max), timeout }
    }

    /// The next message; `None`: there are no more.
    ///
    /// # Errors
    /// `incomplete_body`, `request_timeout`, `invalid_protobuf`.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let started = Instant::now();
        loop {
            let message = self.deframer.next();
            if let Some(message) = message.map_err(|error| Fault::new(INVALID, error.to_string()))? {
                return Ok(Some(message));
            }
            let so_far = (started, self.deframer.pending());
            match next_data(&mut self.body, so_far, self.timeout).await? {
                Some(data) => self.deframer.push(data),
                None if self.deframer.pending() == 0 => return Ok(None),
                None => return Err(CallError::new("incomplete_body", "the body ends within a message")),
            }
        }
    }

    /// True if nothing came of the next message.
    pub(super) fn is_between(&self) -> bool {
        self.deframer.pending() == 0
    }

    /// The whole body, of which nothing but this message was used.
    pub(super) fn again(&mut self, first: &[u8]) -> Passable<'_> {
        let mut begun = Vec::new();
        frame_with(&mut begun, |out| out.extend_from_slice(first));
        let rest = self.deframer.take_rest();
        begun.extend_from_slice(&rest);
        self.deframer.push(rest);
        Passable::begun(begun.into(), &mut self.body)
    }
}

/// The one message of a body.
pub(super) fn only_message(body: Bytes, bytes_max: usize) -> Result<Bytes, CallError> {
    let mut deframer = Deframer::new(bytes_max);
    deframer.push(body);
    let invalid = |reason: String| CallError::from(Fault::new(INVALID, reason));
    let message = deframer.next().map_err(|error| invalid(error.to_string()))?;
    match message {
        Some(message) if deframer.pending() == 0 => Ok(message),
        Some(_) => Err(invalid("more than one message: this call takes one".to_owned())),
        None => Err(CallError::new("incomplete_body", "the body ends before its message does")),
    }
}
