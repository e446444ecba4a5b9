//! Frames that wait to be written to a peer.
//!
//! Four queues: messages without entries (heartbeats, votes, acknowledgements), which go first; messages with
//! entries; requests with their answers; and messages about states, which take turns with the entries. The
//! first two are bounded by dropping the oldest, of which the replicas learn in time, the others by dropping
//! the newest.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_replica::{Body, Envelope, StateMessage};

use crate::frame::Frame;
use crate::{REQUESTS_BYTES_MAX, REQUESTS_MAX, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX};

/// Length of messages with entries that are taken at once, in bytes; at least one is. What comes meanwhile
/// and is urgent waits for no more than these.
const TURN_BYTES: usize = 512 << 10;

/// Length of requests and answers that are taken at once, in bytes; at least one is.
const CALLS_TURN_BYTES: usize = 64 << 10;

/// Number and length, in bytes, up to which messages are few.
const FEW: usize = 8;
const FEW_BYTES: usize = 4 << 10;

/// Number of requests and answers that wait, and the length of their contents in bytes: those of both sides.
const CALLS_MAX: usize = 2 * REQUESTS_MAX;
const CALLS_BYTES_MAX: usize = 2 * REQUESTS_BYTES_MAX;

/// Memory that an envelope and each of its entries take beside their batches, in bytes.
const ENVELOPE_BYTES: usize = 256;
const ENTRY_BYTES: usize = 96;

/// Queues of frames for one peer.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queues: Mutex<Queues>,
}

#[derive(Debug, Default)]
struct Queues {
    urgent: VecDeque<Frame>,
    appends: VecDeque<(Frame, usize)>,
    /// Sum of the lengths in `appends`.
    appends_bytes: usize,
    calls: VecDeque<Frame>,
    /// Sum of the lengths of contents in `calls`.
    calls_bytes: usize,
    states: VecDeque<(Frame, usize)>,
    /// Sum of the lengths in `states`.
    states_bytes: usize,
    dropped: u64,
}

impl Outbox {
    /// Puts in a message; drops older ones beyond the limits.
    pub(crate) fn push_envelope(&self, shard: u16, envelope: Envelope) {
        let bytes = append_bytes(&envelope);
        let frame = Frame::Envelope { shard, envelope };
        let mut queues = self.lock();
        match bytes {
            Some(bytes) => queues.push_append(frame, bytes),
            None => queues.push_urgent(frame),
        }
    }

    /// Puts in a request or an answer; drops it when too many wait, so that whoever waits for it does so
    /// until its deadline.
    pub(crate) fn push_call(&self, frame: Frame) {
        let bytes = frame.content_bytes();
        let mut queues = self.lock();
        if queues.calls.len() < CALLS_MAX && queues.calls_bytes + bytes <= CALLS_BYTES_MAX {
            queues.calls_bytes += bytes;
            queues.calls.push_back(frame);
        }
    }

    /// Puts in a message about a state; drops it beyond the limits.
    pub(crate) fn push_state(&self, shard: u16, message: StateMessage) {
        let bytes = ENVELOPE_BYTES + message.content_bytes();
        let mut queues = self.lock();
        if queues.states_bytes + bytes > WAITING_BYTES_MAX && !queues.states.is_empty() {
            queues.dropped += 1;
        } else {
            queues.states_bytes += bytes;
            queues.states.push_back((Frame::State { shard, message }, bytes));
        }
    }

    /// Takes frames for one turn of writing: all urgent ones, some requests and answers, one message about a
    /// state, and some with entries.
    pub(crate) fn take(&self, frames: &mut Vec<Frame>) {
        self.lock().take(frames);
    }

    /// Takes all frames, if they are few and small.
    pub(crate) fn take_few(&self, frames: &mut Vec<Frame>) {
        let mut queues = self.lock();
        if queues.are_few() {
            queues.take(frames);
        }
    }

