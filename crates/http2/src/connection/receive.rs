//! Frames that come in, but for header blocks.

use super::ending::Drain;
use super::guard::Costly;
use super::{Connection, Event, Phase};
use crate::error::{ErrorCode, Fault};
use crate::frame::{Frame, FrameHeader, PAYLOAD_BYTES_MAX, Setting, SettingsPayload, kind, write};
use crate::streams::Ended;
use crate::streams::Priority;

/// Priorities that came before their streams (RFC 9218 §7.1); of many, only the last are kept.
#[derive(Debug, Default)]
pub(super) struct EarlyPriorities {
    places: [Option<(u32, Priority)>; 16],
    next: usize,
    /// Number of places in use: mostly none.
    taken: usize,
}

impl EarlyPriorities {
    fn put(&mut self, id: u32, priority: Priority) {
        let same = self.places.iter().position(|place| place.is_some_and(|(other, _)| other == id));
        let place = same.unwrap_or_else(|| {
            self.next = (self.next + 1) % self.places.len();
            self.next
        });
        self.taken += usize::from(self.places[place].is_none());
        self.places[place] = Some((id, priority));
    }

    pub(super) fn take(&mut self, id: u32) -> Option<Priority> {
        if self.taken == 0 {
            return None;
        }
        let place = self.places.iter_mut().find(|place| place.is_some_and(|(other, _)| other == id))?;
        self.taken -= 1;
        place.take().map(|(_, priority)| priority)
    }
}

impl Connection {
    /// Takes a frame off the front of `input`, if one is there whole.
    pub(super) fn take_frame<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Fault> {
        let Some(header) = FrameHeader::parse(input) else { return Ok(None) };
        self.check_order(header)?;
        if header.length > PAYLOAD_BYTES_MAX {
            let what = "a frame has more than 16384 bytes of payload";
            return Err(Fault::connection(ErrorCode::FRAME_SIZE_ERROR, what));
        }
        let Some((frame, rest)) = input.split_at_checked(FrameHeader::BYTES + header.length as usize) else {
            return Ok(None);
        };
        *input = rest;
        Frame::parse(header, &frame[FrameHeader::BYTES..]).map(Some)
    }

