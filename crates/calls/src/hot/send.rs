//! Sending: the key by which a repeat is told.

use sluice_engine::limits::IDEMPOTENCY_KEY_BYTES_MAX;

use crate::fault::{Fault, Read};

/// Checks an idempotency key; an empty one is none.
///
/// # Errors
/// `invalid_argument`.
pub fn check_idempotency_key(key: &[u8]) -> Read<()> {
    let printable = key.iter().all(|byte| (0x20..0x7f).contains(byte));
    if key.len() > IDEMPOTENCY_KEY_BYTES_MAX || !printable {
        let reason = format!("expected up to {IDEMPOTENCY_KEY_BYTES_MAX} characters of printable ASCII");
        return Err(Fault::invalid(reason));
    }
    Ok(())
}
