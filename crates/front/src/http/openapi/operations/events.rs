//! Operations that stream events.

use schemars::JsonSchema;

use super::super::typed::query_of;
use super::parts::{Content, Description, Kind, PLAIN, answer, header};

/// Describes a stream of events whose request is `T`, and whose events have the JSON of `E`.
pub(super) fn events<T: JsonSchema, E: JsonSchema>() -> Description {
    let last = header("Last-Event-ID", Kind::Text, "The id of the last event that came, as browsers send it");
    let events = Content::Events(|generator| generator.subschema_for::<E>());
    Description {
        parameters: vec![last],
        query: Some(query_of::<T>),
        answers: vec![answer(200, "What happens, as it happens", events)],
        ..PLAIN
    }
}
