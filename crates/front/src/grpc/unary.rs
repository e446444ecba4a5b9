//! A call: one with one message and one answer, or the beginning of a session.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::request::Parts;
use http::response::Response;
use http::{Method, Request as HttpRequest, Version};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_calls::access::{Caller, Peer};
use sluice_calls::events::{OfNamespace, OfQueue};
use sluice_calls::hot::send::check_idempotency_key;
use sluice_calls::operation::{Hot, Kind, Scope, Special, Trait};
use sluice_calls::permit::{identify, require_known};
use sluice_calls::unary;
use sluice_calls::{Asker, CallError, CallName, Codec, Done, Fault, Operation, Permit, Read};
use sluice_engine::Error;
use sluice_proto::framing::{Deframer, PREFIX_BYTES, frame_with};

use super::methods::operation_of;
use super::rows::{Rows, read_rows, text_of};
use super::schema::{MessageType, schema};
use super::source::MessageSource;
use super::status::{GRPC, refusal, success};
use super::watching::watch;
use super::wire::{INVALID, Raw};
use super::{answers, bounds, de, ser, session};
use crate::hot;
use crate::net::activity::Activity;
use crate::net::admit::admit;
use crate::net::arrived::{Arrived, CLOSE, Finished, Made};
use crate::net::body::{Body, BodyRules, Inbound, read};
use crate::net::context::Context;
use crate::net::errors::HttpError as _;
use crate::net::in_flight::InFlight;
use crate::net::memory::answers::Share;
use crate::net::options::{BodyLimits, DOCUMENT_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX};
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
    let operation = operation_of(arrived.head.uri.path());
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
    let result = match begin(context, head, in_flight, &mut by, operation, is_http2) {
        Ok(()) if head.uri.path() == session::PATH => Ok(session::open(arrived, body)),
        Ok(()) => answer(arrived, &mut by, operation, body).await,
        Err(error) => Err(error),
    };
    let (response, status) = match result {
        Ok(response) => (response, 200),
        Err(error) => {
            let error = context.with_address(error);
            context.error_log.log(&error, request_id, &head.method, head.uri.path());
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

/// Caller of a request, and what the request is about.
struct By<'p> {
    peer: &'p Arc<Peer>,
    caller: Caller,
    /// For the audit log.
    target: String,
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
        require_known(by.peer, &by.caller, path)?;
    }
    Ok(())
}

fn authorization(head: &Parts) -> Option<&[u8]> {
    head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes)
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
    let rules = BodyRules {
        bytes_max: message_bytes_max(context.body_limits(), operation) + PREFIX_BYTES,
        timeout: context.options.body_timeout,
    };
    let upload = read(body, &head.headers, rules, &context.body_budget).await?;
    let message = only_message(upload.shared(), rules.bytes_max)?;
    let input = schema().message(input);
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
    let Encoded { message, made } = run(&permit, request, (input, output), &in_flight.share).await?;
    let mut response = success_with(message);
    if let Some(name) = &made {
        response.extensions_mut().insert(Made(self::target(path, namespace, name)));
    }
    in_flight.reserve(operation, response.body().bytes_there())?;
    Ok(response)
}

/// An answer as its message, and the name of what was made, where the request does not give it.
struct Encoded {
    message: Vec<u8>,
    made: Option<String>,
}

