//! Whole sessions from arbitrary bytes, for fuzzing and for tests with random input: a client that does
//! anything, and a server that answers now and then. What goes out is checked against the protocol.

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashSet;

use crate::connection::{Connection, Event, StreamKey};
use crate::emit::EmitMode;
use crate::error::ErrorCode;
use crate::frame::{Frame, FrameHeader, MAX_31_BITS, PAYLOAD_BYTES_MAX, PREFACE, write};
use crate::hpack::{Decoder, Field, HeaderArena};
use crate::limits::Limits;

/// Plays a session.
///
/// The first byte picks the mode and how it begins. Then each byte says what happens: below 192, so many
/// bytes come in; above, the server does something with one of its streams, or time goes on.
///
/// # Panics
/// When the connection breaks one of its own rules.
pub fn session(input: &[u8]) {
    let Some((&first, mut script)) = input.split_first() else { return };
    let mut session = Session::new(first);
    while let Some((&step, rest)) = script.split_first() {
        script = rest;
        if step < 192 {
            let (bytes, rest) = script.split_at(usize::from(step).min(script.len()));
            script = rest;
            session.receive(bytes);
        } else {
            let argument = script.first().copied().unwrap_or(0);
            script = script.get(1..).unwrap_or_default();
            session.act(step, argument);
        }
        session.check();
    }
    session.write(usize::MAX);
    session.check();
}

struct Session {
    connection: Connection,
    now_us: u64,
    unread: Vec<u8>,
    open: Vec<StreamKey>,
    closed: bool,
    sent: Sent,
}

impl Session {
    fn new(first: u8) -> Self {
        let mode =
            [EmitMode::Auto, EmitMode::Copy, EmitMode::Gather, EmitMode::Naive][usize::from(first) % 4];
        // Small, so that short inputs reach them.
        let limits = Limits {
            streams: 8,
            header_list_bytes: 2_048,
            continuation_frames: 4,
            stream_receive_bytes: 65_535,
            connection_receive_bytes: 100_000,
            stream_send_bytes: 4_096,
            backlog_bytes: 4_096,
            plan_bytes: 20_000,
            ..Limits::default()
        };
        let mut session = Self {
            connection: Connection::new(Arc::new(limits), mode, 0),
            now_us: 0,
            unread: Vec::new(),
            open: Vec::new(),
            closed: false,
            sent: Sent::default(),
        };
        if first & 4 == 0 {
            let mut hello = PREFACE.to_vec();
            write::settings(&mut hello, &[]);
            session.receive(&hello);
        }
        session
    }

    fn receive(&mut self, bytes: &[u8]) {
        if !self.connection.wants_input() {
            return;
        }
        self.unread.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.unread);
        let mut left = &input[..];
        while let Some(event) = self.connection.next_event(&mut left, self.now_us) {
            self.note(event);
        }
        self.unread = left.to_vec();
    }

    fn note(&mut self, event: Event<'_>) {
        assert!(!self.closed, "an event after the end: {event:?}");
        let is_open = |stream: StreamKey| self.open.contains(&stream);
        match event {
            Event::Request { stream, .. } => {
                assert!(!is_open(stream));
                let request = self.connection.request();
                assert!(!request.method().is_empty());
                assert!(request.fields().all(|(name, _)| name.first() != Some(&b':')));
                self.open.push(stream);
            }
            // The streams may be answered already, and then are not counted as open here.
            Event::Data { .. } | Event::Trailers { .. } | Event::GoAway { .. } | Event::Idle => {}
            Event::Reset { stream, .. } | Event::Stalled { stream, .. } => {
                self.open.retain(|open| *open != stream)
            }
            Event::Closed(_) => {
                self.closed = true;
                self.open.clear();
            }
        }
    }

    /// The server does something.
    fn act(&mut self, step: u8, argument: u8) {
        if let Some(&stream) = self.open.get(usize::from(argument) % self.open.len().max(1)) {
            let bytes = usize::from(argument) * 97;
            let end = argument.is_multiple_of(2);
            let connection = &mut self.connection;
            let over = match step % 8 {
                0 => {
                    connection.respond(stream, 200, None, [Field::new("x", &[b'y'; 64])], end).is_ok() && end
                }
                1 | 2 => connection.send_body(stream, Bytes::from(vec![0; bytes]), end).is_ok() && end,
                3 => connection.send_trailers(stream, [Field::new("t", "v")]).is_ok(),
                4 => {
                    connection.reset(stream, ErrorCode::CANCEL);
                    true
                }
                5 => {
                    connection.consumed(stream, bytes);
                    false
                }
                6 => connection.inform(stream, 103, []).is_err() && connection.send_room(stream) > 1 << 30,
                _ => false,
            };
            if over {
                self.open.retain(|open| *open != stream);
            }
        }
        match step {
            248.. => self.wait(u64::from(argument) * 1_000_000),
            224.. => self.write(usize::from(argument) * 100 + 1),
            _ if argument == 255 => self.connection.shut_down(self.now_us),
            _ => {}
        }
    }

    fn wait(&mut self, time_us: u64) {
        self.now_us += time_us;
        while let Some(event) = self.connection.expire(self.now_us) {
            self.note(event);
        }
        assert!(self.connection.next_deadline().is_none_or(|deadline_us| deadline_us > self.now_us));
    }

    /// The transport takes at most so many bytes.
    fn write(&mut self, mut bytes: usize) {
        while bytes > 0 {
            let plan = self.connection.plan(self.now_us, usize::MAX);
            if plan.is_empty() {
                return;
            }
            let mut slices = [std::io::IoSlice::new(&[]); 4];
            let filled = plan.slices(&mut slices, bytes);
            let mut written = 0;
            for slice in &slices[..filled] {
                self.sent.bytes.extend_from_slice(slice);
                written += slice.len();
            }
            bytes -= written;
            self.connection.wrote(written);
            self.sent.check();
        }
        while self.connection.take_roomy().is_some() {}
    }

    fn check(&self) {
        assert!(self.unread.len() < FrameHeader::BYTES + PAYLOAD_BYTES_MAX as usize);
        assert!(self.connection.streams() <= 8);
        assert!(self.open.len() <= self.connection.streams());
        assert!(!self.closed || self.connection.streams() == 0);
        assert!(self.connection.backlog() < 64 << 10, "more waits than was ever to be read");
    }
}

