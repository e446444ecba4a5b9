//! The bodies of requests, as each version of HTTP brings them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Waker, Poll};

use bytes::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use sluice_http2::adapter::{BodyError, RequestBody};

/// The body of a request: on its way, or there already, from a protocol that has read it.
#[derive(Debug)]
pub(crate) enum Inbound {
    Http1(Incoming),
    Http2(RequestBody),
    There(Bytes),
}

/// Why the body of a request ends before its end.
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
            Inbound::Http1(body) => Pin::new(body)
                .poll_frame(waker)
                .map(|frame| frame.map(|frame| frame.map_err(InboundError::Http1))),
            Inbound::Http2(body) => Pin::new(body)
                .poll_frame(waker)
                .map(|frame| frame.map(|frame| frame.map_err(InboundError::Http2))),
            Inbound::There(bytes) if bytes.is_empty() => Poll::Ready(None),
            Inbound::There(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Inbound::Http1(body) => body.is_end_stream(),
            Inbound::Http2(body) => body.is_end_stream(),
            Inbound::There(bytes) => bytes.is_empty(),
        }
    }
}
