//! The bodies of requests that are passed on, and of answers that have no end of their own.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::net::body::Inbound;
use crate::net::links::AnswerBody;

/// The body of a request on its way to another node. When it is dropped, who has lent it gets the rest.
#[derive(Debug)]
pub(crate) struct ForwardBody {
    /// The part that is here.
    begun: Bytes,
    /// The part that comes in, and the way back of what is left of it.
    rest: Option<(Inbound, oneshot::Sender<Inbound>)>,
}

impl ForwardBody {
    /// The body that begins with `begun`, and the rest of it as it comes in.
    pub(crate) fn new(begun: Bytes, rest: Option<(Inbound, oneshot::Sender<Inbound>)>) -> ForwardBody {
        ForwardBody { begun, rest }
    }
}

impl Drop for ForwardBody {
    fn drop(&mut self) {
        if let Some((body, back)) = self.rest.take() {
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
        if !self.begun.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.begun)))));
        }
        let Some((body, _)) = &mut self.rest else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(|e| io::Error::other(e.to_string()))))
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.as_ref().is_none_or(|(body, _)| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.rest {
            None => SizeHint::with_exact(self.begun.len() as u64),
            Some((body, _)) if self.begun.is_empty() => body.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

/// An answer that goes on until this node stops.
pub(super) struct Watched {
    body: AnswerBody,
    stopping: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Trailers for the end when this node stops.
    trailers: Option<HeaderMap>,
    is_over: bool,
}

impl Watched {
    pub(super) fn new(
        body: AnswerBody,
        stopping: impl Future<Output = ()> + Send + 'static,
        trailers: Option<HeaderMap>,
    ) -> Watched {
        Watched { body, stopping: Box::pin(stopping), trailers, is_over: false }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = io::Error;

    /// Takes what is there first, so that no event is cut.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_pending() && self.stopping.as_mut().poll(context).is_ready() {
            self.is_over = true;
            return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.is_over && self.trailers.is_none() || self.body.is_end_stream()
    }
}
