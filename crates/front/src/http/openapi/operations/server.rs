//! What operations on namespaces and on the server itself do.

use super::{Answer, Content, Description, Kind, PLAIN, answer, ok, optional, query};
use crate::http::route::table::Operation;

/// What a document answers whose tag stands in `If-None-Match`.
const UNCHANGED: Answer = Answer { status: 304, about: "The client has it already", content: None };

pub(super) fn namespaces(operation: Operation) -> Description {
    match operation {
        Operation::NamespaceList => Description {
            summary: "List namespaces",
            parameters: vec![query("all", Kind::Boolean, "Also $sys, the server's own; default false")],
            answers: vec![ok("NamespaceList")],
            ..PLAIN
        },
        Operation::NamespaceShow => {
            Description { summary: "Show a namespace", answers: vec![ok("Namespace")], ..PLAIN }
        }
        Operation::NamespacePut => Description {
            summary: "Create a namespace, or set its quotas",
            request: optional("NamespacePut"),
            answers: vec![
                answer(201, "Created", Content::Json("Namespace")),
                answer(200, "Changed", Content::Json("Namespace")),
            ],
            ..PLAIN
        },
        Operation::NamespacePatch => Description {
            summary: "Change quotas of a namespace",
            request: optional("NamespacePatch"),
            answers: vec![ok("Namespace")],
            ..PLAIN
        },
        _ => Description {
            summary: "Delete a namespace",
            parameters: vec![query("force", Kind::Boolean, "Its queues and messages as well")],
            answers: vec![ok("Nothing")],
            ..PLAIN
        },
    }
}

pub(super) fn server(operation: Operation) -> Description {
    match operation {
        Operation::Status => Description {
            summary: "Figures of the server and its shards",
            answers: vec![ok("Status")],
            ..PLAIN
        },
        Operation::Backup => Description {
            summary: "A consistent copy of everything, taken while serving",
            about: "One stream, for `sluice restore`.",
            answers: vec![answer(200, "The copy", Content::Octets)],
            ..PLAIN
        },
        Operation::KeysShow => Description {
            summary: "What is encrypted under which root key",
            answers: vec![ok("Keys")],
            ..PLAIN
        },
        Operation::KeysRotate => Description {
            summary: "Encrypt what is written from now on under a new root key",
            about: "What was written before keeps its key until it is compacted.",
            answers: vec![ok("Keys")],
            ..PLAIN
        },
        Operation::Health => Description {
            summary: "Whether the process lives",
            answers: vec![answer(200, "It does", Content::Text("text/plain"))],
            ..PLAIN
        },
        Operation::Ready => Description {
            summary: "Whether requests are served",
            answers: vec![
                answer(200, "They are", Content::Text("text/plain")),
                answer(503, "Not while stopping, or after a failure", Content::Text("text/plain")),
            ],
            ..PLAIN
        },
        Operation::Metrics => Description {
            summary: "Figures for Prometheus",
            answers: vec![answer(200, "Text format 0.0.4", Content::Text("text/plain"))],
            ..PLAIN
        },
        Operation::OpenApi => Description {
            summary: "This description",
            answers: vec![answer(200, "OpenAPI 3.1", Content::AnyJson), UNCHANGED],
            ..PLAIN
        },
        _ => Description {
            summary: "This description as a page",
            answers: vec![answer(200, "HTML", Content::Text("text/html")), UNCHANGED],
            ..PLAIN
        },
    }
}
