//! Services that gRPC itself defines, and that its tools ask of any server: health, and the reflection of
//! what is served. Their contracts are in `crates/proto/standard`.
//!
//! Nobody has to say who they are for them, as for `/readyz` and `/openapi.json`, so what they may hold is
//! bounded: so many streams of all clients together, each with some kilobytes.
//!
//! `files` are the descriptors, by the names in them; `request` is what both services ask of a request.

mod files;
mod health;
mod reflection;
mod request;

use http::response::Response;
use sluice_calls::{CallError, Operation};

use super::messages::only_message;
use crate::net::arrived::Arrived;
use crate::net::body::{Body, BodyRules, Inbound, read};
#[cfg(feature = "fuzzing")]
pub(super) use reflection::answer as reflected;
use request::REQUEST_BYTES_MAX;

/// A method of these services.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    /// One of `grpc.health.v1`.
    Health(health::Method),
    /// Descriptions of what is served.
    Reflect,
}

/// The method with this path.
pub(super) fn find(path: &str) -> Option<Method> {
    match path {
        "/grpc.health.v1.Health/Check" => Some(Method::Health(health::Method::Check)),
        "/grpc.health.v1.Health/List" => Some(Method::Health(health::Method::List)),
        "/grpc.health.v1.Health/Watch" => Some(Method::Health(health::Method::Watch)),
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => Some(Method::Reflect),
        _ => None,
    }
}

impl Method {
    /// The operation that tells the same over HTTP, whose admission and figures it shares.
    pub(super) fn operation(self) -> Operation {
        match self {
            Method::Health(_) => Operation::Ready,
            Method::Reflect => Operation::OpenApi,
        }
    }
}

/// Answers a call.
///
/// # Errors
/// `not_found` for the health of a service that is not served; `overloaded` for one stream too many; those of
/// a body.
pub(super) async fn answer(
    arrived: &Arrived,
    method: Method,
    body: Inbound,
) -> Result<Response<Body>, CallError> {
    let Method::Health(method) = method else { return reflection::stream(arrived, body) };
    let Arrived { context, head, .. } = arrived;
    let rules = BodyRules { bytes_max: REQUEST_BYTES_MAX, timeout: context.options.body_timeout };
    let upload = read(body, &head.headers, rules, &context.body_budget).await?;
    let message = only_message(upload.shared(), rules.bytes_max)?;
    health::answer(arrived, method, &message)
}
