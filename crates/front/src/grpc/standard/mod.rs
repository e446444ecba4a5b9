//! Services that gRPC itself defines, and that its tools ask of any server: health, and the reflection of
//! what is served. Their contracts are in `crates/proto/standard`.
//!
//! Nobody has to say who they are for them, as for `/readyz` and `/openapi.json`, so what they may hold is
//! bounded: so many streams of all clients together, each with some kilobytes.
//!
//! `files` are the descriptors, by the names in them.

mod files;
mod health;
mod reflection;

use http::response::Response;
use sluice_calls::{CallError, Fault, Operation, Read};
use sluice_engine::Error;
use tokio::sync::OwnedSemaphorePermit;

use super::rows::text;
use super::unary::only_message;
use super::wire::{INVALID, Raw, next_field};
use crate::net::arrived::Arrived;
use crate::net::body::{Body, BodyRules, Inbound, read};
#[cfg(feature = "fuzzing")]
pub(super) use reflection::answer;

/// Largest request, in bytes: it names one thing.
const REQUEST_BYTES_MAX: usize = 16 << 10;

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

/// A place among the streams of these services, which is given back when it is dropped.
fn place(arrived: &Arrived) -> Result<OwnedSemaphorePermit, CallError> {
    let places = arrived.context.standard_streams.clone();
    let overloaded = Error::Overloaded { what: "streams of health and reflection", retry_after_ms: 1_000 };
    places.try_acquire_owned().map_err(|_| overloaded.into())
}

/// The text that a field of a message has; empty if it has none; of several, the last counts. Fields that
/// are not known are left alone, since these contracts grow elsewhere.
fn text_in(mut message: &[u8], wanted: u32) -> Read<&str> {
    let mut found = "";
    while let Some((number, value)) = next_field(&mut message)? {
        if number == wanted {
            let Raw::Bytes(bytes) = value else {
                return Err(Fault::new(INVALID, format!("field {number} is of another wire type")));
            };
            found = text(bytes)?;
        }
    }
    Ok(found)
}
