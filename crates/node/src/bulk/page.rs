//! A page of a queue as a bulk reads it, with the locations of the bytes that its filter needs.

use std::sync::Arc;

use bytes::Bytes;
use sluice_engine::id::{BlobRef, MessageId};
use sluice_engine::query::MessageView;
use sluice_engine::{Engine, Error, QueueId};
use sluice_journal::BlobRead;

use super::BulkRequest;
use super::filter::Content;
use crate::blobs::ReadFailure;
use crate::shard::request::ShardView;
use crate::shard::store;

/// A page of a queue to read.
#[derive(Clone, Debug)]
pub struct Page {
    pub(super) request: Arc<BulkRequest>,
    /// Last message of the bulk.
    pub(super) last: MessageId,
    /// End of the previous page.
    pub(super) cursor: Option<u64>,
    pub(super) messages_max: usize,
}

/// A page as it was read.
#[derive(Debug)]
pub struct PageSeen {
    /// Messages that match as far as their index shows.
    pub(super) messages: Vec<SeenMessage>,
    pub(super) scanned: u64,
    pub(super) next: Option<u64>,
    /// Time of the shard, in microseconds.
    pub(super) now_us: u64,
}

/// A message, with the locations of its bytes.
#[derive(Debug)]
pub(super) struct SeenMessage {
    pub(super) view: MessageView,
    blob: Option<BlobRead>,
    tags: Option<BlobRead>,
    errors: Vec<BlobRead>,
}

/// A message whose bytes are being read.
#[derive(Debug)]
pub(super) struct Reading {
    view: MessageView,
    has_blob: bool,
    has_tags: bool,
    errors: usize,
}

impl Page {
    /// Reads the page on the shard's thread, in bounded time.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub fn see(&self, at: &mut ShardView<'_>) -> Result<PageSeen, Error> {
        let filter = &self.request.filter;
        let queue = find(at.engine, &self.request, &filter.queue)?;
        let page = at.engine.messages(queue, filter.state, self.cursor, self.messages_max);
        let now_us = at.engine.time_us();
        let mut seen = PageSeen { messages: Vec::new(), scanned: 0, next: page.next, now_us };
        for view in page.items {
            if view.id > self.last {
                seen.next = None;
                break;
            }
            seen.scanned += 1;
            if filter.matches_index(&view) {
                seen.messages.push(self.see_message(at, view));
            }
        }
        Ok(seen)
    }

    fn see_message(&self, at: &mut ShardView<'_>, view: MessageView) -> SeenMessage {
        let filter = &self.request.filter;
        let mut errors: Vec<BlobRef> = Vec::new();
        if filter.error_contains.is_some()
            && let Ok(full) = at.engine.message(view.id)
        {
            errors.extend(full.history.iter().filter_map(|attempt| attempt.error));
        }
        let mut read = |blob: BlobRef| store::read(at.journal, blob);
        SeenMessage {
            blob: filter.needs_blob().then(|| read(view.blob)),
            tags: view.tags.filter(|_| filter.tag.is_some()).map(&mut read),
            errors: errors.into_iter().map(&mut read).collect(),
            view,
        }
    }
}

impl SeenMessage {
    /// Number of bytes to read.
    pub(super) fn bytes(&self) -> u64 {
        if self.blob.is_some() { u64::from(self.view.blob.len) } else { 0 }
    }

    /// Adds the message's blobs to `reads`.
    pub(super) fn ask(self, reads: &mut Vec<BlobRead>) -> Reading {
        let SeenMessage { view, blob, tags, errors } = self;
        let reading =
            Reading { view, has_blob: blob.is_some(), has_tags: tags.is_some(), errors: errors.len() };
        reads.extend(blob.into_iter().chain(tags).chain(errors));
        reading
    }
}

impl Reading {
    /// Takes the bytes that were read. Damaged bytes match nothing.
    pub(super) fn take(
        self,
        read: &mut impl Iterator<Item = Result<Bytes, ReadFailure>>,
    ) -> (MessageView, Content) {
        let mut next = |wanted: bool| if wanted { read.next().and_then(Result::ok) } else { None };
        let (blob, tags) = (next(self.has_blob), next(self.has_tags));
        let errors = (0..self.errors).filter_map(|_| next(true)).collect();
        (self.view, Content { blob, tags, errors })
    }
}

/// The queue of this name.
pub(super) fn find(engine: &Engine, request: &BulkRequest, queue: &str) -> Result<QueueId, Error> {
    let found = engine.queue_id(request.namespace, queue);
    found.ok_or_else(|| Error::QueueNotFound { queue: queue.to_owned() })
}
