//! One call: the body of its request, its future, the body of its response.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body;

use super::body::{RequestBody, Shared};
use super::convert::{self, Date};
use super::wakes::Wakes;
use crate::connection::{Connection, SendError, StreamKey};
use crate::error::ErrorCode;

/// The place of one stream, used for one after the other.
pub(super) struct Exchange<F, B> {
    stream: Option<StreamKey>,
    waker: Waker,
    /// Until the service gets it.
    head: Option<Request<()>>,
    is_head_request: bool,
    /// Whether the client may still wait for 100 (Continue) before it sends its body.
    expects_continue: bool,
    incoming: Incoming,
    call: Pin<Box<Option<F>>>,
    response: Pin<Box<Option<B>>>,
}

/// The body of the request, as far as it came.
enum Incoming {
    /// Nothing came yet.
    Nothing,
    /// It is over; what came is still here if the service has not got it.
    Over(Bytes),
    Streamed(Arc<Shared>),
}

impl<F, B> Exchange<F, B> {
    pub(super) fn new(wakes: &Arc<Wakes>, slot: usize) -> Self {
        Self {
            stream: None,
            waker: wakes.waker(slot),
            head: None,
            is_head_request: false,
            expects_continue: false,
            incoming: Incoming::Nothing,
            call: Box::pin(None),
            response: Box::pin(None),
        }
    }

    /// The stream whose call this is.
    pub(super) fn stream(&self) -> Option<StreamKey> {
        self.stream
    }

    /// A request has come.
    pub(super) fn begin(&mut self, stream: StreamKey, head: Request<()>, end: bool) {
        debug_assert!(self.stream.is_none());
        self.stream = Some(stream);
        self.is_head_request = head.method() == Method::HEAD;
        let expects = head.headers().get(header::EXPECT);
        self.expects_continue =
            expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        self.head = Some(head);
        self.incoming = if end { Incoming::Over(Bytes::new()) } else { Incoming::Nothing };
    }

    pub(super) fn on_data(&mut self, data: &[u8], end: bool) {
        match &self.incoming {
            Incoming::Nothing if end => self.incoming = Incoming::Over(Bytes::copy_from_slice(data)),
            _ => self.shared().push(data, end),
        }
    }

    /// The request has ended with trailers, or with some that cannot be told.
    pub(super) fn on_trailers(&mut self, trailers: Option<HeaderMap>) {
        self.shared().finish(trailers);
    }

    /// The body, from now on streamed.
    fn shared(&mut self) -> &Arc<Shared> {
        if !matches!(self.incoming, Incoming::Streamed(_)) {
            self.incoming = Incoming::Streamed(Shared::new(self.waker.clone(), self.expects_continue));
        }
        match &self.incoming {
            Incoming::Streamed(shared) => shared,
            _ => unreachable!("it was made so just now"),
        }
    }

    /// The request, for the service: once.
    pub(super) fn take_request(&mut self) -> Option<Request<RequestBody>> {
        let head = self.head.take()?;
        let body = match &mut self.incoming {
            Incoming::Over(bytes) => RequestBody::whole(std::mem::take(bytes)),
            Incoming::Nothing | Incoming::Streamed(_) => {
                let length = head.headers().get(header::CONTENT_LENGTH);
                let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
                RequestBody::streamed(self.shared().clone(), length)
            }
        };
        Some(head.map(|()| body))
    }

    pub(super) fn start(&mut self, call: F) {
        self.call.set(Some(call));
    }

    /// Lets go of everything; whoever still reads the request sees `code`, unless it is whole.
    pub(super) fn end(&mut self, code: Option<ErrorCode>) {
        self.stream = None;
        self.head = None;
        self.call.set(None);
        self.response.set(None);
        if let Incoming::Streamed(shared) = std::mem::replace(&mut self.incoming, Incoming::Nothing) {
            shared.fail(code.unwrap_or(ErrorCode::NO_ERROR));
        }
    }
}

impl<F, B> Drop for Exchange<F, B> {
    /// The body of a request may live longer, in a task of its own.
    fn drop(&mut self) {
        self.end(Some(ErrorCode::CANCEL));
    }
}

