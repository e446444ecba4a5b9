//! The content of a document as the body; the fields are headers.

use http::StatusCode;
use http::header::{
    CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH,
};
use http::response::Response;
use sluice_calls::documents::patch::Change;
use sluice_calls::documents::{self, Names, VERSION_MAX, When, Writing, Written};
use sluice_calls::unary::Done;
use sluice_calls::{CallError, Fault, Operation, Read};
use sluice_engine::Error;
use sluice_engine::blob::MessageBlob;
use sluice_engine::documents::{DocumentVersion, DocumentView};
use sluice_engine::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_HISTORY_MAX, DOCUMENT_TTL_MS_MAX};

use crate::http::codec::idempotency::{IDEMPOTENCY_KEY, idempotency_key};
use crate::http::raw::{put_pairs, text};
use crate::http::route::call::Call;
use crate::json::Json;
use crate::json::number::integer;
use crate::net::body::{Body, Inbound};
use crate::net::errors::HttpError as _;
use crate::net::respond;

/// The conditions of a write, by their headers.
const NAMES: Names = Names {
    version: "if-match",
    etag: "if-match",
    exists: "if-match",
    absent: "if-none-match",
    token: "sluice-lock-token",
};
/// Parameters of a read.
pub(crate) const READ_PARAMS: &[&str] = &["version"];
/// Headers of a write, besides those of HTTP.
const WRITE_HEADERS: &[&str] =
    &["sluice-ttl-ms", "sluice-history", "sluice-lock-token", "sluice-attribute-<name>"];
/// Media type of a merge patch (RFC 7396 §4).
const MERGE_PATCH: &str = "application/merge-patch+json";
/// Media type of a JSON patch (RFC 6902 §6).
const JSON_PATCH: &str = "application/json-patch+json";
/// Prefix of the name of an attribute's header.
const ATTRIBUTE_PREFIX: &str = "sluice-attribute-";
/// The attributes that no header of HTTP can carry, as base64 of a JSON object.
const ATTRIBUTES_BASE64: HeaderName = HeaderName::from_static("sluice-attributes-base64");

/// `PUT P/documents/{key}/raw`
pub(crate) async fn put(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let headers = &call.head.headers;
    if headers.contains_key(CONTENT_RANGE) {
        // RFC 9110 §14.5.
        let reason = "a write replaces the content as a whole: send all of it";
        return Err(Fault::invalid(reason).inside("content-range").into());
    }
    let mut attributes = Vec::new();
    let writing = read_head(headers, &mut attributes)?;
    let upload = call.upload(body, DOCUMENT_BYTES_MAX).await?;
    let writing = Writing { content: upload.bytes(), attributes: &attributes, ..writing };
    let request = documents::request_of(&call.permit, &writing, request_id(headers)?);
    written(documents::write(&call.permit, &writing, request).await)
}

/// `PATCH P/documents/{key}/raw`
pub(crate) async fn patch(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let headers = &call.head.headers;
    let mut attributes = Vec::new();
    let Writing { when, content_type, ttl_ms, history, .. } = read_head(headers, &mut attributes)?;
    if ttl_ms != Some(0) || history.is_some() || when.absent || !attributes.is_empty() {
        let reason = "a patch takes If-Match and Sluice-Lock-Token, and keeps the rest of the document";
        return Err(Fault::invalid(reason).into());
    }
    let upload = call.upload(body, DOCUMENT_BYTES_MAX).await?;
    let inside = |fault: Box<Fault>| fault.inside("body");
    let change = match content_type.split(';').next().unwrap_or_default().trim() {
        MERGE_PATCH => Change::merge(&call.permit, upload.bytes(), 0),
        JSON_PATCH => Change::patch(&call.permit, upload.bytes(), 0),
        other => return Err(Fault::one_of(&[MERGE_PATCH, JSON_PATCH], other).inside("content-type").into()),
    };
    let change = change.map_err(inside)?;
    let patched = documents::patch::patch(&call.permit, &change, when, request_id(headers)?).await;
    written(patched.map(|version| (version, false)))
}

fn request_id(headers: &HeaderMap) -> Result<Option<&str>, CallError> {
    let id = std::str::from_utf8(idempotency_key(headers)?).unwrap_or_default();
    Ok(Some(id).filter(|id| !id.is_empty()))
}

