//! Numbers in text.

use super::{Fault, Read};

/// A number in text, as query and headers have it.
pub(crate) fn integer(text: &str, min: u64, max: u64) -> Read<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(value) if digits && (min..=max).contains(&value) => Ok(value),
        _ => {
            let got: String = text.chars().take(32).collect();
            Err(Fault::invalid(format!("expected a number from {min} to {max}, got {got:?}")))
        }
    }
}
