//! The check of `Origin`: pages of which sites may send requests from a browser.

use http::header::ORIGIN;
use http::request::Parts;
use sluice_calls::CallError;

use super::hosts::host_of;
use super::well_formed::given_twice;

/// A page of another site may make a browser send requests here; without this check a visit to it could fill
/// queues.
pub(crate) fn check(head: &Parts) -> Result<(), CallError> {
    let mut origins = head.headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    if origins.next().is_some() {
        return Err(given_twice("Origin").into());
    }
    let origin = origin.to_str().unwrap_or_default();
    let host = host_of(head);
    match origin.split_once("://") {
        Some((_, authority)) if !host.is_empty() && authority.eq_ignore_ascii_case(host) => Ok(()),
        _ => {
            let origin: String = origin.chars().take(128).collect();
            let message =
                format!("a page of {origin:?} may not call {host:?}: only pages of this server may");
            Err(CallError::new("forbidden_origin", message).with(|o| o.text("origin", &origin)))
        }
    }
}
