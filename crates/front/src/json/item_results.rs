//! The results of a list of items, each with its error.

use http::StatusCode;
use sluice_calls::error::Details;
use sluice_engine::Error;

use super::error_details::write_details;
use super::{Json, object, push_list};

/// Appends the result of one item: `{"ok":true}`, or with the error.
pub(crate) fn push_result(out: &mut Vec<u8>, result: &Result<(), Error>) {
    match result {
        Ok(()) => out.extend_from_slice(br#"{"ok":true}"#),
        Err(Error::AlreadySettled { .. }) => {
            out.extend_from_slice(br#"{"ok":true,"already_settled":true}"#);
        }
        Err(error) => object(out, |o| {
            o.boolean("ok", false);
            o.object("error", |o| {
                o.text("code", error.code());
                o.text("message", &error.to_string());
                o.object("details", |o| write_details(&Details::of(error), o));
            });
        }),
    }
}

/// The answer to a list of items.
pub(crate) fn results(results: &[Result<(), Error>]) -> Json {
    let mut out = Vec::with_capacity(16 + results.len() * 12);
    object(&mut out, |o| push_list(o.name("results"), results, push_result));
    Json::new(StatusCode::OK, out)
}
