//! Changes of documents: what has changed since when, and a wait for the next change.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_engine::documents::{ChangePosition, DocumentChange, DocumentChanges};
use sluice_engine::{Error, NamespaceId};

use super::Document;
use crate::access::{Caller, Right, Target};
use crate::call::{Body, Done, Unary};
use crate::error::CallError;
use crate::fault::{Fault, Read};
use crate::hot::AT_MS_EXAMPLE;
use crate::hot::receive::WAIT_MS_MAX;
use crate::permit::Permit;
use crate::standing::Waited;
use crate::value::{PageSize, True, Within, given, page_size};

/// Changes of the documents of a namespace.
#[derive(Clone, Default, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "DocumentChangesRequest")]
pub struct Changes {
    /// Only keys that begin with this.
    prefix: Option<String>,
    /// `next` of the answer before; default: all documents as they are.
    after: Option<String>,
    /// Most changes of the answer.
    limit: Option<PageSize>,
    /// Longest wait for a first change, in milliseconds; default 0.
    wait_ms: Option<Within<0, WAIT_MS_MAX>>,
}

/// A change: a document as it is, or its end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentChange")]
#[schemars(example = json!({"key": "orders/17", "etag": "7340032000002", "changed_at_ms": AT_MS_EXAMPLE, "gone": true}))]
pub struct Change {
    /// Its key.
    key: String,
    /// ETag of the version, or of the end, in decimal digits: later changes have larger ones.
    etag: String,
    /// When it was, in milliseconds since the Unix epoch.
    changed_at_ms: u64,
    /// The document, without its content; absent when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Document>,
    /// True when it was deleted, or its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<True>,
}

impl From<&DocumentChange> for Change {
    fn from(change: &DocumentChange) -> Change {
        let (at, document) = match change {
            DocumentChange::Written(view) => (view.version, Some(Document::from(view))),
            DocumentChange::Gone { at, .. } => (*at, None),
        };
        Change {
            key: change.key().to_owned(),
            etag: at.revision.to_string(),
            changed_at_ms: at.changed_at_us / 1_000,
            gone: True::when(document.is_none()),
            document,
        }
    }
}

impl Change {
    /// True when the document is gone.
    pub fn is_gone(&self) -> bool {
        self.gone.is_some()
    }
}

/// Changes in their order: of each key the last one, and its ends.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentChanges")]
#[schemars(example = json!({"changes": [], "next": "7340032000002"}))]
pub struct Changed {
    /// The changes.
    pub(super) changes: Vec<Change>,
    /// Place behind them, at which the next call goes on.
    pub(super) next: String,
    /// True when there are more at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) more: Option<True>,
}

impl Unary for Changes {
    type Answer = Changed;
    const BODY: Body = Body::None;

    async fn run(self, permit: &Permit<'_>) -> Result<Done<Changed>, CallError> {
        let namespace = permit.namespace_id()?;
        let from = place(self.after.as_deref(), namespace)?;
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let wait = Duration::from_millis(self.wait_ms.map_or(0, Within::get));
        let (node, size) = (permit.node(), page_size(self.limit));
        let changes = node.document_changes(namespace, prefix, from, size, wait, permit.stopping());
        let (found, caller) = if wait.is_zero() {
            (changes.await?, permit.caller().clone())
        } else {
            let standing = permit.standing(Right::Read, || Waited::SomeKey);
            let found = tokio::select! {
                biased;
                denied = standing.lost() => return Err(denied.into()),
                found = changes => found?,
            };
            // By the rights that the caller has by now.
            (found, standing.check()?)
        };
        Ok(Changed::of(&found, (namespace, permit.namespace_name()), &caller).into())
    }
}

impl Changed {
    /// The changes of keys that a caller may read.
    pub(super) fn of(
        found: &DocumentChanges,
        (namespace, name): (NamespaceId, &str),
        caller: &Caller,
    ) -> Changed {
        let may = |change: &&DocumentChange| caller.may(Right::Read, Target::Key(name, change.key())).is_ok();
        Changed {
            changes: found.changes.iter().filter(may).map(Change::from).collect(),
            next: text(found.until, namespace),
            more: True::when(!found.is_last),
        }
    }
}

/// The text of a place in a namespace: one number, and a second one while all documents are read; behind a
/// full stop the number of the namespace, unless it is the first, since one that is made anew has others.
fn text(place: ChangePosition, namespace: NamespaceId) -> String {
    let ChangePosition { after, begun } = place;
    let of = if namespace == NamespaceId::DEFAULT { String::new() } else { format!(".{}", namespace.0) };
    if begun <= after { format!("{after}{of}") } else { format!("{after}-{begun}{of}") }
}

/// The place in a namespace that the field `after` names; by default the beginning.
///
/// # Errors
/// `invalid_argument`: it is none; `changes_forgotten`: it is one in a namespace that was deleted.
pub(super) fn place(after: Option<&str>, namespace: NamespaceId) -> Result<ChangePosition, CallError> {
    let read = given(after).map(read_place).transpose().map_err(|fault| fault.inside("after"))?;
    match read {
        None => Ok(ChangePosition::default()),
        Some((_, Some(of))) if of != namespace.0 => Err(Error::ChangesForgotten {}.into()),
        Some((place, _)) => Ok(place),
    }
}

/// A place, and the number of the namespace that it names.
pub(super) fn read_place(text: &str) -> Read<(ChangePosition, Option<u32>)> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let (numbers, of) = match text.split_once('.') {
        None => (text, None),
        Some((numbers, of)) => (numbers, Some(number(of).and_then(|of| u32::try_from(of).ok()))),
    };
    let place = match numbers.split_once('-') {
        None => number(numbers).map(|after| ChangePosition { after, begun: after }),
        Some((after, begun)) => {
            number(after).zip(number(begun)).map(|(after, begun)| ChangePosition { after, begun })
        }
    };
    let read = match of {
        None => place.map(|place| (place, None)),
        Some(of) => place.zip(of).map(|(place, of)| (place, Some(of))),
    };
    read.ok_or_else(|| {
        Fault::invalid(
            "expected next of the answer before, the id of the last event, or the etag of a change",
        )
    })
}
