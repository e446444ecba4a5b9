//! Reads of the handle: each is a bounded look between two batches; long ones are cut into pages here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId};
use sluice_engine::query::{MessageView, Page, QueueView, State};
use sluice_engine::{Engine, Error, error_fingerprint};
use sluice_journal::BlobRead;

use crate::api::{LastError, Stored};
use crate::blobs::{self, ReadFailure};
use crate::handle::Node;
use crate::shard::request::ShardView;
use crate::shard::store;

/// A listing that finds little looks on for so long before it gives out a page that is not full.
const PAGE_TIME: Duration = Duration::from_millis(100);
/// Messages that one look touches, so that no look delays the shard.
const LOOK_MESSAGES: usize = 200;
/// Queues that one look touches.
const LOOK_QUEUES: usize = 200;

/// A message with the places of its bytes, as it comes from the shard.
pub(crate) struct MessageParts {
    view: MessageView,
    queue: String,
    blob: Option<BlobRead>,
    errors: Vec<Option<BlobRead>>,
    /// Note, checkpoint and result.
    told: [Option<BlobRead>; 3],
    tags: Option<BlobRead>,
    notes: Vec<BlobRead>,
}

impl Node {
    /// One queue.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub async fn queue(&self, namespace: NamespaceId, queue: &str) -> Result<QueueView, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let name = queue.to_owned();
        self.look(shard, move |at| {
            at.engine.queue(find(at.engine, namespace, &name)?).ok_or_else(|| missing(&name))
        })
        .await?
    }

    /// Queues by name that begin with `prefix`, after `after`; at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn queues(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<QueueView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let mut after = after.map(str::to_owned);
        let mut queues = Vec::new();
        while queues.len() < limit {
            let (prefix, from) = (prefix.to_owned(), after.clone());
            let most = LOOK_QUEUES.min(limit - queues.len());
            let page = self
                .look(shard, move |at| at.engine.queues(namespace, &prefix, from.as_deref(), most))
                .await?;
            let full = page.len() == most;
            after = page.last().map(|queue| queue.name.clone());
            queues.extend(page);
            if !full {
                break;
            }
        }
        Ok(queues)
    }

    /// One message with its history; with its bytes when `payload`.
    ///
    /// # Errors
    /// `message_not_found`; `payload_damaged` when the bytes were asked for and do not verify; `overloaded`
    /// when the system is too short of something to read them.
    pub async fn message(&self, id: MessageId, payload: bool) -> Result<Stored, Error> {
        let not_found = |_| Error::MessageNotFound { id: id.to_string() };
        let shard = self.inner.placement.shard_of(id.namespace).map_err(not_found)?;
        let seen = self.look(shard, move |at| Ok(see_all(at, at.engine.message(id)?, payload))).await??;
        let stored = load(vec![seen]).await?.pop();
        stored.filter(|stored| !stored.damaged).ok_or_else(|| Error::PayloadDamaged { id: id.to_string() })
    }

    /// The queues that these messages of a namespace are in now, each once; what is not there is in none.
    ///
    /// # Errors
    /// `namespace_not_found`, `overloaded`.
    pub async fn queues_of(&self, namespace: NamespaceId, ids: &[MessageId]) -> Result<Vec<Arc<str>>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let mut queues: Vec<Arc<str>> = Vec::new();
        for page in ids.chunks(LOOK_MESSAGES) {
            let page = page.to_vec();
            let found = self
                .look(shard, move |at| {
                    let mut found: Vec<QueueId> =
                        page.iter().filter_map(|id| Some(at.engine.message(*id).ok()?.queue)).collect();
                    found.sort_unstable();
                    found.dedup();
                    let name = |queue: QueueId| at.engine.queue_name(queue).map(Arc::from);
                    found.into_iter().filter_map(name).collect::<Vec<Arc<str>>>()
                })
                .await?;
            queues.extend(found);
        }
        queues.sort_unstable();
        queues.dedup();
        Ok(queues)
    }

    /// Messages of a queue by id, in one state or all; with their bytes and histories when `payload`; those
    /// whose bytes are damaged say so. A page may be empty and yet not the last.
    ///
    /// # Errors
    /// `queue_not_found`; `overloaded` when the system is too short of something to read from the disk.
    pub async fn messages(
        &self,
        namespace: NamespaceId,
        queue: &str,
        state: Option<State>,
        cursor: Option<u64>,
        limit: usize,
        payload: bool,
    ) -> Result<Page<Stored>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let began = Instant::now();
        let mut page = Page { items: Vec::new(), next: cursor };
        loop {
            let (name, from) = (queue.to_owned(), page.next);
            let most = LOOK_MESSAGES.min(limit - page.items.len());
            let found = self
                .look(shard, move |at| {
                    let queue = find(at.engine, namespace, &name)?;
                    let found = at.engine.messages(queue, state, from, most);
                    let seen = found.items.into_iter().map(|view| {
                        let full = if payload { at.engine.message(view.id).unwrap_or(view) } else { view };
                        see(at, full, payload)
                    });
                    Ok((seen.collect::<Vec<_>>(), found.next))
                })
                .await?;
            let (seen, next) = found?;
            page.items.extend(load(seen).await?);
            page.next = next;
            if page.items.len() >= limit || page.next.is_none() || began.elapsed() > PAGE_TIME {
                return Ok(page);
            }
        }
    }

    /// The last error of each dead letter of a queue, by id. A page may be empty and yet not the last.
    ///
    /// # Errors
    /// `queue_not_found`; `overloaded` when the system is too short of something to read from the disk.
    pub async fn dead_errors(
        &self,
        namespace: NamespaceId,
        queue: &str,
        cursor: Option<u64>,
        limit: usize,
    ) -> Result<Page<LastError>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let name = queue.to_owned();
        let most = LOOK_MESSAGES.min(limit);
        let found = self.look(shard, move |at| {
            let queue = find(at.engine, namespace, &name)?;
            let dead = at.engine.messages(queue, Some(State::Dead), cursor, most);
            let errors = dead.items.into_iter().map(|view| last_error(at, view.id));
            Ok((errors.collect::<Vec<_>>(), dead.next))
        });
        let (errors, next) = found.await??;
        let has_text: Vec<bool> = errors.iter().map(Option::is_some).collect();
        let mut texts = loaded(errors.into_iter().flatten().collect()).await?.into_iter();
        let told = |text: Bytes| LastError::Text(as_text(&text), error_fingerprint(&text));
        let mut text = || texts.next().flatten().map_or(LastError::Damaged, told);
        let errors = has_text.into_iter().map(|has_text| if has_text { text() } else { LastError::NoText });
        Ok(Page { items: errors.collect(), next })
    }

    /// The messages that stand first in line, with their bytes: at most `limit`, and at most `bytes_max`
    /// bytes though at least one. Tells whether the bytes cut it short.
    ///
    /// # Errors
    /// `queue_not_found`; `overloaded` when the system is too short of something to read from the disk.
    pub async fn peek(
        &self,
        namespace: NamespaceId,
        queue: &str,
        limit: usize,
        bytes_max: u64,
    ) -> Result<(Vec<Stored>, bool), Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let name = queue.to_owned();
        let seen = self
            .look(shard, move |at| {
                let views = at.engine.peek(find(at.engine, namespace, &name)?, limit.min(LOOK_MESSAGES));
                let fit = fitting(&views, bytes_max);
                let truncated = fit < views.len();
                Ok((
                    views.into_iter().take(fit).map(|view| see(at, view, true)).collect::<Vec<_>>(),
                    truncated,
                ))
            })
            .await?;
        let (seen, truncated) = seen?;
        Ok((load(seen).await?, truncated))
    }
}