    /// True when nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Number of messages that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn is_empty(&self) -> bool {
        let Queues { urgent, appends, calls, states, .. } = self;
        urgent.is_empty() && appends.is_empty() && calls.is_empty() && states.is_empty()
    }

    fn are_few(&self) -> bool {
        self.urgent.len() + self.appends.len() <= FEW
            && self.appends_bytes <= FEW_BYTES
            && self.states.is_empty()
            && self.calls.is_empty()
    }

    fn take(&mut self, frames: &mut Vec<Frame>) {
        frames.extend(self.urgent.drain(..));
        self.take_calls(frames);
        if let Some((frame, bytes)) = self.states.pop_front() {
            self.states_bytes -= bytes;
            frames.push(frame);
        }
        let mut bytes = 0;
        while bytes < TURN_BYTES
            && let Some((frame, len)) = self.appends.pop_front()
        {
            bytes += len;
            self.appends_bytes -= len;
            frames.push(frame);
        }
    }

    /// Takes requests and answers for a turn: at least one, and more as long as they are short.
    fn take_calls(&mut self, frames: &mut Vec<Frame>) {
        let mut bytes = 0;
        while bytes < CALLS_TURN_BYTES
            && let Some(frame) = self.calls.pop_front()
        {
            bytes += frame.content_bytes();
            self.calls_bytes -= frame.content_bytes();
            frames.push(frame);
        }
    }

    fn push_urgent(&mut self, frame: Frame) {
        if self.urgent.len() >= WAITING_MESSAGES_MAX {
            self.urgent.pop_front();
            self.dropped += 1;
        }
        self.urgent.push_back(frame);
    }

    fn push_append(&mut self, frame: Frame, bytes: usize) {
        while self.appends_bytes + bytes > WAITING_BYTES_MAX
            && let Some((_, oldest)) = self.appends.pop_front()
        {
            self.appends_bytes -= oldest;
            self.dropped += 1;
        }
        self.appends_bytes += bytes;
        self.appends.push_back((frame, bytes));
    }
}