    /// Checks the order of frames (RFC 9113 §3.4, §4.3, §6.10), before the payload is there.
    fn check_order(&self, header: FrameHeader) -> Result<(), Fault> {
        let wrong = |what| Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what));
        match (self.block.stream(), header.kind) {
            (None, kind::CONTINUATION) => wrong("CONTINUATION without a header block that it goes on with"),
            (Some(id), kind::CONTINUATION) if id == header.stream => Ok(()),
            (Some(_), _) => wrong("a header block is interrupted"),
            (None, kind) if self.phase == Phase::FirstSettings => {
                let is_settings = kind == kind::SETTINGS && !header.has(crate::frame::flag::ACK);
                if is_settings { Ok(()) } else { wrong("the first frame is not SETTINGS") }
            }
            (None, _) => Ok(()),
        }
    }

    pub(super) fn on_frame<'a>(&mut self, frame: Frame<'a>) -> Result<Option<Event<'a>>, Fault> {
        match frame {
            Frame::Data { stream, data, flow_bytes, end_stream } => {
                return self.on_data(stream, data, flow_bytes, end_stream);
            }
            Frame::Headers { stream, fragment, end_stream, end_headers, depends_on_itself } => {
                self.begin_block(stream, end_stream, depends_on_itself)?;
                return self.on_fragment(fragment, end_headers);
            }
            Frame::Continuation { fragment, end_headers, .. } => {
                return self.on_fragment(fragment, end_headers);
            }
            Frame::Reset { stream, code } => return self.on_reset(stream, code),
            Frame::GoAway { code, .. } => {
                self.guard.count(Costly::IdleFrame, self.now_us)?;
                self.peer_leaves = true;
                if self.streams.is_empty() {
                    self.finish_drain();
                }
                return Ok(Some(Event::GoAway { code }));
            }
            Frame::WindowUpdate { stream, increment } => self.on_window_update(stream, increment)?,
            Frame::Settings(payload) => self.on_settings(payload)?,
            Frame::SettingsAck => {
                self.deadlines.settings_acknowledged();
                self.decoder.settings_acknowledged();
                // The next block may have to begin otherwise.
                self.repeated.clear();
            }
            Frame::Ping { ack, payload } => self.on_ping(ack, payload)?,
            Frame::PriorityUpdate { stream, value } => self.on_priority(stream, value)?,
            Frame::Priority { .. } | Frame::Unknown => self.guard.count(Costly::IdleFrame, self.now_us)?,
        }
        Ok(None)
    }

    /// DATA (RFC 9113 §6.1).
    fn on_data<'a>(
        &mut self,
        id: u32,
        data: &'a [u8],
        flow_bytes: u32,
        end: bool,
    ) -> Result<Option<Event<'a>>, Fault> {
        self.receive.take(flow_bytes, &mut self.output.ready)?;
        if data.is_empty() && !end {
            self.guard.count(Costly::EmptyFrame, self.now_us)?;
        }
        let Some(slot) = self.streams.slot(id) else {
            self.receive.give(flow_bytes, &mut self.output.ready);
            return self.on_late_frame(id, false).map(|()| None);
        };
        if let Err(fault) = self.take_data(slot, data.len() as u32, flow_bytes, end) {
            self.receive.give(flow_bytes, &mut self.output.ready);
            return Err(fault);
        }
        let stream = &mut self.streams[slot];
        stream.unconsumed += data.len() as u32;
        stream.receive_progress.note(flow_bytes, self.now_us);
        self.give_credit(slot, flow_bytes - data.len() as u32);
        if data.is_empty() && !end {
            return Ok(None);
        }
        Ok(Some(Event::Data { stream: self.streams.key(slot), data, end }))
    }

    /// Checks that a stream may take this piece of its body, and notes it.
    fn take_data(&mut self, slot: u32, bytes: u32, flow_bytes: u32, end: bool) -> Result<(), Fault> {
        let stream = &mut self.streams[slot];
        let fault = |code, what| Err(Fault::stream(stream.id, code, what));
        if !stream.receiving {
            return fault(ErrorCode::STREAM_CLOSED, "DATA after the end of the request");
        }
        if i64::from(flow_bytes) > stream.receive_window {
            return fault(ErrorCode::FLOW_CONTROL_ERROR, "more came in than the stream's window allows");
        }
        if let Some(left) = stream.body_left {
            let left = left.checked_sub(bytes.into());
            if left.is_none() || (end && left != Some(0)) {
                return fault(
                    ErrorCode::PROTOCOL_ERROR,
                    "the body has another length than content-length says",
                );
            }
            stream.body_left = left;
        }
        stream.receive_window -= i64::from(flow_bytes);
        stream.receiving = !end;
        Ok(())
    }

    /// A frame on a stream that is not there (RFC 9113 §5.1). What was on its way when we ended the stream is
    /// passed over, and so is what may always come late.
    pub(super) fn on_late_frame(&mut self, id: u32, may_come_late: bool) -> Result<(), Fault> {
        if id > self.last_stream || id.is_multiple_of(2) {
            let what = "a frame on a stream that nobody has opened";
            return Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what));
        }
        self.count_answer(Costly::LateFrame)?;
        if may_come_late || self.streams.how_ended(id) == Some(Ended::ByUs) {
            return Ok(());
        }
        Err(Fault::stream(id, ErrorCode::STREAM_CLOSED, "a frame on a stream that has ended"))
    }

    /// Counts what clients in good faith send in answer to what they get.
    pub(super) fn count_answer(&mut self, what: Costly) -> Result<(), Fault> {
        self.guard.count_answer(what, self.output.sent.answers(), self.now_us)
    }

    /// RST_STREAM (RFC 9113 §6.4).
    fn on_reset<'a>(&mut self, id: u32, code: ErrorCode) -> Result<Option<Event<'a>>, Fault> {
        let Some(slot) = self.streams.slot(id) else {
            return self.on_late_frame(id, true).map(|()| None);
        };
        let stream = self.streams.key(slot);
        self.remove_stream(slot, Ended::ByPeer);
        self.guard.count(Costly::Reset, self.now_us)?;
        Ok(Some(Event::Reset { stream, code }))
    }

    /// SETTINGS (RFC 9113 §6.5): taken over in order, then acknowledged. The windows of all streams move
    /// once, however often the frame says so.
    fn on_settings(&mut self, payload: SettingsPayload<'_>) -> Result<(), Fault> {
        self.guard.count(Costly::Settings, self.now_us)?;
        let mut windows = None;
        for setting in payload.iter() {
            match setting? {
                Setting::HeaderTableSize(bytes) => self.encoder.set_max_table_size(bytes),
                Setting::InitialWindowSize(bytes) => {
                    let largest = windows.map_or(bytes, |(_, largest)| bytes.max(largest));
                    windows = Some((bytes, largest));
                }
                Setting::NoRfc7540Priorities(on) => self.on_no_rfc7540_priorities(on)?,
                // Nothing is pushed, no frame is larger than what every peer takes, and the rest says nothing
                // to a server.
                _ => {}
            }
        }
        if let Some((last, largest)) = windows {
            self.on_first_window(last, largest)?;
        }
        write::settings_ack(&mut self.output.ready);
        if self.phase == Phase::FirstSettings {
            self.phase = Phase::Open;
            self.deadlines.preface_came(&self.limits, self.now_us);
        }
        Ok(())
    }

    /// Refuses a change of the setting: the priorities have no meaning here in any case, but what the first
    /// SETTINGS said of them stays (RFC 9218 §2.1).
    fn on_no_rfc7540_priorities(&mut self, on: bool) -> Result<(), Fault> {
        if self.phase != Phase::FirstSettings && on != self.no_rfc7540_priorities {
            let what = "SETTINGS_NO_RFC7540_PRIORITIES changes after the first SETTINGS";
            return Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what));
        }
        self.no_rfc7540_priorities = on;
        Ok(())
    }

    /// PING (RFC 9113 §6.7).
    fn on_ping(&mut self, ack: bool, payload: [u8; 8]) -> Result<(), Fault> {
        if ack && self.drain == Drain::Announced && payload == super::ending::DRAIN_PING {
            self.finish_drain();
            return Ok(());
        }
        self.count_answer(Costly::Ping)?;
        if !ack {
            write::ping(&mut self.output.ready, true, payload);
        }
        Ok(())
    }

    /// PRIORITY_UPDATE (RFC 9218 §7.1).
    fn on_priority(&mut self, id: u32, value: &[u8]) -> Result<(), Fault> {
        self.guard.count(Costly::IdleFrame, self.now_us)?;
        if id.is_multiple_of(2) {
            let what = "PRIORITY_UPDATE of a stream that a client cannot open";
            return Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what));
        }
        let priority = Priority::parse(value);
        if let Some(slot) = self.streams.slot(id) {
            self.output.schedule.remove(&mut self.streams, slot);
            self.streams[slot].priority = priority;
            self.schedule(slot);
        } else if id > self.last_stream {
            self.early_priorities.put(id, priority);
        }
        Ok(())
    }
}
