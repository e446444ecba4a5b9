//! Streams of events: what happens to messages of a namespace or of a queue, for as long as somebody reads.
//!
//! `asked` says which events a reader wants and from where on, `write` how they are written, over HTTP as server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>); gRPC has a form of its own. Here is the task behind each
//! stream. It takes from the node when its client can take more, so that a slow one gathers nothing here.

mod asked;
mod write;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::HeaderName;
use http::response::Response;
use sluice_node::{EventPosition, Gap, Heard, Reader, Told};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::route::call::Call;
use crate::hot::permission::{Scope, Standing};
use crate::net::body::Body;
use crate::net::context::Context;
use crate::net::respond;
pub(crate) use asked::Asked;
pub(super) use asked::{EVENTS_PARAMS, QUEUE_EVENTS_PARAMS};
use sluice_calls::CallError;
use sluice_calls::access::Right;
pub(crate) use write::{write_gap, write_told};

/// Events that are taken from the node at once: some kilobytes.
const EVENTS_AT_ONCE: usize = 64;
/// Pieces of a stream that wait for the connection to take them.
const PIECES: usize = 2;
/// Memory that a stream is counted with: its pieces, and the one that is being written.
const STREAM_BYTES: usize = 64 << 10;
/// After so many events that a reader did not want it is told where it stands, so that it is not left behind when it comes
/// back.
const UNWANTED_MAX: usize = 1_000;

/// How a stream is written.
pub(crate) trait Form: Send + Sync + 'static {
    /// Where the reader stands at the beginning.
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

/// `GET P/events`
pub(crate) async fn of_namespace(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    stream(call, None, Asked::read(call)?).await
}

/// `GET P/queues/{queue}/events`
pub(crate) async fn of_queue(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    stream(call, Some(call.name), Asked::read(call)?).await
}

async fn stream(call: &Call<'_>, queue: Option<&str>, asked: Asked) -> Result<Response<Body>, CallError> {
    let pieces = open(call, queue, asked, write::ServerSent).await?;
    let mut response = respond::streamed("text/event-stream", Body::stream(pieces));
    // A proxy that gathers answers would hold events back; nginx and others know this word.
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), no);
    Ok(response)
}

/// Begins a stream. It ends when whoever reads may not any more.
pub(crate) async fn open(
    call: &Call<'_>,
    queue: Option<&str>,
    asked: Asked,
    form: impl Form,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    call.in_flight.share.reserve(STREAM_BYTES)?;
    let reader = call.node().watch(call.namespace_id()?, queue, asked.after).await?;
    let scope = || queue.map_or(Scope::Whole, |queue| Scope::queues(std::iter::once(queue)));
    let standing = call.standing(Right::Observe, scope);
    let namespace = call.namespace_name().into();
    let (out, pieces) = mpsc::channel(PIECES);
    let pause = call.context.options.event_pause;
    let context = Arc::clone(call.context);
    let stream = Stream { context, namespace, reader, asked, form, out, buffer: Vec::new(), unwanted: 0 };
    tokio::spawn(stream.run(standing, pause));
    Ok(pieces)
}

/// One stream under way.
struct Stream<F> {
    context: Arc<Context>,
    namespace: Box<str>,
    reader: Reader,
    asked: Asked,
    form: F,
    out: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
    /// Events since the reader was last told where it stands.
    unwanted: usize,
}

impl<F: Form> Stream<F> {
    /// Goes on until the client or the server has had enough.
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
                () = self.context.stopping() => return,
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
                if let Err(gone) = self.context.node.namespace_id(&self.namespace) {
                    self.form.end(gone.into());
                }
                return false;
            }
            Heard::Gap(gap) => self.form.gap(&mut self.buffer, self.reader.position(), &gap),
            Heard::Events(events) => {
                for (at, told) in &events {
                    if self.asked.wants(told) {
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
            () = self.context.stopping() => false,
            sent = self.out.send(Ok(piece)) => sent.is_ok(),
        }
    }
}

fn every(pause: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + pause, pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
