//! Drives a [`Connection`] over a transport: a task that reads, lets a [`Handler`] answer, and writes, in
//! turns.
//!
//! A turn takes all that has arrived, runs what is ready, and writes all output at once. Nothing waits for
//! more to write.
//!
//! | module | |
//! |---|---|
//! | `wire` | clear text |
//! | `tls` | TLS, over rustls' connection |
//! | `input` | what was read and not yet taken |
//! | `timer` | one timer for all deadlines |

mod input;
mod timer;
mod tls;
mod wire;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::connection::{Connection, Event, StreamKey};
use crate::error::Fault;
use crate::limits::PROGRESS_BYTES;
use input::Input;
use timer::Timer;
pub use tls::Tls;
pub use wire::{Plain, Wire};

/// The handler of the events of a connection.
pub trait Handler {
    /// Handles an event.
    fn on_event(&mut self, connection: &mut Connection, event: Event<'_>);

    /// Called when a stream has room for more of its response.
    fn on_room(&mut self, stream: StreamKey);

    /// Makes all progress that is possible now. The handler wakes the task of `context` when more is
    /// possible, except for what waits for [room for heads](Connection::takes_heads): it is polled again by
    /// itself.
    fn poll(&mut self, context: &mut Context<'_>, connection: &mut Connection);
}

/// A connection with its transport and its handler: a future that completes when the connection has ended.
///
/// # Errors
/// The error of the transport; [`io::ErrorKind::TimedOut`] when a deadline has passed;
/// [`io::ErrorKind::InvalidData`] with the [`Fault`] when the peer violated the protocol.
#[derive(Debug)]
pub struct Driver<W, H> {
    connection: Connection,
    wire: W,
    handler: H,
    input: Input,
    timer: Timer,
    phase: DriverPhase,
    /// While the wire cannot write all: what it had written when that was last worth the name of progress,
    /// and when that was.
    stalled: Option<(u64, u64)>,
    /// The error that the connection ended with, and whether it was a deadline.
    fault: Option<(Fault, io::ErrorKind)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DriverPhase {
    Serving,
    /// All is said; the transport is being closed, until this time.
    Closing(u64),
    /// Closed for writing: what still comes in is thrown away, so that the peer reads our last words before
    /// it learns that nobody listens. Until this time.
    Lingering(u64),
}

/// Reads of one turn, so that a peer that never stops sending cannot keep the others from being written to.
const READS_MAX: usize = 16;

/// Turns before other tasks get theirs.
const TURNS_MAX: usize = 32;

/// Deadline for closing, and time for which the transport is read afterwards, in microseconds.
const LINGER_US: u64 = 1_000_000;

impl<W: Wire + Unpin, H: Handler + Unpin> Driver<W, H> {
    /// A driver of `wire` with `handler`. `make` makes the connection from the current time in microseconds.
    pub fn new(wire: W, handler: H, make: impl FnOnce(u64) -> Connection) -> Self {
        let timer = Timer::new();
        let connection = make(timer.now_us());
        Self {
            connection,
            wire,
            handler,
            input: Input::default(),
            timer,
            phase: DriverPhase::Serving,
            stalled: None,
            fault: None,
        }
    }

    /// Begins a graceful shutdown ([`Connection::shut_down`]). The driver has to be polled afterwards.
    pub fn shut_down(&mut self) {
        self.connection.shut_down(self.timer.now_us());
    }

    /// Turns until nothing more can be done now.
    fn serve(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..TURNS_MAX {
            let now_us = self.timer.now_us();
            // First what is there: it is not late, though we may be.
            let reading = self.read(context, now_us)?;
            self.input.rest();
            while let Some(event) = self.connection.expire(now_us) {
                note_fault(&mut self.fault, event, io::ErrorKind::TimedOut);
                self.handler.on_event(&mut self.connection, event);
            }
            self.handler.poll(context, &mut self.connection);
            let was_full = !self.connection.takes_heads();
            let written = self.wire.poll_write(context, &mut self.connection, now_us);
            if reading == Reading::Ended {
                // Whether the peer has got our last words, it does not tell any more.
                return Poll::Ready(Ok(()));
            }
            let pending = written?.is_pending();
            self.watch_stall(pending, now_us)?;
            if self.connection.is_over() && !pending {
                // All is said; or cannot be, as the wire takes nothing before the end of its handshake.
                return Poll::Ready(Ok(()));
            }
            // With the room, reading goes on, and so does the handler.
            let mut again = reading == Reading::More || (was_full && self.connection.takes_heads());
            while let Some(stream) = self.connection.take_roomy() {
                self.handler.on_room(stream);
                again = true;
            }
            if !again {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes what has arrived.
    fn read(&mut self, context: &mut Context<'_>, now_us: u64) -> io::Result<Reading> {
        for _ in 0..READS_MAX {
            if !self.connection.wants_input() {
                return Ok(Reading::Held);
            }
            match self.wire.poll_read(context, self.input.spare())? {
                Poll::Pending => return Ok(Reading::Waiting),
                Poll::Ready(0) => return Ok(Reading::Ended),
                Poll::Ready(bytes) => self.input.filled(bytes),
            }
            let mut unread = self.input.unread();
            while let Some(event) = self.connection.next_event(&mut unread, now_us) {
                note_fault(&mut self.fault, event, io::ErrorKind::InvalidData);
                self.handler.on_event(&mut self.connection, event);
            }
            let left = unread.len();
            self.input.keep_last(left);
        }
        Ok(Reading::More)
    }

    /// Ends a connection whose peer takes nothing for too long.
    fn watch_stall(&mut self, pending: bool, now_us: u64) -> io::Result<()> {
        let written = self.wire.written();
        self.stalled = match self.stalled {
            _ if !pending => None,
            Some((before, since_us)) if written - before < PROGRESS_BYTES.into() => Some((before, since_us)),
            _ => Some((written, now_us)),
        };
        match self.stall_deadline() {
            Some(deadline_us) if deadline_us <= now_us => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read what we write"))
            }
            _ => Ok(()),
        }
    }

    fn stall_deadline(&self) -> Option<u64> {
        self.stalled.map(|(_, since_us)| since_us.saturating_add(self.connection.limits().read_stall_us))
    }

    /// Reads to nowhere until the peer has closed, or the time is over.
    fn linger(&mut self, context: &mut Context<'_>, until_us: u64) -> Poll<io::Result<()>> {
        for _ in 0..READS_MAX {
            self.input.keep_last(0);
            match self.wire.poll_read(context, self.input.spare()) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending if self.timer.now_us() >= until_us => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
        // More than the last frames of a peer in good faith.
        Poll::Ready(Ok(()))
    }

    /// Closes for writing. The peer may be gone already, or take nothing, which is as good.
    fn close(&mut self, context: &mut Context<'_>, until_us: u64) -> Poll<io::Result<()>> {
        let is_late = self.timer.now_us() >= until_us;
        if self.wire.poll_shutdown(context).is_pending() && !is_late {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }

    /// The result of the connection, when its transport did not fail.
    fn ended(&self) -> io::Result<()> {
        self.fault.map_or(Ok(()), |(fault, kind)| Err(io::Error::new(kind, fault)))
    }

    /// Time of the next turn without any event, in microseconds.
    fn next_deadline(&self) -> Option<u64> {
        match self.phase {
            DriverPhase::Serving => {
                [self.stall_deadline(), self.connection.next_deadline()].into_iter().flatten().min()
            }
            DriverPhase::Closing(until_us) | DriverPhase::Lingering(until_us) => Some(until_us),
        }
    }
}

/// Remembers the error that a connection ends with.
fn note_fault(place: &mut Option<(Fault, io::ErrorKind)>, event: Event<'_>, kind: io::ErrorKind) {
    if let Event::Closed(fault) = event {
        *place = Some((fault, kind));
    }
}

/// The outcome of reading in a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// There may be more.
    More,
    /// Nothing more is there now.
    Waiting,
    /// Nothing more is wanted now.
    Held,
    /// The peer has closed.
    Ended,
}

impl<W: Wire + Unpin, H: Handler + Unpin> Future for Driver<W, H> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let polled = match this.phase {
                DriverPhase::Serving => this.serve(context),
                DriverPhase::Closing(until_us) => this.close(context, until_us),
                DriverPhase::Lingering(until_us) => this.linger(context, until_us),
            };
            let until_us = || this.timer.now_us() + LINGER_US;
            match (polled, this.phase) {
                (Poll::Ready(Ok(())), DriverPhase::Serving) => this.phase = DriverPhase::Closing(until_us()),
                (Poll::Ready(Ok(())), DriverPhase::Closing(_)) => {
                    this.phase = DriverPhase::Lingering(until_us())
                }
                (Poll::Ready(result), _) => return Poll::Ready(result.and_then(|()| this.ended())),
                (Poll::Pending, _) => {
                    let deadline_us = this.next_deadline();
                    if this.timer.poll(context, deadline_us).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}
