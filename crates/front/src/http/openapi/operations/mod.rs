//! What goes in and out of the operations that are not typed.

mod events;
mod messages;
mod parts;
mod server;

use schemars::SchemaGenerator;
use serde_json::json;
use sluice_calls::Operation;
use sluice_calls::events::{OfNamespace, OfQueue};

use super::Described;
use messages::{moving, settling};
use parts::{Content, Description, Parameter, Place};
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
