//! A transport in memory with a client at its other end: bytes of a script go in, what comes out is kept.
//! Either way may be cut anywhere, with a pause at each cut.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use sluice_http2::ErrorCode;
use sluice_http2::frame::{Frame, FrameHeader};
use sluice_http2::hpack::{Decoder, HeaderArena};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Where bytes that go one way are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    Nowhere,
    /// Before the byte at this place.
    At(usize),
    /// Before each byte.
    Everywhere,
}

/// One way, and how far it is.
struct Way {
    cut: Cut,
    done: usize,
    /// Whether it has paused where it is now.
    paused: bool,
}

impl Way {
    fn new(cut: Cut) -> Self {
        Self { cut, done: 0, paused: false }
    }

    /// How many of `wanted` bytes may go now; none: not now, but soon.
    fn piece(&mut self, wanted: usize, context: &Context<'_>) -> Option<usize> {
        let (before, piece) = match self.cut {
            Cut::At(at) if at > self.done => (false, wanted.min(at - self.done)),
            Cut::At(at) => (at == self.done, wanted),
            Cut::Everywhere => (true, wanted.min(1)),
            Cut::Nowhere => (false, wanted),
        };
        if before && !self.paused {
            self.paused = true;
            context.waker().wake_by_ref();
            return None;
        }
        self.paused = false;
        self.done += piece;
        Some(piece)
    }
}

/// The transport. It ends once the server has given as many answers as are awaited, or has ended the
/// connection.
pub(crate) struct Simulated {
    reads: Way,
    writes: Way,
    /// What is still to be read.
    input: Vec<u8>,
    /// The client's side of TLS, if there is any.
    tls: Option<rustls::ClientConnection>,
    /// How many streams and pings are to be answered.
    answers: usize,
    told: Told,
    /// Who waits for more to read.
    reader: Option<Waker>,
}

impl Simulated {
    pub(crate) fn new(script: &[u8], answers: usize, reads: Cut, writes: Cut) -> Self {
        let (reads, writes) = (Way::new(reads), Way::new(writes));
        let (input, told) = (script.to_vec(), Told::default());
        Self { reads, writes, input, tls: None, answers, told, reader: None }
    }

    /// The same, encrypted.
    pub(crate) fn over_tls(mut self, mut tls: rustls::ClientConnection) -> Self {
        tls.writer().write_all(&self.input).expect("a short script");
        self.input.clear();
        self.tls = Some(tls);
        self.take_ciphertext();
        self
    }

    /// What the client has seen, when the server's side has come to `result`.
    pub(crate) fn into_told(self, result: io::Result<()>) -> Told {
        let by_server = self.told.goaway.is_some_and(|code| code != ErrorCode::NO_ERROR);
        assert_eq!(result.is_err(), by_server, "{result:?}");
        self.told
    }

    fn take_ciphertext(&mut self) {
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
            tls.write_tls(&mut self.input).expect("room");
        }
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        let Some(tls) = &mut self.tls else {
            self.told.take(bytes);
            return;
        };
        let mut clear = Vec::new();
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes).expect("memory");
            tls.process_new_packets().expect("right records");
            // Ends with WouldBlock, when nothing more is there.
            let _ = tls.reader().read_to_end(&mut clear);
        }
        self.told.take(&clear);
        self.take_ciphertext();
    }
}

impl AsyncRead for Simulated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wanted = self.input.len().min(buf.remaining());
        if wanted == 0 {
            if self.told.ended() + self.told.pongs.len() >= self.answers || self.told.goaway.is_some() {
                return Poll::Ready(Ok(()));
            }
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let Some(piece) = self.reads.piece(wanted, context) else { return Poll::Pending };
        buf.put_slice(&self.input[..piece]);
        self.input.drain(..piece);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Simulated {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = slices.iter().map(|slice| slice.len()).sum();
        let Some(piece) = self.writes.piece(wanted, context) else { return Poll::Pending };
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter()).take(piece).copied().collect();
        self.receive(&bytes);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(piece))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What a client has seen, however it was cut: what of it depends on time alone is left out.