/// Number of these messages that have at most so many bytes together; at least one.
fn fitting(views: &[MessageView], bytes_max: u64) -> usize {
    let mut bytes = 0;
    let fit = views.iter().take_while(|view| {
        bytes += u64::from(view.blob.len);
        bytes <= bytes_max
    });
    fit.count().max(1).min(views.len())
}

fn find(engine: &Engine, namespace: NamespaceId, queue: &str) -> Result<QueueId, Error> {
    engine.queue_id(namespace, queue).ok_or_else(|| missing(queue))
}

fn missing(queue: &str) -> Error {
    Error::QueueNotFound { queue: queue.chars().take(128).collect() }
}

/// Like [`see`], with what its holders have told.
fn see_all(at: &mut ShardView<'_>, view: MessageView, payload: bool) -> MessageParts {
    let note = view.progress.and_then(|progress| progress.note);
    let bytes = |blob: Option<BlobRef>| blob.filter(|_| payload);
    let told = [note, bytes(view.checkpoint), bytes(view.result)];
    let told = told.map(|blob| blob.map(|blob| store::read(at.journal, blob)));
    MessageParts { told, ..see(at, view, payload) }
}

/// A message with the places of its bytes; those of content type, headers, tags and payload when `payload`.
pub(crate) fn see(at: &mut ShardView<'_>, view: MessageView, payload: bool) -> MessageParts {
    let mut read = |blob: &BlobRef| store::read(at.journal, *blob);
    let blob = payload.then(|| read(&view.blob));
    let errors = view.history.iter().map(|attempt| attempt.error.as_ref().map(&mut read)).collect();
    let tags = view.tags.as_ref().filter(|_| payload).map(&mut read);
    let notes = view.changes.iter().map(|changed| read(&changed.note)).collect();
    MessageParts {
        queue: at.engine.queue_name(view.queue).unwrap_or_default().to_owned(),
        blob,
        errors,
        told: [None, None, None],
        tags,
        notes,
        view,
    }
}

