//! The dispatch of requests: route, handler, errors.

use std::sync::Arc;

use http::Request;
use http::header::HeaderValue;
use http::request::Parts;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::{Caller, Peer};
use sluice_calls::events::{OfNamespace, OfQueue};
use sluice_calls::operation::{Kind, Operation, Special, Trait};
use sluice_calls::permit::{Asker, CallName, identify};

use super::codec::query::{Params, asks_stale};
use super::compression::{compress, concerns};
use super::handlers::{admin, attachments, documents, results};
use super::methods::other_method;
use super::route::call::Call;
use super::route::table::{Found, find};
use super::{console, events, figures, hot, openapi, raw, typed};
use crate::net::activity::Activity;
use crate::net::admit::admit;
use crate::net::arrived::{Arrived, Finished, PassedOn};
use crate::net::body::{Body, BodyRules, Inbound, read};
use crate::net::context::Context;
use crate::net::errors::HttpError as _;
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::passing::Passable;

/// Answers a request.
pub(crate) async fn handle(
    context: Arc<Context>,
    activity: Arc<Activity>,
    peer: Arc<Peer>,
    request: Request<Inbound>,
) -> Response<Body> {
    let (arrived, body) = Arrived::new(context, &activity, peer, request);
    let found = arrived.found();
    if !matches!(&found, Found::Operation(operation, _) if operation.is_audited()) {
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
        let Arrived { context, head, request_id, .. } = self;
        let operation = if let Found::Operation(operation, _) = &found { Some(*operation) } else { None };
        let mut caller = Caller::Nobody;
        let response = self.result(operation, found, &mut caller, &mut body).await.unwrap_or_else(|error| {
            context.error_log.log(&error, request_id, &head.method, head.uri.path());
            context.with_address(error).into_response()
        });
        let mut response = match operation {
            // Rare: its future is not to make that of every request larger.
            Some(operation)
                if concerns(&context.compressor, operation)
                    && response.extensions().get::<PassedOn>().is_none() =>
            {
                Box::pin(compress(context, head, response)).await
            }
            _ => response,
        };
        if !body.is_over() {
            Box::pin(self.leave(body, &mut response)).await;
        }
        let status = response.status().as_u16();
        self.finish(response, Finished { operation, status, caller: &caller, target: head.uri.path() }).await
    }

    /// Admits a request, finds out who calls and whether they may, and does what they ask for.
    async fn result(
        &self,
        operation: Option<Operation>,
        found: Found<'_>,
        caller: &mut Caller,
        body: &mut Inbound,
    ) -> Result<Response<Body>, CallError> {
        let Arrived { context, peer, in_flight, head, .. } = self;
        admit(context, head, in_flight, operation)?;
        let (operation, captured) = match found {
            Found::Operation(operation, captured) => (operation, captured),
            Found::OtherMethods(allow) => return Ok(other_method(head, &allow)),
            Found::Nothing => {
                let found = Box::pin(console::answer(self, body)).await?;
                return found.ok_or_else(|| nothing_there(head));
            }
        };
        let namespace = captured.namespace.as_deref();
        let is_stale = operation.is(Trait::Stale) && asks_stale(head.uri.query());
        let call = CallName { operation, namespace, name: &captured.name, is_stale };
        if context.is_elsewhere(peer, &call)
            // Rare on one node: its future is not to make that of every request larger.
            && let Some(response) = Box::pin(self.elsewhere(&call, body)).await?
        {
            return Ok(response);
        }
        let path = head.uri.path();
        let authorization = console::authorization(head);
        let authorization = authorization.as_ref().map(HeaderValue::as_bytes);
        *caller = identify(peer, operation, authorization, path)?;
        let asker =
            Asker { calls: &context.calls, peer, caller, authorization, room: &*in_flight.share, path };
        let permit = asker.permit(call)?;
        check_parameters(operation, head.uri.query())?;
        operate(&Call { context, in_flight, head, permit }, body).await
    }

    /// Passes a call on. `None`: this node answers it.
    async fn elsewhere(
        &self,
        call: &CallName<'_>,
        body: &mut Inbound,
    ) -> Result<Option<Response<Body>>, CallError> {
        let Arrived { context, head, .. } = self;
        if !call.operation.is(Trait::Waits) {
            return Ok(self.passed_on(call, Passable::unread(body), CallError::into_response).await);
        }
        // It may have to leave once more, when this node stops.
        let rules = BodyRules { bytes_max: SMALL_BODY_BYTES_MAX, timeout: context.options.body_timeout };
        let upload = read(&mut *body, &head.headers, rules, &context.body_budget).await?;
        *body = Inbound::Read(upload.shared());
        Ok(self.passed_on(call, Passable::read(upload.shared()), CallError::into_response).await)
    }
}

