//! The log of refused peers: each refusal once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Number of different refusals that are logged between two starts.
const REFUSALS_MAX: usize = 100;

/// Refusals that were logged.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<BTreeSet<String>>);

impl RefusalLog {
    /// Logs a refusal, unless the same was logged, or too many others.
    pub(crate) fn note(&self, text: String) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() < REFUSALS_MAX && !noted.contains(&text) {
            tracing::warn!("{text}");
            noted.insert(text);
        }
    }
}
