//! The bodies of requests, as each version of HTTP brings them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Waker, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use sluice_http2::adapter::{BodyError, RequestBody};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The body of a request on its way.
#[derive(Debug)]
pub(crate) enum Inbound {
    Http1(Unread),
    Http2(RequestBody),
    Lent(Lent),
    /// Read already, and to be read once more.
    Read(Bytes),
}

/// A body that is read elsewhere, and comes back when that is over.
#[derive(Debug)]
pub(crate) struct Lent {
    returned: oneshot::Receiver<Inbound>,
    /// True if its connection can only go on when it was read to its end.
    holds_up: bool,
}

/// A body of HTTP/1.1, whose connection can only go on when it was read to its end.
#[derive(Debug)]
pub(crate) struct Unread {
    body: Incoming,
    /// True once its end was read.
    is_over: bool,
    /// True once it broke off or was malformed: then it has no end.
    is_broken: bool,
}

impl Inbound {
    /// The body of a request of HTTP/1.1.
    pub(crate) fn http1(body: Incoming) -> Inbound {
        Inbound::Http1(Unread { body, is_over: false, is_broken: false })
    }

    /// True if no rest of it delays the next request of its connection.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Inbound::Http1(unread) => !unread.is_broken && (unread.is_over || unread.body.is_end_stream()),
            Inbound::Http2(_) | Inbound::Read(_) => true,
            Inbound::Lent(lent) => !lent.holds_up,
        }
    }

    /// Lends the body; what is left of it comes back by the sender.
    pub(crate) fn lend(&mut self) -> (Inbound, oneshot::Sender<Inbound>) {
        let (sender, returned) = oneshot::channel();
        let holds_up = matches!(self, Inbound::Http1(_));
        (std::mem::replace(self, Inbound::Lent(Lent { returned, holds_up })), sender)
    }

    /// Waits for a body that was lent, for at most so long.
    pub(crate) async fn take_back(&mut self, time_max: Duration) {
        if let Inbound::Lent(lent) = self
            && let Ok(Ok(body)) = timeout(time_max, &mut lent.returned).await
        {
            *self = body;
        }
    }
}

/// The error of a request's body that breaks off.
#[derive(Debug)]
pub(crate) enum InboundError {
    Http1(hyper::Error),
    Http2(BodyError),
}

impl fmt::Display for InboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InboundError::Http1(error) => error.fmt(f),
            InboundError::Http2(error) => error.fmt(f),
        }
    }
}

impl http_body::Body for Inbound {
    type Data = Bytes;
    type Error = InboundError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        waker: &mut Waker<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InboundError>>> {
        match &mut *self {
            Inbound::Http1(unread) => Pin::new(&mut unread.body).poll_frame(waker).map(|frame| {
                unread.is_over = frame.is_none();
                unread.is_broken |= matches!(frame, Some(Err(_)));
                frame.map(|frame| frame.map_err(InboundError::Http1))
            }),
            Inbound::Http2(body) => Pin::new(body)
                .poll_frame(waker)
                .map(|frame| frame.map(|frame| frame.map_err(InboundError::Http2))),
            Inbound::Lent(_) => Poll::Ready(None),
            Inbound::Read(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Inbound::Http1(unread) => unread.body.is_end_stream(),
            Inbound::Http2(body) => body.is_end_stream(),
            Inbound::Lent(_) => true,
            Inbound::Read(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Inbound::Http1(unread) => unread.body.size_hint(),
            Inbound::Http2(body) => body.size_hint(),
            Inbound::Lent(_) => SizeHint::default(),
            Inbound::Read(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