impl<F, B, E> Exchange<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    /// Goes on as far as possible now.
    pub(super) fn poll(&mut self, connection: &mut Connection, date: &mut Date) {
        let Some(stream) = self.stream else { return };
        // Lent out, since cloning it costs more than this.
        let waker = std::mem::replace(&mut self.waker, Waker::noop().clone());
        let progress = self.go_on(connection, stream, date, &mut Context::from_waker(&waker));
        self.waker = waker;
        if let Incoming::Streamed(shared) = &self.incoming {
            if self.expects_continue && shared.take_invitation() {
                self.expects_continue = false;
                // Not once the response has begun.
                let _ = connection.inform(stream, 100, []);
            }
            connection.consumed(stream, shared.take_consumed());
        }
        match progress {
            Ok(Step::Goes | Step::Waits) => {}
            Ok(Step::Over) => self.end(None),
            Err(Failed) => {
                connection.reset(stream, ErrorCode::INTERNAL_ERROR);
                self.end(Some(ErrorCode::INTERNAL_ERROR));
            }
        }
    }

    fn go_on(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        date: &mut Date,
        context: &mut Context<'_>,
    ) -> Result<Step, Failed> {
        let mut step = if self.response.is_some() { Step::Goes } else { Step::Waits };
        if let Some(call) = self.call.as_mut().as_pin_mut()
            && let Poll::Ready(result) = call.poll(context)
        {
            self.call.set(None);
            step = self.respond(connection, stream, result.map_err(|_| Failed)?, date)?;
        }
        while let Step::Goes = step {
            step = self.send(connection, stream, context)?;
        }
        Ok(step)
    }

    /// Sends the head of the response.
    fn respond(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        response: Response<B>,
        date: &mut Date,
    ) -> Result<Step, Failed> {
        let (head, body) = response.into_parts();
        let no_body = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let end = self.is_head_request || no_body || body.is_end_stream();
        let date = (!head.headers.contains_key(header::DATE)).then(|| (&b"date"[..], date.text().as_bytes()));
        let mut digits = [0; 20];
        let has_length = no_body || head.headers.contains_key(header::CONTENT_LENGTH);
        let length = body.size_hint().exact().filter(|&bytes| !has_length && (bytes > 0 || !end));
        let length = length.map(|bytes| (&b"content-length"[..], decimal(bytes, &mut digits)));
        let fields = convert::to_wire(&head.headers).chain(length).chain(date);
        connection.respond(stream, head.status.as_u16(), None, fields, end)?;
        if end {
            return Ok(Step::Over);
        }
        self.response.set(Some(body));
        Ok(Step::Goes)
    }

    /// Sends the next frame of the response's body.
    fn send(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        context: &mut Context<'_>,
    ) -> Result<Step, Failed> {
        let Some(mut body) = self.response.as_mut().as_pin_mut() else { return Ok(Step::Waits) };
        if connection.send_room(stream) == 0 {
            return Ok(Step::Waits);
        }
        let frame = match body.as_mut().poll_frame(context) {
            Poll::Pending => return Ok(Step::Waits),
            Poll::Ready(None) => {
                connection.send_body(stream, Bytes::new(), true)?;
                return Ok(Step::Over);
            }
            Poll::Ready(Some(frame)) => frame.map_err(|_| Failed)?,
        };
        match frame.into_data() {
            Ok(mut data) => {
                let end = body.is_end_stream();
                connection.send_body(stream, data.copy_to_bytes(data.remaining()), end)?;
                Ok(if end { Step::Over } else { Step::Goes })
            }
            Err(frame) => {
                let Ok(trailers) = frame.into_trailers() else { return Ok(Step::Goes) };
                connection.send_trailers(stream, convert::to_wire(&trailers))?;
                Ok(Step::Over)
            }
        }
    }
}

/// How far a response is.
enum Step {
    /// There may be more to send at once.
    Goes,
    Waits,
    Over,
}

/// A response that cannot be finished.
struct Failed;

impl From<SendError> for Failed {
    fn from(_: SendError) -> Self {
        Self
    }
}

/// A number in decimal.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}
