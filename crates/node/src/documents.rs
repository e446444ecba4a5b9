//! Caller's side of documents.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use sluice_engine::command::{Command, DocumentDelete, DocumentPut};
use sluice_engine::documents::{
    ChangePosition, DocumentChanges, DocumentCondition, DocumentVersion, DocumentView,
};
use sluice_engine::outcome::Reply;
use sluice_engine::{Error, NamespaceId};
use tokio::time::{Instant, sleep, timeout_at};

use crate::blobs;
use crate::handle::{LOOK_ITEMS, Node};
use crate::shard::request::{FoundDocument, ShardView, unexpected};
use crate::shard::store;

/// Time for which a read waits for the decision on a transaction that is about its document, and the pause
/// between two looks.
const DECISION_WAIT: Duration = Duration::from_secs(1);
const DECISION_PAUSE: Duration = Duration::from_millis(2);

impl FoundDocument {
    /// The document with its bytes, as [`Node::document`] tells them.
    ///
    /// # Errors
    /// `overloaded` and `payload_damaged` when the bytes cannot be read; what `room` says.
    pub async fn load(
        self,
        room: impl FnOnce(&DocumentView) -> Result<bool, Error>,
    ) -> Result<(DocumentView, Option<Bytes>), Error> {
        let FoundDocument { view, blob } = self;
        if !room(&view)? {
            return Ok((view, None));
        }
        let bytes = read_of(&view, blobs::load(vec![blob]).await.pop())?;
        Ok((view, Some(bytes)))
    }

    /// Documents with their bytes, in their order.
    ///
    /// # Errors
    /// `overloaded` and `payload_damaged` when the bytes of one cannot be read.
    pub async fn load_all(found: Vec<FoundDocument>) -> Result<Vec<(DocumentView, Bytes)>, Error> {
        let (views, blobs): (Vec<_>, Vec<_>) = found.into_iter().map(|one| (one.view, one.blob)).unzip();
        let read = blobs::load(blobs).await.into_iter().map(Some);
        let with_bytes = |(view, read): (DocumentView, _)| {
            let bytes = read_of(&view, read)?;
            Ok((view, bytes))
        };
        views.into_iter().zip(read).map(with_bytes).collect()
    }
}

/// The bytes of a document, as they were read.
fn read_of(view: &DocumentView, read: Option<Result<Bytes, blobs::ReadFailure>>) -> Result<Bytes, Error> {
    match read {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(blobs::ReadFailure::Later)) => {
            Err(Error::Overloaded { what: "reads from the disk", retry_after_ms: 1_000 })
        }
        _ => Err(Error::DocumentDamaged { key: view.key.clone(), version: view.version.version }),
    }
}

impl Node {
    /// Writes a document. Tells its version, and whether it is new.
    ///
    /// # Errors
    /// `version_mismatch` and `lease_lost` when its condition does not hold; `quota_exceeded`,
    /// `limit_exceeded`, `payload_too_large`.
    pub async fn document_put(&self, put: &DocumentPut<'_>) -> Result<(DocumentVersion, bool), Error> {
        match self.propose(put.namespace, &Command::DocumentPut(*put)).await?.result? {
            Reply::DocumentWritten { version, created } => Ok((version, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes a document with its former versions. Tells the version that it had.
    ///
    /// # Errors
    /// `document_not_found`; `version_mismatch` and `lease_lost` when the condition does not hold.
    pub async fn document_delete(
        &self,
        namespace: NamespaceId,
        key: &str,
        when: DocumentCondition,
    ) -> Result<DocumentVersion, Error> {
        let delete = Command::DocumentDelete(DocumentDelete { namespace, key, when });
        match self.propose(namespace, &delete).await?.result? {
            Reply::DocumentWritten { version, .. } => Ok(version),
            other => Err(unexpected(&other)),
        }
    }

    /// The versions of a document that are kept, the current one first.
    ///
    /// # Errors
    /// `document_not_found`; `invalid_argument` for a key that no document can have.
    pub async fn document_versions(
        &self,
        namespace: NamespaceId,
        key: &str,
    ) -> Result<Vec<DocumentView>, Error> {
        let look = move |at: &mut ShardView<'_>, key: &str| at.engine.document_versions(namespace, key);
        let found = self.look_decided(namespace, key, look).await?;
        if found.is_empty() { Err(not_found(key)) } else { Ok(found) }
    }

    /// A document with content type, attributes and content, which lie in its bytes: see
    /// [`sluice_engine::blob`]; of a former `version`, if one is given that is kept. `room` is asked before
    /// the bytes are read, and says whether they are.
    ///
    /// # Errors
    /// `document_not_found`; `overloaded` and `payload_damaged` when the bytes cannot be read; what `room`
    /// says.
    pub async fn document(
        &self,
        namespace: NamespaceId,
        key: &str,
        version: Option<u64>,
        room: impl FnOnce(&DocumentView) -> Result<bool, Error>,
    ) -> Result<(DocumentView, Option<Bytes>), Error> {
        let look = move |at: &mut ShardView<'_>, key: &str| {
            let current = at.engine.document(namespace, key)?;
            let is_current = version.is_none_or(|version| version == current.version.version);
            let latest = current.version.version;
            let found = if is_current {
                Some(current)
            } else {
                let all = at.engine.document_versions(namespace, key);
                all.into_iter().find(|view| Some(view.version.version) == version)
            };
            let found = found.map(|view| FoundDocument { blob: store::read(at.journal, view.blob), view });
            Some((latest, found))
        };
        let found = self.look_decided(namespace, key, look).await?;
        let (latest, found) = found.ok_or_else(|| not_found(key))?;
        let found = found.ok_or_else(|| Error::DocumentVersionNotFound {
            key: key.to_owned(),
            version: version.unwrap_or(latest),
            latest,
        })?;
        found.load(room).await
    }

    /// Documents by key after `after`, at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn documents(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DocumentView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (mut documents, mut after) = (Vec::new(), after.map(str::to_owned));
        while documents.len() < limit {
            let (from, most) = (after.clone(), LOOK_ITEMS.min(limit - documents.len()));
            let prefix = prefix.to_owned();
            let look = move |engine: &sluice_engine::Engine| {
                engine.documents_after(namespace, &prefix, from.as_deref(), most)
            };
            let page = self.look(shard, move |at| look(at.engine)).await?;
            let is_full = page.len() == most;
            after = page.last().map(|document| document.key.clone());
            documents.extend(page);
            if !is_full {
                break;
            }
        }
        Ok(documents)
    }

    /// Documents by key after `after`, with their bytes or where these lie; as many as the shard shows at a
    /// time, and whether they are the last.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn found_documents(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<(Vec<FoundDocument>, bool), Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let look = move |at: &mut ShardView<'_>| {
            let views = at.engine.documents_after(namespace, &prefix, after.as_deref(), LOOK_ITEMS);
            at.found(views)
        };
        let found = self.look(shard, look).await?;
        let is_last = found.len() < LOOK_ITEMS;
        Ok((found, is_last))
    }

