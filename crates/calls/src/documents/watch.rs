//! Streams of changes: the documents as they are, and each change from then on.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::NamespaceId;
use sluice_engine::documents::ChangePosition;

use super::changes::{Change, Changed, place, read_place};
use crate::access::Right;
use crate::error::CallError;
use crate::fault::Read;
use crate::hot::AT_MS_EXAMPLE;
use crate::permit::Permit;
use crate::server::Calls;
use crate::standing::{Standing, Waited};
use crate::value::True;

/// Most changes that are taken at once: some kilobytes.
const CHANGES_AT_ONCE: usize = 64;

/// Selection of documents to watch, and the place to begin at.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentWatchRequest")]
pub struct Wanted {
    /// Only keys that begin with this.
    prefix: Option<String>,
    /// The id of the last event that came; Last-Event-ID goes before it. Default: all documents as they are.
    after: Option<String>,
}

impl Wanted {
    /// Sets the place to begin at: the id of the last event that came, as `Last-Event-ID` has it.
    ///
    /// # Errors
    /// `invalid_argument`: it is none.
    pub fn set_last_event(&mut self, id: &[u8]) -> Read<()> {
        let id = String::from_utf8_lossy(id);
        read_place(&id)?;
        self.after = Some(id.into_owned());
        Ok(())
    }
}

/// An event of a stream: a change, or that the reader knows all documents; neither: only its place is told.
#[derive(Clone, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentEvent")]
#[schemars(example = json!({
    "key": "orders/17", "etag": "7340032000002", "changed_at_ms": AT_MS_EXAMPLE, "gone": true,
}))]
pub struct Event {
    /// The change.
    #[serde(flatten)]
    pub change: Option<Change>,
    /// True when the reader knows all documents as they are: once, behind the first ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<True>,
}

/// An event, and the place behind it.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Placed {
    /// Place at which a reader that comes back goes on; absent between changes that were read together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl From<Event> for Placed {
    fn from(event: Event) -> Placed {
        Placed { position: None, event }
    }
}

/// A reader of changes, and the standing of who reads.
#[derive(Debug)]
pub struct Watch {
    namespace: NamespaceId,
    name: Box<str>,
    prefix: String,
    from: ChangePosition,
    standing: Standing,
    is_current: bool,
}

impl Watch {
    /// Begins to watch the documents that a request names.
    ///
    /// # Errors
    /// `invalid_argument`; `namespace_not_found`; `changes_forgotten`.
    pub fn new(permit: &Permit<'_>, wanted: &Wanted) -> Result<Watch, CallError> {
        let namespace = permit.namespace_id()?;
        Ok(Watch {
            namespace,
            name: permit.namespace_name().into(),
            prefix: wanted.prefix.clone().unwrap_or_default(),
            from: place(wanted.after.as_deref(), namespace)?,
            standing: permit.standing(Right::Read, || Waited::SomeKey),
            is_current: false,
        })
    }

    /// The next events, as soon as there are some, or the position after a wait.
    ///
    /// # Errors
    /// `changes_forgotten`; `namespace_not_found`; why the caller may not read any more.
    pub async fn next(&mut self, calls: &Calls, wait: Duration) -> Result<Vec<Placed>, CallError> {
        let Watch { namespace, name, prefix, from, standing, is_current } = self;
        let most = CHANGES_AT_ONCE;
        let found = tokio::select! {
            biased;
            denied = standing.lost() => return Err(denied.into()),
            found =
                calls.node().document_changes(*namespace, prefix, *from, most, wait, calls.stopping()) => found,
        };
        let found = found.map_err(|error| CallError::from(error).naming(name))?;
        *from = found.until;
        let Changed { changes, next, more } = Changed::of(&found, (*namespace, name), &standing.check()?);
        let change = |change| Placed::from(Event { change: Some(change), current: None });
        let mut events: Vec<Placed> = changes.into_iter().map(change).collect();
        if more.is_none() && !*is_current {
            *is_current = true;
            events.push(Event { current: Some(True), ..Event::default() }.into());
        }
        if events.is_empty() {
            events.push(Placed::default());
        }
        if let Some(last) = events.last_mut() {
            last.position = Some(next);
        }
        Ok(events)
    }

    /// False until it is said that the reader knows all documents: until then there is no need to wait.
    pub fn is_current(&self) -> bool {
        self.is_current
    }
}
