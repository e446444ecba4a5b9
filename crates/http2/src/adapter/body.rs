//! The body of a request, as the service reads it.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::error::ErrorCode;

/// The body of a request. Bytes that are read are returned to the client as flow-control credit.
#[derive(Debug)]
pub struct RequestBody(Inner);

#[derive(Debug)]
enum Inner {
    /// No body, or all of it was read.
    Empty,
    /// The whole body came with its head.
    Whole(Bytes),
    Streamed {
        shared: Arc<Shared>,
        bytes_left: Option<u64>,
    },
}

/// The reason why a body ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyError {
    /// The stream, or the connection, has ended with this code.
    Reset(ErrorCode),
    /// The trailers have a field that the types of `http` cannot represent.
    Trailers,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(code) => write!(f, "the request has ended before its end: {code}"),
            Self::Trailers => f.write_str("the trailers are not right"),
        }
    }
}

impl std::error::Error for BodyError {}

impl RequestBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(if bytes.is_empty() { Inner::Empty } else { Inner::Whole(bytes) })
    }

    /// Bytes that were there with the head.
    pub(super) fn whole_bytes(&self) -> usize {
        if let Inner::Whole(bytes) = &self.0 { bytes.len() } else { 0 }
    }

    pub(super) fn streamed(shared: Arc<Shared>, bytes_left: Option<u64>) -> Self {
        Self(Inner::Streamed { shared, bytes_left })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let (shared, bytes_left) = match &mut self.0 {
            Inner::Streamed { shared, bytes_left } => (shared, bytes_left),
            inner => {
                let Inner::Whole(bytes) = std::mem::replace(inner, Inner::Empty) else {
                    return Poll::Ready(None);
                };
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        };
        let polled = shared.poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                *bytes_left = bytes_left.map(|left| left.saturating_sub(bytes));
            }
            Poll::Ready(_) => self.0 = Inner::Empty,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Empty => true,
            Inner::Whole(_) => false,
            Inner::Streamed { shared, .. } => shared.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Streamed { bytes_left, .. } => {
                bytes_left.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}

impl Drop for RequestBody {
    /// Returns the credit of the bytes that were not read, which would keep the windows closed until the
    /// response ends.
    fn drop(&mut self) {
        if let Inner::Streamed { shared, .. } = &self.0 {
            shared.abandon();
        }
    }
}

/// The state of a body that connection and service share. Its size is bounded by the window of the stream.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Wakes the connection when something was consumed.
    connection: Waker,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// Small pieces after those, as one: a peer that sends byte by byte must not cost more memory than its
    /// window says.
    small: BytesMut,
    trailers: Option<HeaderMap>,
    end: bool,
    error: Option<BodyError>,
    /// Bytes that were read, and not yet given back.
    consumed: usize,
    /// Nobody reads it any more: what comes counts as consumed.
    abandoned: bool,
    /// The client sends nothing until it is told to go on (RFC 9110 §10.1.1).
    withheld: bool,
    reader: Option<Waker>,
}

/// Pieces below this are put together.
const SMALL_BYTES: usize = 2 << 10;

impl State {
    /// The first piece.
    fn take_piece(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.finish_small();
        }
        self.pieces.pop_front()
    }

    fn finish_small(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push_back(self.small.split().freeze());
        }
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.small.is_empty()
    }
}

impl Shared {
    /// `withheld`: the client waits to be told to go on.
    pub(super) fn new(connection: Waker, withheld: bool) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { withheld, ..State::default() }), connection })
    }

    pub(super) fn push(&self, piece: &[u8], end: bool) {
        let abandoned = self.change(|state| {
            state.withheld = false;
            if state.abandoned {
                state.consumed += piece.len();
            } else if piece.len() < SMALL_BYTES {
                state.small.extend_from_slice(piece);
            } else {
                state.finish_small();
                state.pieces.push_back(Bytes::copy_from_slice(piece));
            }
            state.end = end;
            state.abandoned
        });
        if abandoned {
            self.connection.wake_by_ref();
        }
    }

    /// Lets go of what is here and of what is to come.
    fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        let pieces = std::mem::take(&mut state.pieces);
        let small = std::mem::take(&mut state.small);
        let bytes = small.len() + pieces.iter().map(Bytes::len).sum::<usize>();
        state.consumed += bytes;
        let reader = state.reader.take();
        drop(state);
        drop(reader);
        if bytes > 0 {
            self.connection.wake_by_ref();
        }
    }

    pub(super) fn finish(&self, trailers: Option<HeaderMap>) {
        self.change(|state| {
            state.end = true;
            state.error = if trailers.is_none() { Some(BodyError::Trailers) } else { state.error };
            state.trailers = trailers;
        });
    }

    /// Ends it early, unless it has ended.
    pub(super) fn fail(&self, code: ErrorCode) {
        self.change(|state| {
            if !state.end {
                state.end = true;
                state.error = Some(BodyError::Reset(code));
            }
        });
    }

    /// Bytes that were read since the last call.
    pub(super) fn take_consumed(&self) -> usize {
        std::mem::take(&mut self.lock().consumed)
    }

    /// True when the client is to be told to go on: once, when the service waits for what the client
    /// withholds.
    pub(super) fn take_invitation(&self) -> bool {
        let mut state = self.lock();
        let invited = state.withheld && state.reader.is_some();
        state.withheld &= !invited;
        invited
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        result
    }

    fn is_over(&self) -> bool {
        let state = self.lock();
        state.end && state.error.is_none() && state.is_empty() && state.trailers.is_none()
    }

    fn poll_frame(&self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut state = self.lock();
        if let Some(piece) = state.take_piece() {
            state.consumed += piece.len();
            drop(state);
            self.connection.wake_by_ref();
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(error) = state.error {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(trailers) = state.trailers.take().filter(|trailers| !trailers.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if state.end {
            return Poll::Ready(None);
        }
        state.reader = Some(context.waker().clone());
        if state.withheld {
            drop(state);
            self.connection.wake_by_ref();
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_become_one_and_keep_their_place() {
        let shared = Shared::new(Waker::noop().clone(), false);
        for piece in [&b"ab"[..], b"", b"c", &[b'x'; SMALL_BYTES], b"d", b"e"] {
            shared.push(piece, false);
        }
        let mut context = Context::from_waker(Waker::noop());
        let mut pieces = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = shared.poll_frame(&mut context) {
            pieces.push(frame.into_data().expect("data"));
        }
        assert_eq!(
            pieces,
            [Bytes::from_static(b"abc"), Bytes::from(vec![b'x'; SMALL_BYTES]), Bytes::from_static(b"de")]
        );
        assert_eq!(shared.take_consumed(), SMALL_BYTES + 5);
        assert!(!shared.is_over());
        shared.push(b"", true);
        assert!(shared.is_over());
    }

    #[test]
    fn a_client_that_waits_is_told_to_go_on_once_the_service_waits_for_it() {
        let mut context = Context::from_waker(Waker::noop());
        let shared = Shared::new(Waker::noop().clone(), true);
        assert!(!shared.take_invitation(), "nobody asks for the body");
        assert!(shared.poll_frame(&mut context).is_pending());
        assert!(shared.take_invitation());
        assert!(!shared.take_invitation(), "once");

        let impatient = Shared::new(Waker::noop().clone(), true);
        impatient.push(b"a", false);
        assert!(impatient.poll_frame(&mut context).is_ready());
        assert!(impatient.poll_frame(&mut context).is_pending());
        assert!(!impatient.take_invitation(), "it has not waited");
    }
}
