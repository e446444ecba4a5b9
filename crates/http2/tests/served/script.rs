//! What a client sends, frame by frame.

use sluice_http2::frame::{PREFACE, Setting, flag, kind, write};
use sluice_http2::hpack::Encoder;

/// What a client sends.
pub(crate) struct Script {
    pub(crate) bytes: Vec<u8>,
    encoder: Encoder,
    /// Streams that are to be answered.
    pub(crate) streams: usize,
    /// Pings that are.
    pings: usize,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[Setting]) -> Self {
        let mut bytes = PREFACE.to_vec();
        write::settings(&mut bytes, settings);
        Self { bytes, encoder: Encoder::new(), streams: 0, pings: 0 }
    }

    pub(crate) fn frame(mut self, frame_kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        self.pings += usize::from(frame_kind == kind::PING);
        write::header(&mut self.bytes, payload.len(), frame_kind, flags, stream);
        self.bytes.extend_from_slice(payload);
        self
    }

    /// How many answers there are to wait for.
    pub(crate) fn answers(&self) -> usize {
        self.streams + self.pings
    }

    pub(crate) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder
            .encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut block);
        block
    }

    pub(crate) fn head(&mut self, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let head = [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")];
        let (pseudo, fields): (Vec<_>, Vec<_>) =
            head.iter().chain(more).copied().partition(|(name, _)| name.starts_with(':'));
        self.block(&[pseudo, fields].concat())
    }

    /// The head of a request, in one frame.
    pub(crate) fn request(
        mut self,
        stream: u32,
        method: &str,
        path: &str,
        end: u8,
        more: &[(&str, &str)],
    ) -> Self {
        self.streams += 1;
        let block = self.head(method, path, more);
        self.frame(kind::HEADERS, flag::END_HEADERS | end, stream, &block)
    }

    pub(crate) fn get(self, stream: u32, path: &str) -> Self {
        self.request(stream, "GET", path, flag::END_STREAM, &[])
    }

    pub(crate) fn data(self, stream: u32, data: &[u8], flags: u8) -> Self {
        self.frame(kind::DATA, flags, stream, data)
    }

    pub(crate) fn trailers(mut self, stream: u32, fields: &[(&str, &str)]) -> Self {
        let block = self.block(fields);
        self.frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block)
    }
}
