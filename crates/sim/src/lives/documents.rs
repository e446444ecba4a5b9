//! Documents, as clients see them: a write is made if its condition holds and only then; each has a version
//! of its own; what is read is the latest write, until it was deleted or its time is over.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::command::{Command, DocumentCheck, DocumentDelete, DocumentPut};
use sluice_engine::documents::{ChangePosition, DocumentChange, DocumentCondition, DocumentVersion};
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::Reply;
use sluice_engine::{Engine, Error};

use super::Record;
use super::locks::Locks;
use crate::model::{Checked, ensure};

/// A document as its writers were told.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) version: DocumentVersion,
    pub(super) content_bytes: u64,
    request: u64,
    /// When it is gone, in microseconds since the Unix epoch.
    until_us: Option<u64>,
    /// Number of former versions that it may keep.
    history: u16,
    formers: Vec<DocumentVersion>,
    /// Numbers of the indexes that were told the terms of this version.
    pub(super) told: BTreeSet<u64>,
}

/// Everything that was told of documents up to some record.
#[derive(Clone, Debug, Default)]
pub(super) struct Documents {
    pub(super) live: BTreeMap<(NamespaceId, String), Document>,
    latest: u64,
    watchers: BTreeMap<NamespaceId, Watcher>,
}

/// One who watches a namespace, and knows its documents by their changes alone.
#[derive(Clone, Debug, Default)]
struct Watcher {
    until: ChangePosition,
    /// Version of each document, and its end in microseconds since the Unix epoch.
    known: BTreeMap<String, (DocumentVersion, Option<u64>)>,
}

impl Watcher {
    fn catch_up(&mut self, namespace: NamespaceId, engine: &Engine) -> Checked {
        loop {
            let Some(found) = engine.document_changes(namespace, "", self.until, 2) else {
                *self = Watcher::default();
                continue;
            };
            for change in found.changes {
                ensure!(change.revision() > self.until.after, "{change:?} is told after {:?}", self.until);
                self.until.after = change.revision();
                match change {
                    DocumentChange::Written(view) => {
                        self.known.insert(view.key, (view.version, view.expires_at_us));
                    }
                    DocumentChange::Gone { key, .. } => drop(self.known.remove(&key)),
                }
            }
            self.until = found.until;
            if found.is_last {
                return Ok(());
            }
        }
    }
}

impl Documents {
    /// `locks`: as they were before the record.
    pub(super) fn follow(&mut self, record: &Record<'_>, locks: &Locks) -> Checked {
        self.live.retain(|_, document| document.until_us.is_none_or(|until_us| until_us > record.now_us));
        if let Some(Error::InDoubt { .. }) = record.outcome.error {
            return is_in_doubt(record);
        }
        match record.command {
            Command::DocumentPut(put) => self.put(put, record, locks),
            Command::DocumentDelete(DocumentDelete { namespace, key, when }) => {
                let known = (*namespace, (*key).to_owned());
                let found = self.live.get(&known);
                match &record.outcome.error {
                    Some(error) => refused(when, found, error),
                    None => {
                        ensure!(found.is_some() && holds(when, found), "{key} is deleted, as {found:?}");
                        self.live.remove(&known);
                        Ok(())
                    }
                }
            }
            Command::DocumentCheck(DocumentCheck { namespace, key, when }) => {
                let found = self.live.get(&(*namespace, (*key).to_owned()));
                match &record.outcome.error {
                    Some(error) => refused(when, found, error),
                    None => {
                        ensure!(holds(when, found), "{when:?} of {key} is true of {found:?}");
                        Ok(())
                    }
                }
            }
            Command::IndexFill(fill) if record.outcome.error.is_none() => {
                self.filled(fill);
                Ok(())
            }
            Command::NamespaceDelete { namespace, .. } if record.outcome.error.is_none() => {
                self.live.retain(|(of, _), _| of != namespace);
                self.watchers.remove(namespace);
                Ok(())
            }
            Command::Tick => self.are_watched(record),
            _ => Ok(()),
        }
    }

    fn put(&mut self, put: &DocumentPut<'_>, record: &Record<'_>, locks: &Locks) -> Checked {
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
            ensure!(
                locks.hold(token, put.namespace, put.key, record.now_us),
                "{} is written by {token}, which holds no lock",
                put.key
            );
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
            told: put.terms.iter().map(|terms| terms.index).collect(),
        };
        self.live.insert(known, document);
        Ok(())
    }

    /// Lets those who watch catch up: they know what is there. Timers fire up to a millisecond late.
    fn are_watched(&mut self, record: &Record<'_>) -> Checked {
        if record.engine.next_deadline().is_some_and(|due_us| due_us <= record.now_us) {
            return Ok(());
        }
        let namespaces: BTreeSet<_> = self.live.keys().map(|(namespace, _)| *namespace).collect();
        for namespace in namespaces {
            let watcher = self.watchers.entry(namespace).or_default();
            watcher.catch_up(namespace, record.engine)?;
            let lasts = |until_us: Option<u64>| until_us.is_none_or(|until_us| until_us > record.now_us);
            let known = watcher.known.iter().filter(|(_, (_, until_us))| lasts(*until_us));
            let known: Vec<_> = known.map(|(key, (version, _))| (key, *version)).collect();
            let live = self.live.iter().filter(|((of, _), _)| *of == namespace);
            let live: Vec<_> = live.map(|((_, key), document)| (key, document.version)).collect();
            ensure!(known == live, "who watches {namespace:?} knows {known:?}, and there are {live:?}");
        }
        Ok(())
    }

    /// Compares what can be read with what was written, after a record that may have changed it.
    pub(super) fn are_as_written(&self, record: &Record<'_>) -> Checked {
        let may_change = matches!(
            record.command,
            Command::DocumentPut(_)
                | Command::DocumentDelete(_)
                | Command::NamespaceDelete { .. }
                | Command::Transaction(_)
                | Command::IndexPut { .. }
                | Command::IndexFill(_)
                | Command::Tick
        );
        if !may_change {
            return Ok(());
        }
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
        self.are_found(record)
    }
}

/// Checks that a document is prepared, if a record about it was refused since it is.
fn is_in_doubt(record: &Record<'_>) -> Checked {
    let (namespace, key) = match record.command {
        Command::DocumentPut(put) => (put.namespace, put.key),
        Command::DocumentDelete(delete) => (delete.namespace, delete.key),
        Command::DocumentCheck(check) => (check.namespace, check.key),
        _ => return Ok(()),
    };
    let is_decided = record.engine.expect_decided(namespace, key).is_ok();
    ensure!(!is_decided, "{key} is in doubt, and nothing about it is prepared");
    Ok(())
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
