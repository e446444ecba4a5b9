//! Answers that come in pieces, and the status behind them.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::response::Response;
use http_body::Frame;
use sluice_calls::CallError;
use tokio::sync::mpsc;

use super::status::{GRPC, failure, success};
use crate::net::body::Body;

/// Error that ended a stream; unset while it runs, and when the server stops.
pub(super) type Why = Arc<OnceLock<CallError>>;

/// Answers with frames, whose sender sets `why` before it is dropped if an error ends them.
pub(super) fn streamed(pieces: mpsc::Receiver<io::Result<Bytes>>, why: Why) -> Response<Body> {
    let mut response = Response::new(Body::other(Watched { pieces, why: Some(why) }));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// The answer: frames, and how it ended.
struct Watched {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    /// The error for the trailers; `None` once they are sent.
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