/// Memory of a message with entries, in bytes; `None`: it has none.
fn append_bytes(envelope: &Envelope) -> Option<usize> {
    let Body::Append { entries, .. } = &envelope.message.body else { return None };
    let batches: usize = envelope.batches.iter().map(bytes::Bytes::len).sum();
    (!entries.is_empty()).then_some(ENVELOPE_BYTES + entries.len() * ENTRY_BYTES + batches)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_replica::{
        Content, Descriptor, Entry, Message, NodeId, Position, StateBody, StateHead, StateMessage,
    };

    use super::*;
    use crate::CONTENT_BYTES_MAX;

    fn message(term: u64, body: Body) -> Message {
        let [from, to] = [1, 2].map(|id| NodeId::new(id).unwrap());
        Message { from, to, term, body }
    }

    fn heartbeat(term: u64) -> Envelope {
        let message = message(term, Body::Heartbeat { commit: 0, read: None });
        Envelope::new(message, Vec::new())
    }

    fn append(term: u64, bytes: usize) -> Envelope {
        let batch = Descriptor { first_record: 1, records: 1, time_us: 1, bytes: bytes as u32, checksum: 0 };
        let entries = vec![Entry { position: Position { term, index: 1 }, content: Content::Batch(batch) }];
        let message = message(term, Body::Append { previous: Position::default(), commit: 0, entries });
        Envelope::new(message, vec![Bytes::from(vec![0; bytes])])
    }

    /// Terms of the messages that are taken in a turn; 0: a frame of another kind.
    fn turn(outbox: &Outbox) -> Vec<u64> {
        let mut frames = Vec::new();
        outbox.take(&mut frames);
        let term = |frame: &Frame| match frame {
            Frame::Envelope { envelope, .. } => envelope.message.term,
            _ => 0,
        };
        frames.iter().map(term).collect()
    }

    #[test]
    fn heartbeats_go_first_and_appends_in_turns() {
        let outbox = Outbox::default();
        outbox.push_envelope(0, append(1, TURN_BYTES / 2));
        outbox.push_envelope(0, append(2, TURN_BYTES));
        outbox.push_envelope(0, append(3, 10));
        outbox.push_envelope(0, heartbeat(4));
        outbox.push_call(Frame::Alive);
        assert_eq!(turn(&outbox), [4, 0, 1, 2]);
        outbox.push_envelope(0, heartbeat(5));
        assert_eq!(turn(&outbox), [5, 3]);
        assert_eq!(turn(&outbox), [0; 0]);
    }

    #[test]
    fn a_peer_that_takes_nothing_costs_bounded_memory() {
        let outbox = Outbox::default();
        let large = 4 << 20;
        for term in 1..=20 {
            outbox.push_envelope(0, append(term, large));
            assert!(outbox.lock().appends_bytes <= WAITING_BYTES_MAX);
        }
        assert_eq!(outbox.dropped(), 20 - 15);
        assert_eq!(outbox.lock().appends.len(), 15);
        for term in 1..=WAITING_MESSAGES_MAX as u64 + 3 {
            outbox.push_envelope(0, heartbeat(term));
        }
        assert_eq!(outbox.dropped(), 20 - 15 + 3);
        // The oldest are those that are gone.
        assert_eq!(turn(&outbox)[0], 4);
        assert_eq!(outbox.lock().appends.front().map(|(frame, _)| frame.batches().len()), Some(1));
    }

    #[test]
    fn requests_take_turns_by_their_length_and_the_newest_are_lost() {
        let outbox = Outbox::default();
        let request =
            |bytes: usize| Frame::Request { number: 0, within_ms: 0, content: vec![0; bytes].into() };
        let taken = || {
            let mut frames = Vec::new();
            outbox.take(&mut frames);
            frames.iter().map(Frame::content_bytes).collect::<Vec<_>>()
        };
        [10, CALLS_TURN_BYTES, 7, 8].iter().for_each(|bytes| outbox.push_call(request(*bytes)));
        assert_eq!([taken(), taken(), taken()], [vec![10, CALLS_TURN_BYTES], vec![7, 8], vec![]]);
        (0..20).for_each(|_| outbox.push_call(request(CONTENT_BYTES_MAX)));
        assert_eq!(outbox.lock().calls.len(), CALLS_BYTES_MAX / CONTENT_BYTES_MAX);
        assert_eq!(taken(), [CONTENT_BYTES_MAX], "a long one alone");
        outbox.push_call(request(CONTENT_BYTES_MAX));
        assert_eq!(outbox.lock().calls_bytes, CALLS_BYTES_MAX, "room of the one that was taken");
    }

    #[test]
    fn empty_appends_are_urgent() {
        let outbox = Outbox::default();
        outbox.push_envelope(0, append(1, 1));
        let body = Body::Append { previous: Position::default(), commit: 0, entries: Vec::new() };
        outbox.push_envelope(0, Envelope::new(message(2, body), Vec::new()));
        assert_eq!(turn(&outbox), [2, 1]);
    }

    #[test]
    fn states_take_turns_and_the_newest_are_lost() {
        let outbox = Outbox::default();
        let part = |offset: u64| {
            let [from, to] = [1, 2].map(|id| NodeId::new(id).unwrap());
            let state = Position { term: 1, index: 1 };
            let (head, bytes) = (StateHead::default(), Bytes::from(vec![0; 4 << 20]));
            StateMessage { from, to, state, body: StateBody::Content { head, offset, bytes, end: None } }
        };
        for offset in 0..20 {
            outbox.push_state(0, part(offset));
            assert!(outbox.lock().states_bytes <= WAITING_BYTES_MAX);
        }
        assert_eq!(outbox.dropped(), 20 - 15);
        outbox.push_envelope(0, append(1, TURN_BYTES));
        outbox.push_envelope(0, append(2, 10));
        assert_eq!(turn(&outbox), [0, 1]);
        assert_eq!(turn(&outbox), [0, 2]);
        assert!((2..15).all(|_| turn(&outbox) == [0]) && turn(&outbox).is_empty());
        assert_eq!(outbox.lock().states_bytes, 0);
    }
}
