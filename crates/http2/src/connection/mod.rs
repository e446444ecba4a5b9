//! One connection, server side (RFC 9113): bytes in, events out; responses in, plans out.
//!
//! [`Connection`] has no sockets and no clock. Whoever drives it
//! 1. gives it what came in, and takes [events](Event), until nothing is left ([`Connection::next_event`]);
//! 2. answers ([`Connection::respond`] and what follows it), and gives back what was consumed of requests
//!    ([`Connection::consumed`]);
//! 3. writes what is planned ([`Connection::plan`], [`Connection::wrote`]);
//! 4. calls [`Connection::expire`] when [`Connection::next_deadline`] has come, after what had come in by
//!    then;
//! 5. ends when [`Connection::is_done`], or when [`Connection::is_over`] and nothing can be written.
//!
//! Times are microseconds since some moment that is the same for all calls.
//!
//! | module | |
//! |---|---|
//! | `receive` | frames that come in, by kind |
//! | `header_blocks` | HEADERS and CONTINUATION, up to requests and trailers |
//! | `request` | what a request has to be |
//! | `windows` | flow control, both ways |
//! | `send` | responses |
//! | `ending` | streams and connections that end, well or not |
//! | `deadlines` | what may not take for ever |
//! | `rest` | what is let go of when it is idle |
//! | `guard` | what may not happen too often |

mod deadlines;
mod ending;
mod event;
mod guard;
mod header_blocks;
mod receive;
mod request;
mod rest;
mod send;
mod windows;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::emit::{EmitMode, Output};
use crate::error::{ErrorCode, Fault};
use crate::frame::{MAX_31_BITS, PREFACE, Setting, write};
use crate::hpack::{Decoder, Encoder, HeaderArena};
use crate::limits::Limits;
use crate::streams::Streams;

pub use crate::streams::StreamKey;
pub use event::{Event, Half};
pub(crate) use request::KeptHead;
pub use request::RequestHead;
pub use send::SendError;

use deadlines::Deadlines;
use ending::Drain;
use guard::Guard;
use header_blocks::Block;
use request::Checked;
use windows::ReceiveWindow;

/// The phase of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Waits for the preface.
    Preface,
    /// Waits for the first SETTINGS.
    FirstSettings,
    /// Takes frames.
    Open,
    /// Has ended with an error.
    Closed,
}

/// The server's side of one connection.
#[derive(Debug)]
pub struct Connection {
    limits: Arc<Limits>,
    phase: Phase,
    drain: Drain,
    /// True when the peer has sent GOAWAY.
    peer_leaves: bool,
    /// The peer's SETTINGS_NO_RFC7540_PRIORITIES.
    no_rfc7540_priorities: bool,

    streams: Streams,
    /// The highest stream that the peer has opened.
    last_stream: u32,
    /// The highest stream that GOAWAY may name: never more than before (RFC 9113 §6.8).
    last_told: u32,
    receive: ReceiveWindow,
    /// The peer's SETTINGS_INITIAL_WINDOW_SIZE.
    first_send_window: i64,

    decoder: Decoder,
    encoder: Encoder,
    /// The fields of the last header block.
    fields: HeaderArena,
    /// The properties of the request in `fields`.
    request: Checked,
    /// The block that gave `fields` and `request`, if it would give them again; else nothing.
    repeated: Vec<u8>,
    /// A header block that is not whole yet.
    block: Block,
    /// Priorities of streams that are still to be opened.
    early_priorities: receive::EarlyPriorities,

    output: Output,
    /// Size of the header lists of all open requests, as RFC 9113 §10.5.1 counts it.
    head_bytes: u32,
    /// Bytes of bodies that wait to be sent, of all streams.
    queued: usize,
    /// While producers wait because all streams together have too much: how much that has to be for them to
    /// go on.
    relieve_at: Option<usize>,
    /// Streams whose producers wait for room that there is now.
    roomy: Vec<StreamKey>,
    guard: Guard,
    deadlines: Deadlines,
    /// The time of the last call, in microseconds.
    now_us: u64,
}

