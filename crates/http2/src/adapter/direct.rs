//! Calls that are answered without the types of `http`.

use std::future::{Future, Pending};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use tower_service::Service;

use super::{Adapter, RequestBody};
use crate::connection::{Connection, KeptHead, RequestHead, StreamKey};
use crate::hpack::Encoded;

/// Answers some requests without the types of `http`: meant for the few kinds of calls that come at a high
/// rate. In the steady state neither such a request nor its response allocates, apart from the call itself.
///
/// All other requests go to the service: those that are not [taken](Direct::takes) or are
/// [declined](Direct::call), those with trailers or with `expect: 100-continue`, those whose body is larger
/// than allowed or has no stated length, and those whose body is not complete after one to two seconds.
pub trait Direct {
    /// The future of a call. It lies in a slot that is reused, and is dropped when its stream ends first.
    type Call: Future<Output = DirectResponse>;

    /// The maximum size of the body in bytes of a request with this head that is taken; `None`: the service
    /// is to answer it. Bodies larger than half of
    /// [`Limits::stream_receive_bytes`](crate::Limits::stream_receive_bytes) are never taken.
    fn takes(&mut self, head: RequestHead<'_>) -> Option<usize>;

    /// Begins the call of a request that was taken and is complete. `None`: the service is to answer it.
    fn call(&mut self, head: RequestHead<'_>, body: &[u8]) -> Option<Self::Call>;
}

/// The response of a direct call. `date` and `content-length` are added; the body is omitted where HTTP has
/// none, as for HEAD.
#[derive(Clone, Debug, Default)]
pub struct DirectResponse {
    /// Status, 200 or more.
    pub status: StatusCode,
    /// Fields that many responses share, encoded in advance.
    pub constant: Option<&'static Encoded>,
    /// Further fields. A [sensitive](HeaderValue::is_sensitive) value is encoded as never indexed (RFC 7541
    /// §7.1.3).
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Body.
    pub body: Bytes,
}

/// Takes no request: all go to the service.
impl Direct for () {
    type Call = Pending<DirectResponse>;

    fn takes(&mut self, _: RequestHead<'_>) -> Option<usize> {
        None
    }

    fn call(&mut self, _: RequestHead<'_>, _: &[u8]) -> Option<Self::Call> {
        None
    }
}

/// The direct call in the slot of a stream: the request until it is complete, then the call.
pub(super) struct DirectPlace<C> {
    head: KeptHead,
    body: Vec<u8>,
    /// Largest size of the body in bytes, while it is collected.
    bytes_max: Option<usize>,
    /// Start of collecting it, in microseconds.
    since_us: u64,
    call: Pin<Box<Option<C>>>,
}

/// Shortest time for which a body is collected, in microseconds: enough for one that is sent right behind its
/// head.
const COLLECTED_US: u64 = 1_000_000;

/// Storage for bodies that a slot keeps from one request to the next, in bytes.
const KEPT_BYTES: usize = 1_024;

impl<C> DirectPlace<C> {
    pub(super) fn new() -> Self {
        Self {
            head: KeptHead::default(),
            body: Vec::new(),
            bytes_max: None,
            since_us: 0,
            call: Box::pin(None),
        }
    }

    pub(super) fn is_collecting(&self) -> bool {
        self.bytes_max.is_some()
    }

    pub(super) fn is_called(&self) -> bool {
        self.call.is_some()
    }

    /// Bytes of the body that are held.
    pub(super) fn held(&self) -> usize {
        self.body.len()
    }

    fn collect(&mut self, head: RequestHead<'_>, bytes_max: usize, now_us: u64) {
        self.head.keep(head);
        (self.bytes_max, self.since_us) = (Some(bytes_max), now_us);
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes_max.is_some_and(|max| self.body.len() + bytes <= max)
    }

    /// Ends collecting, for a call.
    fn start(&mut self, call: C) {
        self.clear();
        self.call.set(Some(call));
    }

    pub(super) fn clear(&mut self) {
        self.call.set(None);
        self.bytes_max = None;
        self.head.clear();
        self.body.clear();
        self.body.shrink_to(KEPT_BYTES);
    }
}

impl<C: Future<Output = DirectResponse>> DirectPlace<C> {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<DirectResponse> {
        match self.call.as_mut().as_pin_mut() {
            Some(call) => call.poll(context),
            None => Poll::Pending,
        }
    }
}

impl<S, B, D> Adapter<S, B, D>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Future: Future<Output = Result<Response<B>, S::Error>>,
    B: http_body::Body,
    D: Direct,
{
    /// Begins a request that may be for a direct call. False: it is the service's.
    pub(super) fn begin_direct(&mut self, connection: &mut Connection, stream: StreamKey, end: bool) -> bool {
        let head = connection.request();
        let Some(bytes_max) = self.direct.takes(head) else { return false };
        let exchange = &mut self.exchanges[stream.slot()];
        if end {
            let Some(call) = self.direct.call(head, &[]) else { return false };
            exchange.begin_direct(stream, head);
            exchange.direct.start(call);
            self.go_on(connection, stream.slot());
            return true;
        }
        // Only the service tells clients to go on.
        let Some(length) = head.content_length().filter(|_| !connection.expects_continue()) else {
            return false;
        };
        // Nothing is given back before the body is whole, so more than that might never come.
        let bytes_max = bytes_max.min(connection.limits().stream_receive_bytes as usize / 2);
        if length > bytes_max as u64 {
            return false;
        }
        exchange.begin_direct(stream, head);
        exchange.direct.collect(head, bytes_max, connection.now_us());
        true
    }

    /// Takes a piece of a body that is being collected.
    pub(super) fn collect(&mut self, connection: &mut Connection, stream: StreamKey, data: &[u8], end: bool) {
        let place = &mut self.exchanges[stream.slot()].direct;
        let fits = place.has_room(data.len());
        if fits && end && self.call_direct(connection, stream, data) {
            return;
        }
        // So that what is collected never takes all of the connection's window.
        let held_max = connection.limits().connection_receive_bytes as usize / 2;
        if fits && !end && self.held + data.len() <= held_max {
            self.held += data.len();
            self.exchanges[stream.slot()].direct.body.extend_from_slice(data);
            return;
        }
        self.hand_over(connection, stream);
        match self.exchange(stream) {
            Some(exchange) => exchange.on_data(data, end),
            None => connection.consumed(stream, data.len()),
        }
    }

    /// Calls with a request whose last piece is here. False: declined, and all is as before.
    fn call_direct(&mut self, connection: &mut Connection, stream: StreamKey, last: &[u8]) -> bool {
        let exchange = &mut self.exchanges[stream.slot()];
        let place = &mut exchange.direct;
        let before = place.held();
        let whole = if before == 0 {
            last
        } else {
            place.body.extend_from_slice(last);
            &place.body
        };
        let Some(call) = self.direct.call(place.head.head(), whole) else {
            place.body.truncate(before);
            return false;
        };
        connection.consumed(stream, whole.len());
        self.held -= before;
        place.start(call);
        self.go_on(connection, stream.slot());
        true
    }

    /// Gives requests to the service that let wait for the rest of their bodies. Such streams are looked at
    /// every second, which is when this is asked at the latest.
    pub(super) fn hand_over_late(&mut self, connection: &mut Connection) {
        let now_us = connection.now_us();
        if now_us < self.looked_us + COLLECTED_US {
            return;
        }
        self.looked_us = now_us;
        for slot in 0..self.exchanges.len() {
            let exchange = &self.exchanges[slot];
            let is_late =
                exchange.direct.is_collecting() && exchange.direct.since_us + COLLECTED_US <= now_us;
            if let Some(stream) = exchange.stream().filter(|_| is_late) {
                self.hand_over(connection, stream);
            }
        }
    }

    /// Gives a request that was being collected to the service, with what is there of its body.
    pub(super) fn hand_over(&mut self, connection: &mut Connection, stream: StreamKey) {
        let exchange = &mut self.exchanges[stream.slot()];
        let body = std::mem::take(&mut exchange.direct.body);
        self.held -= body.len();
        let head = self.heads.request(exchange.direct.head.head());
        exchange.end(None);
        self.begin(connection, stream, head, false);
        match self.exchange(stream) {
            Some(exchange) if !body.is_empty() => exchange.on_data(&body, false),
            _ => {}
        }
    }
}
