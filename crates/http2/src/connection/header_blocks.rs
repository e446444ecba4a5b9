//! HEADERS and CONTINUATION (RFC 9113 §6.2, §6.10, §8.1), up to requests and trailers.

use super::ending::Drain;
use super::guard::Costly;
use super::{Connection, Event, request};
use crate::error::{ErrorCode, Fault};
use crate::hpack::{DecodeError, Field};
use crate::streams::Ended;

/// A header block on its way. Its storage is used again.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The stream, or 0 when none is on its way.
    id: u32,
    end_stream: bool,
    depends_on_itself: bool,
    bytes: Vec<u8>,
    /// CONTINUATION frames that came.
    continued: u32,
}

/// Storage that is kept from one block to the next, in bytes.
const KEPT_BYTES: usize = 16 << 10;

/// The largest block that is remembered. Those that come again are short, since their fields are in tables.
const REPEATED_BYTES: usize = 256;

impl Block {
    /// The stream whose block is not whole yet.
    pub(super) fn stream(&self) -> Option<u32> {
        (self.id != 0).then_some(self.id)
    }

    pub(super) fn is_open(&self) -> bool {
        self.id != 0
    }

    /// Lets go of the storage; none is on its way.
    pub(super) fn rest(&mut self) {
        self.bytes = Vec::new();
    }
}

