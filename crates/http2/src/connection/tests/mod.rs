//! Each test plays a client: it sends frames and sees events and frames as lines of text, so that it reads
//! like a story.

mod deadlines;
mod ending;
mod floods;
mod malformed;
mod requests;
mod responses;
mod settings;
mod states;
mod windows;

use std::sync::Arc;

use super::{Connection, Event, StreamKey};
use crate::emit::EmitMode;
use crate::frame::{FrameHeader, PREFACE, Setting, flag, kind, write};
use crate::hpack::{Decoder, Encoder, HeaderArena};
use crate::{ErrorCode, Limits};

pub(super) const NONE: [&str; 0] = [];

/// A connection and the client at its other end.
pub(super) struct Client {
    pub(super) connection: Connection,
    pub(super) now_us: u64,
    /// Streams in the order in which requests came.
    pub(super) streams: Vec<StreamKey>,
    encoder: Encoder,
    decoder: Decoder,
    /// The part of a frame at the end of the last input.
    rest: Vec<u8>,
}

impl Client {
    /// After preface and settings of both sides. It may be silent for as long as it likes.
    pub(super) fn new() -> Self {
        Self::with(Limits { keep_alive_us: u64::MAX, ..Limits::default() })
    }

    pub(super) fn with(limits: Limits) -> Self {
        let mut client = Self::silent(limits, EmitMode::Auto);
        let mut hello = PREFACE.to_vec();
        write::settings(&mut hello, &[]);
        write::settings_ack(&mut hello);
        assert_eq!(client.send(&hello), NONE);
        client.frames();
        client
    }

    /// Before anything was sent.
    pub(super) fn silent(limits: Limits, mode: EmitMode) -> Self {
        let now_us = 1_000_000;
        Self {
            connection: Connection::new(Arc::new(limits), mode, now_us),
            now_us,
            streams: Vec::new(),
            encoder: Encoder::new(),
            decoder: Decoder::new(4_096, 1 << 20),
            rest: Vec::new(),
        }
    }

