//! Namespaces.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::{Right, Target};
use sluice_engine::query::NamespaceView;
use sluice_engine::settings::Quotas;

use crate::http::codec::settings::{QuotaPatch, read_quotas, write_quotas};
use crate::http::route::call::Call;
use crate::json::{Object, Read, Reader, object};
use crate::net::body::{Body, Inbound};
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Fields of PUT.
pub(crate) const PUT_FIELDS: &[&str] = &["quotas", "shard"];
/// Fields of PATCH.
pub(crate) const PATCH_FIELDS: &[&str] = &["quotas"];
/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["all"];
/// Parameters of DELETE.
pub(crate) const DELETE_PARAMS: &[&str] = &["force"];

/// `GET /v1/namespaces`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let all = call.query()?.boolean("all", false)?;
    call.require_caller()?;
    let mut namespaces = call.namespaces().await?;
    namespaces.retain(|view| call.caller.may(Right::Observe, Target::SomeQueue(&view.name)).is_ok());
    // The server's own: whoever comes to see the tenants has nothing to do with them.
    namespaces.retain(|view| all || !view.name.starts_with('$'));
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("namespaces", &namespaces, |out, view| object(out, |o| write_namespace(o, view)));
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET /v1/namespaces/{namespace}`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let view = call.node().namespace(call.name).await?;
    Ok(answer(StatusCode::OK, &view))
}

/// `PUT /v1/namespaces/{namespace}`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let request = Request::read(upload.bytes(), PUT_FIELDS)?;
    let change = move |quotas: Quotas| request.quotas.apply(quotas);
    let (view, created) = call.node().namespace_put(call.name, request.shard, change).await?;
    Ok(answer(if created { StatusCode::CREATED } else { StatusCode::OK }, &view))
}

/// `PATCH /v1/namespaces/{namespace}`
pub(crate) async fn patch(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let request = Request::read(upload.bytes(), PATCH_FIELDS)?;
    let change = move |quotas: Quotas| request.quotas.apply(quotas);
    let view = call.node().namespace_set(call.name, request.shard, change).await?;
    Ok(answer(StatusCode::OK, &view))
}

/// `DELETE /v1/namespaces/{namespace}`
pub(crate) async fn delete(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let force = call.query()?.boolean("force", false)?;
    call.node().namespace_delete(call.name, force).await?;
    Ok(respond::empty_object().into())
}

#[derive(Debug, Default)]
pub(crate) struct Request {
    quotas: QuotaPatch,
    shard: Option<u32>,
}

impl Request {
    pub(crate) fn read(body: &[u8], allowed: &'static [&'static str]) -> Read<Request> {
        let mut reader = Reader::new(body)?;
        let mut request = Request::default();
        if reader.is_blank() {
            return Ok(request);
        }
        reader.object(allowed, |reader, name| {
            match name {
                "quotas" => read_quotas(reader, &mut request.quotas)?,
                _ => request.shard = Some(reader.integer(0, u64::from(u32::MAX))? as u32),
            }
            Ok(())
        })?;
        reader.finish()?;
        Ok(request)
    }
}

fn answer(status: StatusCode, view: &NamespaceView) -> Response<Body> {
    let mut out = Vec::new();
    object(&mut out, |o| write_namespace(o, view));
    respond::json(status, out)
}

fn write_namespace(o: &mut Object<'_>, view: &NamespaceView) {
    o.text("name", &view.name);
    o.number("shard", u64::from(view.shard));
    write_quotas(o, &view.quotas);
    o.number("queues", view.queues);
    o.number("messages", view.messages);
    o.number("bytes", view.bytes);
    o.number("created_at_ms", view.created_at_us / 1_000);
}
