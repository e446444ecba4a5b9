//! Names by which a server may be called while callers need not authenticate.
//!
//! A page that somebody visits can have its own name stand for this machine for a while (DNS rebinding). For
//! the browser the page and this server are one then, and it lets the page read and write here. What gives it
//! away is the name.

use std::net::IpAddr;

use http::header::{HOST, HeaderName, ORIGIN};
use http::request::Parts;
use sluice_calls::CallError;
use sluice_calls::access::Access;

pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Longest name that an error repeats, in characters.
const SHOWN_CHARS_MAX: usize = 128;

/// Names of a server, beside addresses, `localhost` and what ends in `.localhost`.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// `None`: any name will do.
    names: Option<Vec<String>>,
    pages_only: bool,
}

impl Hosts {
    /// Any name will do.
    pub fn any() -> Hosts {
        Hosts::default()
    }

    /// Every request has to call it by one of these.
    pub fn of_all(names: Vec<String>) -> Hosts {
        Hosts { names: Some(names), pages_only: false }
    }

    /// The same names, checked only for requests that a browser marks as sent by a page; others may use any
    /// name.
    pub fn of_pages(names: Vec<String>) -> Hosts {
        Hosts { names: Some(names), pages_only: true }
    }

    fn admits(&self, authority: &str, is_page: impl FnOnce() -> bool) -> bool {
        let Some(names) = &self.names else { return true };
        is_own(names, authority) || (self.pages_only && !is_page())
    }
}

/// The name and port by which a request addresses the server; empty: none.
pub(crate) fn host_of(head: &Parts) -> &str {
    match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default(),
    }
}

/// Checks the name by which a request addresses the server.
pub(crate) fn check(hosts: &Hosts, access: &Access, head: &Parts) -> Result<(), CallError> {
    let is_page = || head.headers.contains_key(ORIGIN) || head.headers.contains_key(SEC_FETCH_SITE);
    match admits(hosts, access, host_of(head), is_page) {
        true => Ok(()),
        false => Err(refusal(host_of(head))),
    }
}

/// True when a request may call the server so: where callers have to say who they are, any name will do.
pub(crate) fn admits(
    hosts: &Hosts,
    access: &Access,
    authority: &str,
    is_page: impl FnOnce() -> bool,
) -> bool {
    hosts.admits(authority, is_page) || access.asks()
}

#[cold]
fn refusal(host: &str) -> CallError {
    let host: String = host.chars().take(SHOWN_CHARS_MAX).collect();
    let message = format!(
        "{host:?} is not a name of this server, which takes other names only when callers authenticate: use its \
         address or localhost, start it with that name in --listen, or create a token"
    );
    CallError::new("forbidden_origin", message).with(|o| o.text("host", &host))
}

fn is_own(names: &[String], authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        // An IPv6 address, which has no name to be mistaken.
        Some(rest) => return rest.split_once(']').is_some_and(|(ip, _)| ip.parse::<IpAddr>().is_ok()),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_local = || {
        let last = host.rsplit('.').next().unwrap_or_default();
        last.eq_ignore_ascii_case("localhost")
    };
    // Nothing is called by who speaks HTTP/1.0, which no browser does.
    host.is_empty()
        || host.parse::<IpAddr>().is_ok()
        || is_local()
        || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_told_from_others() {
        let names = ["queue.example.org".to_owned()];
        for own in [
            "127.0.0.1:7070",
            "[::1]:7070",
            "10.0.0.9",
            "localhost:7070",
            "LOCALHOST.",
            "a.localhost:1",
            "Queue.Example.org:7070",
            "",
        ] {
            assert!(is_own(&names, own), "{own}");
        }
        for other in [
            "evil.example:7070",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "[evil]:1",
            "example.org",
        ] {
            assert!(!is_own(&names, other), "{other}");
        }
    }
}
