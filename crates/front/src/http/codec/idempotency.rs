//! The key under which a send is done once.

use http::header::{HeaderMap, HeaderValue};
use sluice_calls::{CallError, Fault};
use sluice_engine::limits::IDEMPOTENCY_KEY_BYTES_MAX;

/// The field of the key.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The key in the head of a request; empty: none.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<&[u8], CallError> {
    only_key(headers.get_all(IDEMPOTENCY_KEY).iter().map(HeaderValue::as_bytes))
}

/// The one key among the values that a request gives; empty: none.
pub(crate) fn only_key<'h>(mut values: impl Iterator<Item = &'h [u8]>) -> Result<&'h [u8], CallError> {
    let Some(key) = values.next() else { return Ok(b"") };
    let visible = key.iter().all(|byte| (0x20..0x7f).contains(byte));
    if values.next().is_some() {
        return Err(Fault::new("duplicate_field", "the header is given twice")
            .inside("Idempotency-Key")
            .into());
    }
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX || !visible {
        let reason = format!("expected 1 to {IDEMPOTENCY_KEY_BYTES_MAX} characters of printable ASCII");
        return Err(Fault::invalid(reason).inside("Idempotency-Key").into());
    }
    Ok(key)
}
