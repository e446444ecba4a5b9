//! Streams of events: as over HTTP, each event as a message of the contract.

use bytes::BytesMut;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http::response::Response;
use sluice_node::{EventPosition, Gap, Told};
use sluice_proto::framing::frame_with;

use super::from_json;
use super::status::{GRPC, success};
use crate::http::body::Body;
use crate::http::call::Call;
use crate::http::errors::ApiError;
use crate::http::events::{Asked, EVENTS_PARAMS, Form, QUEUE_EVENTS_PARAMS, open, write_gap, write_told};
use crate::http::json::{Object, object};
use crate::http::routes::Operation;

/// Whether an operation answers with a stream.
pub(super) fn streams(operation: Operation) -> bool {
    matches!(operation, Operation::Events | Operation::QueueEvents)
}

/// Answers with a stream of `output` messages.
pub(super) async fn watch(
    call: &Call<'_>,
    operation: Operation,
    authorization: Option<HeaderValue>,
    output: usize,
) -> Result<Response<Body>, ApiError> {
    let (queue, params) = match operation {
        Operation::QueueEvents => (Some(call.name), QUEUE_EVENTS_PARAMS),
        _ => (None, EVENTS_PARAMS),
    };
    let asked = Asked::read(call, params)?;
    let pieces = open(call, queue, asked, authorization, Frames { output }).await?;
    let mut response = Response::new(Body::stream_with_trailers(pieces, success()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    Ok(response)
}

/// One frame for each event.
struct Frames {
    output: usize,
}

impl Frames {
    fn add(&self, out: &mut Vec<u8>, at: EventPosition, fields: impl FnOnce(&mut Object<'_>)) {
        let mut json = Vec::new();
        object(&mut json, |o| {
            o.text("position", &at.to_string());
            fields(o);
        });
        let encoded = from_json::encode(self.output, &json);
        debug_assert!(encoded.is_ok(), "an event is not as the contract says");
        let Ok(message) = encoded else { return };
        let mut frame = BytesMut::new();
        frame_with(&mut frame, |frame| frame.extend_from_slice(&message));
        out.extend_from_slice(&frame);
    }
}

impl Form for Frames {
    fn begin(&self, out: &mut Vec<u8>, at: EventPosition) {
        self.still_here(out, at);
    }

    fn event(&self, out: &mut Vec<u8>, at: EventPosition, told: &Told) {
        self.add(out, at, |o| write_told(o, told));
    }

    fn gap(&self, out: &mut Vec<u8>, at: EventPosition, gap: &Gap) {
        self.add(out, at, |o| write_gap(o, gap));
    }

    fn still_here(&self, out: &mut Vec<u8>, at: EventPosition) {
        self.add(out, at, |_| {});
    }
}
