//! The description of the API for machines, built from the table of routes, and the page that shows it.

mod operations;
#[cfg(test)]
mod tests;
mod typed;

use std::sync::OnceLock;

use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use http::response::Response;
use serde_json::{Map, Value, json};
use sluice_calls::Operation;
use sluice_calls::error::ErrorAnswer;
use sluice_calls::operation::{Kind, Root};

use super::codec::document::Document;
use super::route::call::Call;
use super::route::table;
use crate::net::body::Body;

/// The OpenAPI 3.1 document of this server.
pub fn openapi(version: &str) -> Value {
    let mut generator = typed::generator();
    let error = Value::from(generator.subschema_for::<ErrorAnswer>());
    let mut paths = Map::new();
    for operation in Operation::ALL.iter().copied() {
        let described = match operation.kind() {
            Kind::Unary => typed::describe(operation, &mut generator),
            Kind::Hot(call) => Some(operations::of_hot(call, &mut generator)),
            Kind::Special(call) => Some(operations::of_special(call, &mut generator)),
        };
        let Some(described) = described else { continue };
        for (at, path) in table::paths(operation).into_iter().enumerate() {
            let item = paths.entry(path).or_insert_with(|| json!({}));
            let method = operation.http().method.as_str().to_ascii_lowercase();
            item[method] = description(operation, &described, &error, at > 0);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": version,
            "summary": "A durable queue server",
            "description": "Times are milliseconds since the Unix epoch. Unknown fields are refused. \
                Every path under /v1 is about the namespace default; the same paths under \
                /v1/namespaces/{namespace} are about that one. Every answer carries X-Request-Id.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": operations::TAGS.iter().map(|(name, about)| json!({"name": name, "description": about}))
            .collect::<Vec<_>>(),
        "paths": paths,
        "components": {"schemas": typed::definitions(generator)},
    })
}

/// `GET /openapi.json`
pub(super) fn document(call: &Call<'_>) -> Response<Body> {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    let new = || Document::new("application/json", openapi(&call.context.calls.about().version).to_string());
    DOCUMENT.get_or_init(new).answer(call.head)
}

/// `GET /docs`
pub(super) fn page(call: &Call<'_>) -> Response<Body> {
    static PAGE: OnceLock<Document> = OnceLock::new();
    let new = || Document::new("text/html; charset=utf-8", include_str!("docs.html"));
    let mut response = PAGE.get_or_init(new).answer(call.head);
    // The page needs nothing but itself and the document beside it.
    response.headers_mut().insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
             img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
    );
    response
}

/// The parameters, body and answers of an operation.
#[derive(Debug)]
struct Described {
    /// Parameters that are not part of the path.
    parameters: Vec<Value>,
    request: Option<Value>,
    /// Status, meaning and content of each.
    answers: Vec<(u16, &'static str, Option<Value>)>,
}

fn description(operation: Operation, described: &Described, error: &Value, in_namespace: bool) -> Value {
    let name = operation.name();
    let mut item = json!({
        "operationId": if in_namespace { format!("{name}_in_namespace") } else { name.to_owned() },
        "tags": [operation.topic()],
        "summary": operation.summary(),
        "parameters": in_path(operation, in_namespace).chain(described.parameters.iter().cloned()).collect::<Vec<_>>(),
        "responses": responses(operation, described, error),
    });
    let notes = operation.notes();
    if !notes.is_empty() {
        item["description"] = json!(notes);
    }
    if let Some(request) = &described.request {
        item["requestBody"] = request.clone();
    }
    item
}

fn in_path(operation: Operation, in_namespace: bool) -> impl Iterator<Item = Value> {
    let names = in_namespace.then_some("namespace").into_iter().chain(operation.http().captured());
    names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
}

fn responses(operation: Operation, described: &Described, error: &Value) -> Value {
    let mut responses = Map::new();
    for (status, about, content) in &described.answers {
        let mut response = json!({"description": about});
        if let Some(content) = content {
            response["content"] = content.clone();
        }
        responses.insert(status.to_string(), response);
    }
    if operation.http().root != Root::Root {
        let content = json!({"application/json": {"schema": error}});
        responses.insert("default".to_owned(), json!({"description": "An error", "content": content}));
    }
    Value::Object(responses)
}
