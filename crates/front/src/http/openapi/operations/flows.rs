//! What operations on groups, flows and schedules do.

use super::{Content, Description, IDEMPOTENCY, Kind, LIMIT, PLAIN, answer, ok, query, required};
use crate::http::route::table::Operation;

pub(super) fn groups(operation: Operation) -> Description {
    match operation {
        Operation::GroupSend => Description {
            summary: "Send messages, and one more when all of them have ended",
            about: "All or nothing. The callback carries the headers sluice-done and sluice-dead.",
            parameters: vec![IDEMPOTENCY],
            request: required("GroupRequest"),
            answers: vec![answer(201, "Sent", Content::Json("GroupSent"))],
            ..PLAIN
        },
        Operation::FlowShow => Description {
            summary: "Show what a message waits for, and what follows it",
            about: "Its parents, the steps of its chain, and as a tree what waits for it; at most 256 of all of them.",
            answers: vec![ok("Flow")],
            ..PLAIN
        },
        _ => Description { summary: "Show how a group stands", answers: vec![ok("Group")], ..PLAIN },
    }
}

pub(super) fn schedules(operation: Operation) -> Description {
    match operation {
        Operation::ScheduleList => Description {
            summary: "List schedules by name",
            parameters: vec![query("after", Kind::Text, "`next` of the page before"), LIMIT],
            answers: vec![ok("ScheduleList")],
            ..PLAIN
        },
        Operation::ScheduleShow => Description {
            summary: "Show a schedule and what it sends",
            answers: vec![ok("ScheduleWithMessage")],
            ..PLAIN
        },
        Operation::SchedulePut => Description {
            summary: "Create a schedule, or replace what it does",
            about: "One of cron and every_ms. It stays paused if it is, and keeps its next time if that is said as before.",
            request: required("SchedulePut"),
            answers: vec![
                answer(201, "Created", Content::Json("Schedule")),
                answer(200, "Changed", Content::Json("Schedule")),
            ],
            ..PLAIN
        },
        Operation::ScheduleNext => Description {
            summary: "Tell when a schedule fires next",
            parameters: vec![query("count", Kind::Integer(1, 100), "How many times; default 10")],
            answers: vec![ok("ScheduleNext")],
            ..PLAIN
        },
        Operation::SchedulePause => {
            Description { summary: "Let a schedule's times go by", answers: vec![ok("Schedule")], ..PLAIN }
        }
        Operation::ScheduleResume => Description {
            summary: "Let a paused schedule go on with its next time",
            answers: vec![ok("Schedule")],
            ..PLAIN
        },
        Operation::ScheduleTrigger => Description {
            summary: "Send a schedule's message now",
            about: "Its times stay as they are.",
            answers: vec![answer(201, "Sent", Content::Json("ScheduleSent"))],
            ..PLAIN
        },
        _ => Description {
            summary: "Delete a schedule; what it has sent stays",
            answers: vec![ok("Nothing")],
            ..PLAIN
        },
    }
}
