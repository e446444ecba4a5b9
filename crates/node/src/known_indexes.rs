//! A copy of the indexes that each namespace has, so that a write need not ask for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_engine::NamespaceId;
use sluice_engine::indexes::IndexView;

/// Time for which the indexes of a namespace are taken to be as they were: a write that does not know a new
/// one leaves its terms to be told later.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Namespaces from which on those are forgotten that were not asked for lately.
const KNOWN_MAX: usize = 1_000;

/// The indexes of namespaces, as they were a moment ago.
#[derive(Debug, Default)]
pub(crate) struct KnownIndexes(Mutex<HashMap<NamespaceId, Known>>);

/// The indexes of a namespace, and when they were looked at.
#[derive(Debug)]
struct Known {
    at: Instant,
    indexes: Arc<[IndexView]>,
}

impl KnownIndexes {
    pub(crate) fn get(&self, namespace: NamespaceId) -> Option<Arc<[IndexView]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { at, indexes } = known.get(&namespace)?;
        (at.elapsed() < KNOWN_FOR).then(|| Arc::clone(indexes))
    }

    pub(crate) fn set(&self, namespace: NamespaceId, indexes: Option<Arc<[IndexView]>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.retain(|_, known| known.at.elapsed() < KNOWN_FOR);
        }
        match indexes {
            Some(indexes) => known.insert(namespace, Known { at: Instant::now(), indexes }),
            None => known.remove(&namespace),
        };
    }
}
