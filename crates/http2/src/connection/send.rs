//! Responses, and the plan of output.

use std::fmt;

use bytes::Bytes;

use super::{Connection, StreamKey};
use crate::emit::{Drained, Plan, header_block};
use crate::error::ErrorCode;
use crate::frame::{flag, kind, write};
use crate::hpack::{Encoded, Field};
use crate::streams::{Ended, Sending, fields};

/// The reason why a part of a response was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The stream has ended.
    Gone,
    /// The part is out of order: a body before its head, a second head, anything after the end.
    OutOfOrder,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the stream has ended",
            Self::OutOfOrder => "a response is its head, its body, its trailers, in this order and once",
        })
    }
}

impl std::error::Error for SendError {}

/// Pieces that a stream may have queued: each takes some 80 bytes of memory, however small it is.
const PIECES_MAX: usize = 64;

impl Connection {
    /// Sends the head of a response: `status` (200 or more), then the sets of fields in `constant`, then
    /// `fields`. With `end` there is no body.
    ///
    /// # Errors
    /// The stream has ended, or its head was sent, or `status` is below 200: interim responses are sent by
    /// [`Connection::inform`].
    pub fn respond<'a>(
        &mut self,
        stream: StreamKey,
        status: u16,
        constant: impl IntoIterator<Item = &'a Encoded>,
        fields: impl IntoIterator<Item = Field<'a>>,
        end: bool,
    ) -> Result<(), SendError> {
        let slot = self.sending(stream, Sending::Idle)?;
        if status < 200 {
            return Err(SendError::OutOfOrder);
        }
        self.write_head(stream.id, status, constant, fields, end);
        self.streams[slot].sending = if end { Sending::Ending } else { Sending::Open };
        if end {
            self.end_response(slot);
        }
        Ok(())
    }

    /// Sends the head of an interim response, such as 103 (RFC 9113 §8.1).
    ///
    /// # Errors
    /// The stream has ended, or its final response has begun, or `status` is not within 100 and 199, or is
    /// 101, which HTTP/2 does not have (§8.6).
    pub fn inform<'a>(
        &mut self,
        stream: StreamKey,
        status: u16,
        fields: impl IntoIterator<Item = Field<'a>>,
    ) -> Result<(), SendError> {
        self.sending(stream, Sending::Idle)?;
        if !(100..200).contains(&status) || status == 101 {
            return Err(SendError::OutOfOrder);
        }
        self.write_head(stream.id, status, None, fields, false);
        Ok(())
    }

    fn write_head<'a>(
        &mut self,
        id: u32,
        status: u16,
        constant: impl IntoIterator<Item = &'a Encoded>,
        fields: impl IntoIterator<Item = Field<'a>>,
        end: bool,
    ) {
        let encoder = &mut self.encoder;
        header_block(&mut self.output.ready, id, end, |out| {
            encoder.status(status, out);
            constant.into_iter().for_each(|set| encoder.append_set(set, out));
            encoder.encode(fields, out);
        });
    }

    /// Queues a piece of the body, of any size; [`Connection::send_room`] says how many bytes should be
    /// queued at most. With `end` the response ends.
    ///
    /// # Errors
    /// The stream has ended, or its head was not sent, or its response has ended.
    pub fn send_body(&mut self, stream: StreamKey, piece: Bytes, end: bool) -> Result<(), SendError> {
        let slot = self.sending(stream, Sending::Open)?;
        if end {
            self.streams[slot].sending = Sending::Ending;
        }
        if self.streams[slot].queued == 0 && self.goes_at_once(slot, piece.len()) {
            self.write_body(slot, &piece, end);
            return Ok(());
        }
        if piece.is_empty() {
            return Ok(());
        }
        let entry = &mut self.streams[slot];
        if entry.queued == 0 {
            entry.send_progress.restart(self.now_us);
        }
        entry.queued += piece.len();
        self.queued += piece.len();
        entry.queue.push_back(piece);
        self.deadlines.watch_streams(self.now_us);
        self.schedule(slot);
        Ok(())
    }

    /// True when a piece is small enough, and allowed, to go right behind what is ready.
    fn goes_at_once(&self, slot: u32, bytes: usize) -> bool {
        let output = &self.output;
        bytes == 0
            || (bytes <= output.inline_bytes_max()
                && bytes as i64 <= self.streams[slot].send_window.min(output.send_window)
                && output.ready.len() + bytes <= self.limits.backlog_bytes as usize)
    }

    fn write_body(&mut self, slot: u32, piece: &[u8], end: bool) {
        if piece.is_empty() && !end {
            return;
        }
        let stream = &mut self.streams[slot];
        let id = stream.id;
        stream.send_window -= piece.len() as i64;
        self.output.note_data(piece.len());
        let flags = if end { flag::END_STREAM } else { 0 };
        write::header(&mut self.output.ready, piece.len(), kind::DATA, flags, id);
        self.output.ready.extend_from_slice(piece);
        if end {
            self.end_response(slot);
        }
    }

    /// Ends the response with trailers. Names are in lower case.
    ///
    /// # Errors
    /// The stream has ended, or its response is not at its body.
    pub fn send_trailers<'a>(
        &mut self,
        stream: StreamKey,
        trailers: impl IntoIterator<Item = Field<'a>>,
    ) -> Result<(), SendError> {
        let slot = self.sending(stream, Sending::Open)?;
        let entry = &mut self.streams[slot];
        entry.sending = Sending::Ending;
        if entry.queued > 0 {
            trailers.into_iter().for_each(|field| fields::push(&mut entry.trailers, field));
            return Ok(());
        }
        let encoder = &mut self.encoder;
        header_block(&mut self.output.ready, stream.id, true, |out| encoder.encode(trailers, out));
        self.end_response(slot);
        Ok(())
    }

    /// Number of bytes of the body that may be queued now. After 0, [`Connection::take_roomy`] returns the
    /// stream as soon as there is room.
    pub fn send_room(&mut self, stream: StreamKey) -> usize {
        let Some(slot) = self.streams.live(stream) else { return 0 };
        let stream = &self.streams[slot];
        let of_stream = if stream.queue.len() < PIECES_MAX {
            (self.limits.stream_send_bytes as usize).saturating_sub(stream.queued)
        } else {
            0
        };
        let of_all = (self.limits.connection_send_bytes as usize).saturating_sub(self.queued);
        let room = if of_all == 0 { self.reserved_room(slot) } else { of_stream.min(of_all) };
        self.streams[slot].wants_room = room == 0;
        room
    }

    /// The room of a stream although all streams together have too much. Those whose windows are closed must
    /// not silence the others: who has nothing queued and could send gets a little of a reserve, half as
    /// large as what all may have.
    #[cold]
    fn reserved_room(&mut self, slot: u32) -> usize {
        let of_all = self.limits.connection_send_bytes as usize;
        let could_send = self.streams[slot].could_send();
        if could_send && self.queued < of_all + of_all / 2 {
            return self.output.inline_bytes_max().max(1);
        }
        let level = if could_send { of_all } else { of_all / 2 };
        self.relieve_at = self.relieve_at.max(Some(level));
        0
    }

    /// Takes a stream that had no room to send and has some now.
    pub fn take_roomy(&mut self) -> Option<StreamKey> {
        while let Some(key) = self.roomy.pop() {
            if self.streams.live(key).is_some() {
                return Some(key);
            }
        }
        None
    }

    /// True when [`Connection::take_roomy`] would return a stream.
    pub fn has_roomy(&mut self) -> bool {
        while let Some(&key) = self.roomy.last() {
            if self.streams.live(key).is_some() {
                return true;
            }
            self.roomy.pop();
        }
        false
    }

    /// The bytes to write next. When all of the last plan is written, makes a new one: frames that are ready,
    /// then bodies by priority, up to `bytes_max` bytes or [`Limits::plan_bytes`](crate::Limits::plan_bytes).
    pub fn plan(&mut self, now_us: u64, bytes_max: usize) -> &Plan {
        self.now_us = now_us;
        if self.output.plan.is_empty() && self.output.has_work() {
            self.output.begin_plan(bytes_max);
            while let Some((slot, drained, bytes)) = self.output.plan_frame(&mut self.streams) {
                self.queued -= bytes;
                self.streams[slot].send_progress.note(bytes as u32, self.now_us);
                self.after_frame(slot, drained);
            }
        }
        // What was queued may have gone with its streams, so that there is nothing to plan.
        if self.relieve_at.is_some_and(|level| self.queued <= level) {
            self.relieve();
        }
        &self.output.plan
    }

    /// True when the last plan is written completely.
    pub fn plan_is_written(&self) -> bool {
        self.output.plan.is_empty()
    }

    /// Marks `bytes` of the plan as written.
    pub fn wrote(&mut self, bytes: usize) {
        self.output.plan.advance(bytes);
    }

    /// There is room again for all streams together.
    #[cold]
    fn relieve(&mut self) {
        self.relieve_at = None;
        let mut from = 0;
        while let Some(slot) = self.streams.next_live(from) {
            from = slot + 1;
            self.tell_room(slot);
        }
    }

    /// Notes that the producer of a stream can go on, if it waits and there is room.
    pub(super) fn tell_room(&mut self, slot: u32) {
        let stream = &mut self.streams[slot];
        let has_room = match self.relieve_at {
            None => stream.queued <= self.limits.stream_send_bytes as usize / 2,
            Some(_) => stream.could_send(),
        };
        if stream.wants_room && has_room {
            stream.wants_room = false;
            self.roomy.push(self.streams.key(slot));
        }
    }

    fn after_frame(&mut self, slot: u32, drained: Drained) {
        self.tell_room(slot);
        let stream = &mut self.streams[slot];
        if drained == Drained::Some || stream.sending != Sending::Ending {
            return;
        }
        let id = stream.id;
        if !stream.trailers.is_empty() {
            let trailers = std::mem::take(&mut stream.trailers);
            let encoder = &mut self.encoder;
            self.output.after_body(|out| {
                header_block(out, id, true, |out| encoder.encode(fields::iter(&trailers), out));
            });
            self.streams[slot].trailers = trailers;
        }
        if self.sent_end(slot) {
            self.output.after_body(|out| write::reset(out, id, ErrorCode::NO_ERROR));
        }
    }

    /// The end of the response is among what is ready.
    fn end_response(&mut self, slot: u32) {
        let id = self.streams[slot].id;
        if self.sent_end(slot) {
            write::reset(&mut self.output.ready, id, ErrorCode::NO_ERROR);
        }
    }

    /// The response is out. True: the request is not through, and is to be stopped, since nobody wants the
    /// rest of it (RFC 9113 §8.1).
    fn sent_end(&mut self, slot: u32) -> bool {
        let receiving = self.streams[slot].receiving;
        self.remove_stream(slot, if receiving { Ended::ByUs } else { Ended::ByPeer });
        receiving
    }

    fn sending(&self, stream: StreamKey, wanted: Sending) -> Result<u32, SendError> {
        let slot = self.streams.live(stream).ok_or(SendError::Gone)?;
        if self.streams[slot].sending == wanted { Ok(slot) } else { Err(SendError::OutOfOrder) }
    }
}
