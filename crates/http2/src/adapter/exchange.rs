//! One call: the body of its request, its future, the body of its response.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body;

use super::body::{RequestBody, Shared};
use super::convert::{self, Heads};
use super::direct::{DirectPlace, DirectResponse};
use super::wakes::Wakes;
use crate::connection::{Connection, RequestHead, SendError, StreamKey};
use crate::error::ErrorCode;

/// The place of one stream, used for one after the other.
pub(super) struct Exchange<F, B, C> {
    stream: Option<StreamKey>,
    waker: Waker,
    /// Until the service gets it.
    head: Option<Request<()>>,
    is_head_request: bool,
    is_connect: bool,
    /// True when the client may still wait for status 100 (Continue) before it sends its body.
    expects_continue: bool,
    incoming: Incoming,
    call: Pin<Box<Option<F>>>,
    response: Pin<Box<Option<B>>>,
    /// A call that is answered without the service, in the place of all that.
    pub(super) direct: DirectPlace<C>,
}

/// The body of the request, as far as it came.
enum Incoming {
    /// Nothing came yet.
    Nothing,
    /// A request that is over; what came is still here if the service has not got it.
    Over(Bytes),
    Streamed(Arc<Shared>),
}

impl<F, B, C> Exchange<F, B, C> {
    pub(super) fn new(wakes: &Arc<Wakes>, slot: usize) -> Self {
        Self {
            stream: None,
            waker: wakes.waker(slot),
            head: None,
            is_head_request: false,
            is_connect: false,
            expects_continue: false,
            incoming: Incoming::Nothing,
            call: Box::pin(None),
            response: Box::pin(None),
            direct: DirectPlace::new(),
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
        self.is_connect = head.method() == Method::CONNECT;
        let expects = head.headers().get(header::EXPECT);
        self.expects_continue =
            expects.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        self.head = Some(head);
        self.incoming = if end { Incoming::Over(Bytes::new()) } else { Incoming::Nothing };
    }

    /// A request has come that may be for a direct call.
    pub(super) fn begin_direct(&mut self, stream: StreamKey, head: RequestHead<'_>) {
        debug_assert!(self.stream.is_none());
        self.stream = Some(stream);
        self.is_head_request = head.method() == b"HEAD";
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
        self.direct.clear();
        if let Incoming::Streamed(shared) = std::mem::replace(&mut self.incoming, Incoming::Nothing) {
            shared.fail(code.unwrap_or(ErrorCode::NO_ERROR));
        }
    }
}

impl<F, B, C> Drop for Exchange<F, B, C> {
    /// The body of a request may live longer, in a task of its own.
    fn drop(&mut self) {
        self.end(Some(ErrorCode::CANCEL));
    }
}

impl<F, B, E, C> Exchange<F, B, C>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
    C: Future<Output = DirectResponse>,
{
    /// Goes on as far as possible now.
    pub(super) fn poll(&mut self, connection: &mut Connection, heads: &mut Heads) {
        let Some(stream) = self.stream else { return };
        // Lent out, since cloning it costs more than this.
        let waker = std::mem::replace(&mut self.waker, Waker::noop().clone());
        let mut context = Context::from_waker(&waker);
        let progress = if self.direct.is_called() {
            self.go_on_directly(connection, stream, heads, &mut context)
        } else {
            self.go_on(connection, stream, heads, &mut context)
        };
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
            Ok(ResponseStep::Goes | ResponseStep::Waits) => {}
            Ok(ResponseStep::Over) => self.end(None),
            Err(Failed) => {
                connection.reset(stream, ErrorCode::INTERNAL_ERROR);
                self.end(Some(ErrorCode::INTERNAL_ERROR));
            }
        }
    }

