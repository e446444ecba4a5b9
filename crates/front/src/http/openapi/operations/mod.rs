//! Requests and answers of the operations that have no types.

mod attachments;
mod documents;
mod events;
mod messages;
mod parts;
mod server;

use schemars::SchemaGenerator;
use serde_json::json;
use sluice_calls::documents::watch;
use sluice_calls::events::{Event, OfNamespace, OfQueue};
use sluice_calls::locks::watch::{Event as LockEvent, Wanted as OfLock};
use sluice_calls::operation::{Hot, Special};
use sluice_calls::statistics;

use super::Described;
use parts::{Content, Description, Parameter, Place};

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
    ("locks", "Keys that are held for a time, under a fencing token"),
    ("documents", "Keys with a content of any type, which has a version"),
    ("attachments", "Named bytes of a document, of up to 5 GiB"),
    ("transactions", "Operations on queues, documents and locks that are done together, all or none"),
    ("namespaces", "Tenants and their quotas"),
    ("access", "Who may do what, and who has done what"),
    ("cluster", "The machines that hold the data together"),
    ("server", "The server itself"),
    ("tests", "The time of a server that runs with `sluice serve --test`"),
];

/// Describes a call that carries messages or receipts.
pub(super) fn of_hot(call: Hot, generator: &mut SchemaGenerator) -> Described {
    described(messages::hot(call), generator)
}

/// Describes a call without a typed request.
pub(super) fn of_special(call: Special, generator: &mut SchemaGenerator) -> Described {
    described(special(call), generator)
}

fn described(description: Description, generator: &mut SchemaGenerator) -> Described {
    let Description { parameters, query, request, answers } = description;
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

fn special(call: Special) -> Description {
    match call {
        Special::SendRaw => messages::send_raw(),
        Special::ReceiveRaw => messages::receive_raw(),
        Special::ResultRaw => messages::result(),
        Special::DocumentPutRaw => documents::put(),
        Special::DocumentPatchRaw => documents::patch(),
        Special::DocumentRaw => documents::read(),
        Special::UploadRaw => attachments::append(),
        Special::AttachmentPutRaw => attachments::put(),
        Special::AttachmentRaw => attachments::read(),
        Special::Events => events::events::<OfNamespace, Event>(),
        Special::QueueEvents => events::events::<OfQueue, Event>(),
        Special::DocumentWatch => events::events::<watch::Wanted, watch::Event>(),
        Special::LockWatch => events::events::<OfLock, LockEvent>(),
        Special::Statistics => events::events::<statistics::Wanted, statistics::Event>(),
        Special::Backup => server::backup(),
        Special::Health => server::health(),
        Special::Ready => server::ready(),
        Special::Metrics => server::metrics(),
        Special::OpenApi => server::openapi(),
        Special::Docs => server::docs(),
    }
}