/// The text of the last attempt of a message, if it failed with one.
fn last_error(at: &mut ShardView<'_>, id: MessageId) -> Option<BlobRead> {
    let error = at.engine.message(id).ok()?.history.last()?.error?;
    Some(store::read(at.journal, error))
}

/// Loads bytes; `None`: they are damaged.
///
/// # Errors
/// `overloaded` when the system is too short of something to read from the disk.
async fn loaded(blobs: Vec<BlobRead>) -> Result<Vec<Option<Bytes>>, Error> {
    let loaded = blobs::load(blobs).await;
    if loaded.contains(&Err(ReadFailure::Later)) {
        return Err(blobs::overloaded());
    }
    Ok(loaded.into_iter().map(Result::ok).collect())
}

fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Loads the bytes of messages.
///
/// # Errors
/// `overloaded` when the system is too short of something to read from the disk.
pub(crate) async fn load(seen: Vec<MessageParts>) -> Result<Vec<Stored>, Error> {
    let mut blobs = Vec::new();
    let mut shapes = Vec::with_capacity(seen.len());
    for MessageParts { view, queue, blob, errors, told, tags, notes } in seen {
        let texts: Vec<bool> = errors.iter().map(Option::is_some).collect();
        let has_told = told.each_ref().map(Option::is_some);
        shapes.push((view, queue, blob.is_some(), texts, has_told, tags.is_some(), notes.len()));
        blobs.extend(blob.into_iter().chain(errors.into_iter().flatten()).chain(told.into_iter().flatten()));
        blobs.extend(tags.into_iter().chain(notes));
    }
    let mut loaded = loaded(blobs).await?.into_iter();
    let mut next = |wanted: bool| if wanted { loaded.next().flatten() } else { None };
    let stored = shapes.into_iter().map(|(view, queue, has_blob, texts, has_told, has_tags, notes)| {
        let blob = next(has_blob);
        let damaged = has_blob && blob.is_none();
        let errors = texts.into_iter().map(|has_text| next(has_text).map(|bytes| as_text(&bytes))).collect();
        let [note, checkpoint, result] = has_told.map(&mut next);
        let note = note.map(|bytes| as_text(&bytes));
        let tags = next(has_tags);
        let notes = (0..notes).map(|_| next(true)).collect();
        Stored { view, queue: queue.into(), blob, damaged, errors, note, checkpoint, result, tags, notes }
    });
    Ok(stored.collect())
}