    /// Sends the response of a direct call, if it is there.
    fn go_on_directly(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        heads: &mut Heads,
        context: &mut Context<'_>,
    ) -> Result<ResponseStep, Failed> {
        let Poll::Ready(response) = self.direct.poll(context) else { return Ok(ResponseStep::Waits) };
        let DirectResponse { status, constant, fields, body } = response;
        let no_body = has_no_body(status);
        let end = self.is_head_request || no_body || body.is_empty();
        let mut digits = [0; 20];
        let length =
            (!no_body && !body.is_empty()).then(|| convert::content_length(body.len() as u64, &mut digits));
        let constant = constant.into_iter().chain([heads.date.field(connection.now_us())]);
        let fields = convert::to_wire(fields.iter().map(|(name, value)| (name, value))).chain(length);
        connection.respond(stream, status.as_u16(), constant, fields, end)?;
        if !end {
            connection.send_body(stream, body, true)?;
        }
        Ok(ResponseStep::Over)
    }

    fn go_on(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        heads: &mut Heads,
        context: &mut Context<'_>,
    ) -> Result<ResponseStep, Failed> {
        let mut step = if self.response.is_some() { ResponseStep::Goes } else { ResponseStep::Waits };
        if let Some(call) = self.call.as_mut().as_pin_mut()
            && let Poll::Ready(result) = call.poll(context)
        {
            self.call.set(None);
            step = self.respond(connection, stream, result.map_err(|_| Failed)?, heads)?;
        }
        while let ResponseStep::Goes = step {
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
        heads: &mut Heads,
    ) -> Result<ResponseStep, Failed> {
        let (head, body) = response.into_parts();
        let no_body = has_no_body(head.status);
        let end = self.is_head_request || no_body || body.is_end_stream();
        let date = (!head.headers.contains_key(header::DATE)).then(|| heads.date.field(connection.now_us()));
        let mut digits = [0; 20];
        let may_have_length = may_have_length(head.status, self.is_connect);
        let adds_length = may_have_length && !no_body && !head.headers.contains_key(header::CONTENT_LENGTH);
        let length = body.size_hint().exact().filter(|&bytes| adds_length && (bytes > 0 || !end));
        let length = length.map(|bytes| convert::content_length(bytes, &mut digits));
        let fields = convert::to_wire(&head.headers)
            .filter(|field| may_have_length || field.name != b"content-length");
        let fields = fields.chain(length);
        connection.respond(stream, head.status.as_u16(), date, fields, end)?;
        heads.sent(head.headers);
        if end {
            return Ok(ResponseStep::Over);
        }
        self.response.set(Some(body));
        Ok(ResponseStep::Goes)
    }

    /// Sends the next frame of the response's body.
    fn send(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        context: &mut Context<'_>,
    ) -> Result<ResponseStep, Failed> {
        let Some(mut body) = self.response.as_mut().as_pin_mut() else { return Ok(ResponseStep::Waits) };
        if connection.send_room(stream) == 0 {
            return Ok(ResponseStep::Waits);
        }
        let frame = match body.as_mut().poll_frame(context) {
            Poll::Pending => return Ok(ResponseStep::Waits),
            Poll::Ready(None) => {
                connection.send_body(stream, Bytes::new(), true)?;
                return Ok(ResponseStep::Over);
            }
            Poll::Ready(Some(frame)) => frame.map_err(|_| Failed)?,
        };
        match frame.into_data() {
            Ok(mut data) => {
                let end = body.is_end_stream();
                connection.send_body(stream, data.copy_to_bytes(data.remaining()), end)?;
                Ok(if end { ResponseStep::Over } else { ResponseStep::Goes })
            }
            Err(frame) => {
                let Ok(trailers) = frame.into_trailers() else { return Ok(ResponseStep::Goes) };
                connection.send_trailers(stream, convert::to_wire(&trailers))?;
                Ok(ResponseStep::Over)
            }
        }
    }
}

/// True when responses of this status never have a body (RFC 9110 §15.3.5, §15.4.5).
fn has_no_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// True when a response may say how long its body is (RFC 9110 §8.6).
fn may_have_length(status: StatusCode, to_connect: bool) -> bool {
    status != StatusCode::NO_CONTENT && !(to_connect && status.is_success())
}

/// The step that a response has reached.
enum ResponseStep {
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
