//! Direct calls over HTTP/2: sends, receives and settles, answered from the bytes of their heads, without the
//! types of `http` and the table of all routes.
//!
//! A request is answered here if it is plain and succeeds without a look-up. Every other request is declined
//! before it has had any effect, and takes the way of all requests (`dispatch`), which reports what is wrong;
//! so no rule and no error has a second place. The call begins while the request is still in the connection's
//! buffer; the future waits for the outcome only.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use http::Method;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::response::Response;
use sluice_calls::access::{Caller, Peer, Right};
use sluice_calls::hot::receive::done;
use sluice_calls::hot::settle::in_order;
use sluice_calls::operation::{Hot, Kind, Operation, Trait};
use sluice_calls::standing::Waited;
use sluice_calls::{self as calls, Asker, CallError, Permit};
use sluice_engine::Limits;
use sluice_http2::adapter::{Direct, DirectResponse};
use sluice_http2::connection::RequestHead;
use sluice_http2::hpack::{Encoded, Field};

use super::codec::idempotency::{IDEMPOTENCY_KEY, only_key};
use crate::hot::receive::{RECEIVE_FIELDS, Terms};
use crate::hot::send::Batch;
use crate::hot::settle::{Outcome, Settlements};
use crate::http::route::call::is_json;
use crate::http::route::table::{Captured, find_hot};
use crate::json::answers::{delivered, sent, settled};
use crate::json::{Json, Reader};
use crate::net::activity::Activity;
use crate::net::admit::has_room;
use crate::net::arrived::{REQUEST_ID, request_id};
use crate::net::body::{Body, kept};
use crate::net::context::Context;
use crate::net::errors::HttpError as _;
use crate::net::head::hosts::admits;
use crate::net::in_flight::InFlight;
use crate::net::respond::{JSON, NO_STORE};

/// Largest body of a call that is answered here, in bytes: one that fits into a frame as clients send them.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The fields of all answers.
static FIELDS: LazyLock<Encoded> = LazyLock::new(|| {
    Encoded::new([Field::new(CONTENT_TYPE.as_str(), JSON), Field::new(CACHE_CONTROL.as_str(), NO_STORE)])
});

/// The hot calls of one connection.
pub(crate) struct HotCalls {
    pub(crate) context: Arc<Context>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) peer: Arc<Peer>,
}

/// A call that was begun.
type PendingAnswer = Pin<Box<dyn Future<Output = DirectResponse> + Send>>;

impl Direct for HotCalls {
    type Call = PendingAnswer;

    fn takes(&mut self, head: RequestHead<'_>) -> Option<usize> {
        (is_plain(head) && route_of(head).is_some()).then_some(BODY_BYTES_MAX)
    }

    fn call(&mut self, head: RequestHead<'_>, body: &[u8]) -> Option<PendingAnswer> {
        let asked = HotCall::new(self, head, body)?;
        let Kind::Hot(call) = asked.operation.kind() else { return None };
        match call {
            Hot::Send => asked.send(),
            Hot::Receive => asked.receive(),
            Hot::Settle => asked.settle(None),
            Hot::Ack => asked.settle(Some(Outcome::Ack)),
            Hot::Nack => asked.settle(Some(Outcome::Nack)),
            Hot::Release => asked.settle(Some(Outcome::Release)),
            Hot::Reject => asked.settle(Some(Outcome::Reject)),
            Hot::ReceiveMany | Hot::Extend | Hot::GroupSend | Hot::SchedulePut => None,
            Hot::TransactionCommit | Hot::TransactionStage | Hot::TransactionClose => None,
        }
    }
}

