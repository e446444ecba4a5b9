//! What each operation does, in words, and what goes in and out.

use serde_json::{Value, json};

use crate::http::routes::Operation;

/// Groups of operations.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("messages", "Send, receive, settle"),
    ("looking", "Look at messages without taking them"),
    ("changing", "Change messages that are there, one or many"),
    ("dead letters", "Messages that failed for good, until somebody decides"),
    ("queues", "Queues and their settings"),
    ("schedules", "Messages that are sent at times of day, or again and again"),
    ("namespaces", "Tenants and their quotas"),
    ("server", "The server itself"),
];

/// An operation in words.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) about: &'static str,
    pub(super) parameters: Vec<Parameter>,
    pub(super) request: Option<Request>,
    pub(super) answers: Vec<Answer>,
}

/// A body that goes in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) required: bool,
    pub(super) content: Content,
}

/// An answer that is no error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Option<Content>,
}

/// What a body is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// JSON of a named schema.
    Json(&'static str),
    /// Any JSON object.
    AnyJson,
    /// Any octets.
    Octets,
    /// Text of this media type.
    Text(&'static str),
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Behind the `?`.
    Query,
    /// Among the headers.
    Header,
}

/// A parameter that is not part of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) place: Place,
    pub(super) name: &'static str,
    kind: Kind,
    pub(super) about: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Integer(u64, u64),
    Boolean,
    OneOf(&'static [&'static str]),
}

impl Parameter {
    pub(super) fn schema(&self) -> Value {
        match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Integer(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Kind::Boolean => json!({"type": "boolean"}),
            Kind::OneOf(words) => json!({"type": "string", "enum": words}),
        }
    }
}

const fn query(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { place: Place::Query, name, kind, about }
}

const fn header(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { place: Place::Header, name, kind, about }
}

const fn answer(status: u16, about: &'static str, content: Content) -> Answer {
    Answer { status, about, content: Some(content) }
}

const fn ok(schema: &'static str) -> Answer {
    answer(200, "Done", Content::Json(schema))
}

const fn required(schema: &'static str) -> Option<Request> {
    Some(Request { required: true, content: Content::Json(schema) })
}

const fn optional(schema: &'static str) -> Option<Request> {
    Some(Request { required: false, content: Content::Json(schema) })
}

const IDEMPOTENCY: Parameter = header(
    "Idempotency-Key",
    Kind::Text,
    "1 to 256 visible ASCII characters: a repeat within ten minutes gets the first answer",
);
const LIMIT: Parameter = query("limit", Kind::Integer(1, 1_000), "Most entries of the page; default 100");
const CURSOR: Parameter = query("cursor", Kind::Text, "`next` of the page before");
const PAYLOAD: Parameter =
    query("payload", Kind::Boolean, "Whether payloads, content types and headers are given");

const RESULT_WAIT: Parameter =
    query("wait_ms", Kind::Integer(0, 60_000), "How long to wait for the message's end; default 0");

const PLAIN: Description = Description {
    tag: "messages",
    summary: "",
    about: "",
    parameters: Vec::new(),
    request: None,
    answers: Vec::new(),
};

