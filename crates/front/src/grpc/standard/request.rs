//! Bounds and fields of requests to these services.

use sluice_calls::{CallError, Fault, Read};
use sluice_engine::Error;
use tokio::sync::OwnedSemaphorePermit;

use crate::grpc::rows::text;
use crate::grpc::wire::{INVALID, Raw, next_field};
use crate::net::arrived::Arrived;

/// Largest request, in bytes: it names one thing.
pub(super) const REQUEST_BYTES_MAX: usize = 16 << 10;

/// A place among the streams of these services, which is given back when it is dropped.
pub(super) fn place(arrived: &Arrived) -> Result<OwnedSemaphorePermit, CallError> {
    let places = arrived.context.standard_streams.clone();
    let overloaded = Error::Overloaded { what: "streams of health and reflection", retry_after_ms: 1_000 };
    places.try_acquire_owned().map_err(|_| overloaded.into())
}

/// The text that a field of a message has; empty if it has none; of several, the last counts. Fields that
/// are not known are left alone, since these contracts grow elsewhere.
pub(super) fn text_in(mut message: &[u8], wanted: u32) -> Read<&str> {
    let mut found = "";
    while let Some((number, value)) = next_field(&mut message)? {
        if number == wanted {
            let Raw::Bytes(bytes) = value else {
                return Err(Fault::new(INVALID, format!("field {number} is of another wire type")));
            };
            found = text(bytes)?;
        }
    }
    Ok(found)
}
