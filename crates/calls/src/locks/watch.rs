//! Streams of the states of a lock: as it is, and again after each change.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_engine::{Error, NamespaceId};
use sluice_node::LockChanges;
use tokio::time::timeout;

use super::views::{Lock, example};
use crate::access::Right;
use crate::error::CallError;
use crate::permit::Permit;
use crate::server::Calls;
use crate::standing::{Standing, Waited};

/// Holders, and those that wait, that a state is told with.
const DETAIL_MAX: usize = 10;

/// A lock to watch, which the call names.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "LockWatchRequest")]
pub struct Wanted {}

/// A state of a lock; nothing: the stream goes on.
#[derive(Clone, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LockEvent", example = example())]
pub struct Event {
    /// The lock, with the first 10 holders and the first 10 of those that wait.
    #[serde(flatten)]
    pub lock: Option<Lock>,
}

/// A watcher of a lock, and the standing of who watches.
#[derive(Debug)]
pub struct Watch {
    namespace: NamespaceId,
    /// Name of the namespace.
    name: Box<str>,
    key: String,
    /// Changes of the lock; `None`: it is not known to be watched.
    changes: Option<LockChanges>,
    standing: Standing,
}

impl Watch {
    /// Begins to watch the lock that a call names.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn new(permit: &Permit<'_>) -> Result<Watch, CallError> {
        let key = permit.name().to_owned();
        let names = || Waited::Keys([Box::from(permit.name())].into());
        let standing = permit.standing(Right::Observe, names);
        let (namespace, name) = (permit.namespace_id()?, permit.namespace_name().into());
        Ok(Watch { namespace, name, key, changes: None, standing })
    }

    /// The state of the lock: the first time as it is, then once it has changed; or nothing after a wait.
    ///
    /// # Errors
    /// `namespace_not_found`; `overloaded`: too many watch locks; why the caller may not look any more.
    pub async fn next(&mut self, calls: &Calls, wait: Duration) -> Result<Event, CallError> {
        let Watch { namespace, name, key, changes, standing } = self;
        let looking = async {
            if let Some(known) = changes {
                match timeout(wait, known.next()).await {
                    Err(_) => return Ok(Event::default()),
                    Ok(true) => {}
                    // Another leadership has changes of its own, or this node leads no more.
                    Ok(false) => *changes = None,
                }
            }
            if changes.is_none() {
                *changes = Some(calls.node().lock_changes(*namespace, key).await?);
            }
            let found = calls.node().lock(*namespace, key, DETAIL_MAX).await?;
            Ok(Event { lock: Some(Lock::whole(key, found.as_ref())) })
        };
        tokio::select! {
            biased;
            denied = standing.lost() => Err(denied.into()),
            told = looking => told.map_err(|error: Error| CallError::from(error).naming(name)),
        }
    }
}
