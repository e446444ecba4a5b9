//! Documents: a write is made if its condition holds and only then, versions and revisions grow, the content
//! is that of the latest write, and former versions are kept as far as they are asked for.

use std::collections::BTreeMap;

use sluice_engine::blob::MessageBlob;
use sluice_engine::command::{DocumentCheck, DocumentDelete, DocumentPut};
use sluice_engine::documents::{ChangePosition, DocumentChange, DocumentCondition, DocumentVersion};
use sluice_engine::id::NamespaceId;
use sluice_engine::outcome::{Outcome, Reply};
use sluice_engine::{Command, Engine, Error};

use super::Run;
use crate::common::Driver;

pub(super) const KEYS: [&str; 4] = ["a", "b", "orders/1", "orders/2"];

#[derive(Clone, Debug)]
struct Written {
    version: DocumentVersion,
    content: Vec<u8>,
    request: u64,
}

#[derive(Clone, Debug, Default)]
struct Document {
    /// The current version first.
    versions: Vec<Written>,
    history: u16,
    until_us: Option<u64>,
}

/// Every document, by what its writers were told.
#[derive(Default)]
pub(super) struct Documents {
    live: BTreeMap<(NamespaceId, String), Document>,
    latest: u64,
    watcher: Watcher,
}

/// One who watches a namespace, and knows its documents by their changes alone.
#[derive(Default)]
struct Watcher {
    until: ChangePosition,
    /// Version of each document, and its end.
    known: BTreeMap<String, (DocumentVersion, Option<u64>)>,
}

impl Watcher {
    fn catch_up(&mut self, engine: &Engine, limit: usize) {
        loop {
            let Some(found) = engine.document_changes(NamespaceId::DEFAULT, "", self.until, limit) else {
                *self = Watcher::default();
                continue;
            };
            let mut before = self.until.after;
            for change in found.changes {
                assert!(change.revision() > before, "changes go back to {before}: {change:?}");
                before = change.revision();
                match change {
                    DocumentChange::Written(view) => {
                        self.known.insert(view.key, (view.version, view.expires_at_us));
                    }
                    DocumentChange::Gone { key, .. } => drop(self.known.remove(&key)),
                }
            }
            assert!(found.until.after >= before);
            self.until = found.until;
            if found.is_last {
                return;
            }
        }
    }
}

impl Documents {
    pub(super) fn follow(&mut self, now_us: u64, command: &Command<'_>, out: &Outcome) {
        self.live.retain(|_, document| document.until_us.is_none_or(|until_us| until_us > now_us));
        match command {
            Command::DocumentPut(put) => self.put(now_us, put, out),
            Command::DocumentDelete(DocumentDelete { namespace, key, when }) => {
                let known = (*namespace, (*key).to_owned());
                match self.live.get(&known) {
                    Some(document) if out.error.is_none() => {
                        assert!(holds(when, Some(document)), "{command:?} of {document:?}");
                        self.live.remove(&known);
                    }
                    found => refused(when, found, out, "delete"),
                }
            }
            Command::DocumentCheck(DocumentCheck { namespace, key, when }) => {
                let found = self.live.get(&(*namespace, (*key).to_owned()));
                match out.error {
                    None => assert!(holds(when, found), "{command:?} of {found:?}"),
                    Some(_) => refused(when, found, out, "check"),
                }
            }
            Command::NamespaceDelete { namespace, .. } if out.error.is_none() => {
                self.live.retain(|(of, _), _| of != namespace);
            }
            _ => {}
        }
    }

    fn put(&mut self, now_us: u64, put: &DocumentPut<'_>, out: &Outcome) {
        let found = self.live.get(&(put.namespace, put.key.to_owned()));
        if out.error.is_some() {
            return refused(&put.when, found, out, "put");
        }
        let Reply::DocumentWritten { version, created } = out.reply else { panic!("{:?}", out.reply) };
        if let Some(current) = found.and_then(|document| document.versions.first())
            && put.request != 0
            && current.request == put.request
        {
            assert_eq!((version, created), (current.version, version.version == 1), "a repeat");
            return;
        }
        assert!(holds(&put.when, found), "{put:?} replaces {found:?}");
        let before = found.map_or(0, |document| document.versions[0].version.version);
        assert_eq!((version.version, created), (before + 1, found.is_none()));
        assert!(version.revision > self.latest && version.changed_at_us == now_us);
        self.latest = version.revision;
        let mut document = found.cloned().unwrap_or_default();
        document.history = put.history.unwrap_or(document.history);
        let (content, request) = (put.content.to_vec(), put.request);
        document.versions.insert(0, Written { version, content, request });
        document.versions.truncate(usize::from(document.history) + 1);
        if let Some(ttl_ms) = put.ttl_ms {
            document.until_us = Some(now_us + ttl_ms * 1_000).filter(|_| ttl_ms != 0);
        }
        self.live.insert((put.namespace, put.key.to_owned()), document);
    }

    /// True if there is a document, by what its writers were told.
    pub(super) fn is_live(&self, namespace: NamespaceId, key: &str) -> bool {
        self.live.contains_key(&(namespace, key.to_owned()))
    }

