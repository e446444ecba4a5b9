//! Streams of events: what happens to messages of a namespace or of a queue, for as long as somebody reads.
//!
//! Here is the task behind each stream, which takes from the node when its client can take more, so that a
//! slow one gathers nothing here; `write` has the JSON of an event. How a stream is framed is its protocol's
//! matter ([`Form`]).

mod write;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_calls::events::{EventPosition, Gap, Heard, Reader, Told, Wanted, Watch, watch};
use sluice_calls::standing::Standing;
use sluice_calls::{CallError, Permit};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::net::context::Context;
use crate::net::memory::answers::Share;
pub(crate) use write::{write_gap, write_told};

/// Events that are taken from the node at once: some kilobytes.
const EVENTS_AT_ONCE: usize = 64;
/// Pieces of a stream that wait for the connection to take them.
pub(crate) const PIECES: usize = 2;
/// Memory that a stream is counted with: its pieces, and the one that is being written.
pub(crate) const STREAM_BYTES: usize = 64 << 10;
/// After so many events that a reader did not want it is told where it stands, so that it is not left behind
/// when it comes back.
const UNWANTED_MAX: usize = 1_000;

/// The format of a stream.
pub(crate) trait Form: Send + Sync + 'static {
    /// Writes the reader's position at the beginning.
    fn begin(&self, out: &mut Vec<u8>, at: EventPosition);
    /// An event, and the place behind it.
    fn event(&self, out: &mut Vec<u8>, at: EventPosition, told: &Told);
    /// Events that are not to be had, and the place behind them.
    fn gap(&self, out: &mut Vec<u8>, at: EventPosition, gap: &Gap);
    /// Nothing has happened, or nothing that the reader wants.
    fn still_here(&self, out: &mut Vec<u8>, at: EventPosition);
    /// The stream ends because of this, if there is a way to tell.
    fn end(&self, _why: CallError) {}
}

/// Begins a stream. It ends when whoever reads may not any more.
pub(crate) async fn open(
    context: &Arc<Context>,
    share: &Share,
    permit: &Permit<'_>,
    wanted: Wanted,
    form: impl Form,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    share.reserve(STREAM_BYTES)?;
    let Watch { reader, standing } = watch(permit, wanted.after).await?;
    let namespace = permit.namespace_name().into();
    let (out, pieces) = mpsc::channel(PIECES);
    let pause = context.options.event_pause;
    let context = Arc::clone(context);
    let stream = Stream { context, namespace, reader, wanted, form, out, buffer: Vec::new(), unwanted: 0 };
    tokio::spawn(stream.run(standing, pause));
    Ok(pieces)
}

/// One stream under way.
struct Stream<F> {
    context: Arc<Context>,
    namespace: Box<str>,
    reader: Reader,
    wanted: Wanted,
    form: F,
    out: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
    /// Events since the reader was last told where it stands.
    unwanted: usize,
}

impl<F: Form> Stream<F> {
    /// Runs until the client or the server ends the stream.
    async fn run(mut self, standing: Standing, pause: Duration) {
        self.form.begin(&mut self.buffer, self.reader.position());
        let mut lost = pin!(standing.lost());
        let mut silence = every(pause);
        loop {
            tokio::select! {
                biased;
                denied = &mut lost => return self.form.end(denied.into()),
                goes_on = self.hand_over() => if !goes_on {
                    return;
                },
            }
            tokio::select! {
                biased;
                () = self.context.calls.stopping() => return,
                () = self.out.closed() => return,
                denied = &mut lost => return self.form.end(denied.into()),
                _ = silence.tick() => {
                    self.form.still_here(&mut self.buffer, self.reader.position());
                    self.unwanted = 0;
                }
                heard = self.reader.next(EVENTS_AT_ONCE) => {
                    if !self.take(heard) {
                        return;
                    }
                    if !self.buffer.is_empty() {
                        silence.reset();
                    }
                }
            }
        }
    }

    /// False when nothing more will come.
    fn take(&mut self, heard: Heard) -> bool {
        match heard {
            Heard::Ended => {
                if let Err(gone) = self.context.calls.check_namespace(&self.namespace) {
                    self.form.end(gone.into());
                }
                return false;
            }
            Heard::Gap(gap) => self.form.gap(&mut self.buffer, self.reader.position(), &gap),
            Heard::Events(events) => {
                for (at, told) in &events {
                    if self.wanted.wants(told) {
                        self.form.event(&mut self.buffer, *at, told);
                        self.unwanted = 0;
                    } else {
                        self.unwanted += 1;
                    }
                }
                if self.unwanted >= UNWANTED_MAX {
                    self.form.still_here(&mut self.buffer, self.reader.position());
                    self.unwanted = 0;
                }
            }
        }
        true
    }

    /// Hands what is written to the connection, as soon as that can take it. False when it is over.
    async fn hand_over(&mut self) -> bool {
        if self.buffer.is_empty() {
            return true;
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        tokio::select! {
            biased;
            () = self.context.calls.stopping() => false,
            sent = self.out.send(Ok(piece)) => sent.is_ok(),
        }
    }
}

fn every(pause: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + pause, pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
