//! From a request to its answer: route, handler, errors.

use std::sync::Arc;

use http::header::{ALLOW, HeaderValue};
use http::request::Parts;
use http::response::Response;
use http::{Method, Request, StatusCode};
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Peer};
use sluice_engine::change::Verb;

use super::codec::query::Params;
use super::compression::{compress, concerns};
use super::handlers::{
    admin, bulk, changes, consumers, dead, flows, groups, keys, limits, messages, namespaces, prometheus,
    queue_defaults, queues, results, schedules, tokens,
};
use super::hot::settle::Outcome;
use super::hot::{extend, raw, receive, send, settle};
use super::route::admit::admit;
use super::route::call::Call;
use super::route::permit::{identify, permit};
use super::route::table::{Found, Operation, ROUTES, destination, find};
use super::{events, openapi};
use crate::net::activity::Activity;
use crate::net::arrived::{Arrived, Finished};
use crate::net::body::{Body, Inbound};
use crate::net::context::Context;
use crate::net::errors::HttpError as _;
use crate::net::in_flight::InFlight;
use crate::net::respond;

/// Answers a request.
pub(crate) async fn handle(
    context: Arc<Context>,
    activity: Arc<Activity>,
    peer: Arc<Peer>,
    request: Request<Inbound>,
) -> Response<Body> {
    let (arrived, body) = Arrived::new(context, &activity, peer, request);
    let found = arrived.found();
    if !matches!(&found, Found::Route(at, _) if ROUTES[*at].is_audited()) {
        return arrived.answer(found, body).await;
    }
    drop(found);
    let context = Arc::clone(&arrived.context);
    context.acts.begin(async move { arrived.answer(arrived.found(), body).await }).outcome().await
}

impl Arrived {
    fn found(&self) -> Found<'_> {
        find(&self.head.method, self.head.uri.path())
    }

    async fn answer(&self, found: Found<'_>, mut body: Inbound) -> Response<Body> {
        let Arrived { context, peer, in_flight, head, request_id, .. } = self;
        let route = if let Found::Route(at, _) = &found { Some(*at) } else { None };
        let mut caller = Caller::Nobody;
        let result = match begin(context, head, in_flight, peer, &found, &mut caller) {
            Ok(()) => {
                let asked = Asked { context, in_flight, head, caller: &caller, peer };
                asked.answer(found, &mut body).await
            }
            Err(error) => Err(error),
        };
        let response = result.unwrap_or_else(|error| {
            context.error_log.log(&error, request_id, &head.method, head.uri.path());
            error.into_response()
        });
        let mut response = match route {
            // Rare: its future is not to make that of every request larger.
            Some(at) if concerns(&context.compressor, ROUTES[at].operation) => {
                Box::pin(compress(context, head, response)).await
            }
            _ => response,
        };
        if !body.is_over() {
            Box::pin(self.leave(body, &mut response)).await;
        }
        let status = response.status().as_u16();
        self.finish(
            response,
            Finished {
                destination: route.map(destination),
                status,
                caller: &caller,
                target: head.uri.path(),
            },
        )
        .await
    }
}

/// What is checked before anything is read: finds out who calls, and whether they may.
fn begin(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    peer: &Peer,
    found: &Found<'_>,
    caller: &mut Caller,
) -> Result<(), CallError> {
    let Found::Route(at, captured) = found else { return admit(context, head, in_flight, None) };
    admit(context, head, in_flight, Some(*at))?;
    let route = &ROUTES[*at];
    *caller = identify(peer, head, route)?;
    permit(peer, head, caller, route, captured)?;
    let query = head.uri.query().filter(|query| !query.is_empty());
    query.map_or(Ok(()), |query| knows(route.operation, query))
}

/// Whether an operation knows all parameters behind the `?`.
#[cold]
fn knows(operation: Operation, query: &str) -> Result<(), CallError> {
    Params::read(Some(query), operation.parameters())?;
    Ok(())
}

/// A request that was admitted.
#[derive(Clone, Copy)]
struct Asked<'a> {
    context: &'a Arc<Context>,
    in_flight: &'a Arc<InFlight>,
    head: &'a Parts,
    caller: &'a Caller,
    peer: &'a Arc<Peer>,
}

impl Asked<'_> {
    async fn answer(self, found: Found<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
        let Asked { context, in_flight, head, caller, peer } = self;
        match found {
            Found::Route(at, captured) => {
                let namespace = captured.namespace.as_deref();
                let (operation, name) = (ROUTES[at].operation, &captured.name);
                let call = &Call { context, in_flight, head, caller, peer, operation, namespace, name };
                operate(call, body).await
            }
            Found::OtherMethods(allow) => Ok(other_method(head, &allow)),
            Found::Nothing => {
                let path: String = head.uri.path().chars().take(256).collect();
                let message = format!("there is nothing at {path:?}: /docs lists what there is");
                Err(CallError::new("not_found", message).with(|o| o.text("path", &path)))
            }
        }
    }
}

fn other_method(head: &Parts, allow: &str) -> Response<Body> {
    let mut response = match head.method {
        Method::OPTIONS => respond::empty(StatusCode::NO_CONTENT),
        _ => {
            let method: String = head.method.as_str().chars().take(32).collect();
            CallError::new("method_not_allowed", format!("{method} is not possible here, but {allow}"))
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

/// Does what a call asks for.
///
/// # Errors
/// Those of the operation; `overloaded` for an answer that only shows something when there is no memory for
/// it.
pub(crate) async fn operate(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let response = handler(call, body).await?;
    if call.operation.only_looks() {
        // Several may have been begun while there was room for one.
        call.in_flight.share.reserve(response.body().bytes_there())?;
    }
    Ok(response)
}

async fn handler(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    match call.operation {
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
        Operation::Events => events::of_namespace(call).await,
        Operation::QueueEvents => events::of_queue(call).await,
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