/// Checks that a call knows all parameters behind the `?`. Those that read their own check them then.
fn check_parameters(operation: Operation, query: Option<&str>) -> Result<(), CallError> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(()) };
    let known = match operation.kind() {
        Kind::Unary if operation.is_query() => return Ok(()),
        Kind::Unary | Kind::Hot(_) => &[],
        Kind::Special(call) => match call {
            Special::Events | Special::QueueEvents | Special::Statistics => return Ok(()),
            Special::DocumentWatch | Special::LockWatch => return Ok(()),
            Special::ReceiveRaw => raw::RECEIVE_PARAMS,
            Special::ResultRaw => results::RESULT_PARAMS,
            Special::DocumentRaw => documents::READ_PARAMS,
            Special::UploadRaw => attachments::UPLOAD_PARAMS,
            Special::AttachmentPutRaw | Special::AttachmentRaw => attachments::NAME_PARAMS,
            Special::SendRaw | Special::DocumentPutRaw | Special::DocumentPatchRaw => &[],
            Special::Backup | Special::Health | Special::Ready => &[],
            Special::Metrics | Special::OpenApi | Special::Docs => &[],
        },
    };
    Params::read(Some(query), known)?;
    Ok(())
}

fn nothing_there(head: &Parts) -> CallError {
    let path: String = head.uri.path().chars().take(256).collect();
    let message = format!("no resource at {path:?}: /docs describes the API");
    CallError::new("not_found", message).with(|o| o.text("path", &path))
}

/// Does what a call asks for.
///
/// # Errors
/// Those of the operation; `overloaded` for an answer that only shows something when there is no memory for
/// it.
pub(crate) async fn operate(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let response = match call.operation().kind() {
        Kind::Hot(hot) => hot::answer(call, hot, body).await?,
        // Rare: their futures are not to make that of every request larger.
        Kind::Unary => Box::pin(typed::answer(call, body)).await?,
        Kind::Special(special) => Box::pin(answer_special(call, special, body)).await?,
    };
    call.in_flight.reserve(call.operation(), response.body().bytes_there())?;
    Ok(response)
}

async fn answer_special(
    call: &Call<'_>,
    special: Special,
    body: &mut Inbound,
) -> Result<Response<Body>, CallError> {
    let takes_body = matches!(
        special,
        Special::SendRaw
            | Special::ReceiveRaw
            | Special::DocumentPutRaw
            | Special::DocumentPatchRaw
            | Special::UploadRaw
            | Special::AttachmentPutRaw
    );
    if !takes_body {
        call.no_body(body).await?;
    }
    match special {
        Special::SendRaw => raw::send(call, body).await,
        Special::ReceiveRaw => raw::receive(call, body).await,
        Special::ResultRaw => results::raw(call).await,
        Special::DocumentPutRaw => documents::put(call, body).await,
        Special::DocumentPatchRaw => documents::patch(call, body).await,
        Special::DocumentRaw => documents::read(call).await,
        Special::UploadRaw => attachments::append(call, body).await,
        Special::AttachmentPutRaw => attachments::put(call, body).await,
        Special::AttachmentRaw => attachments::read(call).await,
        Special::Events => events::stream::<OfNamespace>(call).await,
        Special::QueueEvents => events::stream::<OfQueue>(call).await,
        Special::Statistics => events::statistics(call).await,
        Special::DocumentWatch => events::documents(call).await,
        Special::LockWatch => events::lock(call).await,
        Special::Backup => admin::backup(call).await,
        Special::Health => Ok(admin::health()),
        Special::Ready => Ok(admin::ready(call)),
        Special::Metrics => figures::metrics(call).await,
        Special::OpenApi => Ok(openapi::document(call)),
        Special::Docs => Ok(openapi::page(call)),
    }
}