    /// Changes of the documents whose keys begin with `prefix`, from a place on, at most `limit`; waits for a
    /// first one for `wait` at most, or until `stopping`.
    ///
    /// # Errors
    /// `changes_forgotten`: ends of documents behind this place are not remembered any more, or it was never
    /// reached; `namespace_not_found`: it was deleted.
    pub async fn document_changes(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        from: ChangePosition,
        limit: usize,
        wait: Duration,
        stopping: impl Future<Output = ()>,
    ) -> Result<DocumentChanges, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let until = Instant::now() + wait;
        let (mut from, mut stopping) = (from, pin!(stopping));
        loop {
            let (prefix, most) = (prefix.to_owned(), limit.min(LOOK_ITEMS));
            let look = move |at: &mut ShardView<'_>| {
                let found = at.engine.document_changes(namespace, &prefix, from, most);
                (at.engine.namespace(namespace).map(|_| found), at.changes.subscribe())
            };
            let (found, mut next) = self.look(shard, look).await?;
            let found = found.ok_or_else(|| namespace.not_found())?;
            let found = found.ok_or(Error::ChangesForgotten {})?;
            if !found.changes.is_empty() || Instant::now() >= until {
                return Ok(found);
            }
            let is_last = found.is_last;
            from = found.until;
            if is_last {
                tokio::select! {
                    biased;
                    () = &mut stopping => return Ok(found),
                    _ = timeout_at(until, next.changed()) => {}
                }
            }
        }
    }

    /// Looks at a document, once no prepared transaction is about it.
    async fn look_decided<T: Send + 'static>(
        &self,
        namespace: NamespaceId,
        key: &str,
        look: impl Fn(&mut ShardView<'_>, &str) -> T + Copy + Send + 'static,
    ) -> Result<T, Error> {
        let shard = self.shard_of_document(namespace, key)?;
        let until = Instant::now() + DECISION_WAIT;
        loop {
            let key = key.to_owned();
            let look = move |at: &mut ShardView<'_>| {
                at.engine.expect_decided(namespace, &key).map(|()| look(at, &key))
            };
            match self.look(shard, look).await? {
                Err(Error::InDoubt { .. }) if Instant::now() < until => sleep(DECISION_PAUSE).await,
                other => return other,
            }
        }
    }

    /// The shard of a key, which follows the rule of keys.
    fn shard_of_document(&self, namespace: NamespaceId, key: &str) -> Result<u32, Error> {
        let when = DocumentCondition::default();
        Command::DocumentDelete(DocumentDelete { namespace, key, when }).check(&self.limits())?;
        self.inner.placement.shard_of(namespace)
    }
}

fn not_found(key: &str) -> Error {
    Error::DocumentNotFound { key: key.to_owned() }
}
