//! Frames on their way to the server: whoever has one appends it, and what has gathered by the time the
//! connection can take more goes as one.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::{Body, Frame};
use sluice_proto::framing::Framer;
use sluice_proto::v1::ClientFrame;

/// Most bytes that the connection gets at once.
const PIECE_BYTES: usize = 64 << 10;

/// Frames that wait for the connection.
#[derive(Debug)]
pub(crate) struct FrameQueue {
    state: Mutex<FrameQueueState>,
    /// True when frames that wait go as one piece.
    gathers: bool,
}

#[derive(Debug, Default)]
struct FrameQueueState {
    waiting: Framer,
    reader: Option<Waker>,
    is_ended: bool,
    is_gone: bool,
}

impl FrameQueue {
    pub(super) fn new(gathers: bool) -> FrameQueue {
        FrameQueue { state: Mutex::default(), gathers }
    }

    /// Appends the frame that is made; tells its number. When the connection has gone it leads nowhere.
    pub(super) fn add(&self, make: impl FnOnce() -> ClientFrame) -> u64 {
        let mut state = self.state();
        let made = make();
        if !state.is_gone {
            state.waiting.add(|out| made.encode_lists(out));
        }
        wake(state);
        made.number
    }

    /// Ends the stream behind the frames that wait.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_ended = true;
        wake(state);
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, FrameQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, FrameQueueState>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// The stream of a session's frames, as the body of its request.
#[derive(Debug)]
pub(crate) struct Outgoing(Arc<FrameQueue>);

impl Outgoing {
    pub(super) fn new(queue: Arc<FrameQueue>) -> Outgoing {
        Outgoing(queue)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.0.state();
        if state.waiting.is_empty() {
            if state.is_ended {
                return Poll::Ready(None);
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let piece = match self.0.gathers {
            true => state.waiting.take(PIECE_BYTES),
            false => state.waiting.take_first(),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_gone = true;
        state.waiting = Framer::default();
    }
}

/// The request that begins a stream.
pub(crate) fn request(uri: http::Uri, outgoing: Outgoing) -> Request<Outgoing> {
    let mut request = Request::new(outgoing);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc+proto"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    request
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use sluice_proto::v1::client_frame::Frame as Kind;
    use sluice_proto::v1::{Open, Ping};

    use super::*;

    async fn pieces(gathers: bool) -> Vec<usize> {
        let queue = Arc::new(FrameQueue::new(gathers));
        let open = || Kind::Open(Open { namespace: Bytes::from_static(b"shop"), ..Open::default() });
        queue.add(|| ClientFrame { number: 1, frame: Some(open()) });
        queue.add(|| ClientFrame { number: 2, frame: Some(Kind::Ping(Ping {})) });
        queue.end();
        let (mut outgoing, mut pieces) = (Outgoing::new(queue), Vec::new());
        while let Some(Ok(frame)) = outgoing.frame().await {
            pieces.push(frame.data_ref().map_or(0, Bytes::len));
        }
        pieces
    }

    #[tokio::test]
    async fn frames_go_together_or_alone() {
        let alone = pieces(false).await;
        assert_eq!(alone.len(), 2);
        assert_eq!(pieces(true).await, [alone.iter().sum::<usize>()]);
    }
}