/// Runs a call that has one answer.
async fn run(
    permit: &Permit<'_>,
    request: Request<'_>,
    (input, output): (&'static MessageType, usize),
    share: &Arc<Share>,
) -> Result<Encoded, CallError> {
    match permit.operation().kind() {
        Kind::Unary => {
            permit.check_name()?;
            let mut codec = Protobuf { input, rows: &request.rows, output, path: permit.path() };
            unary::run(permit, &mut codec).await
        }
        Kind::Hot(call) => hot_call(permit, call, request, (input, output), share).await,
        Kind::Special(_) => Err(no_such_call(permit.path())),
    }
}

/// Runs a call of a session, in its namespace; the message of its answer. `room` is that of the answer.
///
/// # Errors
/// Those of the call; `method_not_allowed`: there is no such method, or it is not called over a session.
pub(super) async fn call_over_session(
    asker: Asker<'_>,
    namespace: &str,
    message: &[u8],
    room: &Arc<Share>,
) -> Result<Vec<u8>, CallError> {
    let path = asker.path;
    let operation = operation_of(path).filter(|operation| operation.is_called_over_sessions());
    let (Some(operation), Some((input, output))) = (operation, schema().call(path)) else {
        let message = format!("{path:?} is not called over a session: docs/grpc.md lists what is");
        return Err(CallError::new("method_not_allowed", message).with(|it| it.text("path", path)));
    };
    let input = schema().message(input);
    if let Some(fault) = bounds::check(input, message, &asker.calls.limits())? {
        return Err(fault.into());
    }
    let request = Request::read(operation, input, message)?;
    if request.namespace.is_some_and(|given| given != namespace) {
        let reason = format!("the session is in namespace {namespace:?}: leave it out");
        return Err(Fault::invalid(reason).inside("namespace").into());
    }
    let Request { name, is_stale, .. } = request;
    let permit = asker.permit(CallName { operation, namespace: Some(namespace), name, is_stale })?;
    let Encoded { message, .. } = run(&permit, request, (input, output), room).await?;
    room.reserve_made(message.len())?;
    Ok(message)
}

/// The object of a call for the audit log.
fn target(path: &str, namespace: &str, name: &str) -> String {
    format!("{path} {namespace}/{name}")
}

/// The largest message of a call, in bytes. One that may wait keeps its message for as long.
fn message_bytes_max(limits: BodyLimits, operation: Operation) -> usize {
    if matches!(operation, Operation::DocumentPut | Operation::DocumentPatch) {
        return DOCUMENT_BODY_BYTES_MAX;
    }
    if operation.is(Trait::Waits) { SMALL_BODY_BYTES_MAX } else { limits.send }
}

/// A request as its message has it.
struct Request<'b> {
    namespace: Option<&'b str>,
    name: &'b str,
    idempotency_key: Option<&'b str>,
    /// True: the answer may be behind.
    is_stale: bool,
    /// The other fields.
    rows: Rows<'b>,
    /// Length of the message, in bytes.
    bytes: usize,
}

impl<'b> Request<'b> {
    fn read(operation: Operation, message: &MessageType, bytes: &'b [u8]) -> Read<Request<'b>> {
        let mut rows = read_rows(message, bytes)?;
        if operation.is_query() {
            // An empty text is one that is not given, as behind the `?` of a path.
            let name_of = |at: &usize| &message.fields[*at].name;
            rows.retain(|(at, value)| !matches!(value, Raw::Bytes([])) || unary::is_condition(name_of(at)));
        }
        let mut take = |field: Option<usize>| -> Read<Option<&'b str>> {
            let Some(at) = field else { return Ok(None) };
            let text = text_of(message, &rows, at)?;
            rows.retain(|(other, _)| *other != at);
            Ok((!text.is_empty()).then_some(text))
        };
        // Where the name of what is asked for is that of a parameter as well, the field is called `name`.
        let captured = operation.http().captured();
        let captured = captured.and_then(|name| message.by_name("name").or_else(|| message.by_name(name)));
        let is_namespaced = operation.scope() == Scope::Namespaced;
        let namespace = take(message.by_name("namespace").filter(|_| is_namespaced))?;
        let name = take(captured)?;
        let idempotency_key = take(message.by_name("idempotency_key"))?;
        let stale = message.by_name("stale").filter(|_| operation.is(Trait::Stale));
        let told = rows.iter().rev().find(|(at, _)| Some(*at) == stale);
        let is_stale = told.is_some_and(|(_, value)| matches!(value, Raw::Number(1..)));
        rows.retain(|(at, _)| Some(*at) != stale);
        if let (Some(at), None) = (captured, &name) {
            return Err(Fault::missing(&message.fields[at].name, "the call needs to know which"));
        }
        let name = name.unwrap_or_default();
        Ok(Request { namespace, name, idempotency_key, is_stale, rows, bytes: bytes.len() })
    }
}

