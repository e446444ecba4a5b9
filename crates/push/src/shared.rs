//! The parts that all pushers of a node share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_engine::id::NamespaceId;

use crate::budget::Budget;
use crate::log::{Counts, Log};
use crate::options::Options;

/// The parts that all pushers of a node share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Arc<Options>,
    pub(crate) counts: Counts,
    /// Bytes of messages that are held.
    pub(crate) budget: Budget,
    /// Logs of the queues that this node pushes.
    logs: Mutex<BTreeMap<Key, Arc<Log>>>,
}

/// Namespace and name of a queue.
pub(crate) type Key = (NamespaceId, Box<str>);

impl Shared {
    pub(crate) fn new(options: Options) -> Shared {
        Shared {
            options: Arc::new(options),
            counts: Counts::default(),
            budget: Budget::default(),
            logs: Mutex::default(),
        }
    }

    pub(crate) fn logs(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Log>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