#[derive(Default)]
pub(crate) struct Told {
    rest: Vec<u8>,
    decoder: Option<Decoder>,
    /// A header block that has begun: its stream, its bytes, whether the stream ends with it.
    block: Option<(u32, Vec<u8>, bool)>,
    /// For each stream what came on it, in order: header lists, bodies, how it ended.
    pub(crate) streams: BTreeMap<u32, Vec<String>>,
    /// The payloads of answers to pings.
    pub(crate) pongs: Vec<[u8; 8]>,
    /// With what the connection ended.
    pub(crate) goaway: Option<ErrorCode>,
}

impl Told {
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.rest);
        let mut left = &bytes[..];
        while let Some(header) = FrameHeader::parse(left) {
            let Some((frame, rest)) = left.split_at_checked(FrameHeader::BYTES + header.length as usize)
            else {
                break;
            };
            left = rest;
            self.note(Frame::parse(header, &frame[FrameHeader::BYTES..]).expect("a right frame"));
        }
        self.rest = left.to_vec();
    }

    fn note(&mut self, frame: Frame<'_>) {
        assert!(
            self.block.is_none() || matches!(frame, Frame::Continuation { .. }),
            "{frame:?} within a head"
        );
        match frame {
            Frame::Headers { stream, fragment, end_stream, end_headers, .. } => {
                assert!(!self.is_over(stream), "a head after the end of stream {stream}");
                self.block = Some((stream, fragment.to_vec(), end_stream));
                self.end_head(end_headers);
            }
            Frame::Continuation { stream, fragment, end_headers } => {
                let block = self.block.as_mut().filter(|block| block.0 == stream);
                block.expect("a block that has begun").1.extend_from_slice(fragment);
                self.end_head(end_headers);
            }
            Frame::Data { stream, data, end_stream, .. } => {
                assert!(!self.is_over(stream), "a body after the end of stream {stream}");
                let lines = self.streams.entry(stream).or_default();
                let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
                match lines.last_mut().filter(|line| line.starts_with("body ")) {
                    Some(body) => body.push_str(&hex),
                    None if data.is_empty() => {}
                    None => lines.push(format!("body {hex}")),
                }
                self.end(stream, end_stream);
            }
            // After an answer that did not wait for the end of its request; whether it did, is a matter of
            // time.
            Frame::Reset { code: ErrorCode::NO_ERROR, .. } => {}
            Frame::Reset { stream, code } => {
                // How much of a body goes out before it breaks off, is one, too.
                let lines = self.streams.entry(stream).or_default();
                lines.retain(|line| !line.starts_with("body "));
                lines.push(format!("reset {code}"));
            }
            Frame::GoAway { code, .. } => self.goaway = Some(code),
            Frame::Ping { ack: true, payload } => self.pongs.push(payload),
            _ => {}
        }
    }

    fn end_head(&mut self, end: bool) {
        let Some((stream, block, end_stream)) = self.block.take_if(|_| end) else { return };
        let fields = self.decode(&block);
        // Nobody is told to go on whose body is there.
        if fields != ":status=100 " {
            self.tell(stream, fields);
        }
        self.end(stream, end_stream);
    }

    fn decode(&mut self, block: &[u8]) -> String {
        let decoder = self.decoder.get_or_insert_with(|| Decoder::new(4_096, 1 << 20));
        let mut fields = HeaderArena::new();
        decoder.decode(block, &mut fields).expect("a right block");
        let mut fields: Vec<_> = fields.iter().filter(|(name, _)| *name != b"date").collect();
        // The order of fields with other names means nothing.
        fields.sort_by_key(|(name, _)| *name);
        let told = fields.iter().map(|(name, value)| [name, &b"="[..], value, b" "].concat());
        told.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }

    fn tell(&mut self, stream: u32, line: String) {
        self.streams.entry(stream).or_default().push(line);
    }

    fn end(&mut self, stream: u32, end: bool) {
        if end {
            self.tell(stream, "end".into());
        }
    }

    fn is_over(&self, stream: u32) -> bool {
        self.streams.get(&stream).and_then(|lines| lines.last()).is_some_and(|last| is_end(last))
    }

    /// Streams that have ended.
    fn ended(&self) -> usize {
        self.streams.values().filter(|lines| lines.last().is_some_and(|last| is_end(last))).count()
    }
}

fn is_end(line: &str) -> bool {
    line == "end" || line.starts_with("reset ")
}