/// The output so far, checked as a client would.
#[derive(Default)]
struct Sent {
    bytes: Vec<u8>,
    /// Streams on which nothing more may come.
    ended: FxHashSet<u32>,
    block: Option<u32>,
    over: bool,
    decoder: Option<(Decoder, HeaderArena, Vec<u8>)>,
}

impl Sent {
    /// Checks all whole frames, and forgets them.
    fn check(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut rest = &bytes[..];
        while let Some(header) = FrameHeader::parse(rest) {
            assert!(header.length <= PAYLOAD_BYTES_MAX);
            let Some((frame, after)) = rest.split_at_checked(FrameHeader::BYTES + header.length as usize)
            else {
                break;
            };
            rest = after;
            self.check_frame(Frame::parse(header, &frame[FrameHeader::BYTES..]).expect("a right frame"));
        }
        self.bytes = rest.to_vec();
    }

    fn check_frame(&mut self, frame: Frame<'_>) {
        assert!(!self.over, "a frame after the last GOAWAY: {frame:?}");
        let in_block = self.block.take();
        match frame {
            Frame::Headers { stream, fragment, end_stream, end_headers, .. } => {
                assert_eq!(in_block, None);
                self.on_stream(stream, end_stream);
                self.on_fragment(stream, fragment, end_headers);
            }
            Frame::Continuation { stream, fragment, end_headers } => {
                assert_eq!(in_block, Some(stream));
                self.on_fragment(stream, fragment, end_headers);
            }
            Frame::Data { stream, end_stream, .. } => self.on_stream(stream, end_stream),
            Frame::Reset { stream, .. } => {
                self.ended.insert(stream);
            }
            Frame::GoAway { code, last_stream } => {
                self.over = code != ErrorCode::NO_ERROR;
                assert!(last_stream <= MAX_31_BITS);
            }
            Frame::WindowUpdate { .. } | Frame::Settings(_) | Frame::SettingsAck | Frame::Ping { .. } => {}
            other => panic!("a server does not send {other:?}"),
        }
    }

    /// HEADERS and DATA come only on streams that have not ended.
    fn on_stream(&mut self, stream: u32, end: bool) {
        assert!(!self.ended.contains(&stream), "a frame after the end of stream {stream}");
        if end {
            self.ended.insert(stream);
        }
    }

    fn on_fragment(&mut self, stream: u32, fragment: &[u8], end: bool) {
        let new = || (Decoder::new(4_096, 1 << 20), HeaderArena::new(), Vec::new());
        let (decoder, fields, block) = self.decoder.get_or_insert_with(new);
        block.extend_from_slice(fragment);
        if end {
            decoder.decode(block, fields).expect("a right header block");
            block.clear();
        } else {
            self.block = Some(stream);
        }
    }
}
