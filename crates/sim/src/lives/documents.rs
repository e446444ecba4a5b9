//! Documents, as clients see them: a write is made if its condition holds and only then; each has a version
//! of its own; what is read is the latest write, until it was deleted or its time is over.

use std::collections::BTreeMap;

use sluice_engine::Error;
use sluice_engine::command::{Command, DocumentDelete, DocumentPut};
use sluice_engine::documents::{DocumentCondition, DocumentVersion};
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::Reply;

use super::Record;
use crate::model::{Checked, ensure};

/// A document as its writers were told.
#[derive(Clone, Debug)]
struct Document {
    version: DocumentVersion,
    content_bytes: u64,
    request: u64,
    /// When it is gone, in microseconds since the Unix epoch.
    until_us: Option<u64>,
    /// Number of former versions that it may keep.
    history: u16,
    formers: Vec<DocumentVersion>,
}

/// Everything that was told of documents up to some record.
#[derive(Clone, Debug, Default)]
pub(super) struct Documents {
    live: BTreeMap<(NamespaceId, String), Document>,
    latest: u64,
}

impl Documents {
    pub(super) fn follow(&mut self, record: &Record<'_>) -> Checked {
        self.live.retain(|_, document| document.until_us.is_none_or(|until_us| until_us > record.now_us));
        match record.command {
            Command::DocumentPut(put) => self.put(put, record)?,
            Command::DocumentDelete(DocumentDelete { namespace, key, when }) => {
                let known = (*namespace, (*key).to_owned());
                let found = self.live.get(&known);
                match &record.outcome.error {
                    Some(error) => refused(when, found, error)?,
                    None => {
                        ensure!(found.is_some() && holds(when, found), "{key} is deleted, as {found:?}");
                        self.live.remove(&known);
                    }
                }
            }
            Command::NamespaceDelete { namespace, .. } if record.outcome.error.is_none() => {
                self.live.retain(|(of, _), _| of != namespace);
            }
            Command::Tick => return self.are_as_written(record),
            _ => return Ok(()),
        }
        self.are_as_written(record)
    }

    fn put(&mut self, put: &DocumentPut<'_>, record: &Record<'_>) -> Checked {
        let known = (put.namespace, put.key.to_owned());
        let found = self.live.get(&known);
        if let Some(error) = &record.outcome.error {
            return refused(&put.when, found, error);
        }
        let Reply::DocumentWritten { version, created } = record.outcome.reply else {
            return Err(format!("a write is answered with {:?}", record.outcome.reply));
        };
        if let Some(current) = found.filter(|found| put.request != 0 && found.request == put.request) {
            ensure!(version == current.version, "a repeat of {current:?} has become {version:?}");
            return Ok(());
        }
        ensure!(holds(&put.when, found), "{put:?} has replaced {found:?}");
        let before = found.map_or(0, |document| document.version.version);
        ensure!(version.version == before + 1 && created == found.is_none(), "{version:?} after {found:?}");
        ensure!(version.revision > self.latest, "{version:?} is not above {}", self.latest);
        if let Some(token) = put.when.token {
            let holders = record.engine.lock(put.namespace, put.key, 100).map(|lock| lock.holders);
            let is_held = holders.iter().flatten().any(|holder| holder.number == token.number);
            ensure!(is_held, "{} is written by {token}, which holds no lock", put.key);
        }
        self.latest = version.revision;
        let history = put.history.or(found.map(|found| found.history)).unwrap_or(0);
        let mut formers =
            found.map_or_else(Vec::new, |found| [vec![found.version], found.formers.clone()].concat());
        formers.truncate(history.into());
        let document = Document {
            version,
            content_bytes: put.content.len() as u64,
            request: put.request,
            until_us: match put.ttl_ms {
                None => found.and_then(|found| found.until_us),
                Some(ttl_ms) => Some(record.now_us + ttl_ms * 1_000).filter(|_| ttl_ms > 0),
            },
            history,
            formers,
        };
        self.live.insert(known, document);
        Ok(())
    }

    /// Compares what can be read with what was written.
    fn are_as_written(&self, record: &Record<'_>) -> Checked {
        let mut listed = BTreeMap::new();
        for (namespace, key) in self.live.keys() {
            listed.entry(*namespace).or_insert_with(Vec::new).push(key.clone());
        }
        listed.entry(NamespaceId::DEFAULT).or_default();
        for (namespace, keys) in listed {
            let found = record.engine.documents_after(namespace, "", None, 1_000);
            let found: Vec<String> = found.into_iter().map(|view| view.key).collect();
            ensure!(found == keys, "documents {found:?} are listed in {namespace:?}, not {keys:?}");
        }
        for ((namespace, key), document) in &self.live {
            let found = record.engine.document_versions(*namespace, key);
            let current = found.first().map(|view| (view.version, view.content_bytes, view.expires_at_us));
            let written = Some((document.version, document.content_bytes, document.until_us));
            ensure!(current == written, "document {key:?} is {current:?}, not {written:?}");
            let formers = found.iter().skip(1).map(|view| view.version);
            ensure!(formers.eq(document.formers.iter().copied()), "{key:?} has not its versions: {found:?}");
        }
        Ok(())
    }
}

fn holds(when: &DocumentCondition, found: Option<&Document>) -> bool {
    let version = found.map(|document| document.version);
    when.version.is_none_or(|expected| version.map_or(0, |version| version.version) == expected)
        && when.revision.is_none_or(|expected| version.is_some_and(|version| version.revision == expected))
        && (version.is_some() || !when.exists)
}

fn refused(when: &DocumentCondition, found: Option<&Document>, error: &Error) -> Checked {
    let is_right = match error {
        Error::DocumentChanged { version, .. } => {
            !holds(when, found) && *version == found.map_or(0, |document| document.version.version)
        }
        Error::DocumentNotFound { .. } => found.is_none(),
        Error::LockLost { .. } | Error::LockOfOther { .. } => when.token.is_some(),
        Error::NamespaceNotFound { .. } | Error::QuotaExceeded { .. } => true,
        _ => false,
    };
    ensure!(is_right, "a write with {when:?} of {found:?} is refused by {error:?}");
    Ok(())
}
