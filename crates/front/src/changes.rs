//! Streams of changes of documents, of the states of a lock, and of figures, for as long as somebody reads.
//!
//! The task behind a stream takes from the node when its client can take more, so that a slow one gathers
//! nothing here. How a stream is framed is its protocol's matter ([`Form`]).

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sluice_calls::documents::watch::{Placed, Watch as OfDocuments};
use sluice_calls::locks::watch::{Event as LockEvent, Watch as OfLock};
use sluice_calls::statistics::{Event as StatisticsEvent, Watch as OfStatistics};
use sluice_calls::{CallError, Calls};
use tokio::sync::mpsc;

use crate::events::{PIECES, STREAM_BYTES};
use crate::net::context::Context;
use crate::net::memory::answers::Share;

/// The events of a stream.
pub(crate) trait Source: Send + 'static {
    /// An event.
    type Event: Send;

    /// The next events, as soon as there are some, or after a wait one that says that the stream goes on.
    fn next(
        &mut self,
        calls: &Calls,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<Self::Event>, CallError>> + Send;

    /// False while there is no need to wait for the next events.
    fn waits(&self) -> bool;
}

impl Source for OfDocuments {
    type Event = Placed;

    async fn next(&mut self, calls: &Calls, wait: Duration) -> Result<Vec<Placed>, CallError> {
        OfDocuments::next(self, calls, wait).await
    }

    fn waits(&self) -> bool {
        self.is_current()
    }
}

impl Source for OfLock {
    type Event = LockEvent;

    async fn next(&mut self, calls: &Calls, wait: Duration) -> Result<Vec<LockEvent>, CallError> {
        Ok(vec![OfLock::next(self, calls, wait).await?])
    }

    fn waits(&self) -> bool {
        true
    }
}

impl Source for OfStatistics {
    type Event = StatisticsEvent;

    async fn next(&mut self, calls: &Calls, wait: Duration) -> Result<Vec<StatisticsEvent>, CallError> {
        Ok(vec![OfStatistics::next(self, calls, wait).await?])
    }

    fn waits(&self) -> bool {
        true
    }
}

/// The format of a stream.
pub(crate) trait Form<E>: Send + Sync + 'static {
    /// Writes an event.
    fn event(&self, out: &mut Vec<u8>, event: &E);
    /// The stream ends because of this, if there is a way to tell.
    fn end(&self, _why: CallError) {}
}

/// Begins a stream. It ends when whoever reads may not any more.
pub(crate) async fn open<S: Source>(
    context: &Arc<Context>,
    share: &Share,
    mut source: S,
    form: impl Form<S::Event>,
) -> Result<mpsc::Receiver<io::Result<Bytes>>, CallError> {
    share.reserve(STREAM_BYTES)?;
    // What it ends with at once is the answer.
    let first = source.next(&context.calls, Duration::ZERO).await?;
    let (out, pieces) = mpsc::channel(PIECES);
    let stream = Stream { context: Arc::clone(context), source, form, out };
    tokio::spawn(stream.run(first));
    Ok(pieces)
}

/// One stream under way.
struct Stream<S, F> {
    context: Arc<Context>,
    source: S,
    form: F,
    out: mpsc::Sender<io::Result<Bytes>>,
}

impl<S: Source, F: Form<S::Event>> Stream<S, F> {
    /// Runs until the client or the server ends the stream.
    async fn run(mut self, first: Vec<S::Event>) {
        let Stream { context, source, form, out } = &mut self;
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
            let wait = if source.waits() { context.options.event_pause } else { Duration::ZERO };
            tokio::select! {
                biased;
                () = context.calls.stopping() => return,
                () = out.closed() => return,
                next = source.next(&context.calls, wait) => match next {
                    Ok(next) => events = next,
                    Err(why) => return form.end(why),
                },
            }
        }
    }
}
