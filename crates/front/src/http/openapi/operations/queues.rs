//! What operations on queues, their defaults and limits do.

use sluice_engine::command::DETACH_GRACE_MS_MAX;

use super::{CURSOR, Content, Description, Kind, LIMIT, PLAIN, answer, ok, optional, query};
use crate::http::route::table::Operation;

pub(super) fn queues(operation: Operation) -> Description {
    match operation {
        Operation::QueueList => Description {
            summary: "List queues by name",
            parameters: vec![
                query("prefix", Kind::Text, "Only names that begin so"),
                query("after", Kind::Text, "`next` of the page before"),
                LIMIT,
            ],
            answers: vec![ok("QueueList")],
            ..PLAIN
        },
        Operation::QueueShow => Description { summary: "Show a queue", answers: vec![ok("Queue")], ..PLAIN },
        Operation::QueuePut => Description {
            summary: "Create a queue, or change its settings",
            about: "Settings that are not named keep their value.",
            request: optional("QueueSettingsPatch"),
            answers: vec![
                answer(201, "Created", Content::Json("Queue")),
                answer(200, "Changed", Content::Json("Queue")),
            ],
            ..PLAIN
        },
        Operation::QueuePatch => Description {
            summary: "Change settings of a queue that exists",
            request: optional("QueueSettingsPatch"),
            answers: vec![ok("Queue")],
            ..PLAIN
        },
        Operation::QueueDelete => Description {
            summary: "Delete a queue and everything in it",
            answers: vec![ok("Deleted")],
            ..PLAIN
        },
        _ => Description {
            summary: "Drop what waits",
            about: "Ready, delayed and held messages go; leased ones and dead letters stay.",
            answers: vec![ok("Purged")],
            ..PLAIN
        },
    }
}

pub(super) fn marks(operation: Operation) -> Description {
    let (summary, about) = match operation {
        Operation::QueuePause => ("Deliver nothing", "Sends go on, and what is leased runs on."),
        Operation::QueueResume => ("Deliver again", "Receives that wait get their messages at once."),
        Operation::QueueClose => ("Refuse sends", "What the queue holds is delivered."),
        _ => ("Take sends again", ""),
    };
    Description { summary, about, ..PLAIN }
}

pub(super) fn defaults(operation: Operation) -> Description {
    match operation {
        Operation::DefaultsList => Description {
            summary: "List settings of queues not yet made, by pattern",
            parameters: vec![
                query("after", Kind::Text, "`next` of the page before"),
                query("limit", Kind::Integer(1, 100), "Most entries of the page; default 100"),
            ],
            answers: vec![ok("QueueDefaultsList")],
            ..PLAIN
        },
        Operation::DefaultsShow => Description {
            summary: "Show the settings of a pattern",
            answers: vec![ok("QueueDefaults")],
            ..PLAIN
        },
        Operation::DefaultsPut => Description {
            summary: "Set what queues begin with whose names match",
            about: "The longest pattern that matches counts, of equals the first by name. Queues that exist stay as they are.",
            request: optional("QueueSettingsPatch"),
            answers: vec![
                answer(201, "Created", Content::Json("QueueDefaults")),
                answer(200, "Replaced", Content::Json("QueueDefaults")),
            ],
            ..PLAIN
        },
        _ => Description { summary: "Forget a pattern", answers: vec![ok("Nothing")], ..PLAIN },
    }
}

pub(super) fn consumers(operation: Operation) -> Description {
    match operation {
        Operation::ConsumerList => Description {
            summary: "List consumers in the order in which they came",
            parameters: vec![query("after", Kind::Text, "`next` of the page before"), LIMIT],
            answers: vec![ok("ConsumerList")],
            ..PLAIN
        },
        Operation::ConsumerShow => Description {
            summary: "Show a consumer and what it holds",
            parameters: vec![query(
                "limit",
                Kind::Integer(1, 1_000),
                "Most messages, longest held first; default 100",
            )],
            answers: vec![ok("ConsumerWithHeld")],
            ..PLAIN
        },
        _ => Description {
            summary: "Detach a consumer",
            about: "It gets nothing more. What it holds goes back after a time of grace, and the attempt does not count.",
            parameters: vec![query(
                "grace_ms",
                Kind::Integer(0, DETACH_GRACE_MS_MAX),
                "How long its receipts still count; default 30000",
            )],
            answers: vec![ok("Nothing")],
            ..PLAIN
        },
    }
}

pub(super) fn limits(operation: Operation) -> Description {
    match operation {
        Operation::LimitList => Description {
            summary: "List limits by name",
            parameters: vec![query("after", Kind::Text, "`next` of the page before"), LIMIT],
            answers: vec![ok("LimitList")],
            ..PLAIN
        },
        Operation::LimitShow => Description {
            summary: "Show a limit and what it holds back",
            about: "With a page of its keys. A page may be short, even empty, and have a next one.",
            parameters: vec![
                query("key", Kind::Text, "Only this key"),
                query("waiting", Kind::Boolean, "Only keys that hold something back; default false"),
                CURSOR,
                LIMIT,
            ],
            answers: vec![ok("LimitWithKeys")],
            ..PLAIN
        },
        Operation::LimitPut => Description {
            summary: "Create a limit, or replace what it allows",
            about: "It acts at once. What is not named is not limited.",
            request: optional("LimitSettings"),
            answers: vec![
                answer(201, "Created", Content::Json("Limit")),
                answer(200, "Changed", Content::Json("Limit")),
            ],
            ..PLAIN
        },
        _ => Description {
            summary: "Delete a limit that no queue follows",
            answers: vec![ok("Nothing")],
            ..PLAIN
        },
    }
}
