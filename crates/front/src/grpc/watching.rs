//! Streams of events: as over HTTP, each event as a message of the contract.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response::Response;
use http_body::Frame;
use sluice_calls::CallError;
use sluice_node::{EventPosition, Gap, Told};
use sluice_proto::framing::frame_with;
use tokio::sync::mpsc;

use super::from_json;
use super::status::{GRPC, failure, success};
use crate::http::events::{Asked, Form, open, write_gap, write_told};
use crate::http::route::call::Call;
use crate::http::route::table::Operation;
use crate::json::{Object, object};
use crate::net::body::Body;

/// Whether an operation answers with a stream.
pub(super) fn streams(operation: Operation) -> bool {
    matches!(operation, Operation::Events | Operation::QueueEvents)
}

/// Answers with a stream of `output` messages.
pub(super) async fn watch(call: &Call<'_>, output: usize) -> Result<Response<Body>, CallError> {
    let queue = (call.operation == Operation::QueueEvents).then_some(call.name);
    let asked = Asked::read(call)?;
    let why = Arc::new(OnceLock::new());
    let pieces = open(call, queue, asked, Frames { output, why: Arc::clone(&why) }).await?;
    let mut response = Response::new(Body::other(Watched { pieces, why: Some(why) }));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    Ok(response)
}

/// Why a stream ended, if not because the server stops.
type Why = Arc<OnceLock<CallError>>;

/// The answer: frames, and how it ended.
struct Watched {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    /// Until the trailers are out.
    why: Option<Why>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waker: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(piece) = ready!(self.pieces.poll_recv(waker)) {
            return Poll::Ready(Some(piece.map(Frame::data)));
        }
        let trailers = self.why.take().map(|why| why.get().map_or_else(success, failure));
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

/// One frame for each event.
struct Frames {
    output: usize,
    why: Why,
}

impl Frames {
    fn add(&self, out: &mut Vec<u8>, at: EventPosition, fields: impl FnOnce(&mut Object<'_>)) {
        let mut json = Vec::new();
        object(&mut json, |o| {
            o.text("position", &at.to_string());
            fields(o);
        });
        let message = match from_json::encode(self.output, &json) {
            Ok(message) => message,
            Err(error) => {
                debug_assert!(false, "an event is not as the contract says: {error}");
                return tracing::error!("an event cannot be told: {error}");
            }
        };
        frame_with(out, |out| out.extend_from_slice(&message));
    }
}

impl Form for Frames {
    fn begin(&self, out: &mut Vec<u8>, at: EventPosition) {
        self.still_here(out, at);
    }

    fn event(&self, out: &mut Vec<u8>, at: EventPosition, told: &Told) {
        self.add(out, at, |o| write_told(o, told));
    }

    fn gap(&self, out: &mut Vec<u8>, at: EventPosition, gap: &Gap) {
        self.add(out, at, |o| write_gap(o, gap));
    }

    fn still_here(&self, out: &mut Vec<u8>, at: EventPosition) {
        self.add(out, at, |_| {});
    }

    fn end(&self, why: CallError) {
        // The first cause is the cause.
        let _ = self.why.set(why);
    }
}
