//! The bodies of answers.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waker, Poll, ready};

use bytes::Bytes;
use http::header::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::net::in_flight::InFlight;

/// Pieces of answers up to this size are not kept until they are written.
const COPIED_BYTES: usize = 1 << 10;

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Body {
    content: Content,
    /// Trailers behind the content.
    trailers: Option<HeaderMap>,
    /// The request counts as in flight until its answer is written.
    in_flight: Option<Arc<InFlight>>,
}

enum Content {
    Full(Bytes),
    Stream(mpsc::Receiver<io::Result<Bytes>>),
    Other(Pin<Box<dyn http_body::Body<Data = Bytes, Error = io::Error> + Send>>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Content::Full(_) => "Full",
            Content::Stream(_) => "Stream",
            Content::Other(_) => "Other",
        })
    }
}

impl Body {
    /// Bytes that are there.
    pub(crate) fn full(bytes: Bytes) -> Body {
        Body { content: Content::Full(bytes), trailers: None, in_flight: None }
    }

    /// Bytes that are there, and trailers behind them.
    pub(crate) fn with_trailers(bytes: Bytes, trailers: HeaderMap) -> Body {
        Body { trailers: Some(trailers), ..Body::full(bytes) }
    }

    /// Bytes that come; an error breaks the answer off, which the client sees.
    pub(crate) fn stream(stream: mpsc::Receiver<io::Result<Bytes>>) -> Body {
        Body { content: Content::Stream(stream), trailers: None, in_flight: None }
    }

    /// The frames of a protocol that has a body of its own.
    pub(crate) fn other(
        body: impl http_body::Body<Data = Bytes, Error = io::Error> + Send + 'static,
    ) -> Body {
        Body { content: Content::Other(Box::pin(body)), trailers: None, in_flight: None }
    }

    /// Keeps `in_flight` until the body is written or dropped, with the memory that it takes.
    pub(crate) fn keep(&mut self, in_flight: Arc<InFlight>) {
        if let Content::Full(bytes) = &self.content {
            in_flight.share.charge(bytes.len());
        }
        self.in_flight = Some(in_flight);
    }

    /// Bytes of the body that are in memory.
    pub(crate) fn bytes_there(&self) -> usize {
        if let Content::Full(bytes) = &self.content { bytes.len() } else { 0 }
    }

    /// The bytes that are there; none of a stream.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.content {
            Content::Full(bytes) => bytes,
            Content::Stream(_) | Content::Other(_) => Bytes::new(),
        }
    }

    /// Drops the content, for the answer to a HEAD; tells how long it was, if known.
    pub(crate) fn clear(&mut self) -> Option<u64> {
        let length = self.size_hint().exact();
        self.content = Content::Full(Bytes::new());
        length
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waker: &mut Waker<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Body { content, trailers, in_flight } = &mut *self;
        let bytes = match content {
            Content::Full(bytes) if bytes.is_empty() => {
                return Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            Content::Full(bytes) => std::mem::take(bytes),
            Content::Stream(stream) => match ready!(stream.poll_recv(waker)) {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
            },
            Content::Other(body) => match ready!(body.as_mut().poll_frame(waker)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => bytes,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            },
        };
        let bytes = match in_flight {
            Some(in_flight) => kept(bytes, in_flight),
            None => bytes,
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        let is_over = match &self.content {
            Content::Full(bytes) => bytes.is_empty(),
            Content::Stream(_) => false,
            Content::Other(body) => body.is_end_stream(),
        };
        is_over && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) | Content::Other(_) => SizeHint::default(),
        }
    }
}

/// A piece of an answer that keeps `in_flight` until it is written.
pub(crate) fn kept(bytes: Bytes, in_flight: &Arc<InFlight>) -> Bytes {
    // Few bytes are copied by the connection, and are not worth watching.
    if bytes.len() <= COPIED_BYTES {
        return bytes;
    }
    Bytes::from_owner(Piece { bytes, _in_flight: Arc::clone(in_flight) })
}

/// A piece of an answer, on its way to the client.
struct Piece {
    bytes: Bytes,
    /// Keeps the request counted until the connection has written the piece.
    _in_flight: Arc<InFlight>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
