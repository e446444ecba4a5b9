//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, in milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}
