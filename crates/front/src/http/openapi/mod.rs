//! The description of the API for machines, built from the table of routes, and the page that shows it.

mod operations;
mod schemas;
mod typed;

use std::sync::OnceLock;

use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use http::response::Response;
use serde_json::{Map, Value, json};

use super::codec::document::Document;
use super::route::call::Call;
use super::route::table::{ROUTES, Route, Scope};
use crate::net::body::Body;
use operations::{Description, Place, describe};

/// The OpenAPI 3.1 document of this server.
pub fn openapi(version: &str) -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let described = describe(route.operation);
        for (at, path) in route.paths().into_iter().enumerate() {
            let item = paths.entry(path).or_insert_with(|| json!({}));
            item[route.method.as_str().to_ascii_lowercase()] = operation(route, &described, at > 0);
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
        "components": {"schemas": schemas::all()},
    })
}

/// `GET /openapi.json`
pub(super) fn document(call: &Call<'_>) -> Response<Body> {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    let new = || Document::new("application/json", openapi(&call.context.options.version).to_string());
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

fn operation(route: &Route, described: &Description, in_namespace: bool) -> Value {
    let id = if in_namespace { format!("{}_in_namespace", route.name) } else { route.name.to_owned() };
    let mut operation = json!({
        "operationId": id,
        "tags": [described.tag],
        "summary": described.summary,
        "parameters": parameters(route, described, in_namespace),
        "responses": responses(route, described),
    });
    if !described.about.is_empty() {
        operation["description"] = json!(described.about);
    }
    if let Some(body) = described.request {
        operation["requestBody"] = json!({"required": body.required, "content": content(body.content)});
    }
    operation
}

fn parameters(route: &Route, described: &Description, in_namespace: bool) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    if in_namespace {
        names.push("namespace");
    }
    names.extend(route.segments.iter().filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')));
    let in_path = names
        .into_iter()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let others = described.parameters.iter().map(|parameter| {
        let place = match parameter.place {
            Place::Query => "query",
            Place::Header => "header",
        };
        json!({
            "name": parameter.name, "in": place, "required": false,
            "description": parameter.about, "schema": parameter.schema(),
        })
    });
    in_path.chain(others).collect()
}

fn responses(route: &Route, described: &Description) -> Value {
    let mut responses = Map::new();
    for answer in &described.answers {
        let mut response = json!({"description": answer.about});
        if let Some(answer_content) = answer.content {
            response["content"] = content(answer_content);
        }
        responses.insert(answer.status.to_string(), response);
    }
    if route.scope != Scope::Root {
        responses.insert(
            "default".to_owned(),
            json!({"description": "An error", "content": content(operations::Content::Json("Error"))}),
        );
    }
    Value::Object(responses)
}

fn content(content: operations::Content) -> Value {
    match content {
        operations::Content::Json(schema) => json!({"application/json": {
            "schema": {"$ref": format!("#/components/schemas/{schema}")}
        }}),
        operations::Content::Events(schema) => json!({"text/event-stream": {
            "schema": {"$ref": format!("#/components/schemas/{schema}")},
        }}),
        operations::Content::Octets => json!({"application/octet-stream": {"schema": {}}}),
        operations::Content::Text(media_type) => json!({media_type: {"schema": {"type": "string"}}}),
        operations::Content::AnyJson => json!({"application/json": {"schema": {"type": "object"}}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_in_use_is_explained() {
        for route in ROUTES {
            let tag = describe(route.operation).tag;
            assert!(operations::TAGS.iter().any(|(name, _)| *name == tag), "{}: {tag}", route.name);
        }
    }
}