impl Connection {
    pub(super) fn begin_block(
        &mut self,
        id: u32,
        end_stream: bool,
        depends_on_itself: bool,
    ) -> Result<(), Fault> {
        if id.is_multiple_of(2) {
            let what = "a client opens a stream with an even id";
            return Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what));
        }
        self.block.id = id;
        self.block.end_stream = end_stream;
        self.block.depends_on_itself = depends_on_itself;
        Ok(())
    }

    /// A piece of the block, which is decoded when it is whole: at once if it is in one piece.
    pub(super) fn on_fragment<'a>(
        &mut self,
        fragment: &[u8],
        end_headers: bool,
    ) -> Result<Option<Event<'a>>, Fault> {
        if end_headers && self.block.bytes.is_empty() {
            return self.on_block(fragment);
        }
        if fragment.is_empty() {
            self.guard.count(Costly::EmptyFrame, self.now_us)?;
        }
        self.block.bytes.extend_from_slice(fragment);
        if self.block.bytes.len() > self.limits.header_block_bytes as usize {
            return Err(Fault::connection(ErrorCode::ENHANCE_YOUR_CALM, "a header block is too large"));
        }
        if !end_headers {
            self.block.continued += 1;
            if self.block.continued > self.limits.continuation_frames {
                return Err(Fault::connection(
                    ErrorCode::ENHANCE_YOUR_CALM,
                    "a header block has too many frames",
                ));
            }
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.block.bytes);
        let event = self.on_block(&bytes);
        bytes.clear();
        bytes.shrink_to(KEPT_BYTES);
        self.block.bytes = bytes;
        event
    }

    /// A whole block. It is decoded whatever becomes of its stream, since the table has to be kept in step
    /// (RFC 9113 §4.3); but for one that is the same as the last, which clients send that ask for the same
    /// again and again.
    fn on_block<'a>(&mut self, bytes: &[u8]) -> Result<Option<Event<'a>>, Fault> {
        let id = std::mem::take(&mut self.block.id);
        self.block.continued = 0;
        let repeats = bytes == self.repeated && !bytes.is_empty();
        let changes = self.decoder.changes();
        let too_large = !repeats && self.decode(bytes)?;
        if let Some(slot) = self.streams.slot(id) {
            return self.on_trailers(slot, too_large).map(Some);
        }
        if id > self.last_stream {
            let event = self.on_request(id, too_large, repeats)?;
            let comes_again = event.is_some() && changes == self.decoder.changes();
            if comes_again && !repeats && bytes.len() <= REPEATED_BYTES {
                self.repeated.extend_from_slice(bytes);
            }
            return Ok(event);
        }
        match self.streams.how_ended(id) {
            Some(Ended::ByUs) => self.count_answer(Costly::LateFrame).map(|()| None),
            Some(Ended::ByPeer) => {
                Err(Fault::connection(ErrorCode::STREAM_CLOSED, "HEADERS on a stream that has ended"))
            }
            None => {
                let what = "a stream is opened with a lower id than one before";
                Err(Fault::connection(ErrorCode::PROTOCOL_ERROR, what))
            }
        }
    }

    /// Decodes a block. True: the list is too large.
    fn decode(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        self.repeated.clear();
        match self.decoder.decode(bytes, &mut self.fields) {
            Ok(()) => Ok(false),
            Err(DecodeError::ListTooLarge { .. }) => Ok(true),
            Err(DecodeError::Compression(_)) => {
                Err(Fault::connection(ErrorCode::COMPRESSION_ERROR, "a header block cannot be decoded"))
            }
        }
    }

    /// The block after a body (RFC 9113 §8.1).
    fn on_trailers<'a>(&mut self, slot: u32, too_large: bool) -> Result<Event<'a>, Fault> {
        let stream = &mut self.streams[slot];
        let fault = |code, what| Err(Fault::stream(stream.id, code, what));
        if !stream.receiving {
            return fault(ErrorCode::STREAM_CLOSED, "HEADERS after the end of the request");
        }
        if !self.block.end_stream {
            return fault(ErrorCode::PROTOCOL_ERROR, "HEADERS in the middle of a request");
        }
        if self.block.depends_on_itself {
            return fault(ErrorCode::PROTOCOL_ERROR, "a stream depends on itself");
        }
        if too_large {
            return fault(ErrorCode::ENHANCE_YOUR_CALM, "the trailers are too large");
        }
        if stream.body_left.is_some_and(|left| left > 0) {
            return fault(ErrorCode::PROTOCOL_ERROR, "the body is shorter than content-length says");
        }
        if let Err(what) = request::check_trailers(&self.fields) {
            return fault(ErrorCode::PROTOCOL_ERROR, what);
        }
        stream.receiving = false;
        Ok(Event::Trailers { stream: self.streams.key(slot) })
    }

    /// The block that opens a stream (RFC 9113 §5.1.1, §5.1.2, §8.3.1); is it the last one again, it is known
    /// to be right.
    fn on_request<'a>(
        &mut self,
        id: u32,
        too_large: bool,
        repeats: bool,
    ) -> Result<Option<Event<'a>>, Fault> {
        self.last_stream = id;
        if self.drain == Drain::Final {
            // The peer knows from GOAWAY that nothing is done for it (RFC 9113 §6.8).
            self.streams.remember(id, Ended::ByUs);
            return self.count_answer(Costly::LateFrame).map(|()| None);
        }
        if self.streams.len() >= self.limits.streams as usize {
            return Err(Fault::stream(id, ErrorCode::REFUSED_STREAM, "more streams are open than allowed"));
        }
        if self.block.depends_on_itself {
            return Err(Fault::stream(id, ErrorCode::PROTOCOL_ERROR, "a stream depends on itself"));
        }
        let end = self.block.end_stream;
        if too_large {
            return self.refuse_large(id, end);
        }
        if !repeats {
            self.request = request::check_request(&self.fields)
                .map_err(|what| Fault::stream(id, ErrorCode::PROTOCOL_ERROR, what))?;
        }
        let checked = self.request;
        if end && checked.content_length.is_some_and(|length| length > 0) {
            let what = "there is no body, although content-length says so";
            return Err(Fault::stream(id, ErrorCode::PROTOCOL_ERROR, what));
        }
        if self.head_bytes + checked.list_bytes > self.limits.connection_header_bytes {
            let what = "the header lists of all requests are too large together";
            return Err(Fault::stream(id, ErrorCode::REFUSED_STREAM, what));
        }
        self.head_bytes += checked.list_bytes;
        let slot = self.open(id, end);
        let stream = &mut self.streams[slot];
        stream.head_bytes = checked.list_bytes;
        stream.body_left = checked.content_length;
        if let Some(priority) = self.early_priorities.take(id).or(checked.priority) {
            stream.priority = priority;
        }
        Ok(Some(Event::Request { stream: self.streams.key(slot), end }))
    }

    fn open(&mut self, id: u32, end: bool) -> u32 {
        let slot = self.streams.insert(id, self.limits.stream_receive_bytes, self.first_send_window);
        self.deadlines.busy(&self.limits, self.now_us);
        let stream = &mut self.streams[slot];
        stream.receiving = !end;
        if !end {
            stream.receive_progress.restart(self.now_us);
            self.deadlines.watch_streams(self.now_us);
        }
        slot
    }

    /// Answers a request whose header list is too large with 431 (RFC 9113 §10.5.1). Nobody else sees it.
    #[cold]
    fn refuse_large<'a>(&mut self, id: u32, end: bool) -> Result<Option<Event<'a>>, Fault> {
        self.guard.count(Costly::Reset, self.now_us)?;
        let slot = self.open(id, end);
        let stream = self.streams.key(slot);
        self.respond(stream, 431, None, [Field::new("content-length", "0")], true)
            .expect("the stream was opened just now");
        Ok(None)
    }
}
