//! Root keys of encryption at rest: which are in use, and a new one.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_node::keys::{KeyStatus, KeyUse};

use crate::http::route::call::Call;
use crate::json::{Object, object};
use crate::net::body::Body;
use crate::net::respond;

/// `GET /v1/admin/keys`
pub(crate) async fn show(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    Ok(answer(&call.node().keys().await?))
}

/// `POST /v1/admin/keys/rotate`
pub(crate) async fn rotate(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    Ok(answer(&call.node().rotate_keys().await?))
}

fn answer(status: &KeyStatus) -> Response<Body> {
    let mut out = Vec::with_capacity(256);
    object(&mut out, |o| {
        if let Some(current) = status.current {
            o.text("current", &current.to_string());
        }
        let keys = status.uses.iter().filter_map(|(root, found)| root.map(|root| (root, found)));
        o.list("keys", keys, |out, (root, found)| {
            object(out, |o| {
                o.text("id", &root.to_string());
                write_use(o, *found);
            });
        });
        o.object("unencrypted", |o| write_use(o, status.uses.get(&None).copied().unwrap_or_default()));
    });
    respond::json(StatusCode::OK, out)
}

fn write_use(o: &mut Object<'_>, found: KeyUse) {
    o.number("files", found.files);
    o.number("bytes", found.bytes);
}
