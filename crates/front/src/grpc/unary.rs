//! A call: one with one message and one answer, or the beginning of a session.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::request::Parts;
use http::response::Response;
use http::{Method, Request, Uri, Version};
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Peer};
use sluice_calls::{Fault, Read};
use sluice_proto::framing::{Deframer, PREFIX_BYTES, frame_with};

use super::methods::route_of;
use super::rows::{Rows, read_rows, text_of};
use super::schema::{Kind, MessageType, schema};
use super::status::{GRPC, refusal, success};
use super::to_json::write_object;
use super::watching::{streams, watch};
use super::wire::{INVALID, Raw};
use super::{bounds, from_json, session};
use crate::hot::permission::require_known;
use crate::http::dispatch::operate;
use crate::http::route::admit::admit;
use crate::http::route::call::Call;
use crate::http::route::permit::{identify, permit};
use crate::http::route::table::{Captured, ROUTES, Route, Scope, destination};
use crate::net::activity::Activity;
use crate::net::arrived::{Arrived, CLOSE, Finished};
use crate::net::body::{Body, BodyRules, Inbound, read};
use crate::net::context::Context;
use crate::net::errors::HttpError as _;
use crate::net::in_flight::InFlight;

/// Whether a request is a call of gRPC.
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
    request: Request<Inbound>,
) -> Response<Body> {
    let (arrived, body) = Arrived::new(context, &activity, peer, request);
    let route = route_of(arrived.head.uri.path());
    if !route.is_some_and(|at| ROUTES[at].is_audited()) {
        return respond(&arrived, route, body).await;
    }
    let context = Arc::clone(&arrived.context);
    context.acts.begin(async move { respond(&arrived, route, body).await }).outcome().await
}

async fn respond(arrived: &Arrived, route: Option<usize>, body: Inbound) -> Response<Body> {
    let Arrived { context, peer, in_flight, head, request_id, .. } = arrived;
    let is_http2 = head.version == Version::HTTP_2;
    let mut by = By { peer, caller: Caller::Nobody, target: head.uri.path().to_owned() };
    let result = match begin(context, head, in_flight, &mut by, route, is_http2) {
        Ok(()) if head.uri.path() == session::PATH => Ok(session::open(context, peer, in_flight, head, body)),
        Ok(()) => answer(context, in_flight, head, &mut by, route, body).await,
        Err(error) => Err(error),
    };
    let (response, status) = match result {
        Ok(response) => (response, 200),
        Err(error) => {
            context.error_log.log(&error, request_id, &head.method, head.uri.path());
            let status = error.status().as_u16();
            (if is_http2 { refusal(&error) } else { closing(error) }, status)
        }
    };
    arrived
        .finish(
            response,
            Finished { destination: route.map(destination), status, caller: &by.caller, target: &by.target },
        )
        .await
}

/// The answer over HTTP/1.1, where nobody reads a status of gRPC, nor anybody the body of a call.
#[cold]
fn closing(error: CallError) -> Response<Body> {
    let mut response = error.into_response();
    response.headers_mut().insert(CONNECTION, CLOSE);
    response
}

/// Who calls, and what about.
struct By<'p> {
    peer: &'p Arc<Peer>,
    caller: Caller,
    /// For the audit log.
    target: String,
}

/// What is checked before anything is read: finds out who calls.
fn begin(
    context: &Context,
    head: &Parts,
    in_flight: &InFlight,
    by: &mut By<'_>,
    route: Option<usize>,
    is_http2: bool,
) -> Result<(), CallError> {
    check_call(head, is_http2)?;
    admit(context, head, in_flight, route)?;
    if let Some(route) = route {
        // A session finds out for itself, with each of its frames.
        by.caller = identify(by.peer, head, &ROUTES[route])?;
        // What exactly is asked stands in the body, which nobody sends who has not said who they are.
        require_known(by.peer, head.uri.path(), &by.caller)?;
    }
    Ok(())
}

