//! Typed calls over HTTP: the request from body or parameters, the answer as JSON.

use http::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_calls::operation::Trait;
use sluice_calls::unary::{self, Codec, Done};
use sluice_calls::{CallError, Noted, Read};

use super::codec::query_de::from_query;
use super::handlers::documents::expect_no_conditions;
use super::lines;
use super::route::call::Call;
use crate::json::Json;
use crate::json::de::{from_body, from_optional_body};
use crate::net::arrived::ToRecord;
use crate::net::body::{Body, Inbound};
use crate::net::options::{DOCUMENT_BODY_BYTES_MAX, POLICY_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX};

/// Runs a typed call.
pub(super) async fn answer(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let takes = unary::body(call.operation())?;
    call.permit.check_name()?;
    expect_no_conditions(call.operation(), &call.head.headers)?;
    let bytes_max = match takes {
        _ if call.operation().is_query() => None,
        unary::Body::None => None,
        unary::Body::Optional | unary::Body::Small => Some(SMALL_BODY_BYTES_MAX),
        unary::Body::Items => Some(call.context.body_limits().items),
        unary::Body::Policy => Some(POLICY_BODY_BYTES_MAX),
        unary::Body::Document => Some(DOCUMENT_BODY_BYTES_MAX),
    };
    let upload = match bytes_max {
        Some(bytes_max) => Some(call.json(body, bytes_max).await?),
        None => {
            call.no_body(body).await?;
            None
        }
    };
    let source = match &upload {
        Some(upload) if takes == unary::Body::Optional => Source::OptionalBody(upload.bytes()),
        Some(upload) => Source::Body(upload.bytes()),
        None => Source::Query(call.head.uri.query(), call.operation().is(Trait::Stale)),
    };
    let has_lines = lines::are_preferred(call.operation(), &call.head.headers);
    unary::run(&call.permit, &mut HttpCodec { source, path: call.head.uri.path(), has_lines }).await
}

/// The source of a request.
enum Source<'b> {
    Body(&'b [u8]),
    /// A body that may be blank.
    OptionalBody(&'b [u8]),
    /// Parameters, which may say that the answer may be behind or not.
    Query(Option<&'b str>, bool),
}

struct HttpCodec<'b> {
    source: Source<'b>,
    path: &'b str,
    /// True: the answer is written as lines.
    has_lines: bool,
}

impl Codec for HttpCodec<'_> {
    type Output = Response<Body>;

    fn read<T: DeserializeOwned>(&mut self) -> Read<T> {
        match self.source {
            Source::Body(body) => from_body(body),
            Source::OptionalBody(body) => from_optional_body(body),
            Source::Query(query, takes_stale) => from_query(query, takes_stale),
        }
    }

    fn write<T: Serialize>(&mut self, done: &Done<T>) -> Result<Response<Body>, CallError> {
        let json = Json::of(done)?;
        let mut response = if self.has_lines { lines::of(json)? } else { Response::from(json) };
        if done.noted != Noted::default() {
            let made = done.noted.made.as_ref().map(|name| format!("{}/{name}", self.path));
            response.extensions_mut().insert(ToRecord(Noted { made, ..done.noted.clone() }));
        }
        Ok(response)
    }
}
