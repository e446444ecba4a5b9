//! What goes in and out of the operations that are not typed.

mod events;
mod messages;
mod server;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use sluice_calls::Operation;
use sluice_calls::events::{OfNamespace, OfQueue};
use sluice_calls::hot::receive::WAIT_MS_MAX;

use super::Described;
use messages::{moving, settling};
use server::server;

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

/// The parameters, body and answers of an operation.
#[derive(Clone, Debug)]
pub(super) struct Description {
    /// Those that no type has.
    pub(super) parameters: Vec<Parameter>,
    /// The type whose fields are parameters in the query.
    pub(super) query: Option<fn(&mut SchemaGenerator) -> Vec<Value>>,
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
    /// JSON of a type.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Any JSON object.
    AnyJson,
    /// Any octets.
    Octets,
    /// Server-sent events, whose data is JSON of a type.
    Events(fn(&mut SchemaGenerator) -> Schema),
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
}

impl Parameter {
    pub(super) fn schema(&self) -> Value {
        match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Integer(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
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

const fn json_of<T: JsonSchema>() -> Content {
    Content::Json(|generator| generator.subschema_for::<T>())
}

const fn ok<T: JsonSchema>() -> Answer {
    answer(200, "Done", json_of::<T>())
}

const fn required<T: JsonSchema>() -> Option<Request> {
    Some(Request { required: true, content: json_of::<T>() })
}

const fn optional<T: JsonSchema>() -> Option<Request> {
    Some(Request { required: false, content: json_of::<T>() })
}

const IDEMPOTENCY: Parameter = header(
    "Idempotency-Key",
    Kind::Text,
    "1 to 256 visible ASCII characters: a repeat within ten minutes gets the first answer",
);

const RESULT_WAIT: Parameter =
    query("wait_ms", Kind::Integer(0, WAIT_MS_MAX), "How long to wait for the message's end; default 0");

const PLAIN: Description =
    Description { parameters: Vec::new(), query: None, request: None, answers: Vec::new() };

/// Describes an operation that is not typed.
pub(super) fn described(operation: Operation, generator: &mut SchemaGenerator) -> Described {
    let Description { parameters, query, request, answers } = describe(operation);
    let parameter = |parameter: Parameter| {
        let place = match parameter.place {
            Place::Query => "query",
            Place::Header => "header",
        };
        json!({
            "name": parameter.name, "in": place, "required": false,
            "description": parameter.about, "schema": parameter.schema(),
        })
    };
    let of_type = query.map(|parameters| parameters(generator)).unwrap_or_default();
    let mut content = |content: Content| content.described(generator);
    Described {
        parameters: parameters.into_iter().map(parameter).chain(of_type).collect(),
        request: request.map(|body| json!({"required": body.required, "content": content(body.content)})),
        answers: answers
            .into_iter()
            .map(|one| (one.status, one.about, one.content.map(&mut content)))
            .collect(),
    }
}

impl Content {
    fn described(self, generator: &mut SchemaGenerator) -> Value {
        match self {
            Content::Json(schema) => json!({"application/json": {"schema": schema(generator)}}),
            Content::Events(schema) => json!({"text/event-stream": {"schema": schema(generator)}}),
            Content::Octets => json!({"application/octet-stream": {"schema": {}}}),
            Content::Text(media_type) => json!({media_type: {"schema": {"type": "string"}}}),
            Content::AnyJson => json!({"application/json": {"schema": {"type": "object"}}}),
        }
    }
}

fn describe(operation: Operation) -> Description {
    use Operation as O;
    match operation {
        O::Send | O::SendRaw | O::Receive | O::ReceiveMany | O::ReceiveRaw => moving(operation),
        O::Ack | O::Nack | O::Release | O::Reject | O::Settle | O::Extend => settling(operation),
        O::Events => events::events::<OfNamespace>(),
        O::QueueEvents => events::events::<OfQueue>(),
        O::GroupSend => messages::group(),
        O::SchedulePut => messages::schedule(),
        O::ResultRaw => messages::result(),
        _ => server(operation),
    }
}
