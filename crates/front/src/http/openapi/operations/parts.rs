//! The parts of a description: parameters, bodies and answers.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use sluice_calls::hot::receive::WAIT_MS_MAX;

/// The parameters, body and answers of an operation.
#[derive(Clone, Debug)]
pub(super) struct Description {
    /// Parameters that no type has.
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

/// Content of a body.
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

impl Content {
    /// The content as the description has it, by media type.
    pub(super) fn described(self, generator: &mut SchemaGenerator) -> Value {
        match self {
            Content::Json(schema) => json!({"application/json": {"schema": schema(generator)}}),
            Content::Events(schema) => json!({"text/event-stream": {"schema": schema(generator)}}),
            Content::Octets => json!({"application/octet-stream": {"schema": {}}}),
            Content::Text(media_type) => json!({media_type: {"schema": {"type": "string"}}}),
            Content::AnyJson => json!({"application/json": {"schema": {"type": "object"}}}),
        }
    }
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
    pub(super) kind: Kind,
    pub(super) about: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
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

pub(super) const fn query(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { place: Place::Query, name, kind, about }
}

pub(super) const fn header(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { place: Place::Header, name, kind, about }
}

pub(super) const fn answer(status: u16, about: &'static str, content: Content) -> Answer {
    Answer { status, about, content: Some(content) }
}

pub(super) const fn json_of<T: JsonSchema>() -> Content {
    Content::Json(|generator| generator.subschema_for::<T>())
}

pub(super) const fn ok<T: JsonSchema>() -> Answer {
    answer(200, "Done", json_of::<T>())
}

pub(super) const fn required<T: JsonSchema>() -> Option<Request> {
    Some(Request { required: true, content: json_of::<T>() })
}

pub(super) const fn optional<T: JsonSchema>() -> Option<Request> {
    Some(Request { required: false, content: json_of::<T>() })
}

pub(super) const IDEMPOTENCY: Parameter = header(
    "Idempotency-Key",
    Kind::Text,
    "1 to 256 visible ASCII characters: a repeat within ten minutes gets the first answer",
);

pub(super) const RESULT_WAIT: Parameter =
    query("wait_ms", Kind::Integer(0, WAIT_MS_MAX), "How long to wait for the message's end; default 0");

pub(super) const PLAIN: Description =
    Description { parameters: Vec::new(), query: None, request: None, answers: Vec::new() };