impl Connection {
    /// A new connection, whose SETTINGS wait to be written. `limits` are [valid](Limits::validate); `now_us`
    /// is the current time in microseconds.
    pub fn new(limits: Arc<Limits>, mode: EmitMode, now_us: u64) -> Self {
        debug_assert_eq!(limits.validate(), Ok(()));
        let mut output = Output::new(mode, limits.copy_bytes, limits.plan_bytes);
        greet(&mut output.ready, &limits);
        Self {
            phase: Phase::Preface,
            drain: Drain::No,
            peer_leaves: false,
            no_rfc7540_priorities: false,
            streams: Streams::new(),
            last_stream: 0,
            last_told: MAX_31_BITS,
            receive: ReceiveWindow::new(limits.connection_receive_bytes),
            first_send_window: windows::FIRST_WINDOW_BYTES.into(),
            decoder: Decoder::new(limits.decoder_table_bytes, limits.header_list_bytes),
            encoder: Encoder::new(),
            fields: HeaderArena::new(),
            request: Checked::default(),
            repeated: Vec::new(),
            block: Block::default(),
            early_priorities: receive::EarlyPriorities::default(),
            output,
            head_bytes: 0,
            queued: 0,
            relieve_at: None,
            roomy: Vec::new(),
            guard: Guard::new(&limits),
            deadlines: Deadlines::new(&limits, now_us),
            now_us,
            limits,
        }
    }

    /// Consumes frames from the front of `input` until one is an event. `None`: the rest of `input` is the
    /// beginning of a frame, which is passed again when more has come; it is never longer than a frame of
    /// 16,384 bytes with its header.
    pub fn next_event<'a>(&mut self, input: &mut &'a [u8], now_us: u64) -> Option<Event<'a>> {
        self.now_us = now_us;
        self.deadlines.heard(now_us);
        loop {
            match self.phase {
                Phase::Closed => {
                    *input = &[];
                    return None;
                }
                Phase::Preface => match self.take_preface(input) {
                    Ok(true) => continue,
                    Ok(false) => return None,
                    Err(fault) => return self.fail(fault),
                },
                Phase::FirstSettings | Phase::Open => {}
            }
            let Some(frame) = self.take_frame(input).transpose() else {
                self.deadlines.wait_for_input(input.len(), self.block.is_open(), &self.limits, self.now_us);
                return None;
            };
            if !self.block.is_open() {
                self.deadlines.input_came();
            }
            let event = match frame.and_then(|frame| self.on_frame(frame)) {
                Ok(event) => event,
                Err(fault) => self.fail(fault),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// Takes the preface, as far as it is there. False: not whole yet.
    fn take_preface(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        let there = input.len().min(PREFACE.len());
        if input[..there] != PREFACE[..there] {
            return Err(Fault::connection(
                ErrorCode::PROTOCOL_ERROR,
                "the connection does not begin with the preface of HTTP/2",
            ));
        }
        if there < PREFACE.len() {
            return Ok(false);
        }
        *input = &input[there..];
        self.phase = Phase::FirstSettings;
        Ok(true)
    }

    /// The head of the request of the last event.
    pub fn request(&self) -> RequestHead<'_> {
        RequestHead { fields: &self.fields, checked: &self.request }
    }

    /// True when the client may wait for 100 (Continue) before it sends the body of the request that the last
    /// event was about (RFC 9110 §10.1.1).
    pub(crate) fn expects_continue(&self) -> bool {
        self.request.expects_continue
    }

    /// The trailers of the last event.
    pub fn trailers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// True when more input should be read: false while output that the peer does not read exceeds
    /// [`Limits::backlog_bytes`].
    pub fn wants_input(&self) -> bool {
        self.phase != Phase::Closed && self.takes_heads()
    }

    /// True when heads of responses should be sent now. While false, no input should be read either; both
    /// resume when output was planned.
    pub fn takes_heads(&self) -> bool {
        self.backlog() < self.limits.backlog_bytes as usize
    }

    /// Number of bytes of frames and heads that wait to be planned.
    pub fn backlog(&self) -> usize {
        self.output.ready.len()
    }

    /// Number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The time that was passed last.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The limits of the connection.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Writes the server's preface: its settings (RFC 9113 §3.4), and the window of the connection.
fn greet(out: &mut Vec<u8>, limits: &Limits) {
    write::settings(
        out,
        &[
            Setting::HeaderTableSize(limits.decoder_table_bytes),
            Setting::MaxConcurrentStreams(limits.streams),
            Setting::InitialWindowSize(limits.stream_receive_bytes),
            Setting::MaxHeaderListSize(limits.header_list_bytes),
            Setting::EnableConnectProtocol(true),
            Setting::NoRfc7540Priorities(true),
        ],
    );
    let more = limits.connection_receive_bytes - windows::FIRST_WINDOW_BYTES;
    if more > 0 {
        write::window_update(out, 0, more);
    }
}
