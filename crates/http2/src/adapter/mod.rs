//! Runs a [`tower_service::Service`] of `http` requests and responses on a connection, and [direct
//! calls](Direct), which do without those types.
//!
//! Calls run in the task of the connection, each in a slot that is reused. A waker sets a bit for its slot,
//! by which the adapter knows which calls to poll. A call whose stream has ended is dropped.
//!
//! | module | |
//! |---|---|
//! | `body` | the body of a request |
//! | `convert` | heads, from and to the types of `http` |
//! | `direct` | calls without the types of `http` |
//! | `exchange` | one call: its request's body, its future, its response |
//! | `spare` | storage that heads have from others before them |
//! | `wakes` | which calls can go on |

mod body;
mod convert;
mod direct;
mod exchange;
mod spare;
mod wakes;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::connection::{Connection, Event, StreamKey};
use crate::drive::Handler;
use crate::error::ErrorCode;
use crate::hpack::Field;
use crate::limits::Limits;
pub use body::{BodyError, RequestBody};
pub use convert::Protocol;
pub use direct::{Direct, DirectResponse};
use exchange::Exchange;
use wakes::Wakes;

/// Answers the requests of a connection with a service, and some of them with direct calls.
pub struct Adapter<S, B, D = ()>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    D: Direct,
{
    service: S,
    direct: D,
    /// By slot of the stream.
    exchanges: Vec<Exchange<S::Future, B, D::Call>>,
    /// Number of bytes of bodies that are collected for direct calls.
    held: usize,
    /// Time of the last check for bodies that come too slowly, in microseconds.
    looked_us: u64,
    /// Streams whose requests wait for the service, in order.
    waiting: VecDeque<StreamKey>,
    wakes: Arc<Wakes>,
    /// Slots of calls that can continue as soon as there is room for the heads of their responses.
    held_up: VecDeque<usize>,
    heads: convert::Heads,
}

impl<S, B> Adapter<S, B>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    B: http_body::Body,
{
    /// An adapter for a connection with these limits.
    pub fn new(service: S, limits: &Limits) -> Self {
        Self::with_direct(service, (), limits)
    }
}

