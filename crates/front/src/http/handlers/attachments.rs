//! The bytes of an attachment as the body; the fields are headers.

use std::io;

use data_encoding::BASE64;
use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_RANGE,
    RANGE,
};
use http::response::Response;
use sluice_calls::attachments::attaching::{Attaching, check_size};
use sluice_calls::attachments::{self, reading};
use sluice_calls::{CallError, Fault, Read};
use sluice_engine::Error;
use sluice_engine::attachments::{AttachmentView, UploadId};
use sluice_engine::documents::DocumentVersion;
use sluice_engine::limits::{ATTACHMENT_BYTES_MAX, UPLOAD_CHUNK_BYTES_MAX};

use super::documents::{
    etag, expect_no_conditions, is_known, is_wanted, only, put_etag, read_conditions, written,
};
use super::range::{Ranged, range_of};
use crate::http::codec::idempotency::IDEMPOTENCY_KEY;
use crate::http::codec::query::Params;
use crate::http::raw::text;
use crate::http::route::call::Call;
use crate::json::number::integer;
use crate::net::body::{Body, BodyRules, Inbound, Pieces, drop_refused, read as read_body};
use crate::net::respond;

/// Parameters of what is about an attachment.
pub(crate) const NAME_PARAMS: &[&str] = &["name"];
/// Parameters of a chunk.
pub(crate) const UPLOAD_PARAMS: &[&str] = &["upload"];
/// Digest of the whole content (RFC 9530 §3).
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const LOCK_TOKEN: HeaderName = HeaderName::from_static("sluice-lock-token");

/// `PATCH P/documents/{key}/uploads/raw`
pub(crate) async fn append(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let params = call.query(UPLOAD_PARAMS)?;
    expect_no_conditions(call.operation(), &call.head.headers)?;
    let upload = params
        .text("upload")
        .ok_or_else(|| Fault::missing("upload", "give the id with which the upload was begun"))?;
    let upload: UploadId = upload.parse()?;
    let offset = only(&call.head.headers, &UPLOAD_OFFSET)?.ok_or_else(|| {
        Fault::missing("upload-offset", "say how many bytes the upload has before this chunk")
    })?;
    let offset = text(offset).and_then(|text| integer(text, 0, ATTACHMENT_BYTES_MAX));
    let offset = offset.map_err(|fault| fault.inside("upload-offset"))?;
    let rules = BodyRules { bytes_max: UPLOAD_CHUNK_BYTES_MAX, timeout: call.context.options.body_timeout };
    let content = read_body(body, &call.head.headers, rules, &call.context.upload_budget).await?;
    let bytes = attachments::append(&call.permit, upload, offset, content.bytes()).await?;
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    response.headers_mut().insert(UPLOAD_OFFSET, bytes.into());
    Ok(response)
}

/// `PUT P/documents/{key}/attachments/raw`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let done = attach(call, body).await;
    if done.is_err() {
        drop_refused(body, &call.head.headers).await;
    }
    written(done)
}

async fn attach(call: &Call<'_>, body: &mut Inbound) -> Result<(DocumentVersion, bool), CallError> {
    let headers = &call.head.headers;
    expect_known(headers)?;
    let params = call.query(NAME_PARAMS)?;
    let name = name_of(&params)?;
    if headers.contains_key(CONTENT_RANGE) {
        // RFC 9110 §14.5.
        let reason = "a write replaces the attachment as a whole: send all of it, or begin an upload";
        return Err(Fault::invalid(reason).inside("content-range").into());
    }
    let mut when = read_conditions(headers)?;
    when.token = only(headers, &LOCK_TOKEN)?.map(text).transpose()?;
    let when = when.read()?;
    let sha256 = read_digest(headers)?;
    let content_type = only(headers, &CONTENT_TYPE)?.map(text).transpose()?.unwrap_or_default();
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    announced.map_or(Ok(()), check_size)?;
    let (context, bytes_max) = (call.context, UPLOAD_CHUNK_BYTES_MAX);
    let timeout = context.options.body_timeout;
    let mut pieces = Pieces::of(body, headers, bytes_max, timeout, &context.upload_budget)?;
    let mut attaching = Attaching::begin(&call.permit, name, content_type, &when).await?;
    let done = match fill(&mut attaching, &mut pieces).await {
        Ok(()) => attaching.commit(sha256, when).await,
        Err(error) => Err(error),
    };
    if done.is_err() {
        attaching.abandon().await;
    }
    done
}

