//! The web console: its files, and the cookie of who has signed in.
//!
//! The cookie holds the caller's token, so it ends with the token, on each node of a cluster. Scripts cannot
//! read it (`HttpOnly`), browsers send it with requests of the server's own pages alone (`SameSite=Strict`),
//! and it counts for nothing in a request that a page of another origin has made.

use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, ETAG, HeaderName, HeaderValue,
    IF_NONE_MATCH, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::response::Response;
use http::{Method, StatusCode};
use serde::Deserialize;
use sluice_calls::permit::{identify, require_known};
use sluice_calls::{CallError, Fault, Operation};

use super::methods::other_method;
use crate::net::arrived::Arrived;
use crate::net::body::{Body, BodyRules, Inbound, read};
use crate::net::head::hosts::SEC_FETCH_SITE;
use crate::net::options::SMALL_BODY_BYTES_MAX;
use crate::net::respond;

/// Address of the first page.
const HOME: &str = "/console/";
/// Address of the cookie: POST signs in, DELETE signs out.
const SESSION: &str = "/console/session";
/// The cookie.
const COOKIE_NAME: &str = "sluice-token";
/// The longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 1_024;

/// The token with which a browser signs in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// The answer to a request that concerns the console; `None`: it does not.
///
/// # Errors
/// `unauthenticated`, `invalid_argument`: the token to sign in with.
pub(crate) async fn answer(
    arrived: &Arrived,
    body: &mut Inbound,
) -> Result<Option<Response<Body>>, CallError> {
    let head = &arrived.head;
    let path = head.uri.path();
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    if path == SESSION {
        return match head.method {
            Method::POST => sign_in(arrived, body).await.map(Some),
            Method::DELETE => Ok(Some(set_cookie(head, "", "; Max-Age=0"))),
            _ => Ok(Some(other_method(head, "POST, DELETE"))),
        };
    }
    match path.strip_prefix(HOME) {
        Some(file) if is_read => Ok(asset(head, file)),
        None if is_read && (path == "/console" || path == "/" && accepts_pages(head)) => Ok(Some(to_home())),
        _ => Ok(None),
    }
}

/// Value of `Authorization` that a request has, or that its cookie stands for.
pub(crate) fn authorization(head: &Parts) -> Option<HeaderValue> {
    if let Some(given) = head.headers.get(AUTHORIZATION) {
        return Some(given.clone());
    }
    let cookies = head.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let token = cookies.flat_map(|value| value.split("; ")).find_map(|cookie| {
        let (name, value) = cookie.split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    })?;
    let is_own = head.headers.get(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin");
    is_own.then(|| bearer(token)).flatten()
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let fits = !token.is_empty() && token.len() <= TOKEN_BYTES_MAX && token.bytes().all(is_token);
    fits.then(|| HeaderValue::from_str(&format!("Bearer {token}")).ok()).flatten()
}

async fn sign_in(arrived: &Arrived, body: &mut Inbound) -> Result<Response<Body>, CallError> {
    let Arrived { context, peer, head, .. } = arrived;
    let rules = BodyRules { bytes_max: SMALL_BODY_BYTES_MAX, timeout: context.options.body_timeout };
    let upload = read(&mut *body, &head.headers, rules, &context.body_budget).await?;
    let invalid = |reason: &str| Fault::invalid(reason).inside("token");
    let SignIn { token } = serde_json::from_slice(upload.bytes())
        .map_err(|_| Fault::invalid("expected {\"token\": \"...\"}"))?;
    let authorization = bearer(token.trim()).ok_or_else(|| invalid("this is not the text of a token"))?;
    let path = head.uri.path();
    let caller = identify(peer, Operation::WhoAmI, Some(authorization.as_bytes()), path)?;
    if peer.is_asked() {
        require_known(peer, &caller, path)?;
    }
    Ok(set_cookie(head, token.trim(), ""))
}

fn set_cookie(head: &Parts, value: &str, more: &str) -> Response<Body> {
    let is_tls = head.headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie = format!("{COOKIE_NAME}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}");
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn accepts_pages(head: &Parts) -> bool {
    let mut accepted = head.headers.get_all(ACCEPT).iter();
    accepted.any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}

fn to_home() -> Response<Body> {
    let mut response = respond::empty(StatusCode::FOUND);
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(HOME));
    response
}

/// A file, unless there is none.
fn asset(head: &Parts, path: &str) -> Option<Response<Body>> {
    let file = sluice_console::asset(path)?;
    let tag = HeaderValue::from_str(&file.etag).ok()?;
    let mut response = match head.headers.get(IF_NONE_MATCH) {
        Some(known) if *known == tag => respond::empty(StatusCode::NOT_MODIFIED),
        _ => respond::content(StatusCode::OK, file.content_type, file.bytes.into_owned()),
    };
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, sluice_console::CONTENT_SECURITY_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        // Asked for again each time: another program may have other files.
        (CACHE_CONTROL, "no-cache"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().insert(ETAG, tag);
    Some(response)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder();
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_cookie_counts_for_the_own_pages_alone() {
        let found = |fields: &[(&str, &str)]| {
            authorization(&head(fields)).map(|value| value.to_str().unwrap().to_owned())
        };
        let cookie = ("cookie", "a=b; sluice-token=abc.D_9");
        assert_eq!(found(&[cookie]), Some("Bearer abc.D_9".to_owned()));
        assert_eq!(found(&[cookie, ("sec-fetch-site", "same-origin")]), Some("Bearer abc.D_9".to_owned()));
        for site in ["same-site", "cross-site", "none"] {
            assert_eq!(found(&[cookie, ("sec-fetch-site", site)]), None, "{site}");
        }
        assert_eq!(found(&[cookie, ("authorization", "Bearer x")]), Some("Bearer x".to_owned()));
        for bad in ["", "sluice-token=", "sluice-token=a b", "sluice-token=\"a\"", "other=a"] {
            assert_eq!(found(&[("cookie", bad)]), None, "{bad}");
        }
    }

    #[test]
    fn a_cookie_over_tls_is_for_tls_alone() {
        let set = |origin| {
            let response = set_cookie(&head(&[("origin", origin)]), "abc", "");
            response.headers()[SET_COOKIE].to_str().unwrap().to_owned()
        };
        assert_eq!(set("http://localhost:7070"), "sluice-token=abc; Path=/; HttpOnly; SameSite=Strict");
        assert!(set("https://localhost:7070").ends_with("; Secure"));
    }
}