/// True when a request has no more to it than most have: its body is JSON as it stands, and no page of a
/// browser has made it.
fn is_plain(head: RequestHead<'_>) -> bool {
    let mut is_typed = false;
    let plain = |(name, value): (&[u8], &[u8])| match name {
        b"content-type" => {
            !std::mem::replace(&mut is_typed, true)
                && is_json(value)
                && !value.starts_with(b"application/grpc")
        }
        b"content-encoding" | b"origin" | b"sec-fetch-site" => false,
        // What the types of `http` do not take is refused elsewhere.
        _ => value.iter().all(|byte| *byte >= b' ' && *byte != 0x7f),
    };
    // Each request is to be in a log that wants to know so much: that is done elsewhere.
    head.method() == b"POST" && head.fields().all(plain) && !tracing::enabled!(tracing::Level::DEBUG)
}

/// The path, without parameters and escapes, and its route.
fn route_of(head: RequestHead<'_>) -> Option<(&str, Operation, Captured<'_>)> {
    let path = simple(head.path()?)?;
    let (operation, captured) = find_hot(path)?;
    Some((path, operation, captured))
}

/// A path or an authority that there is only one way to read.
fn simple(text: &[u8]) -> Option<&str> {
    let simple = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~:[]".contains(byte);
    if text.iter().all(simple) { std::str::from_utf8(text).ok() } else { None }
}

/// A call that its caller may make, as far as its path tells.
struct HotCall<'a> {
    hot: &'a HotCalls,
    head: RequestHead<'a>,
    body: &'a [u8],
    path: &'a str,
    operation: Operation,
    captured: Captured<'a>,
    authorization: Option<&'a [u8]>,
    caller: Caller,
    in_flight: Arc<InFlight>,
    started: Instant,
}

impl<'a> HotCall<'a> {
    fn new(hot: &'a HotCalls, head: RequestHead<'a>, body: &'a [u8]) -> Option<HotCall<'a>> {
        let started = Instant::now();
        let HotCalls { context, activity, peer } = hot;
        let (path, operation, captured) = route_of(head)?;
        let namespace = captured.namespace.as_deref();
        let call = calls::CallName { operation, namespace, name: &captured.name, is_stale: false };
        if peer.is_node() || context.is_elsewhere(peer, &call) {
            return None;
        }
        let in_flight = InFlight::enter(context, activity);
        has_room(context, &in_flight, Some(operation)).ok()?;
        let authority = head.authority().or_else(|| head.field(b"host")).unwrap_or_default();
        let authorization = head.field(b"authorization");
        let caller = peer.standing(authorization).ok()?;
        if !admits(&context.options.hosts, context.calls.access(), simple(authority)?, || false)
            || !caller.may_ask_once_more(operation.is(Trait::Relieves))
        {
            return None;
        }
        Some(HotCall {
            hot,
            head,
            body,
            path,
            operation,
            captured,
            authorization,
            caller,
            in_flight,
            started,
        })
    }

    /// The permit of the call by its path; `None`: it is refused.
    fn permit(&self) -> Option<Permit<'_>> {
        let asker = Asker {
            calls: &self.hot.context.calls,
            peer: &self.hot.peer,
            caller: &self.caller,
            authorization: self.authorization,
            room: &*self.in_flight.share,
            path: self.path,
        };
        let namespace = self.captured.namespace.as_deref();
        let (operation, name) = (self.operation, &self.captured.name);
        asker.permitted(calls::CallName { operation, namespace, name, is_stale: false })
    }

    /// Counts the request against the identity's rate. The last step before the node is called: nothing is
    /// declined after it, since a request counts once.
    fn counts(&self) -> Option<()> {
        self.caller.asks_once_more(self.operation.is(Trait::Relieves)).ok()
    }

