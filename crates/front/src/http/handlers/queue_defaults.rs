//! Settings of queues that are not made yet: look, set, delete.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::Right;
use sluice_engine::query::DefaultsView;

use crate::http::codec::settings::{read_patch, write_patch};
use crate::http::route::call::Call;
use crate::json::{Object, object};
use crate::net::body::{Body, Inbound};
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Parameters of the list.
pub(crate) const LIST_PARAMS: &[&str] = &["after", "limit"];
/// Most patterns of a page.
const PAGE_MAX: u64 = 100;

/// `GET P/queue-defaults`
pub(crate) async fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let limit = params.integer("limit", 1, PAGE_MAX, PAGE_MAX)? as usize;
    // One more than asked for tells whether there is a next page.
    let mut defaults =
        call.node().defaults_after(call.namespace_id()?, params.text("after"), limit + 1).await?;
    let more = defaults.len() > limit;
    defaults.truncate(limit);
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("defaults", &defaults, |out, defaults| object(out, |o| write(o, defaults)));
        if let Some(last) = defaults.last().filter(|_| more) {
            o.text("next", &last.pattern);
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET P/queue-defaults/{pattern}`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let defaults = call.node().defaults(call.namespace_id()?, call.name).await?;
    Ok(answer(StatusCode::OK, &defaults))
}

/// `PUT P/queue-defaults/{pattern}`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let patch = read_patch(upload.bytes())?;
    if let Some(to) = patch.dead_letter_queue.as_deref().filter(|to| !to.is_empty()) {
        call.allow_queue(Right::Send, to)?;
    }
    let (defaults, created) = call.node().defaults_set(call.namespace_id()?, call.name, patch).await?;
    Ok(answer(if created { StatusCode::CREATED } else { StatusCode::OK }, &defaults))
}

/// `DELETE P/queue-defaults/{pattern}`
pub(crate) async fn delete(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    call.node().defaults_delete(call.namespace_id()?, call.name).await?;
    let mut out = Vec::new();
    object(&mut out, |_| {});
    Ok(respond::json(StatusCode::OK, out))
}

fn answer(status: StatusCode, defaults: &DefaultsView) -> Response<Body> {
    let mut out = Vec::new();
    object(&mut out, |o| write(o, defaults));
    respond::json(status, out)
}

fn write(o: &mut Object<'_>, defaults: &DefaultsView) {
    o.text("pattern", &defaults.pattern);
    write_patch(o, &defaults.patch);
}
