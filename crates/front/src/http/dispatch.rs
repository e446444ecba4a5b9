//! From a request to its answer: request id, route, handler, errors, log and metrics.

use std::sync::Arc;
use std::time::Instant;

use http::header::{ALLOW, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use http::request::Parts;
use http::response::Response;
use http::{Method, Request, StatusCode, Version};
use hyper::body::Incoming;
use sluice_engine::Error;
use sluice_engine::change::Verb;

use super::body::{Body, Inbound};
use super::call::Call;
use super::compression::compress;
use super::connection::Activity;
use super::context::Context;
use super::errors::ApiError;
use super::in_flight::InFlight;
use super::permit::{identify, permit};
use super::routes::{Found, Operation, ROUTES, find};
use super::settle::Outcome;
use super::{
    admin, bulk, changes, consumers, dead, extend, flows, groups, keys, limits, messages, namespaces,
    openapi, prometheus, queue_defaults, queues, raw, receive, respond, results, schedules, send, settle,
    tokens,
};
use crate::access::{Act, Caller, Peer};
use crate::grpc;

/// Longest request id that is taken over from a client, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request.
pub(crate) async fn handle(
    context: Arc<Context>,
    activity: Arc<Activity>,
    peer: Arc<Peer>,
    request: Request<Incoming>,
) -> Response<Body> {
    if grpc::is_call(request.headers()) {
        return grpc::handle(context, activity, peer, request).await;
    }
    let started = Instant::now();
    let in_flight = InFlight::enter(&context, &activity, request.version() == Version::HTTP_2);
    let (head, body) = request.into_parts();
    let request_id = request_id(&head.headers, &context);
    let found = find(&head.method, head.uri.path());
    let route = if let Found::Route(at, _) = &found { Some(*at) } else { None };

    let mut caller = Caller::Nobody;
    let result = match begin(&context, &head, &in_flight, &peer, &found, &mut caller) {
        Ok(()) => {
            let asked =
                Asked { context: &context, in_flight: &in_flight, head: &head, caller: &caller, peer: &peer };
            asked.answer(found, Inbound::Coming(body)).await
        }
        Err(error) => Err(error),
    };
    let response = result.unwrap_or_else(|error| {
        error.log(&request_id, &head);
        error.into_response()
    });
    let response = match route {
        // Rare: its future is not to make that of every request larger.
        Some(at) if context.compressor.concerns(ROUTES[at].operation) => {
            Box::pin(compress(&context, &head, response)).await
        }
        _ => response,
    };
    let status = response.status().as_u16();
    let finished = Finished { route, status, started, request_id };
    if is_audited(&context, route) {
        record(&context, &peer, &caller, head.uri.path(), &finished).await;
    }
    take_note(&context, &head, response, in_flight, finished)
}

/// Whether the audit log is to know of a request.
pub(crate) fn is_audited(context: &Context, route: Option<usize>) -> bool {
    context.options.access.asks() && route.is_some_and(|at| ROUTES[at].is_audited())
}

/// Takes an act down in the audit log, before its caller hears of it.
pub(crate) async fn record(
    context: &Context,
    peer: &Peer,
    caller: &Caller,
    target: &str,
    finished: &Finished,
) {
    let outcome = finished.status.to_string();
    let act = Act {
        operation: finished.route.map_or("", |at| ROUTES[at].name),
        target,
        outcome: &outcome,
        request_id: finished.request_id.to_str().unwrap_or_default(),
    };
    context.options.access.record(&context.node, peer, caller, act).await;
}

/// What is checked before anything is read: finds out who calls, and whether they may.
fn begin(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    peer: &Peer,
    found: &Found<'_>,
    caller: &mut Caller,
) -> Result<(), ApiError> {
    let Found::Route(at, captured) = found else { return admit(context, head, in_flight, None) };
    admit(context, head, in_flight, Some(*at))?;
    let route = &ROUTES[*at];
    *caller = identify(peer, head, route)?;
    permit(peer, head, caller, route, captured)
}

/// A request that has its answer.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) route: Option<usize>,
    /// As HTTP tells how it went.
    pub(crate) status: u16,
    pub(crate) started: Instant,
    pub(crate) request_id: HeaderValue,
}

/// Adds what every answer gets, and counts and logs the request.
pub(crate) fn take_note(
    context: &Context,
    head: &Parts,
    mut response: Response<Body>,
    in_flight: Arc<InFlight>,
    finished: Finished,
) -> Response<Body> {
    let Finished { route, status, started, request_id } = finished;
    finish(head, &mut response, &request_id, in_flight);
    let elapsed = started.elapsed();
    context.metrics.count(route, status, elapsed);
    tracing::debug!(
        request_id = request_id.to_str().unwrap_or_default(),
        status,
        elapsed_us = elapsed.as_micros() as u64,
        "{} {}",
        head.method,
        head.uri.path()
    );
    response
}