/// Describes an operation.
pub(super) fn describe(operation: Operation) -> Description {
    use Operation as O;
    match operation {
        O::Send | O::SendRaw | O::Receive | O::ReceiveMany | O::ReceiveRaw => moving(operation),
        O::Ack | O::Nack | O::Release | O::Reject | O::Settle | O::Extend => settling(operation),
        O::QueueList | O::QueueShow | O::QueuePut | O::QueuePatch | O::QueueDelete | O::QueuePurge => {
            Description { tag: "queues", ..queues(operation) }
        }
        O::QueuePause | O::QueueResume | O::QueueClose | O::QueueOpen => {
            Description { tag: "queues", answers: vec![ok("Queue")], ..marks(operation) }
        }
        O::MessageList | O::MessagePeek | O::MessageShow | O::ResultShow | O::ResultRaw => {
            Description { tag: "looking", ..looking(operation) }
        }
        O::MessageCancel
        | O::MessageHold
        | O::MessageApprove
        | O::MessageDeny
        | O::MessageRetry
        | O::MessageMove
        | O::MessageChange => Description { tag: "changing", ..changing(operation) },
        O::BulkList | O::BulkStart | O::BulkShow | O::BulkCancel => {
            Description { tag: "changing", ..bulk(operation) }
        }
        O::DefaultsList | O::DefaultsShow | O::DefaultsPut | O::DefaultsDelete => {
            Description { tag: "queues", ..defaults(operation) }
        }
        O::DeadList | O::DeadRedrive | O::DeadRedriveEnd | O::DeadDelete => {
            Description { tag: "dead letters", ..dead(operation) }
        }
        O::GroupSend | O::GroupShow => Description { tag: "flows", ..groups(operation) },
        O::ScheduleList
        | O::ScheduleShow
        | O::SchedulePut
        | O::ScheduleDelete
        | O::ScheduleNext
        | O::SchedulePause
        | O::ScheduleResume
        | O::ScheduleTrigger => Description { tag: "schedules", ..schedules(operation) },
        O::LimitList | O::LimitShow | O::LimitPut | O::LimitDelete => {
            Description { tag: "limits", ..limits(operation) }
        }
        O::NamespaceList | O::NamespaceShow | O::NamespacePut | O::NamespacePatch | O::NamespaceDelete => {
            Description { tag: "namespaces", ..namespaces(operation) }
        }
        O::Status | O::Backup | O::Health | O::Ready | O::Metrics | O::OpenApi | O::Docs => {
            Description { tag: "server", ..server(operation) }
        }
    }
}

fn moving(operation: Operation) -> Description {
    match operation {
        Operation::Send => Description {
            summary: "Send one message or many, all or nothing",
            about: "The queue is created by its first message.",
            parameters: vec![IDEMPOTENCY],
            request: required("SendRequest"),
            answers: vec![answer(201, "Stored", Content::Json("Sent"))],
            ..PLAIN
        },
        Operation::SendRaw => Description {
            summary: "Send one message, its payload as the body",
            about: "Content-Type is kept with the message, and so is traceparent.",
            parameters: vec![
                IDEMPOTENCY,
                header("Sluice-Priority", Kind::Integer(0, 9), "Higher first; default 0"),
                header("Sluice-Delay-Ms", Kind::Integer(0, u64::MAX), "Ready after so long"),
                header("Sluice-Deliver-At-Ms", Kind::Integer(0, u64::MAX / 1_000), "Ready at this time"),
                header(
                    "Sluice-Max-Attempts",
                    Kind::Integer(1, 10_000),
                    "Attempts before it is a dead letter",
                ),
                header("Sluice-Backoff", Kind::Text, "A backoff, as JSON"),
                header("Sluice-Header-{name}", Kind::Text, "A header of the message"),
            ],
            request: Some(Request { required: false, content: Content::Octets }),
            answers: vec![answer(201, "Stored", Content::Json("Sent"))],
            ..PLAIN
        },
        Operation::Receive => Description {
            summary: "Take messages under a lease",
            about: "Returns with the first messages there are; waits up to wait_ms for a first one.",
            request: optional("ReceiveRequest"),
            answers: vec![ok("Received")],
            ..PLAIN
        },
        Operation::ReceiveMany => Description {
            summary: "Take messages from several queues",
            about: "In the order given, or in proportion to weights.",
            request: required("ReceiveManyRequest"),
            answers: vec![ok("Received")],
            ..PLAIN
        },
        _ => Description {
            summary: "Take one message, its payload as the body",
            about: "The fields are in Sluice- headers; those of the message in Sluice-Header-{name}.",
            parameters: vec![
                query("wait_ms", Kind::Integer(0, 60_000), "How long to wait for a message; default 0"),
                query("lease_ms", Kind::Integer(1, 43_200_000), "The lease; default: the queue's"),
                query("consumer", Kind::Text, "A name for those who look"),
            ],
            answers: vec![
                answer(200, "A message", Content::Octets),
                Answer { status: 204, about: "There is none", content: None },
            ],
            ..PLAIN
        },
    }
}

