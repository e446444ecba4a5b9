//! Streams of events and of changes: as over HTTP, each event as a message of the contract.

use std::sync::{Arc, OnceLock};

use http::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_calls::documents::watch::{Wanted as WantedDocuments, Watch as OfDocuments};
use sluice_calls::events::{EventPosition, Gap, Told, Wanted};
use sluice_calls::locks::watch::{Wanted as WantedLock, Watch as OfLock};
use sluice_calls::{CallError, Fault, Permit};
use sluice_proto::framing::frame_with;

use super::de::from_rows;
use super::from_json;
use super::rows::Rows;
use super::schema::MessageType;
use super::streaming::{Why, streamed};
use crate::changes;
use crate::events::{Form, open, write_gap, write_told};
use crate::json::{Object, object};
use crate::net::body::Body;
use crate::net::context::Context as Shared;
use crate::net::memory::answers::Share;

/// Answers with a stream of `output` messages.
pub(super) async fn watch<R>(
    context: &Arc<Shared>,
    share: &Share,
    permit: Permit<'_>,
    input: &'static MessageType,
    rows: &Rows<'_>,
    output: usize,
) -> Result<Response<Body>, CallError>
where
    R: DeserializeOwned + TryInto<Wanted, Error = Box<Fault>>,
{
    let wanted = from_rows::<R>(input, rows)?.try_into()?;
    let why = Arc::new(OnceLock::new());
    let pieces = open(context, share, &permit, wanted, Frames { output, why: Arc::clone(&why) }).await?;
    Ok(streamed(pieces, why))
}

/// Answers with a stream of changes of documents.
pub(super) async fn documents(
    context: &Arc<Shared>,
    share: &Share,
    permit: Permit<'_>,
    input: &'static MessageType,
    rows: &Rows<'_>,
    output: usize,
) -> Result<Response<Body>, CallError> {
    let wanted = from_rows::<WantedDocuments>(input, rows)?;
    changing(context, share, OfDocuments::new(&permit, &wanted)?, output).await
}

/// Answers with a stream of the states of a lock.
pub(super) async fn lock(
    context: &Arc<Shared>,
    share: &Share,
    permit: Permit<'_>,
    input: &'static MessageType,
    rows: &Rows<'_>,
    output: usize,
) -> Result<Response<Body>, CallError> {
    let WantedLock {} = from_rows::<WantedLock>(input, rows)?;
    changing(context, share, OfLock::new(&permit)?, output).await
}

async fn changing<S: changes::Source>(
    context: &Arc<Shared>,
    share: &Share,
    source: S,
    output: usize,
) -> Result<Response<Body>, CallError>
where
    S::Event: Serialize,
{
    let why = Arc::new(OnceLock::new());
    let form = Frames { output, why: Arc::clone(&why) };
    let pieces = changes::open(context, share, source, form).await?;
    Ok(streamed(pieces, why))
}

/// One frame for each event.
struct Frames {
    output: usize,
    why: Why,
}

impl Frames {
    fn add(&self, out: &mut Vec<u8>, at: EventPosition, fields: impl FnOnce(&mut Object<'_>)) {
        let mut json = Vec::new();
        object(&mut json, |o| {
            o.text("position", &at.to_string());
            fields(o);
        });
        self.add_json(out, &json);
    }

    fn add_json(&self, out: &mut Vec<u8>, json: &[u8]) {
        let message = match from_json::encode(self.output, json) {
            Ok(message) => message,
            Err(error) => {
                debug_assert!(false, "an event is not as the contract says: {error}");
                return tracing::error!("an event cannot be told: {error}");
            }
        };
        frame_with(out, |out| out.extend_from_slice(&message));
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

    fn end(&self, why: CallError) {
        // The first cause is the cause.
        let _ = self.why.set(why);
    }
}

impl<E: Serialize> changes::Form<E> for Frames {
    fn event(&self, out: &mut Vec<u8>, event: &E) {
        let mut json = Vec::new();
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut json, event);
        self.add_json(out, &json);
    }

    fn end(&self, why: CallError) {
        Form::end(self, why);
    }
}
