//! A call: one with one message and one answer, or the beginning of a stream or a session.

use std::sync::Arc;

use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap};
use http::request::Parts;
use http::response::Response;
use http::{Method, Request as HttpRequest, Version};
use sluice_calls::access::{Caller, Peer};
use sluice_calls::events::{OfNamespace, OfQueue};
use sluice_calls::operation::{Kind, Special, Trait};
use sluice_calls::permit::{identify, require_known};
use sluice_calls::{Asker, CallError, CallName, Noted, Operation, Permit};
use sluice_proto::framing::PREFIX_BYTES;

use super::by::{By, authorization, target};
use super::call::{Encoded, Request, message_bytes_max, no_such_call, run};
use super::messages::only_message;
use super::methods::operation_of;
use super::rows::Rows;
use super::schema::{MessageType, schema};
use super::status::{refusal, success_with};
use super::watching::{documents, lock, watch};
use super::{attachments, bounds, session, standard};
use crate::net::activity::Activity;
use crate::net::admit::admit;
use crate::net::arrived::{Arrived, CLOSE, Finished, ToRecord};
use crate::net::body::{Body, BodyRules, Inbound, read};
use crate::net::context::Context;
use crate::net::errors::HttpError as _;
use crate::net::in_flight::InFlight;
use crate::net::memory::answers::Share;
use crate::net::passing::Passable;

/// True when a request is a gRPC call.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return false };
    let Some(rest) = value.as_bytes().strip_prefix(b"application/grpc") else { return false };
    matches!(rest.first(), None | Some(b'+' | b';'))
}

/// Answers a call.
pub(crate) async fn handle(
    context: Arc<Context>,
    activity: Arc<Activity>,
    peer: Arc<Peer>,
    request: HttpRequest<Inbound>,
) -> Response<Body> {
    let (arrived, body) = Arrived::new(context, &activity, peer, request);
    let path = arrived.head.uri.path();
    let operation = operation_of(path).or_else(|| standard::find(path).map(standard::Method::operation));
    if !operation.is_some_and(Operation::is_audited) {
        return respond(&arrived, operation, body).await;
    }
    let context = Arc::clone(&arrived.context);
    context.acts.begin(async move { respond(&arrived, operation, body).await }).outcome().await
}

async fn respond(arrived: &Arrived, operation: Option<Operation>, body: Inbound) -> Response<Body> {
    let Arrived { context, peer, in_flight, head, request_id, .. } = arrived;
    let is_http2 = head.version == Version::HTTP_2;
    let mut by = By { peer, caller: Caller::Nobody, target: head.uri.path().to_owned() };
    let path = head.uri.path();
    let result = match begin(context, head, in_flight, &mut by, operation, is_http2) {
        Ok(()) if path == session::PATH => Ok(session::open(arrived, body)),
        Ok(()) => match standard::find(path) {
            // Rare: its future is not to make that of every call larger.
            Some(method) => Box::pin(standard::answer(arrived, method, body)).await,
            None => answer(arrived, &mut by, operation, body).await,
        },
        Err(error) => Err(error),
    };
    let (response, status) = match result {
        Ok(response) => (response, 200),
        Err(error) => {
            let error = context.with_address(error);
            context.error_log.log(&error, request_id, &head.method, path);
            let status = error.status().as_u16();
            (if is_http2 { refusal(&error) } else { closing(error) }, status)
        }
    };
    arrived.finish(response, Finished { operation, status, caller: &by.caller, target: &by.target }).await
}

/// The answer over HTTP/1.1, where nobody reads a status of gRPC, nor anybody the body of a call.
#[cold]
fn closing(error: CallError) -> Response<Body> {
    let mut response = error.into_response();
    response.headers_mut().insert(CONNECTION, CLOSE);
    response
}

/// Checks made before the body is read; identifies the caller.
fn begin(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    by: &mut By<'_>,
    operation: Option<Operation>,
    is_http2: bool,
) -> Result<(), CallError> {
    check_call(head, is_http2)?;
    admit(context, head, in_flight, operation)?;
    if let Some(operation) = operation {
        let (path, authorization) = (head.uri.path(), authorization(head));
        // A session finds out for itself, with each of its frames.
        by.caller = identify(by.peer, operation, authorization, path)?;
        // What exactly is asked stands in the body, which nobody sends who has not said who they are.
        if !operation.is(Trait::Public) {
            require_known(by.peer, &by.caller, path)?;
        }
    }
    Ok(())
}