    /// Sends bytes, and gives the events that they make.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.rest);
        let mut left = &input[..];
        let mut events = Vec::new();
        while let Some(event) = self.connection.next_event(&mut left, self.now_us) {
            if let Event::Request { stream, .. } = event {
                self.streams.push(stream);
            }
            events.push(self.tell(event));
        }
        self.rest = left.to_vec();
        events
    }

    pub(super) fn send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<String> {
        self.send(&frame(kind, flags, stream, payload))
    }

    pub(super) fn send_settings(&mut self, settings: &[Setting]) -> Vec<String> {
        let mut bytes = Vec::new();
        write::settings(&mut bytes, settings);
        self.send(&bytes)
    }

    pub(super) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder
            .encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut block);
        block
    }

    pub(super) fn headers(&mut self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<String> {
        let block = self.block(fields);
        self.send_frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
    }

    /// A request without a body.
    pub(super) fn get(&mut self, stream: u32) -> Vec<String> {
        self.headers(stream, flag::END_STREAM, GET)
    }

    /// The head of a request with a body.
    pub(super) fn post(&mut self, stream: u32) -> Vec<String> {
        self.headers(stream, 0, POST)
    }

    pub(super) fn data(&mut self, stream: u32, data: &[u8], end: bool) -> Vec<String> {
        self.send_frame(kind::DATA, if end { flag::END_STREAM } else { 0 }, stream, data)
    }

    pub(super) fn open_window(&mut self, stream: u32, increment: u32) -> Vec<String> {
        self.send_frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
    }

    pub(super) fn wait(&mut self, time_us: u64) -> Vec<String> {
        self.now_us += time_us;
        let mut events = Vec::new();
        while let Some(event) = self.connection.expire(self.now_us) {
            events.push(self.tell(event));
        }
        events
    }

    /// The bytes of the next plan.
    pub(super) fn plan(&mut self) -> Vec<u8> {
        let plan = self.connection.plan(self.now_us, usize::MAX);
        let mut slices = [std::io::IoSlice::new(&[]); 1_000];
        let filled = plan.slices(&mut slices, usize::MAX);
        let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter()).copied().collect();
        self.connection.wrote(bytes.len());
        bytes
    }

    /// All frames that are sent now.
    pub(super) fn frames(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        while self.connection.output.has_work() {
            bytes.extend(self.plan());
        }
        self.tell_frames(&bytes)
    }

    pub(super) fn tell_frames(&mut self, mut bytes: &[u8]) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some(header) = FrameHeader::parse(bytes) {
            let (frame, rest) = bytes.split_at(FrameHeader::BYTES + header.length as usize);
            bytes = rest;
            frames.push(self.tell_frame(header, &frame[FrameHeader::BYTES..]));
        }
        assert!(bytes.is_empty(), "a frame is cut off");
        frames
    }

    fn tell_frame(&mut self, header: FrameHeader, payload: &[u8]) -> String {
        use crate::frame::Frame;
        let end = |end: bool| if end { " end" } else { "" };
        match Frame::parse(header, payload).expect("what is sent is right") {
            Frame::Data { stream, data, end_stream, .. } => {
                format!("DATA {stream} {}{}", data.len(), end(end_stream))
            }
            Frame::Headers { stream, fragment, end_stream, end_headers: true, .. } => {
                let mut fields = HeaderArena::new();
                self.decoder.decode(fragment, &mut fields).expect("a right block");
                format!("HEADERS {stream}{}{}", tell_fields(fields.iter()), end(end_stream))
            }
            Frame::Headers { stream, fragment, .. } => format!("HEADERS {stream} {}...", fragment.len()),
            Frame::Continuation { stream, fragment, end_headers } => {
                format!("CONTINUATION {stream} {}{}", fragment.len(), end(end_headers))
            }
            Frame::Reset { stream, code } => format!("RST_STREAM {stream} {code}"),
            Frame::Settings(_) => "SETTINGS".into(),
            Frame::SettingsAck => "SETTINGS ACK".into(),
            Frame::Ping { ack, payload } => {
                format!("PING{} {}", if ack { " ACK" } else { "" }, String::from_utf8_lossy(&payload))
            }
            Frame::GoAway { last_stream, code } => format!("GOAWAY {last_stream} {code}"),
            Frame::WindowUpdate { stream, increment } => format!("WINDOW_UPDATE {stream} {increment}"),
            other => format!("{other:?}"),
        }
    }

    fn tell(&self, event: Event<'_>) -> String {
        let end_of = |end: bool| if end { " end" } else { "" };
        match event {
            Event::Request { stream, end } => {
                let request = self.connection.request();
                let (method, path) = (request.method(), request.path().unwrap_or_default());
                let head = [method, b" ", path].concat();
                let fields = tell_fields(request.fields());
                format!("request {} {}{fields}{}", stream.id, String::from_utf8_lossy(&head), end_of(end))
            }
            Event::Data { stream, data, end } => format!("data {} {}{}", stream.id, data.len(), end_of(end)),
            Event::Trailers { stream } => {
                format!("trailers {}{}", stream.id, tell_fields(self.connection.trailers()))
            }
            Event::Reset { stream, code } => format!("reset {} {code}", stream.id),
            Event::Stalled { stream, half } => format!("stalled {} {half:?}", stream.id),
            Event::Idle => "idle".to_string(),
            Event::GoAway { code } => format!("goaway {code}"),
            Event::Closed(fault) => format!("closed {}", fault.code),
        }
    }

    /// Answers the newest request with 200 and this body.
    pub(super) fn answer(&mut self, body: &[u8]) {
        let stream = *self.streams.last().expect("a request");
        self.connection.respond(stream, 200, None, [], false).expect("open");
        self.connection.send_body(stream, bytes::Bytes::copy_from_slice(body), true).expect("open");
    }

    /// Asserts that the connection ends with `code`, and says so to the peer.
    #[track_caller]
    pub(super) fn assert_closes(&mut self, events: &[String], code: ErrorCode) {
        assert_eq!(events.last().map(String::as_str), Some(&*format!("closed {code}")), "{events:?}");
        let frames = self.frames();
        let last = frames.last().expect("GOAWAY");
        assert!(last.starts_with("GOAWAY ") && last.ends_with(&code.to_string()), "{frames:?}");
        assert!(self.connection.is_done());
    }

    /// Asserts that stream `id` alone was reset with `code`, and that the next request is served.
    #[track_caller]
    pub(super) fn assert_resets(&mut self, id: u32, code: ErrorCode) {
        let frames = self.frames();
        assert!(frames.contains(&format!("RST_STREAM {id} {code}")), "{frames:?}");
        assert_eq!(self.get(1_001), ["request 1001 GET / end"]);
        self.answer(b"ok");
        assert_eq!(self.frames(), ["HEADERS 1001 :status=200", "DATA 1001 2 end"]);
    }
}

pub(super) const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "sluice")];
pub(super) const POST: &[(&str, &str)] =
    &[(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "sluice")];

/// `fields`, then `more`.
pub(super) fn and<'a>(fields: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    fields.iter().chain(more).copied().collect()
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::header(&mut bytes, payload.len(), kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

fn tell_fields<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> String {
    fields
        .map(|(name, value)| String::from_utf8_lossy(&[b" ", name, b"=", value].concat()).into_owned())
        .collect()
}
