//! Operations on the server itself.

use super::parts::{Answer, Content, Description, PLAIN, answer};

/// Answer with a document whose tag stands in `If-None-Match`.
const UNCHANGED: Answer = Answer { status: 304, about: "The client has it already", content: None };

pub(super) fn backup() -> Description {
    Description { answers: vec![answer(200, "The copy", Content::Octets)], ..PLAIN }
}

pub(super) fn health() -> Description {
    Description { answers: vec![answer(200, "It does", Content::Text("text/plain"))], ..PLAIN }
}

pub(super) fn ready() -> Description {
    Description {
        answers: vec![
            answer(200, "They are", Content::Text("text/plain")),
            answer(503, "Not while stopping, or after a failure", Content::Text("text/plain")),
        ],
        ..PLAIN
    }
}

pub(super) fn metrics() -> Description {
    Description { answers: vec![answer(200, "Text format 0.0.4", Content::Text("text/plain"))], ..PLAIN }
}

pub(super) fn openapi() -> Description {
    Description { answers: vec![answer(200, "OpenAPI 3.1", Content::AnyJson), UNCHANGED], ..PLAIN }
}

pub(super) fn docs() -> Description {
    Description { answers: vec![answer(200, "HTML", Content::Text("text/html")), UNCHANGED], ..PLAIN }
}