/// What keeps the server from being asked for more than it can do. Those who look after the server get through when it is busy.
pub(crate) fn admit(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    route: Option<usize>,
) -> Result<(), ApiError> {
    let operation = route.map(|at| ROUTES[at].operation);
    let watching = matches!(operation, Some(Operation::Health | Operation::Ready | Operation::Metrics));
    let requests_max = context.options.requests_max;
    let relieves = operation.is_some_and(Operation::relieves);
    // An eighth more for those that make less of what there is to do, as in the mailboxes of the shards.
    let most = if relieves { requests_max + requests_max / 8 } else { requests_max };
    if in_flight.rank > most && !watching {
        return Err(Error::Overloaded { what: "requests", retry_after_ms: 1_000 }.into());
    }
    if operation.is_some_and(Operation::answers_at_length) {
        in_flight.share.has_room()?;
    }
    check_origin(head)
}

/// A page of another site may make a browser send requests here; without this check a visit to it could fill queues.
fn check_origin(head: &Parts) -> Result<(), ApiError> {
    let Some(origin) = head.headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default(),
    };
    match origin.split_once("://") {
        Some((_, authority)) if !host.is_empty() && authority.eq_ignore_ascii_case(host) => Ok(()),
        _ => {
            let origin: String = origin.chars().take(128).collect();
            let message =
                format!("a page of {origin:?} may not call {host:?}: only pages of this server may");
            Err(ApiError::new("forbidden_origin", message).with(|o| o.text("origin", &origin)))
        }
    }
}

/// A request that was admitted.
#[derive(Clone, Copy)]
struct Asked<'a> {
    context: &'a Arc<Context>,
    in_flight: &'a Arc<InFlight>,
    head: &'a Parts,
    caller: &'a Caller,
    peer: &'a Peer,
}

impl Asked<'_> {
    async fn answer(self, found: Found<'_>, body: Inbound) -> Result<Response<Body>, ApiError> {
        let Asked { context, in_flight, head, caller, peer } = self;
        match found {
            Found::Route(at, captured) => {
                let namespace = captured.namespace.as_deref();
                let call = &Call { context, in_flight, head, caller, peer, namespace, name: &captured.name };
                operate(call, ROUTES[at].operation, body).await
            }
            Found::OtherMethods(allow) => Ok(other_method(head, &allow)),
            Found::Nothing => {
                let path: String = head.uri.path().chars().take(256).collect();
                let message = format!("there is nothing at {path:?}: /docs lists what there is");
                Err(ApiError::new("not_found", message).with(|o| o.text("path", &path)))
            }
        }
    }
}

