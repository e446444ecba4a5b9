//! Tokens, the audit log, and who somebody is: translations of what the access module says.

use http::StatusCode;
use http::response::Response;
use sluice_calls::CallError;
use sluice_calls::access::{AUDIT_PAGE_MAX, NewToken, Proof, Scope, Secret, Token};

use super::changes::{text, texts};
use super::messages::read_cursor;
use crate::http::route::call::Call;
use crate::json::{Fault, Object, Read, Reader, object, push_text};
use crate::net::arrived::Made;
use crate::net::body::{Body, Inbound};
use crate::net::context::now_ms;
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Fields of a token to make.
pub(crate) const TOKEN_FIELDS: &[&str] = &["name", "scopes", "ttl_ms", "expires_at_ms"];
/// Parameters of the audit log.
pub(crate) const AUDIT_PARAMS: &[&str] = &["cursor", "limit"];
const PAGE_DEFAULT: u64 = 100;
/// Longest life of a token that ends, in milliseconds: a hundred years.
const TTL_MS_MAX: u64 = 100 * 366 * 86_400_000;

/// `GET /v1/tokens`
pub(crate) fn list(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let tokens = call.context.options.access.tokens();
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("tokens", &tokens, |out, token| object(out, |o| write_token(o, token)));
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `POST /v1/tokens`
pub(crate) async fn create(call: &Call<'_>, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let upload = call.json(body, SMALL_BODY_BYTES_MAX).await?;
    let new = read_token(upload.bytes())?;
    let access = &call.context.options.access;
    let (token, Secret(secret)) = access.token_create(call.node(), new, call.caller.name()).await?;
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.text("token", &secret);
        write_token(o, &token);
    });
    let mut response = respond::json(StatusCode::CREATED, out);
    response.extensions_mut().insert(Made(format!("{}/{}", call.head.uri.path(), token.name)));
    Ok(response)
}

/// `DELETE /v1/tokens/{token}`
pub(crate) async fn revoke(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let token = call.context.options.access.token_revoke(call.node(), call.name).await?;
    let mut out = Vec::new();
    object(&mut out, |o| write_token(o, &token));
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET /v1/admin/audit`
pub(crate) async fn audit(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    let params = call.query()?;
    let limit = params.integer("limit", 1, AUDIT_PAGE_MAX as u64, PAGE_DEFAULT)? as usize;
    let cursor = read_cursor(params.text("cursor"))?;
    let (entries, next) = call.context.options.access.audit(call.node(), cursor, limit).await?;
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.list("entries", &entries, |out, entry| out.extend_from_slice(entry.0.to_string().as_bytes()));
        if let Some(next) = next {
            o.text("next", &next.to_string());
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

/// `GET /v1/whoami`
pub(crate) fn whoami(call: &Call<'_>) -> Result<Response<Body>, CallError> {
    call.require_caller()?;
    let mut out = Vec::new();
    object(&mut out, |o| {
        o.text("name", call.caller.name());
        if let Some(identity) = call.caller.identity() {
            o.text(
                "proof",
                match identity.proof() {
                    Proof::Certificate(_) => "certificate",
                    Proof::Token(_) => "token",
                },
            );
            o.list("grants", identity.grants(), push_text);
        }
    });
    Ok(respond::json(StatusCode::OK, out))
}

fn read_token(body: &[u8]) -> Read<NewToken> {
    let mut reader = Reader::new(body)?;
    let (mut name, mut scopes, mut ttl_ms, mut at_ms) = (None, Vec::new(), None, None);
    reader.object(TOKEN_FIELDS, |reader, field| {
        match field {
            "name" => name = Some(text(reader)?),
            "scopes" => scopes = read_scopes(reader)?,
            "ttl_ms" => ttl_ms = Some(reader.integer(1, TTL_MS_MAX)?),
            _ => at_ms = Some(reader.integer(1, u64::MAX)?),
        }
        Ok(())
    })?;
    reader.finish()?;
    if ttl_ms.is_some() && at_ms.is_some() {
        return Err(Fault::conflict("ttl_ms", "expires_at_ms"));
    }
    let name = name.ok_or_else(|| Fault::missing("name", "the identity that the token stands for"))?;
    Ok(NewToken { name, scopes, expires_at_ms: at_ms.or(ttl_ms.map(|ttl_ms| now_ms() + ttl_ms)) })
}

fn read_scopes(reader: &mut Reader<'_>) -> Read<Vec<Scope>> {
    let expected = "expected sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin";
    let mut scopes = Vec::new();
    for (at, text) in texts(reader)?.into_iter().enumerate() {
        let scope = Scope::from_uri(&text).unwrap_or_else(|| Err(expected.to_owned()));
        let scope = scope.and_then(Scope::expect_useful);
        scopes.push(scope.map_err(|reason| Fault::invalid(reason).at(at))?);
    }
    Ok(scopes)
}

fn write_token(o: &mut Object<'_>, token: &Token) {
    o.text("id", &token.id);
    o.text("name", &token.name);
    o.list("scopes", &token.scopes, |out, scope| push_text(out, &scope.to_string()));
    o.number("created_at_ms", token.created_at_ms);
    o.text("created_by", &token.created_by);
    if let Some(at_ms) = token.expires_at_ms {
        o.number("expires_at_ms", at_ms);
    }
    if token.last_used_ms() > 0 {
        o.number("last_used_at_ms", token.last_used_ms());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_and_mistakes_are_named() {
        let new =
            read_token(br#"{"name":"ci","scopes":["sluice://ns/shop?perm=rw"],"expires_at_ms":9}"#).unwrap();
        assert_eq!((new.name.as_str(), new.scopes.len(), new.expires_at_ms), ("ci", 1, Some(9)));
        for (body, code, field) in [
            (r#"{"scopes":[]}"#, "missing_field", "name"),
            (r#"{"name":"a","scopes":["x"]}"#, "invalid_argument", "scopes[0]"),
            (r#"{"name":"a","scopes":["sluice://ns/a?perm=z"]}"#, "invalid_argument", "scopes[0]"),
            (r#"{"name":"a","ttl_ms":1,"expires_at_ms":2}"#, "conflicting_fields", ""),
            (r#"{"name":"a","ttl_ms":0}"#, "invalid_argument", "ttl_ms"),
            (r#"{"name":"a","role":"x"}"#, "unknown_field", "role"),
        ] {
            let fault = read_token(body.as_bytes()).unwrap_err();
            assert_eq!((fault.code, fault.field.as_str()), (code, field), "{body}: {}", fault.reason);
        }
    }
}