/// What makes a request a call that can be answered.
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
    context: &Arc<Context>,
    in_flight: &Arc<InFlight>,
    head: &Parts,
    by: &mut By<'_>,
    route: Option<usize>,
    body: Inbound,
) -> Result<Response<Body>, CallError> {
    let path = head.uri.path();
    let (Some(route), Some((input, output))) = (route.map(|at| &ROUTES[at]), schema().call(path)) else {
        return Err(no_such_call(path));
    };
    let rules = BodyRules {
        bytes_max: context.body_limits.send + PREFIX_BYTES,
        timeout: context.options.body_timeout,
    };
    let asked = {
        let upload = read(body, &head.headers, rules, &context.body_budget).await?;
        let message = only_message(upload.shared(), rules.bytes_max)?;
        let input = schema().message(input);
        if let Some(fault) = bounds::check(input, &message, context.node.limits())? {
            return Err(fault.into());
        }
        Asked::read(route, input, &message, head.headers.get(AUTHORIZATION))?
    };
    by.target = format!("{path} {}/{}", asked.namespace.as_deref().unwrap_or_default(), asked.name);
    let captured = Captured {
        namespace: asked.namespace.as_deref().map(Cow::Borrowed),
        name: Cow::Borrowed(&*asked.name),
    };
    permit(by.peer, head, &by.caller, route, &captured)?;
    let (caller, peer) = (&by.caller, by.peer);
    let (of_call, namespace) = (&asked.head, asked.namespace.as_deref());
    let (operation, name) = (route.operation, &asked.name);
    let call = Call { context, in_flight, head: of_call, caller, peer, operation, namespace, name };
    if streams(operation) {
        return watch(&call, output).await;
    }
    let response = operate(&call, &mut Inbound::There(asked.json.into())).await?;
    let message = from_json::encode(output, &response.into_body().into_bytes());
    message.map(success_with).map_err(|error| {
        CallError::from(sluice_engine::Error::Internal { reason: format!("the answer of {path}: {error}") })
    })
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

/// A call in the words of the HTTP API.
#[derive(Debug)]
struct Asked {
    namespace: Option<String>,
    name: String,
    head: Parts,
    json: Vec<u8>,
}

impl Asked {
    /// `authorization`: what the caller has shown, for calls that go on for a while.
    fn read(
        route: &Route,
        message: &MessageType,
        bytes: &[u8],
        authorization: Option<&HeaderValue>,
    ) -> Read<Asked> {
        let mut rows = read_rows(message, bytes)?;
        let mut take = |field: Option<usize>| -> Read<Option<String>> {
            let Some(at) = field else { return Ok(None) };
            let text = text_of(message, &rows, at)?.to_owned();
            rows.retain(|(other, _)| *other != at);
            Ok((!text.is_empty()).then_some(text))
        };
        let captured = route.segments.iter().find_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
        // Where the name of what is asked for is that of a parameter as well, the field is called `name`.
        let captured = captured.and_then(|name| message.by_name("name").or_else(|| message.by_name(name)));
        let namespaced = route.scope == Scope::Namespaced;
        let namespace = take(message.by_name("namespace").filter(|_| namespaced))?;
        let name = take(captured)?;
        let idempotency_key = take(message.by_name("idempotency_key"))?;
        if let (Some(at), None) = (captured, &name) {
            return Err(Fault::missing(&message.fields[at].name, "the call needs to know which"));
        }
        let has_body = !matches!(route.method, Method::GET | Method::DELETE);
        let mut json = Vec::new();
        let query = if has_body {
            write_object(message, &rows, &mut json)?;
            empty_lists(message, &rows, &mut json);
            String::new()
        } else {
            query(message, &rows)?
        };
        let mut head = head(route, &query, idempotency_key)?;
        if let Some(value) = authorization {
            head.headers.insert(AUTHORIZATION, value.clone());
        }
        Ok(Asked { namespace, name: name.unwrap_or_default(), head, json })
    }
}

/// Adds the lists that calls work through where they are empty: protobuf does not tell these from absent
/// ones.
fn empty_lists(message: &MessageType, rows: &Rows<'_>, json: &mut Vec<u8>) {
    for name in ["messages", "items", "queues"] {
        let Some(at) = message.by_name(name).filter(|at| message.fields[*at].is_list) else { continue };
        if rows.iter().any(|(other, _)| *other == at) {
            continue;
        }
        json.pop();
        if json.len() > 1 {
            json.push(b',');
        }
        json.extend_from_slice(format!("\"{name}\":[]}}").as_bytes());
    }
}

/// Parameters, as they stand behind the `?`.
fn query(message: &MessageType, rows: &Rows<'_>) -> Read<String> {
    let mut out = String::from("?");
    for of_field in rows.chunk_by(|one, other| one.0 == other.0) {
        let (at, value) = of_field[of_field.len() - 1];
        let field = &message.fields[at];
        let value: Cow<'_, str> = match value {
            Raw::Number(number) if field.kind == Kind::Boolean => {
                (if number == 0 { "false" } else { "true" }).into()
            }
            Raw::Number(number) => number.to_string().into(),
            Raw::Bytes(_) => text_of(message, rows, at)?.into(),
        };
        out.push_str(&field.name);
        out.push('=');
        for byte in value.bytes() {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out.push('&');
    }
    Ok(out)
}

/// The head of the request that would ask the same over HTTP, as far as handlers look at it.
fn head(route: &Route, query: &str, idempotency_key: Option<String>) -> Read<Parts> {
    let uri: Uri = format!("/{query}")
        .parse()
        .map_err(|_| Fault::invalid("the parameters are too long to be looked at"))?;
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = route.method.clone();
    head.uri = uri;
    if let Some(key) = idempotency_key {
        let value = HeaderValue::from_str(&key)
            .map_err(|_| Fault::invalid("expected printable ASCII").inside("idempotency_key"))?;
        head.headers.insert("idempotency-key", value);
    }
    Ok(head)
}

fn success_with(message: Vec<u8>) -> Response<Body> {
    let mut out = Vec::with_capacity(PREFIX_BYTES + message.len());
    frame_with(&mut out, |out| out.extend_from_slice(&message));
    let mut response = Response::new(Body::with_trailers(out.into(), success()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}