/// The codec of typed calls.
struct Protobuf<'r, 'b> {
    input: &'static MessageType,
    rows: &'r Rows<'b>,
    output: usize,
    path: &'r str,
}

impl Codec for Protobuf<'_, '_> {
    type Output = Encoded;

    fn read<T: DeserializeOwned>(&mut self) -> Read<T> {
        de::from_rows(self.input, self.rows)
    }

    fn write<T: Serialize>(&mut self, done: &Done<T>) -> Result<Encoded, CallError> {
        let message = ser::encode(self.output, &done.answer).map_err(|error| unwritten(self.path, &error))?;
        Ok(Encoded { message, made: done.made.clone() })
    }
}

/// Reads a typed request, and does nothing.
#[cfg(feature = "fuzzing")]
pub(super) fn reads(operation: Operation, input: &'static MessageType, rows: &Rows<'_>) {
    let _ = unary::read(operation, &mut Protobuf { input, rows, output: 0, path: "" });
}

fn no_such_call(path: &str) -> CallError {
    let path: String = path.chars().take(256).collect();
    let message = format!("there is no call {path:?}: proto/sluice/v1 lists those there are");
    CallError::new("method_not_allowed", message).with(|o| o.text("path", &path))
}

/// The one message of a body.
fn only_message(body: Bytes, bytes_max: usize) -> Result<Bytes, CallError> {
    let mut deframer = Deframer::new(bytes_max);
    deframer.push(body);
    let invalid = |reason: String| CallError::from(Fault::new(INVALID, reason));
    let message = deframer.next().map_err(|error| invalid(error.to_string()))?;
    match message {
        Some(message) if deframer.pending() == 0 => Ok(message),
        Some(_) => Err(invalid("more than one message: this call takes one".to_owned())),
        None => Err(CallError::new("incomplete_body", "the body ends before its message does")),
    }
}

/// Runs a call that carries messages or receipts.
async fn hot_call(
    permit: &Permit<'_>,
    call: Hot,
    request: Request<'_>,
    (input, output): (&'static MessageType, usize),
    room: &Arc<Share>,
) -> Result<Encoded, CallError> {
    let idempotency_key = request.idempotency_key.unwrap_or_default().as_bytes();
    check_idempotency_key(idempotency_key).map_err(|fault| fault.inside("idempotency_key"))?;
    let source = MessageSource::new(input, request.rows, request.bytes);
    let room = Arc::clone(room) as _;
    let answer = hot::run(permit, call, hot::Request { source, idempotency_key, room }).await?;
    let message = answers::encode(output, &answer);
    let message = message.map_err(|error| unwritten(permit.path(), &error))?;
    Ok(Encoded { message, made: None })
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
        Special::SendRaw
        | Special::ReceiveRaw
        | Special::ResultRaw
        | Special::Backup
        | Special::DocumentPutRaw
        | Special::DocumentPatchRaw
        | Special::DocumentRaw => Err(no_such_call(permit.path())),
        Special::Health | Special::Ready | Special::Metrics | Special::OpenApi | Special::Docs => {
            Err(no_such_call(permit.path()))
        }
    }
}

fn unwritten(path: &str, error: &serde_json::Error) -> CallError {
    Error::Internal { reason: format!("the answer of {path}: {error}") }.into()
}

fn success_with(message: Vec<u8>) -> Response<Body> {
    let mut out = Vec::with_capacity(PREFIX_BYTES + message.len());
    frame_with(&mut out, |out| out.extend_from_slice(&message));
    let mut response = Response::new(Body::with_trailers(out.into(), success()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}