/// Checks that a request is a call that can be answered.
fn check_call(head: &Parts, is_http2: bool) -> Result<(), CallError> {
    if !is_http2 {
        let message = "gRPC needs HTTP/2 (with prior knowledge in clear text)";
        return Err(CallError::new("unsupported_media_type", message));
    }
    if head.method != Method::POST {
        let message = format!("a call of gRPC is a POST, not a {}", head.method);
        return Err(CallError::new("method_not_allowed", message));
    }
    let content_type = head.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    if !matches!(essence, b"application/grpc" | b"application/grpc+proto") {
        let got = String::from_utf8_lossy(essence).into_owned();
        let message = format!("the messages are {got:?}: only application/grpc with protobuf is spoken here");
        return Err(CallError::new("unsupported_media_type", message));
    }
    Ok(())
}

/// The answer: a message, or a stream of them.
async fn answer(
    arrived: &Arrived,
    by: &mut By<'_>,
    operation: Option<Operation>,
    body: Inbound,
) -> Result<Response<Body>, CallError> {
    let Arrived { context, in_flight, head, .. } = arrived;
    let path = head.uri.path();
    let (Some(operation), Some((input, output))) = (operation, schema().call(path)) else {
        return Err(no_such_call(path));
    };
    let input = schema().message(input);
    if operation == Operation::AttachmentPutRaw {
        return attachments::upload(arrived, by, body, (input, output)).await;
    }
    let rules = BodyRules {
        bytes_max: message_bytes_max(context.body_limits(), operation) + PREFIX_BYTES,
        timeout: context.options.body_timeout,
    };
    let upload = read(body, &head.headers, rules, &context.body_budget).await?;
    let message = only_message(upload.shared(), rules.bytes_max)?;
    if let Some(fault) = bounds::check(input, &message, &context.calls.limits())? {
        return Err(fault.into());
    }
    let request = Request::read(operation, input, &message)?;
    let namespace = request.namespace.unwrap_or_default();
    by.target = target(path, namespace, request.name);
    let Request { name, is_stale, .. } = request;
    let call = CallName { operation, namespace: request.namespace, name, is_stale };
    if context.is_elsewhere(by.peer, &call)
        && let Some(response) =
            Box::pin(arrived.passed_on(&call, Passable::read(upload.shared()), |error| refusal(&error))).await
    {
        return Ok(response);
    }
    let (peer, caller, room) = (by.peer, &by.caller, &*in_flight.share);
    let asker = Asker { calls: &context.calls, peer, caller, authorization: authorization(head), room, path };
    let permit = asker.permit(call)?;
    if let Kind::Special(call) = operation.kind() {
        let source = (input, &request.rows);
        return special(context, &in_flight.share, permit, call, source, output).await;
    }
    let Encoded { message, noted } = run(&permit, request, (input, output), &in_flight.share).await?;
    let mut response = success_with(message);
    if noted != Noted::default() {
        let made = noted.made.as_ref().map(|name| target(path, namespace, name));
        response.extensions_mut().insert(ToRecord(Noted { made, ..noted }));
    }
    in_flight.reserve(operation, response.body().bytes_there())?;
    Ok(response)
}

/// Runs a call that answers with a stream; the others of these have no method.
async fn special(
    context: &Arc<Context>,
    room: &Arc<Share>,
    permit: Permit<'_>,
    call: Special,
    (input, rows): (&'static MessageType, &Rows<'_>),
    output: usize,
) -> Result<Response<Body>, CallError> {
    match call {
        Special::Events => watch::<OfNamespace>(context, room, permit, input, rows, output).await,
        Special::QueueEvents => watch::<OfQueue>(context, room, permit, input, rows, output).await,
        Special::DocumentWatch => documents(context, room, permit, input, rows, output).await,
        Special::LockWatch => lock(context, room, permit, input, rows, output).await,
        Special::AttachmentRaw => attachments::download(room, permit, input, rows, output).await,
        Special::SendRaw
        | Special::ReceiveRaw
        | Special::ResultRaw
        | Special::Statistics
        | Special::Backup
        | Special::UploadRaw
        | Special::AttachmentPutRaw
        | Special::DocumentPutRaw
        | Special::DocumentPatchRaw
        | Special::DocumentRaw => Err(no_such_call(permit.path())),
        Special::Health | Special::Ready | Special::Metrics | Special::OpenApi | Special::Docs => {
            Err(no_such_call(permit.path()))
        }
    }
}
