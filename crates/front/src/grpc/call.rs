//! A call with one answer, alone or over a session: from its message to that of its answer.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_calls::fault::clip;
use sluice_calls::hot::send::check_idempotency_key;
use sluice_calls::operation::{Hot, Kind, Scope, Trait};
use sluice_calls::unary;
use sluice_calls::{Asker, CallError, CallName, Codec, Done, Fault, Noted, Operation, Permit, Read};
use sluice_engine::Error;

use super::methods::operation_of;
use super::rows::{Rows, read_rows, text_of};
use super::schema::{MessageType, schema};
use super::source::MessageSource;
use super::wire::Raw;
use super::{answers, bounds, de, ser};
use crate::hot;
use crate::net::memory::answers::Share;
use crate::net::options::{BodyLimits, DOCUMENT_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX};

/// An answer as its message, and what the audit log records beside the request.
pub(super) struct Encoded {
    pub(super) message: Vec<u8>,
    pub(super) noted: Noted,
}

/// Runs a call that has one answer.
pub(super) async fn run(
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
    limits: BodyLimits,
    room: &Arc<Share>,
) -> Result<Vec<u8>, CallError> {
    let path = asker.path;
    let operation = operation_of(path).filter(|operation| operation.is_called_over_sessions());
    let (Some(operation), Some((input, output))) = (operation, schema().call(path)) else {
        let path = clip(path);
        let message = format!("{path:?} is not called over a session: docs/grpc.md lists what is");
        return Err(CallError::new("method_not_allowed", message).with(|it| it.text("path", &path)));
    };
    let bytes_max = message_bytes_max(limits, operation);
    if message.len() > bytes_max {
        return Err(CallError::body_too_large(bytes_max));
    }
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

/// The largest message of a call, in bytes. One that may wait keeps its message for as long.
pub(super) fn message_bytes_max(limits: BodyLimits, operation: Operation) -> usize {
    if matches!(operation, Operation::DocumentPut | Operation::DocumentPatch) {
        return DOCUMENT_BODY_BYTES_MAX;
    }
    if operation.is(Trait::Waits) { SMALL_BODY_BYTES_MAX } else { limits.send }
}

/// A request as its message has it.
pub(super) struct Request<'b> {
    pub(super) namespace: Option<&'b str>,
    pub(super) name: &'b str,
    idempotency_key: Option<&'b str>,
    /// True: the answer may be behind.
    pub(super) is_stale: bool,
    /// The other fields.
    pub(super) rows: Rows<'b>,
    /// The whole message.
    bytes: &'b [u8],
}

impl<'b> Request<'b> {
    pub(super) fn read(operation: Operation, message: &MessageType, bytes: &'b [u8]) -> Read<Request<'b>> {
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
        // Where the name of what is asked for is that of a parameter as well, the field is called `name`. It
        // comes before those that tell more.
        let captured = operation.http().captured();
        let captured =
            captured.and_then(|name| message.by_name("name").into_iter().chain(message.by_name(name)).min());
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
        Ok(Request { namespace, name, idempotency_key, is_stale, rows, bytes })
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
        Ok(Encoded { message, noted: done.noted.clone() })
    }
}

/// Reads a typed request, and does nothing.
#[cfg(feature = "fuzzing")]
pub(super) fn reads(operation: Operation, input: &'static MessageType, rows: &Rows<'_>) {
    let _ = unary::read(operation, &mut Protobuf { input, rows, output: 0, path: "" });
}

pub(super) fn no_such_call(path: &str) -> CallError {
    let path: String = path.chars().take(256).collect();
    let message = format!("there is no call {path:?}: proto/sluice/v1 lists those there are");
    CallError::new("method_not_allowed", message).with(|o| o.text("path", &path))
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
    Ok(Encoded { message, noted: Noted::default() })
}

pub(super) fn unwritten(path: &str, error: &serde_json::Error) -> CallError {
    Error::Internal { reason: format!("the answer of {path}: {error}") }.into()
}
