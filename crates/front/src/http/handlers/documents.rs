//! The content of a document as the body; the fields are headers.

use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use http::response::Response;
use sluice_calls::documents::{self, VERSION_MAX, When, Writing, Written};
use sluice_calls::unary::Done;
use sluice_calls::{CallError, Fault, Read};
use sluice_engine::blob::MessageBlob;
use sluice_engine::documents::{DocumentVersion, DocumentView};
use sluice_engine::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_HISTORY_MAX, DOCUMENT_TTL_MS_MAX};

use crate::http::codec::idempotency::idempotency_key;
use crate::http::raw::{put_pairs, text};
use crate::http::route::call::Call;
use crate::json::Json;
use crate::json::number::integer;
use crate::net::body::{Body, Inbound};
use crate::net::errors::HttpError as _;
use crate::net::respond;

/// Parameters of a read.
pub(crate) const READ_PARAMS: &[&str] = &["version"];
/// Headers of a write, besides those of HTTP.
const WRITE_HEADERS: &[&str] =
    &["sluice-ttl-ms", "sluice-history", "sluice-lock-token", "sluice-attribute-<name>"];
/// Prefix of the name of an attribute's header.
const ATTRIBUTE_PREFIX: &str = "sluice-attribute-";
/// The attributes that no header of HTTP can carry, as base64 of a JSON object.
const ATTRIBUTES_BASE64: HeaderName = HeaderName::from_static("sluice-attributes-base64");

/// `PUT P/documents/{key}/raw`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let headers = &call.head.headers;
    let mut attributes = Vec::new();
    let mut writing = read_head(headers, &mut attributes)?;
    let upload = call.upload(body, DOCUMENT_BYTES_MAX).await?;
    let request_id = std::str::from_utf8(idempotency_key(headers)?).unwrap_or_default();
    writing.request_id = Some(request_id).filter(|id| !id.is_empty());
    (writing.content, writing.attributes) = (upload.bytes(), &attributes);
    let (version, created) = match documents::write(&call.permit, &writing).await {
        Ok(written) => written,
        Err(error) if error.code() == "version_mismatch" => {
            // RFC 9110 §13.1.1.
            let mut response = error.into_response();
            *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            return Ok(response);
        }
        Err(error) => return Err(error),
    };
    let mut response = Response::from(Json::of(&Done::made(Written::from(version), created))?);
    put_etag(response.headers_mut(), version);
    Ok(response)
}

/// Reads the fields of a document from headers; its attributes go into `attributes`.
fn read_head<'h>(headers: &'h HeaderMap, attributes: &mut Vec<(&'h str, &'h str)>) -> Read<Writing<'h>> {
    let mut writing = Writing { when: read_conditions(headers)?, ..Writing::default() };
    if let Some(value) = headers.get(CONTENT_TYPE) {
        writing.content_type = text(value).map_err(|fault| fault.inside("content-type"))?;
    }
    for (name, value) in headers {
        let name = name.as_str();
        if !name.starts_with("sluice-") {
            continue;
        }
        if headers.get_all(name).iter().nth(1).is_some() {
            return Err(Fault::new("duplicate_field", "the header is given twice").inside(name));
        }
        read_field(&mut writing, attributes, name, value).map_err(|fault| fault.inside(name))?;
    }
    Ok(writing)
}

fn read_field<'h>(
    writing: &mut Writing<'h>,
    attributes: &mut Vec<(&'h str, &'h str)>,
    name: &'h str,
    value: &'h HeaderValue,
) -> Read<()> {
    let value = text(value)?;
    match name {
        "sluice-ttl-ms" => writing.ttl_ms = integer(value, 1, DOCUMENT_TTL_MS_MAX)?,
        "sluice-history" => writing.history = Some(integer(value, 0, DOCUMENT_HISTORY_MAX.into())? as u16),
        "sluice-lock-token" => writing.when.token = Some(value),
        _ => match name.strip_prefix(ATTRIBUTE_PREFIX) {
            Some(name) if !name.is_empty() => attributes.push((name, value)),
            _ => {
                let unknown = Fault::unknown("header", name, WRITE_HEADERS);
                return Err(Box::new(Fault { field: String::new(), ..*unknown }));
            }
        },
    }
    Ok(())
}

/// Reads If-Match and If-None-Match (RFC 9110 §13.1).
fn read_conditions(headers: &HeaderMap) -> Read<When<'_>> {
    let mut when = When::default();
    let given = |name: HeaderName| headers.get(name).map(text).transpose();
    match given(IF_MATCH).map_err(|fault| fault.inside("if-match"))? {
        None => {}
        Some("*") => when.exists = true,
        Some(tag) => when.etag = Some(strong(tag).map_err(|fault| fault.inside("if-match"))?),
    }
    match given(IF_NONE_MATCH).map_err(|fault| fault.inside("if-none-match"))? {
        None => {}
        Some("*") => when.absent = true,
        Some(_) => return Err(Fault::invalid("a write knows only *").inside("if-none-match")),
    }
    Ok(when)
}

/// The digits of one strong entity tag (RFC 9110 §8.8.3).
fn strong(tag: &str) -> Read<&str> {
    let digits = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    digits.filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(
        || Fault::invalid(format!("{tag:?} is no ETag of a document: give one as it was answered")),
    )
}

/// `GET P/documents/{key}/raw`
pub(crate) async fn read(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query(READ_PARAMS)?;
    let version = Some(params.integer("version", 1, VERSION_MAX, 0)?).filter(|version| *version > 0);
    let (view, bytes) = documents::read(&call.permit, version, 1).await?;
    if is_known(&call.head.headers, &view) {
        let mut response = respond::empty(StatusCode::NOT_MODIFIED);
        put_etag(response.headers_mut(), view.version);
        return Ok(response);
    }
    let Some(blob) = MessageBlob::parse(&bytes) else { return Ok(respond::foreign(bytes, None)) };
    let mut response = respond::foreign(bytes.slice_ref(blob.payload), Some(blob.content_type));
    let headers = response.headers_mut();
    put_etag(headers, view.version);
    headers.insert(HeaderName::from_static("sluice-version"), view.version.version.into());
    headers
        .insert(HeaderName::from_static("sluice-changed-at-ms"), (view.version.changed_at_us / 1_000).into());
    if let Some(at_us) = view.expires_at_us {
        headers.insert(HeaderName::from_static("sluice-expires-at-ms"), (at_us / 1_000).into());
    }
    put_pairs(headers, ATTRIBUTE_PREFIX, ATTRIBUTES_BASE64, blob.headers());
    Ok(response)
}

/// True if the caller has this version: If-None-Match names its tag, or any.
fn is_known(headers: &HeaderMap, view: &DocumentView) -> bool {
    let tag = etag(view.version);
    let is_it = |one: &str| one.strip_prefix("W/").unwrap_or(one) == tag || one == "*";
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| is_it(one.trim()))
}

fn etag(version: DocumentVersion) -> String {
    format!("\"{}\"", version.revision)
}

fn put_etag(headers: &mut HeaderMap, version: DocumentVersion) {
    if let Ok(value) = HeaderValue::from_str(&etag(version)) {
        headers.insert(ETAG, value);
    }
}
