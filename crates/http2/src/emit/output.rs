//! Frames that are ready, and how bodies become frames.

use bytes::Bytes;

use super::{Plan, Schedule};
use crate::frame::{FrameHeader, PAYLOAD_BYTES_MAX, flag, kind, write};
use crate::limits;
use crate::streams::{Sending, Stream, Streams};

/// The way in which payloads are put into a plan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EmitMode {
    /// Small pieces are copied, large ones referenced.
    #[default]
    Auto,
    /// All are copied.
    Copy,
    /// All are referenced.
    Gather,
    /// All are copied, and each frame is written by itself: what to compare with.
    Naive,
}

/// Output that waits to be written, except for bodies, which wait at their streams.
#[derive(Debug)]
pub(crate) struct Output {
    /// Frames that are whole, in order.
    pub(crate) ready: Vec<u8>,
    pub(crate) plan: Plan,
    pub(crate) schedule: Schedule,
    /// Send window of the connection, in bytes.
    pub(crate) send_window: i64,
    pub(crate) sent: SentData,
    /// Pieces up to this size are copied.
    copy_bytes: usize,
    by_frame: bool,
    plan_bytes: usize,
    /// Bytes that the current plan may have.
    room: usize,
}

/// All DATA that has gone out.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SentData {
    frames: u64,
    pub(crate) bytes: u64,
}

impl SentData {
    /// Number of frames of one kind that a client may send in answer to the DATA sent so far.
    pub(crate) fn answers(self) -> u64 {
        self.frames * limits::ANSWERS_PER_FRAME + self.bytes / limits::ANSWER_BYTES
    }
}

/// The part of a stream's queue that a frame has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Drained {
    /// There is more.
    Some,
    /// The queue is empty.
    All,
}

/// Less than this is not worth a frame at the end of a plan.
const FRAME_BYTES_MIN: usize = 64;

impl Output {
    pub(crate) fn new(mode: EmitMode, copy_bytes: u32, plan_bytes: u32) -> Self {
        let copy_bytes = match mode {
            EmitMode::Auto => copy_bytes as usize,
            EmitMode::Copy | EmitMode::Naive => usize::MAX,
            EmitMode::Gather => 0,
        };
        Self {
            ready: Vec::new(),
            plan: Plan::default(),
            schedule: Schedule::new(),
            send_window: 65_535,
            sent: SentData::default(),
            copy_bytes,
            by_frame: mode == EmitMode::Naive,
            plan_bytes: plan_bytes as usize,
            room: 0,
        }
    }

    /// Bytes that a body may have to go out with the head of its response, before any other body.
    pub(crate) fn inline_bytes_max(&self) -> usize {
        self.copy_bytes.min(PAYLOAD_BYTES_MAX as usize)
    }

    /// True when there is anything to write, or could be planned.
    pub(crate) fn has_work(&self) -> bool {
        !self.plan.is_empty() || !self.ready.is_empty() || (!self.schedule.is_empty() && self.send_window > 0)
    }

    /// Bytes of storage that are kept from one plan to the next.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.ready.capacity() + self.plan.kept_bytes()
    }

    /// Lets go of the storage in which nothing waits.
    pub(crate) fn rest(&mut self) {
        if self.ready.is_empty() {
            self.ready = Vec::new();
        }
        if self.plan.is_empty() {
            self.plan = Plan::default();
        }
    }

    /// Begins the next plan, of at most so many bytes, with the frames that are ready, however many those
    /// are.
    pub(crate) fn begin_plan(&mut self, bytes_max: usize) {
        self.room = self.plan_bytes.min(bytes_max);
        self.plan.begin(&mut self.ready, self.by_frame);
    }

    /// Plans one frame of the body that is next: its slot, whether its queue is empty now, and how many bytes
    /// it were. Nothing when no stream can send, or the plan is full.
    pub(crate) fn plan_frame(&mut self, streams: &mut Streams) -> Option<(u32, Drained, usize)> {
        let room = self.room.saturating_sub(self.plan.len());
        if self.send_window <= 0 || room < FRAME_BYTES_MIN {
            return None;
        }
        let slot = self.schedule.first()?;
        let stream = &mut streams[slot];
        let window = self.send_window.min(stream.send_window).max(0) as usize;
        let bytes = stream.queued.min(window).min(PAYLOAD_BYTES_MAX as usize).min(room - FrameHeader::BYTES);
        stream.send_window -= bytes as i64;
        let is_last =
            bytes == stream.queued && stream.sending == Sending::Ending && stream.trailers.is_empty();
        self.frame(stream, bytes, is_last);
        self.note_data(bytes);

        if !stream.is_sendable() {
            self.schedule.remove(streams, slot);
        } else {
            self.schedule.take_turns(streams, slot);
        }
        let drained = if streams[slot].queued == 0 { Drained::All } else { Drained::Some };
        Some((slot, drained, bytes))
    }

    /// Notes that a DATA frame goes out.
    pub(crate) fn note_data(&mut self, bytes: usize) {
        self.send_window -= bytes as i64;
        self.sent.frames += 1;
        self.sent.bytes += bytes as u64;
    }

    /// One DATA frame of the first `bytes` of a stream's queue.
    fn frame(&mut self, stream: &mut Stream, mut bytes: usize, is_last: bool) {
        stream.queued -= bytes;
        let mut header = Some((bytes, if is_last { flag::END_STREAM } else { 0 }));
        while bytes > 0 {
            let Some(piece) = take_piece(stream, bytes) else { break };
            bytes -= piece.len();
            let copied = piece.len() <= self.copy_bytes;
            if header.is_some() || copied {
                self.plan.copy(|out| {
                    if let Some((length, flags)) = header.take() {
                        write::header(out, length, kind::DATA, flags, stream.id);
                    }
                    if copied {
                        out.extend_from_slice(&piece);
                    }
                });
            }
            if !copied {
                self.plan.reference(piece);
            }
        }
    }

    /// Appends to the plan what follows the body of a stream.
    pub(crate) fn after_body(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.plan.copy(write);
    }
}

/// The first piece of a stream's queue, at most `bytes` of it.
fn take_piece(stream: &mut Stream, bytes: usize) -> Option<Bytes> {
    let first = stream.queue.front_mut()?;
    if first.len() > bytes { Some(first.split_to(bytes)) } else { stream.queue.pop_front() }
}

/// Appends a header block that `fill` writes, as HEADERS and, beyond the size of a frame, CONTINUATION
/// frames.
pub(crate) fn header_block(out: &mut Vec<u8>, id: u32, end_stream: bool, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FrameHeader::BYTES]);
    fill(out);
    let end_flag = if end_stream { flag::END_STREAM } else { 0 };
    let block = start + FrameHeader::BYTES;
    let length = out.len() - block;
    let max = PAYLOAD_BYTES_MAX as usize;
    let (first, last_flag) = if length <= max { (length, flag::END_HEADERS) } else { (max, 0) };
    let header =
        FrameHeader { length: first as u32, kind: kind::HEADERS, flags: end_flag | last_flag, stream: id };
    out[start..block].copy_from_slice(&header.to_bytes());
    if length > max {
        continue_block(out, id, block + max);
    }
}

/// Puts what follows `at` into CONTINUATION frames.
#[cold]
fn continue_block(out: &mut Vec<u8>, id: u32, at: usize) {
    let rest = out.split_off(at);
    let mut pieces = rest.chunks(PAYLOAD_BYTES_MAX as usize).peekable();
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        write::header(out, piece.len(), kind::CONTINUATION, flags, id);
        out.extend_from_slice(piece);
    }
}