    /// Lets one who watches catch up, when nothing is due: it knows what is there.
    pub(super) fn check_watcher(&mut self, now_us: u64, limit: usize, engine: &Engine) {
        self.watcher.catch_up(engine, limit);
        let known = self.watcher.known.iter();
        let known = known.filter(|(_, (_, until_us))| until_us.is_none_or(|until_us| until_us > now_us));
        let known = known.map(|(key, (version, _))| (key, *version));
        let live = self.live.iter().filter(|((namespace, _), document)| {
            let is_over = document.until_us.is_some_and(|until_us| until_us <= now_us);
            *namespace == NamespaceId::DEFAULT && !is_over
        });
        assert!(known.eq(live.map(|((_, key), document)| (key, document.versions[0].version))));
    }

    /// Compares what can be read with what was written.
    pub(super) fn check(&self, driver: &Driver) {
        let mut namespaces: Vec<_> = self.live.keys().map(|(namespace, _)| *namespace).collect();
        namespaces.push(NamespaceId::DEFAULT);
        for namespace in namespaces {
            let found = driver.engine.documents_after(namespace, "", None, 1_000);
            let keys = found.iter().map(|view| view.key.clone());
            let live = self.live.keys().filter(|(of, _)| *of == namespace).map(|(_, key)| key.clone());
            let (keys, live): (Vec<_>, Vec<_>) = (keys.collect(), live.collect());
            assert_eq!(keys, live, "documents of {namespace:?}");
        }
        for ((namespace, key), document) in &self.live {
            let found = driver.engine.document_versions(*namespace, key);
            assert_eq!(found.len(), document.versions.len(), "versions of {key}");
            assert_eq!(found[0].expires_at_us, document.until_us);
            for (view, written) in found.iter().zip(&document.versions) {
                let blob = MessageBlob::parse(&driver.blobs[&view.blob]).unwrap();
                assert_eq!((view.version, blob.payload), (written.version, &*written.content));
                assert_eq!(view.content_bytes, written.content.len() as u64);
            }
        }
    }
}

fn holds(when: &DocumentCondition, found: Option<&Document>) -> bool {
    let version = found.map(|document| document.versions[0].version);
    when.version.is_none_or(|expected| version.map_or(0, |version| version.version) == expected)
        && when.revision.is_none_or(|expected| version.is_some_and(|version| version.revision == expected))
        && (version.is_some() || !when.exists)
}

fn refused(when: &DocumentCondition, found: Option<&Document>, out: &Outcome, what: &str) {
    let as_told = match &out.error {
        Some(Error::DocumentChanged { version, .. }) => {
            !holds(when, found)
                && *version == found.map_or(0, |document| document.versions[0].version.version)
        }
        Some(Error::DocumentNotFound { .. }) => found.is_none() && what == "delete",
        Some(Error::LockLost { .. } | Error::LockOfOther { .. }) => when.token.is_some(),
        Some(Error::NamespaceNotFound { .. } | Error::QuotaExceeded { .. }) => true,
        _ => false,
    };
    assert!(as_told, "{what} with {when:?} of {found:?}: {:?}", out.error);
}

impl Run {
    pub(super) fn document(&mut self) {
        let namespace = if self.numbers.one_in(4) {
            let namespaces = self.namespaces.clone();
            self.numbers.pick(&namespaces)
        } else {
            NamespaceId::DEFAULT
        };
        let key = self.numbers.pick(&KEYS);
        let when = self.condition(namespace, key);
        if self.numbers.one_in(5) {
            return self.apply(&Command::DocumentDelete(DocumentDelete { namespace, key, when }));
        }
        let content = vec![b'c'; self.numbers.pick(&[0, 1, 10, 100])];
        let put = DocumentPut {
            namespace,
            key,
            when,
            ttl_ms: self.numbers.pick(&[None, Some(0), Some(0), Some(1), Some(50), Some(60_000)]),
            history: self.numbers.pick(&[None, None, Some(0), Some(1), Some(3)]),
            request: self.numbers.pick(&[0, 0, 1, 2]),
            content_type: self.numbers.pick(&["", "text/plain"]),
            attributes: self.numbers.pick(&[&[][..], &[("a", "b")]]),
            content: &content,
            terms: &[],
        };
        self.apply(&Command::DocumentPut(put));
    }

    /// A condition that mostly holds.
    pub(super) fn condition(&mut self, namespace: NamespaceId, key: &str) -> DocumentCondition {
        let found = self.driver.engine.document(namespace, key).map(|view| view.version);
        self.condition_on(found.unwrap_or_default())
    }

    /// A condition that mostly holds of what has this version.
    pub(super) fn condition_on(&mut self, found: DocumentVersion) -> DocumentCondition {
        let mut when = DocumentCondition::default();
        match self.numbers.below(8) {
            0 => when.version = Some(found.version),
            1 => when.version = Some(self.numbers.below(3)),
            2 => when.revision = Some(found.revision),
            3 => when.revision = Some(found.revision.saturating_sub(1)),
            4 => when.exists = true,
            5 => when.token = self.some_token(),
            _ => {}
        }
        when
    }
}