impl<S, B, D> Adapter<S, B, D>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    B: http_body::Body,
    D: Direct,
{
    /// An adapter for a connection with these limits; `direct` is asked before the service.
    pub fn with_direct(service: S, direct: D, limits: &Limits) -> Self {
        Self {
            service,
            direct,
            exchanges: Vec::new(),
            held: 0,
            looked_us: 0,
            waiting: VecDeque::new(),
            wakes: Arc::new(Wakes::new(limits.streams as usize)),
            held_up: VecDeque::new(),
            heads: convert::Heads::default(),
        }
    }

    /// Begins a request for the service, if its head is one of `http`.
    fn begin(
        &mut self,
        connection: &mut Connection,
        stream: StreamKey,
        head: Result<Request<()>, convert::NotHttp>,
        end: bool,
    ) {
        match head {
            Ok(head) => {
                self.exchanges[stream.slot()].begin(stream, head, end);
                self.waiting.push_back(stream);
            }
            Err(convert::NotHttp) => {
                // Right for HTTP/2, but not what the types of `http` can tell.
                let _ = connection.respond(stream, 400, None, [Field::new("content-length", "0")], true);
            }
        }
    }

    fn exchange(&mut self, stream: StreamKey) -> Option<&mut Exchange<S::Future, B, D::Call>> {
        self.exchanges.get_mut(stream.slot()).filter(|exchange| exchange.stream() == Some(stream))
    }

    /// True when the body of a stream is collected for a direct call.
    fn is_collecting(&mut self, stream: StreamKey) -> bool {
        self.exchange(stream).is_some_and(|exchange| exchange.direct.is_collecting())
    }

    /// Frees a slot.
    fn end(&mut self, slot: usize, code: ErrorCode) {
        let exchange = &mut self.exchanges[slot];
        self.held -= exchange.direct.held();
        exchange.end(Some(code));
    }

    /// Drops the call of a stream that was reset.
    fn on_reset(&mut self, stream: StreamKey, code: ErrorCode) {
        if self.exchange(stream).is_some() {
            self.end(stream.slot(), code);
        }
    }

    /// Frees the slots of all streams, when no stream is open.
    fn rest(&mut self) {
        if self.exchanges.iter().all(|exchange| exchange.stream().is_none()) {
            self.exchanges = Vec::new();
            self.waiting = VecDeque::new();
            self.held_up = VecDeque::new();
            self.heads = convert::Heads::default();
        }
    }

    /// Removes streams that have ended from `waiting`, which would grow while the service is not ready.
    fn forget_ended(&mut self) {
        if self.waiting.len() > self.exchanges.len() {
            let exchanges = &self.exchanges;
            self.waiting.retain(|stream| exchanges[stream.slot()].stream() == Some(*stream));
        }
    }

    /// Hands requests to the service, as long as it takes them.
    fn start_calls(&mut self, context: &mut Context<'_>, connection: &mut Connection) {
        while let Some(&stream) = self.waiting.front() {
            if self.exchange(stream).is_none() {
                self.waiting.pop_front();
                continue;
            }
            match self.service.poll_ready(context) {
                Poll::Pending => return self.forget_ended(),
                Poll::Ready(Err(_)) => {
                    connection.reset(stream, ErrorCode::REFUSED_STREAM);
                    self.exchanges[stream.slot()].end(Some(ErrorCode::REFUSED_STREAM));
                }
                Poll::Ready(Ok(())) => {
                    let exchange = &mut self.exchanges[stream.slot()];
                    if let Some(request) = exchange.take_request() {
                        // What came whole is the service's from now on.
                        connection.consumed(stream, request.body().whole_bytes());
                        exchange.start(self.service.call(request));
                        self.wakes.set(stream.slot());
                    }
                }
            }
            self.waiting.pop_front();
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
    fn on_request(&mut self, connection: &mut Connection, stream: StreamKey, end: bool) {
        while self.exchanges.len() <= stream.slot() {
            self.exchanges.push(Exchange::new(&self.wakes, self.exchanges.len()));
        }
        if !self.begin_direct(connection, stream, end) {
            let head = self.heads.request(connection.request());
            self.begin(connection, stream, head, end);
        }
    }

    /// Polls a call that has just begun, now or in its turn.
    fn go_on(&mut self, connection: &mut Connection, slot: usize) {
        if self.held_up.is_empty() && connection.takes_heads() {
            self.exchanges[slot].poll(connection, &mut self.heads);
        } else {
            self.wakes.set(slot);
        }
    }

    /// Polls the calls in `held_up`. False: some still wait for room, and others have to wait behind them.
    fn release(&mut self, connection: &mut Connection) -> bool {
        while connection.takes_heads() {
            let Some(slot) = self.held_up.pop_front() else { return true };
            self.exchanges[slot].poll(connection, &mut self.heads);
        }
        self.held_up.is_empty()
    }
}

impl<S, B, D> Handler for Adapter<S, B, D>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Future: Future<Output = Result<Response<B>, S::Error>>,
    B: http_body::Body,
    D: Direct,
{
    fn on_event(&mut self, connection: &mut Connection, event: Event<'_>) {
        match event {
            Event::Request { stream, end } => self.on_request(connection, stream, end),
            Event::Data { stream, data, end } if self.is_collecting(stream) => {
                self.collect(connection, stream, data, end);
            }
            Event::Data { stream, data, end } => match self.exchange(stream) {
                Some(exchange) => exchange.on_data(data, end),
                None => connection.consumed(stream, data.len()),
            },
            Event::Trailers { stream } => {
                let trailers = self.heads.trailers(|| connection.trailers());
                if self.is_collecting(stream) {
                    self.hand_over(connection, stream);
                }
                if let Some(exchange) = self.exchange(stream) {
                    exchange.on_trailers(trailers.ok());
                }
            }
            Event::Reset { stream, code } => self.on_reset(stream, code),
            Event::Stalled { stream, .. } => self.on_reset(stream, ErrorCode::CANCEL),
            Event::Closed(fault) => (0..self.exchanges.len()).for_each(|slot| self.end(slot, fault.code)),
            Event::Idle => self.rest(),
            Event::GoAway { .. } => {}
        }
    }

    fn on_room(&mut self, stream: StreamKey) {
        self.wakes.set(stream.slot());
    }

    fn poll(&mut self, context: &mut Context<'_>, connection: &mut Connection) {
        self.wakes.register(context.waker());
        self.hand_over_late(connection);
        self.start_calls(context, connection);
        if !self.release(connection) {
            return;
        }
        for word in 0..self.wakes.words() {
            for slot in self.wakes.take(word) {
                if slot >= self.exchanges.len() {
                    continue;
                }
                if connection.takes_heads() {
                    self.exchanges[slot].poll(connection, &mut self.heads);
                } else {
                    self.held_up.push_back(slot);
                }
            }
        }
    }
}
