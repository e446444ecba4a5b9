//! Compressed answers: which, in what coding, and which never.
//!
//! How well an answer compresses tells of what repeats in it. Where a secret and text that an attacker chose
//! stand in one answer, whoever sees the lengths on the wire can guess the secret, a few characters at a time
//! (BREACH, after CRIME), and TLS does not help. Whoever may send to a queue chooses such text, and a page of
//! messages has those of others beside it. So, by what answers hold:
//!
//! - Descriptions, figures and names ([`Compression::On`]): nothing in them is secret from those who may ask
//!   for them.
//! - Contents of messages, of schedules, of the audit log ([`Compression::All`]): only where the operator
//!   says so, who knows whether several parties' secrets come together there.
//! - Receipts and tokens, and so the hot calls: never. They are small, or mostly payload, and pay nothing for
//!   all this.
//! - Streams (backups, events): never. Each piece of them has to leave when it is there.

mod accept;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, HeaderValue, VARY};
use http::request::Parts;
use http::response::Response;
use http_body::Body as _;
use sluice_calls::Operation;

pub(super) use accept::weight;

use crate::net::body::Body;
use crate::net::compression::{Compression, Compressor};
use crate::net::context::Context;

/// Smallest answer that is compressed, in bytes: below, it fits into one packet either way.
const BYTES_MIN: u64 = 1_024;

/// The setting from which on answers to an operation are compressed; `None`: never.
fn compressed_from(operation: Operation) -> Option<Compression> {
    use Operation as O;
    match operation {
        O::OpenApi
        | O::Docs
        | O::Metrics
        | O::Status
        | O::QueueList
        | O::ConsumerList
        | O::ConsumerShow
        | O::LimitList
        | O::LimitShow
        | O::LockList
        | O::LockShow
        | O::DocumentList
        | O::DocumentHistory
        | O::DocumentChanges
        | O::AttachmentList
        | O::DefaultsList
        | O::NamespaceList => Some(Compression::On),
        O::MessageList
        | O::MessageSearch
        | O::MessagePeek
        | O::MessageShow
        | O::DeadList
        | O::ResultShow
        | O::FlowShow
        | O::GroupShow
        | O::BulkList
        | O::ScheduleList
        | O::ScheduleShow
        | O::DocumentShow
        | O::DocumentQuery
        | O::Audit => Some(Compression::All),
        _ => None,
    }
}

/// True if answers to an operation may be compressed.
pub(crate) fn concerns(compressor: &Compressor, operation: Operation) -> bool {
    compressed_from(operation).is_some_and(|from| compressor.is_set(from))
}

/// Compresses the answer to an operation that this [`concerns`], if the client takes it and it is worth it.
pub(crate) async fn compress(
    context: &Context,
    head: &Parts,
    mut response: Response<Body>,
) -> Response<Body> {
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    let large = response.body().size_hint().exact().is_some_and(|length| length >= BYTES_MIN);
    if response.status() != StatusCode::OK || !large {
        return response;
    }
    let Some(coding) = accept::choose(&head.headers) else { return response };
    let plain = std::mem::replace(response.body_mut(), Body::full(Bytes::new())).into_bytes();
    let compressed = context.compressor.compress(coding, plain.clone()).await;
    let Some(compressed) = compressed.filter(|compressed| compressed.len() < plain.len()) else {
        *response.body_mut() = Body::full(plain);
        return response;
    };
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    // Without the room that was left for what could not be compressed.
    *response.body_mut() = Body::full(compressed.into_boxed_slice().into());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_calls::access::Right;

    /// Answers of calls that move messages, change something, or hand out receipts and tokens are never
    /// compressed.
    #[test]
    fn only_what_shows_something() {
        for operation in Operation::ALL.iter().copied() {
            if compressed_from(operation).is_some() {
                assert!(operation.only_looks(), "{operation:?}");
                assert!(!matches!(operation.right(), Right::Send | Right::Receive), "{operation:?}");
            }
        }
        let all = Compressor::new(Compression::All);
        for never in [Operation::TokenCreate, Operation::Backup, Operation::ResultRaw, Operation::Health] {
            assert!(!concerns(&all, never), "{never:?}");
        }
    }

    #[test]
    fn settings_widen() {
        let concerned = |setting| {
            let compressor = Compressor::new(setting);
            [Operation::OpenApi, Operation::MessagePeek].map(|operation| concerns(&compressor, operation))
        };
        assert_eq!(concerned(Compression::Off), [false, false]);
        assert_eq!(concerned(Compression::On), [true, false]);
        assert_eq!(concerned(Compression::All), [true, true]);
    }
}
