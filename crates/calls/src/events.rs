//! Events of a namespace or a queue, as they happen.

use sluice_engine::Error;
use sluice_node::{EventPosition, Reader};

use crate::access::Right;
use crate::error::CallError;
use crate::operation::Subject;
use crate::permit::Permit;
use crate::server::Calls;
use crate::standing::{Standing, Waited};

/// A reader of events, and the standing of who reads.
#[derive(Debug)]
pub struct Watch {
    /// The events.
    pub reader: Reader,
    /// Whether the caller may still have them.
    pub standing: Standing,
}

/// Begins to watch the queue that a request names, or its whole namespace; after `after`, if that is given.
///
/// # Errors
/// Those of the node.
pub async fn watch(permit: &Permit<'_>, after: Option<EventPosition>) -> Result<Watch, CallError> {
    let queue = (permit.operation().subject() == Subject::Queue).then(|| permit.name());
    let reader = permit.node().watch(permit.namespace_id()?, queue, after).await?;
    let waited = || queue.map_or(Waited::Whole, |queue| Waited::queues(std::iter::once(queue)));
    Ok(Watch { reader, standing: permit.standing(Right::Observe, waited) })
}

impl Calls {
    /// Checks that a namespace is still there, for those who watch it.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn check_namespace(&self, name: &str) -> Result<(), Error> {
        self.node().namespace_id(name).map(|_| ())
    }
}