fn other_method(head: &Parts, allow: &str) -> Response<Body> {
    let mut response = match head.method {
        Method::OPTIONS => respond::empty(StatusCode::NO_CONTENT),
        _ => {
            let method: String = head.method.as_str().chars().take(32).collect();
            ApiError::new("method_not_allowed", format!("{method} is not possible here, but {allow}"))
                .with(|o| {
                    o.text("method", &method);
                    o.text("allow", allow);
                })
                .into_response()
        }
    };
    let allow = format!("{allow}, OPTIONS");
    if let Ok(value) = HeaderValue::from_str(&allow) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

pub(crate) async fn operate(
    call: &Call<'_>,
    operation: Operation,
    body: Inbound,
) -> Result<Response<Body>, ApiError> {
    match operation {
        Operation::Send => send::send(call, body).await,
        Operation::Receive => receive::receive(call, body).await,
        Operation::Settle => settle::settle(call, body).await,
        Operation::Ack => settle::one_outcome(call, body, Outcome::Ack).await,
        Operation::Nack => settle::one_outcome(call, body, Outcome::Nack).await,
        Operation::Release => settle::one_outcome(call, body, Outcome::Release).await,
        Operation::Reject => settle::one_outcome(call, body, Outcome::Reject).await,
        Operation::Extend => extend::extend(call, body).await,
        Operation::ReceiveMany => receive::receive_many(call, body).await,
        Operation::SendRaw => raw::send(call, body).await,
        Operation::ReceiveRaw => raw::receive(call, body).await,
        Operation::QueueList => queues::list(call).await,
        Operation::QueueShow => queues::show(call).await,
        Operation::QueuePut => queues::set(call, body, true).await,
        Operation::QueuePatch => queues::set(call, body, false).await,
        Operation::QueueDelete => queues::delete(call).await,
        Operation::QueuePause => queues::pause(call, true).await,
        Operation::QueueResume => queues::pause(call, false).await,
        Operation::QueueClose => queues::close(call, true).await,
        Operation::QueueOpen => queues::close(call, false).await,
        Operation::QueuePurge => queues::purge(call).await,
        Operation::MessageList => messages::list(call).await,
        Operation::MessagePeek => messages::peek(call).await,
        Operation::MessageShow => messages::show(call).await,
        Operation::ResultShow => results::show(call).await,
        Operation::ResultRaw => results::raw(call).await,
        Operation::MessageCancel => changes::change(call, body, Verb::Cancel).await,
        Operation::MessageHold => changes::change(call, body, Verb::Hold).await,
        Operation::MessageApprove => changes::change(call, body, Verb::Approve).await,
        Operation::MessageDeny => changes::change(call, body, Verb::Deny).await,
        Operation::MessageRetry => changes::change(call, body, Verb::Retry).await,
        Operation::MessageMove => changes::change(call, body, Verb::Move).await,
        Operation::MessageChange => changes::change(call, body, Verb::Change).await,
        Operation::BulkList => bulk::list(call),
        Operation::BulkStart => bulk::start(call, body).await,
        Operation::BulkShow => bulk::show(call),
        Operation::BulkCancel => bulk::cancel(call).await,
        Operation::DeadList => messages::dead(call).await,
        Operation::DeadRedrive => dead::redrive(call, body).await,
        Operation::DeadRedriveEnd => dead::end_redrive(call).await,
        Operation::DeadDelete => dead::delete(call, body).await,
        Operation::ScheduleList => schedules::list(call).await,
        Operation::ScheduleShow => schedules::show(call).await,
        Operation::SchedulePut => schedules::put(call, body).await,
        Operation::ScheduleDelete => schedules::delete(call).await,
        Operation::ScheduleNext => schedules::next(call).await,
        Operation::SchedulePause => schedules::pause(call, true).await,
        Operation::ScheduleResume => schedules::pause(call, false).await,
        Operation::ScheduleTrigger => schedules::trigger(call).await,
        Operation::ConsumerList => consumers::list(call).await,
        Operation::ConsumerShow => consumers::show(call).await,
        Operation::ConsumerDetach => consumers::detach(call).await,
        Operation::LimitList => limits::list(call).await,
        Operation::GroupSend => groups::send(call, body).await,
        Operation::GroupShow => groups::show(call).await,
        Operation::FlowShow => flows::show(call).await,
        Operation::LimitShow => limits::show(call).await,
        Operation::LimitPut => limits::put(call, body).await,
        Operation::LimitDelete => limits::delete(call).await,
        Operation::DefaultsList => queue_defaults::list(call).await,
        Operation::DefaultsShow => queue_defaults::show(call).await,
        Operation::DefaultsPut => queue_defaults::put(call, body).await,
        Operation::DefaultsDelete => queue_defaults::delete(call).await,
        Operation::NamespaceList => namespaces::list(call).await,
        Operation::NamespaceShow => namespaces::show(call).await,
        Operation::NamespacePut => namespaces::put(call, body).await,
        Operation::NamespacePatch => namespaces::patch(call, body).await,
        Operation::NamespaceDelete => namespaces::delete(call).await,
        Operation::Status => admin::status(call).await,
        Operation::Backup => admin::backup(call).await,
        Operation::KeysShow => keys::show(call).await,
        Operation::KeysRotate => keys::rotate(call).await,
        Operation::TokenList => tokens::list(call),
        Operation::TokenCreate => tokens::create(call, body).await,
        Operation::TokenRevoke => tokens::revoke(call).await,
        Operation::Audit => tokens::audit(call).await,
        Operation::WhoAmI => tokens::whoami(call),
        Operation::Health => Ok(admin::health()),
        Operation::Ready => Ok(admin::ready(call)),
        Operation::Metrics => prometheus::metrics(call).await,
        Operation::OpenApi => Ok(openapi::document(call)),
        Operation::Docs => Ok(openapi::page(call)),
    }
}

/// What every answer gets.
fn finish(head: &Parts, response: &mut Response<Body>, request_id: &HeaderValue, in_flight: Arc<InFlight>) {
    response.headers_mut().insert(REQUEST_ID, request_id.clone());
    // What has no body at all says nothing of its length (RFC 9110 §8.6).
    let bodiless = matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if head.method == Method::HEAD
        && let Some(length) = response.body_mut().clear()
        && !bodiless
    {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.body_mut().keep(in_flight);
}

/// The client's id for the request, if it is printable and short; else one of ours.
pub(crate) fn request_id(headers: &HeaderMap, context: &Context) -> HeaderValue {
    if let Some(value) = headers.get(REQUEST_ID) {
        let bytes = value.as_bytes();
        let printable = bytes.iter().all(|byte| (0x21..0x7f).contains(byte));
        if printable && !bytes.is_empty() && bytes.len() <= REQUEST_ID_BYTES_MAX {
            return value.clone();
        }
    }
    let number = context.next_request_number();
    HeaderValue::from_str(&format!("{number:016x}")).unwrap_or(HeaderValue::from_static("none"))
}