/// Refuses headers that a write of an attachment would pass over.
fn expect_known(headers: &HeaderMap) -> Result<(), CallError> {
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let reason = "a PUT of an attachment is not known again by a key: repeat it with If-Match or If-None-Match, or \
                      use an upload, whose commit may be repeated";
        return Err(Fault::invalid(reason).inside(IDEMPOTENCY_KEY).into());
    }
    let unknown = |name: &&HeaderName| name.as_str().starts_with("sluice-") && *name != LOCK_TOKEN;
    match headers.keys().find(unknown) {
        Some(name) => Err(Fault::unknown("header", name.as_str(), &["sluice-lock-token"]).into()),
        None => Ok(()),
    }
}

/// Adds a body to an attachment as it comes.
async fn fill(attaching: &mut Attaching<'_>, pieces: &mut Pieces<'_>) -> Result<(), CallError> {
    while let Some(piece) = pieces.next().await? {
        attaching.add(&piece).await?;
    }
    Ok(())
}

fn name_of<'p>(params: &'p Params<'_>) -> Read<&'p str> {
    params.text("name").ok_or_else(|| Fault::missing("name", "say which attachment it is"))
}

/// The SHA-256 that a write tells of its bytes.
fn read_digest(headers: &HeaderMap) -> Read<Option<[u8; 32]>> {
    let Some(value) = only(headers, &REPR_DIGEST)? else { return Ok(None) };
    let digest =
        text(value)?.split(',').find_map(|one| one.trim().strip_prefix("sha-256=:")?.strip_suffix(':'));
    let bytes = digest.and_then(|digest| BASE64.decode(digest.as_bytes()).ok());
    let digest = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        Fault::invalid("expected the SHA-256 of the bytes as sha-256=:BASE64:").inside("repr-digest")
    });
    digest.map(Some)
}

/// `GET P/documents/{key}/attachments/raw`
pub(crate) async fn read(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query(NAME_PARAMS)?;
    let view = reading::find(&call.permit, Some(name_of(&params)?)).await?;
    let headers = &call.head.headers;
    if !is_wanted(headers, view.version) {
        let (key, version) = (call.name().to_owned(), view.version.version);
        return written(Err(Error::AttachmentChanged { key, name: view.name, version }.into()));
    }
    if is_known(headers, view.version) {
        let mut response = respond::empty(StatusCode::NOT_MODIFIED);
        put_etag(response.headers_mut(), view.version);
        return Ok(response);
    }
    // Ranges are for GET alone (RFC 9110 §14.2).
    let is_head = call.head.method == http::Method::HEAD;
    let asked = if is_head { None } else { asked_range(headers, view.version) };
    let range = range_of(asked, view.bytes);
    let (status, (from, to)) = match range {
        Ranged::Whole => (StatusCode::OK, (0, view.bytes)),
        Ranged::Part(from, to) => (StatusCode::PARTIAL_CONTENT, (from, to)),
        Ranged::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, (0, 0)),
    };
    let mut response = respond::foreign(bytes::Bytes::new(), Some(&view.content_type));
    *response.status_mut() = status;
    put_fields(response.headers_mut(), &view, range);
    response.headers_mut().insert(CONTENT_LENGTH, (to - from).into());
    // The answer to a HEAD has the length of a body, and none.
    let until = if is_head { from } else { to };
    call.in_flight.share.reserve(reading::memory(until - from))?;
    let broken_off = |error: CallError| io::Error::other(error.message().to_owned());
    *response.body_mut() = Body::stream(reading::stream(&call.permit, view, (from, until), broken_off)?);
    Ok(response)
}

/// The range that is asked for, unless it is one of another version (RFC 9110 §13.1.5).
fn asked_range(headers: &HeaderMap, version: DocumentVersion) -> Option<&str> {
    let is_same = headers.get(IF_RANGE).is_none_or(|tag| tag.as_bytes() == etag(version).as_bytes());
    headers.get(RANGE).filter(|_| is_same)?.to_str().ok()
}

fn put_fields(headers: &mut HeaderMap, view: &AttachmentView, range: Ranged) {
    put_etag(headers, view.version);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(HeaderName::from_static("sluice-version"), view.version.version.into());
    headers
        .insert(HeaderName::from_static("sluice-changed-at-ms"), (view.version.changed_at_us / 1_000).into());
    let digest = format!("sha-256=:{}:", BASE64.encode(&view.sha256));
    let content_range = match range {
        Ranged::Whole => None,
        Ranged::Part(from, to) => Some(format!("bytes {from}-{}/{}", to - 1, view.bytes)),
        Ranged::Nothing => Some(format!("bytes */{}", view.bytes)),
    };
    for (name, value) in [(REPR_DIGEST, Some(digest)), (CONTENT_RANGE, content_range)] {
        if let Some(Ok(value)) = value.map(|value| HeaderValue::from_str(&value)) {
            headers.insert(name, value);
        }
    }
}
