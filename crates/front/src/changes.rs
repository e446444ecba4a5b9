//! Streams of changes of documents, for as long as somebody reads.
//!
//! The task behind a stream takes from the node when its client can take more, so that a slow one gathers
//! nothing here. How a stream is framed is its protocol's matter ([`Form`]).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_calls::documents::watch::{Placed, Wanted, Watch};
use sluice_calls::{CallError, Permit};
use tokio::sync::mpsc;

use crate::events::{PIECES, STREAM_BYTES};
use crate::net::context::Context;
use crate::net::memory::answers::Share;

/// The format of a stream.
pub(crate) trait Form: Send + Sync + 'static {
    /// Writes an event.
    fn event(&self, out: &mut Vec<u8>, event: &Placed);
    /// The stream ends because of this, if there is a way to tell.
    fn end(&self, _why: CallError) {}
}

/// Begins a stream. It ends when whoever reads may not any more.
pub(crate) async fn open(
    context: &Arc<Context>,
    share: &Share,
    permit: &Permit<'_>,
    wanted: &Wanted,
    form: impl Form,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    share.reserve(STREAM_BYTES)?;
    let mut watch = Watch::new(permit, wanted)?;
    // What it ends with at once is the answer.
    let first = watch.next(&context.calls, Duration::ZERO).await?;
    let (out, pieces) = mpsc::channel(PIECES);
    let stream = Stream { context: Arc::clone(context), watch, form, out };
    tokio::spawn(stream.run(first));
    Ok(pieces)
}

/// One stream under way.
struct Stream<F> {
    context: Arc<Context>,
    watch: Watch,
    form: F,
    out: mpsc::Sender<io::Result<Bytes>>,
}

impl<F: Form> Stream<F> {
    /// Runs until the client or the server ends the stream.
    async fn run(mut self, first: Vec<Placed>) {
        let Stream { context, watch, form, out } = &mut self;
        let mut events = first;
        loop {
            let mut piece = Vec::new();
            events.iter().for_each(|event| form.event(&mut piece, event));
            tokio::select! {
                biased;
                () = context.calls.stopping() => return,
                sent = out.send(Ok(piece.into())) => if sent.is_err() {
                    return;
                },
            }
            let wait = if watch.is_current() { context.options.event_pause } else { Duration::ZERO };
            tokio::select! {
                biased;
                () = context.calls.stopping() => return,
                () = out.closed() => return,
                next = watch.next(&context.calls, wait) => match next {
                    Ok(next) => events = next,
                    Err(why) => return form.end(why),
                },
            }
        }
    }
}
