//! Tokens, the audit log, and who somebody is.

use sluice_calls::access::AUDIT_PAGE_MAX;

use super::{Content, Description, Kind, PLAIN, answer, ok, query, required};
use crate::http::route::table::Operation;

pub(super) fn describe(operation: Operation) -> Description {
    match operation {
        Operation::TokenList => Description {
            summary: "List tokens, without their secrets",
            answers: vec![ok("TokenList")],
            ..PLAIN
        },
        Operation::TokenCreate => Description {
            summary: "Make a token",
            about: "Its text is in this answer and nowhere else: only a hash of it is kept. From the first identity on, \
                every caller is asked who they are.",
            request: required("TokenNew"),
            answers: vec![answer(201, "Made", Content::Json("TokenMade"))],
            ..PLAIN
        },
        Operation::TokenRevoke => Description {
            summary: "Revoke a token, by its id or name",
            about: "It counts no more from here on, on open connections too.",
            answers: vec![ok("Token")],
            ..PLAIN
        },
        Operation::Audit => Description {
            summary: "Read the audit log, the oldest entries first",
            about: "Administrative acts and changes of queues and messages by hand, also those that were refused, since \
                callers are asked who they are.",
            parameters: vec![
                query("limit", Kind::Integer(1, AUDIT_PAGE_MAX as u64), "Most entries; default 100"),
                query("cursor", Kind::Text, "The `next` of the page before"),
            ],
            answers: vec![ok("Audit")],
            ..PLAIN
        },
        _ => Description {
            summary: "Who you are to this server, and what you have",
            answers: vec![ok("WhoAmI")],
            ..PLAIN
        },
    }
}
