//! What each operation does, in words, and what goes in and out.

mod access;
mod changing;
mod events;
mod flows;
mod messages;
mod queues;
mod server;

use serde_json::{Value, json};

use crate::http::route::table::Operation;
use changing::{bulk, changing, dead};
use flows::{groups, schedules};
use messages::{looking, moving, settling};
use queues::{consumers, defaults, limits, marks, queues};
use server::{namespaces, server};

/// Groups of operations.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("messages", "Send, receive, settle"),
    ("looking", "Look at messages without taking them"),
    ("changing", "Change messages that are there, one or many"),
    ("dead letters", "Messages that failed for good, until somebody decides"),
    ("queues", "Queues and their settings"),
    ("consumers", "Who holds messages"),
    ("limits", "How many messages may be in flight, and how fast"),
    ("flows", "Messages that wait for others"),
    ("schedules", "Messages that are sent at times of day, or again and again"),
    ("namespaces", "Tenants and their quotas"),
    ("access", "Who may do what, and who has done what"),
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
    /// Server-sent events, whose data is JSON of a named schema.
    Events(&'static str),
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
        O::Events | O::QueueEvents => Description { tag: "looking", ..events::events(operation) },
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
        O::GroupSend | O::GroupShow | O::FlowShow => Description { tag: "flows", ..groups(operation) },
        O::ScheduleList
        | O::ScheduleShow
        | O::SchedulePut
        | O::ScheduleDelete
        | O::ScheduleNext
        | O::SchedulePause
        | O::ScheduleResume
        | O::ScheduleTrigger => Description { tag: "schedules", ..schedules(operation) },
        O::ConsumerList | O::ConsumerShow | O::ConsumerDetach => {
            Description { tag: "consumers", ..consumers(operation) }
        }
        O::LimitList | O::LimitShow | O::LimitPut | O::LimitDelete => {
            Description { tag: "limits", ..limits(operation) }
        }
        O::NamespaceList | O::NamespaceShow | O::NamespacePut | O::NamespacePatch | O::NamespaceDelete => {
            Description { tag: "namespaces", ..namespaces(operation) }
        }
        O::TokenList | O::TokenCreate | O::TokenRevoke | O::Audit | O::WhoAmI => {
            Description { tag: "access", ..access::describe(operation) }
        }
        O::Status
        | O::Backup
        | O::KeysShow
        | O::KeysRotate
        | O::Health
        | O::Ready
        | O::Metrics
        | O::OpenApi
        | O::Docs => Description { tag: "server", ..server(operation) },
    }
}
