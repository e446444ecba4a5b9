//! What operations that change messages do, one or many, dead ones among them.

use super::{CURSOR, Content, Description, LIMIT, PAYLOAD, PLAIN, answer, ok, optional, required};
use crate::http::route::table::Operation;

pub(super) fn changing(operation: Operation) -> Description {
    let (summary, about, request) = match operation {
        Operation::MessageCancel => (
            "Cancel a message",
            "A leased one is gone at the end of its lease, however that ends; its holder is told when it extends.",
            "ChangeRequest",
        ),
        Operation::MessageHold => ("Hold a message until a person decides", "", "ChangeRequest"),
        Operation::MessageApprove => ("Let a held message go on", "", "ChangeRequest"),
        Operation::MessageDeny => ("Make a held message a dead letter", "", "ChangeRequest"),
        Operation::MessageRetry => {
            ("Try a delayed or dead message now", "Of a dead one, attempts count from 0.", "ChangeRequest")
        }
        Operation::MessageMove => ("Move a message to another queue", "Its id stays.", "MoveRequest"),
        _ => ("Change fields of a message that waits", "", "FieldsRequest"),
    };
    let request = if request == "ChangeRequest" { optional(request) } else { required(request) };
    Description { summary, about, request, answers: vec![ok("Nothing")], ..PLAIN }
}

pub(super) fn bulk(operation: Operation) -> Description {
    match operation {
        Operation::BulkList => {
            Description { summary: "List bulks, oldest first", answers: vec![ok("BulkList")], ..PLAIN }
        }
        Operation::BulkStart => Description {
            summary: "Change all messages of a queue that match, in the background",
            about: "Messages that come later are not changed.",
            request: required("BulkRequest"),
            answers: vec![answer(202, "It has begun", Content::Json("BulkStarted"))],
            ..PLAIN
        },
        Operation::BulkShow => {
            Description { summary: "Show how far a bulk is", answers: vec![ok("Bulk")], ..PLAIN }
        }
        _ => Description {
            summary: "End a bulk",
            about: "What it has changed stays changed. Answers when it has ended.",
            answers: vec![ok("Bulk")],
            ..PLAIN
        },
    }
}

pub(super) fn dead(operation: Operation) -> Description {
    match operation {
        Operation::DeadList => Description {
            summary: "List dead letters",
            parameters: vec![CURSOR, LIMIT, PAYLOAD],
            answers: vec![ok("MessageList")],
            ..PLAIN
        },
        Operation::DeadRedrive => Description {
            summary: "Make dead letters ready again",
            about: "With per_second the answer tells how many will be; a new redrive replaces one that runs.",
            request: required("RedriveRequest"),
            answers: vec![ok("Redriven")],
            ..PLAIN
        },
        Operation::DeadRedriveEnd => Description {
            summary: "End a redrive at a rate",
            about: "What is left of it stays dead.",
            answers: vec![ok("Left")],
            ..PLAIN
        },
        _ => Description {
            summary: "Delete dead letters",
            request: required("DeadChoice"),
            answers: vec![ok("Deleted")],
            ..PLAIN
        },
    }
}