    /// The body as JSON.
    fn json(&self) -> Option<Reader<'a>> {
        Reader::new(self.body).ok()
    }

    fn limits(&self) -> Limits {
        self.hot.context.calls.limits()
    }

    fn send(self) -> Option<PendingAnswer> {
        let permit = self.permit()?;
        let batch = Batch::read(self.json()?, &self.limits()).ok()?;
        let is_list = batch.is_list;
        let keys = self.head.fields().filter(|(name, _)| *name == IDEMPOTENCY_KEY.as_bytes());
        let key = only_key(keys.map(|(_, value)| value)).ok()?;
        let sending = batch.with_items(|items| {
            let cleared = permit.cleared_sends(items)?;
            self.counts()?;
            Some(cleared.begin_send(key, items))
        })?;
        Some(self.answer(async move { Ok(sent(&sending?.done().await?, is_list)) }))
    }

    fn receive(self) -> Option<PendingAnswer> {
        let permit = self.permit()?;
        let cleared = permit.cleared_by_name().ok()?;
        let context = Arc::clone(&self.hot.context);
        let terms = Terms::read(self.json()?, RECEIVE_FIELDS, self.limits().receive_messages).ok()?;
        // Transactions have more to them.
        if !matches!(terms.enlisting(), Ok(None)) {
            return None;
        }
        self.counts()?;
        let queues = [(&*self.captured.name, 0)];
        let receiving = cleared.begin_receive(terms.receive(
            &queues,
            terms.consumer(),
            Arc::clone(&self.in_flight.share) as _,
        ));
        let queue = || Waited::queues(std::iter::once(&*self.captured.name));
        let standing = (terms.wait_ms > 0).then(|| permit.standing(Right::Receive, queue));
        Some(self.answer(async move {
            let messages = done(receiving?, standing, context.calls.stopping()).await?;
            Ok(delivered(&messages))
        }))
    }

    /// `None`: each item says how it ended.
    fn settle(self, outcome: Option<Outcome>) -> Option<PendingAnswer> {
        // In which queues they are is looked up elsewhere.
        let cleared = self.permit()?.cleared_everywhere()?;
        let request = match outcome {
            Some(outcome) => Settlements::read_one_outcome(self.json()?, outcome, &self.limits()).ok()?,
            None => Settlements::read_mixed(self.json()?, &self.limits()).ok()?,
        };
        let (items, refused) = request.items();
        if items.is_empty() {
            return None;
        }
        self.counts()?;
        let settling = cleared.begin_settle(&items);
        let is_list = request.is_list;
        Some(self.answer(async move { settled(in_order(settling?.done().await?, refused), is_list) }))
    }

    /// Waits for what comes of it, and answers.
    fn answer(
        &self,
        outcome: impl Future<Output = Result<Json, CallError>> + Send + 'static,
    ) -> PendingAnswer {
        let answering = HotAnswer {
            request_id: request_id(self.head.field(REQUEST_ID.as_str().as_bytes()), &self.hot.context),
            context: Arc::clone(&self.hot.context),
            in_flight: Arc::clone(&self.in_flight),
            path: self.path.into(),
            operation: self.operation,
            started: self.started,
        };
        Box::pin(async move { answering.with(outcome.await) })
    }
}

/// The data of a call that has begun, until it has its answer.
struct HotAnswer {
    context: Arc<Context>,
    in_flight: Arc<InFlight>,
    request_id: HeaderValue,
    path: Box<str>,
    operation: Operation,
    started: Instant,
}

impl HotAnswer {
    fn with(self, outcome: Result<Json, CallError>) -> DirectResponse {
        let mut response = outcome.map_or_else(|error| self.refusal(error), answered);
        response.fields.push((REQUEST_ID, self.request_id));
        let status = response.status.as_u16();
        self.context.metrics.count(Some(self.operation), status, self.started.elapsed());
        self.in_flight.share.charge(response.body.len());
        response.body = kept(response.body, &self.in_flight);
        response
    }

    #[cold]
    fn refusal(&self, error: CallError) -> DirectResponse {
        self.context.error_log.log(&error, &self.request_id, &Method::POST, &self.path);
        let (head, body) = Response::<Body>::into_parts(self.context.with_address(error).into_response());
        let fields = head.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        DirectResponse {
            status: head.status,
            constant: None,
            fields: fields.collect(),
            body: body.into_bytes(),
        }
    }
}

fn answered(Json { status, document }: Json) -> DirectResponse {
    DirectResponse { status, constant: Some(&FIELDS), fields: Vec::with_capacity(1), body: document }
}
