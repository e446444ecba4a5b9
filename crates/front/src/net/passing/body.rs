//! The bodies of requests that are passed on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::net::body::Inbound;

/// The body of a request on its way to another node. When it is dropped, who has lent it gets the rest.
#[derive(Debug)]
pub(crate) struct ForwardBody(Source);

#[derive(Debug)]
enum Source {
    /// A body that is here as a whole.
    Whole(Bytes),
    /// A body that comes in; `None` when it was given back.
    Lent(Option<Inbound>, Option<oneshot::Sender<Inbound>>),
}

impl ForwardBody {
    /// A body that is here as a whole.
    pub(crate) fn whole(bytes: Bytes) -> ForwardBody {
        ForwardBody(Source::Whole(bytes))
    }

    /// A body that comes in, and the way back of what is left of it.
    pub(crate) fn lent((body, back): (Inbound, oneshot::Sender<Inbound>)) -> ForwardBody {
        ForwardBody(Source::Lent(Some(body), Some(back)))
    }
}

impl Drop for ForwardBody {
    fn drop(&mut self) {
        if let Source::Lent(body, back) = &mut self.0
            && let (Some(body), Some(back)) = (body.take(), back.take())
        {
            // Fails only when nobody needs the rest.
            let _ = back.send(body);
        }
    }
}

impl Body for ForwardBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Source::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Lent(Some(body), _) => {
                let frame = Pin::new(body).poll_frame(context);
                frame.map(|frame| frame.map(|frame| frame.map_err(|e| io::Error::other(e.to_string()))))
            }
            Source::Lent(None, _) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(bytes) => bytes.is_empty(),
            Source::Lent(body, _) => body.as_ref().is_none_or(Body::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Lent(body, _) => body.as_ref().map_or_else(SizeHint::default, Body::size_hint),
        }
    }
}