fn settling(operation: Operation) -> Description {
    match operation {
        Operation::Ack => Description {
            summary: "Done: the message is gone, or kept with its result",
            request: required("AckRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Nack => Description {
            summary: "Failed: another attempt after the backoff",
            about: "After max_attempts the message becomes a dead letter.",
            request: required("NackRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Release => Description {
            summary: "Not now: give back, the attempt does not count",
            request: required("ReleaseRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Reject => Description {
            summary: "Never: to the dead letters",
            request: required("RejectRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
        Operation::Settle => Description {
            summary: "Settle many, each with its own outcome",
            request: required("SettleRequest"),
            answers: vec![ok("Results")],
            ..PLAIN
        },
        _ => Description {
            summary: "Extend leases",
            about: "The lease ends lease_ms from now. Progress and checkpoint are kept, and the checkpoint is handed to the next attempt.",
            request: required("ExtendRequest"),
            answers: vec![ok("Settled")],
            ..PLAIN
        },
    }
}

fn queues(operation: Operation) -> Description {
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

fn defaults(operation: Operation) -> Description {
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

fn marks(operation: Operation) -> Description {
    let (summary, about) = match operation {
        Operation::QueuePause => ("Deliver nothing", "Sends go on, and what is leased runs on."),
        Operation::QueueResume => ("Deliver again", "Receives that wait get their messages at once."),
        Operation::QueueClose => ("Refuse sends", "What the queue holds is delivered."),
        _ => ("Take sends again", ""),
    };
    Description { summary, about, ..PLAIN }
}

fn looking(operation: Operation) -> Description {
    match operation {
        Operation::MessageList => Description {
            summary: "List the messages of a queue",
            about: "By id. A page may be short, even empty, and have a next one.",
            parameters: vec![
                query("state", Kind::OneOf(crate::http::messages::STATES), "Only messages in this state"),
                CURSOR,
                LIMIT,
                PAYLOAD,
            ],
            answers: vec![ok("MessageList")],
            ..PLAIN
        },
        Operation::MessagePeek => Description {
            summary: "Look at the messages next in line",
            about: "At most some 16 MiB; the answer is truncated when that cuts it short.",
            parameters: vec![query("limit", Kind::Integer(1, 100), "Most messages; default 10")],
            answers: vec![ok("PeekList")],
            ..PLAIN
        },
        Operation::ResultShow => Description {
            summary: "Wait for a message's end, and get its result",
            about: "message_not_found when it is gone: no longer kept, purged, or acked without anybody wanting its result.",
            parameters: vec![RESULT_WAIT],
            answers: vec![ok("Awaited")],
            ..PLAIN
        },
        Operation::ResultRaw => Description {
            summary: "Wait for a message's end, and get its result as the body",
            about: "Sluice-State tells done, dead or pending.",
            parameters: vec![RESULT_WAIT],
            answers: vec![
                answer(200, "The result", Content::Octets),
                Answer { status: 204, about: "There is none, or not yet", content: None },
            ],
            ..PLAIN
        },
        _ => Description {
            summary: "Show a message with its history",
            parameters: vec![PAYLOAD],
            answers: vec![ok("StoredMessage")],
            ..PLAIN
        },
    }
}

fn changing(operation: Operation) -> Description {
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

fn bulk(operation: Operation) -> Description {
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

fn dead(operation: Operation) -> Description {
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

fn groups(operation: Operation) -> Description {
    match operation {
        Operation::GroupSend => Description {
            summary: "Send messages, and one more when all of them have ended",
            about: "All or nothing. The callback carries the headers sluice-done and sluice-dead.",
            parameters: vec![IDEMPOTENCY],
            request: required("GroupRequest"),
            answers: vec![answer(201, "Sent", Content::Json("GroupSent"))],
            ..PLAIN
        },
        _ => Description { summary: "Show how a group stands", answers: vec![ok("Group")], ..PLAIN },
    }
}

fn schedules(operation: Operation) -> Description {
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

fn limits(operation: Operation) -> Description {
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

fn namespaces(operation: Operation) -> Description {
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

fn server(operation: Operation) -> Description {
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
            answers: vec![answer(200, "OpenAPI 3.1", Content::AnyJson)],
            ..PLAIN
        },
        _ => Description {
            summary: "This description as a page",
            answers: vec![answer(200, "HTML", Content::Text("text/html"))],
            ..PLAIN
        },
    }
}
