//! Ends of streams and connections: by an error, by a reset, or in order.

use super::guard::Costly;
use super::{Connection, Event, Phase, StreamKey};
use crate::error::{ErrorCode, Fault, Scope};
use crate::frame::{MAX_31_BITS, write};
use crate::streams::Ended;

/// The step of a graceful shutdown (RFC 9113 §6.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Drain {
    No,
    /// The peer has been told to open no more streams; those that it has opened meanwhile are served.
    Announced,
    /// The peer knows which stream was the last.
    Final,
}

/// The ping whose answer says that the peer has seen the announcement.
pub(super) const DRAIN_PING: [u8; 8] = *b"draining";

impl Connection {
    /// Tells the peer what it did wrong, and ends what that ends.
    pub(super) fn fail<'a>(&mut self, fault: Fault) -> Option<Event<'a>> {
        let id = match fault.scope {
            Scope::Stream(id) if id <= self.last_stream && !id.is_multiple_of(2) => id,
            // A stream that is not opened yet cannot be reset (RFC 9113 §5.1); those with even ids never are.
            _ => return Some(self.close(Fault { scope: Scope::Connection, ..fault })),
        };
        if let Err(fault) = self.guard.count(Costly::Reset, self.now_us) {
            return Some(self.close(fault));
        }
        write::reset(&mut self.output.ready, id, fault.code);
        let Some(slot) = self.streams.slot(id) else {
            self.streams.remember(id, Ended::ByUs);
            return None;
        };
        let stream = self.streams.key(slot);
        self.remove_stream(slot, Ended::ByUs);
        Some(Event::Reset { stream, code: fault.code })
    }

    /// Ends the connection with an error (RFC 9113 §5.4.1).
    pub(super) fn close<'a>(&mut self, fault: Fault) -> Event<'a> {
        let last = self.last_stream.min(self.last_told);
        write::go_away(&mut self.output.ready, last, fault.code, fault.what);
        self.phase = Phase::Closed;
        self.deadlines.closed();
        while let Some(slot) = self.streams.next_live(0) {
            self.remove_stream(slot, Ended::ByUs);
        }
        Event::Closed(fault)
    }

    /// Resets a stream (RST_STREAM) and drops its queued output. A stream that has ended is left alone.
    pub fn reset(&mut self, stream: StreamKey, code: ErrorCode) {
        if let Some(slot) = self.streams.live(stream) {
            write::reset(&mut self.output.ready, stream.id, code);
            self.remove_stream(slot, Ended::ByUs);
        }
    }

    /// Lets go of a stream. What it held of the connection's window is given back.
    pub(super) fn remove_stream(&mut self, slot: u32, how: Ended) {
        self.output.schedule.remove(&mut self.streams, slot);
        let held = self.streams[slot].unconsumed;
        self.queued -= self.streams[slot].queued;
        self.head_bytes -= self.streams[slot].head_bytes;
        self.streams.remove(slot, how);
        if self.phase == Phase::Closed {
            return;
        }
        self.receive.give(held, &mut self.output.ready);
        if self.streams.is_empty() {
            self.deadlines.idle(&self.limits, self.keeps_much(), self.now_us);
            if self.peer_leaves {
                self.finish_drain();
            }
        }
    }

    /// Begins a graceful shutdown (GOAWAY, RFC 9113 §6.8): streams that are open, and those that the peer
    /// opens before it has read the frame, are served. [`Connection::is_done`] tells when all have ended.
    pub fn shut_down(&mut self, now_us: u64) {
        self.now_us = now_us;
        if self.drain != Drain::No || self.phase == Phase::Closed {
            return;
        }
        self.drain = Drain::Announced;
        write::go_away(&mut self.output.ready, MAX_31_BITS, ErrorCode::NO_ERROR, "");
        write::ping(&mut self.output.ready, false, DRAIN_PING);
        self.deadlines.drain(&self.limits, self.now_us);
    }

    /// The second step: streams after the last that came are not served. It is also said to a peer that
    /// leaves by itself, as it may have opened some all the same.
    pub(super) fn finish_drain(&mut self) {
        if self.drain != Drain::Final {
            self.drain = Drain::Final;
            self.deadlines.drained();
            self.last_told = self.last_stream;
            write::go_away(&mut self.output.ready, self.last_told, ErrorCode::NO_ERROR, "");
        }
    }

    /// True when the connection has ended, except for output that is still to be written.
    pub fn is_over(&self) -> bool {
        match self.phase {
            Phase::Closed => true,
            _ => self.streams.is_empty() && self.drain == Drain::Final,
        }
    }

    /// True when the connection has ended and all output is written: the transport is to be closed.
    pub fn is_done(&self) -> bool {
        self.is_over() && self.output.ready.is_empty() && self.output.plan.is_empty()
    }
}