/// The answer to a write.
pub(super) fn written(done: Result<(DocumentVersion, bool), CallError>) -> Result<Response<Body>, CallError> {
    let (version, created) = match done {
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
    let when = read_conditions(headers)?;
    let mut writing = Writing { when, ttl_ms: Some(0), ..Writing::default() };
    if let Some(value) = only(headers, &CONTENT_TYPE)? {
        writing.content_type = text(value).map_err(|fault| fault.inside("content-type"))?;
    }
    for (header, value) in headers {
        let name = header.as_str();
        if !name.starts_with("sluice-") {
            continue;
        }
        only(headers, header)?;
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
        "sluice-ttl-ms" => writing.ttl_ms = Some(integer(value, 1, DOCUMENT_TTL_MS_MAX)?),
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

/// The value of a header, which may be given once.
pub(super) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Read<Option<&'h HeaderValue>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Fault::new("duplicate_field", "the header is given twice").inside(name.as_str()));
    }
    Ok(first)
}

/// Refuses conditions in the headers of a call of documents that would pass them over.
pub(crate) fn expect_no_conditions(operation: Operation, headers: &HeaderMap) -> Result<(), CallError> {
    let Some(place) = place_of_conditions(operation) else { return Ok(()) };
    let takes_keys = matches!(place, Conditions::Fields(_)) && headers.contains_key(IDEMPOTENCY_KEY);
    let Some(name) = condition(headers).or(takes_keys.then_some(IDEMPOTENCY_KEY)) else { return Ok(()) };
    Err(match place {
        Conditions::Fields(fields) => is_a_field(name, fields),
        Conditions::Elsewhere(reason) => Fault::invalid(reason).inside(name).into(),
    })
}

/// The place where a call takes its conditions, if not in headers.
enum Conditions {
    /// Its fields, which are named.
    Fields(&'static str),
    /// Another call, as the reason says.
    Elsewhere(&'static str),
}

fn place_of_conditions(operation: Operation) -> Option<Conditions> {
    use Operation as O;
    Some(match operation {
        O::DocumentPut => Conditions::Fields("if_etag, if_exists, if_absent, token, request_id"),
        O::DocumentPatch => Conditions::Fields("if_etag, token, request_id"),
        O::UploadCommit => Conditions::Fields("if_etag, if_exists, if_absent, token"),
        O::DocumentDelete | O::AttachmentDelete => Conditions::Fields("if_etag, token"),
        O::DocumentShow | O::AttachmentRead => Conditions::Elsewhere(
            "this call takes no condition: that whose path ends in /raw takes this header",
        ),
        O::UploadBegin | O::UploadChunk | O::UploadRaw | O::UploadEnd => {
            Conditions::Elsewhere("this call takes no condition: the commit of the upload does, as fields")
        }
        _ => return None,
    })
}

/// The same for a transaction, which has an idempotency key in the headers.
pub(crate) fn expect_no_conditions_of_operations(headers: &HeaderMap) -> Result<(), CallError> {
    let fields = "if_etag, if_exists, if_absent and token of an operation";
    condition(headers).map_or(Ok(()), |name| Err(is_a_field(name, fields)))
}

/// The first header that is a condition.
fn condition(headers: &HeaderMap) -> Option<&'static str> {
    ["if-match", "if-none-match", "sluice-lock-token"].into_iter().find(|name| headers.contains_key(*name))
}

fn is_a_field(header: &str, fields: &str) -> CallError {
    let reason = format!(
        "this call takes its conditions as fields ({fields}); only calls whose path ends in /raw take this header"
    );
    Fault::invalid(reason).inside(header).into()
}

/// Reads If-Match and If-None-Match (RFC 9110 §13.1).
pub(super) fn read_conditions(headers: &HeaderMap) -> Read<When<'_>> {
    let mut when = When { names: NAMES, ..When::default() };
    let given = |name| only(headers, &name).map(|value| value.map(text).transpose())?;
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
    let headers = &call.head.headers;
    let is_read = |view: &DocumentView| is_wanted(headers, view.version) && !is_known(headers, view.version);
    let (view, bytes) = documents::read(&call.permit, version, 1, is_read).await?;
    let Some(bytes) = bytes else {
        if !is_wanted(headers, view.version) {
            let changed = Error::DocumentChanged { key: view.key, version: view.version.version };
            return written(Err(changed.into()));
        }
        let mut response = respond::empty(StatusCode::NOT_MODIFIED);
        put_etag(response.headers_mut(), view.version);
        return Ok(response);
    };
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
    put_pairs(headers, ATTRIBUTE_PREFIX, ATTRIBUTES_BASE64, is_lower_case, blob.headers());
    Ok(response)
}

/// True if a header carries the name of an attribute unchanged, so that what is read and put again stays the
/// same.
fn is_lower_case(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// True if the caller has this version: If-None-Match names its tag, or any (RFC 9110 §13.1.2).
pub(super) fn is_known(headers: &HeaderMap, version: DocumentVersion) -> bool {
    let tag = etag(version);
    tags(headers, IF_NONE_MATCH).any(|one| one.strip_prefix("W/").unwrap_or(one) == tag || one == "*")
}

/// True if the caller takes this version: If-Match is not there, or names its tag, or any (RFC 9110 §13.1.1).
pub(super) fn is_wanted(headers: &HeaderMap, version: DocumentVersion) -> bool {
    let tag = etag(version);
    !headers.contains_key(IF_MATCH) || tags(headers, IF_MATCH).any(|one| one == tag || one == "*")
}

/// The entity tags of a header, in order.
fn tags(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

pub(super) fn etag(version: DocumentVersion) -> String {
    format!("\"{}\"", version.revision)
}

pub(super) fn put_etag(headers: &mut HeaderMap, version: DocumentVersion) {
    if let Ok(value) = HeaderValue::from_str(&etag(version)) {
        headers.insert(ETAG, value);
    }
}
