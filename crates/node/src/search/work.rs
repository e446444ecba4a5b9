//! A search at work: each call does a bounded part of it, and tells how far it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::search::SearchKind;

use super::filter::MessageFilter;
use super::matching::matched;
use super::page::{Hit, Page, PageSeen, Portion};

/// Time after which a call ends with what it has found.
const TIME_MAX: Duration = Duration::from_millis(500);
/// Bytes of contents after which it does.
const BYTES_MAX: u64 = 64 << 20;
/// Bytes of contents that are read together; the first content may be larger.
const PORTION_BYTES: u64 = 1 << 20;
/// Messages that one look touches, so that no look delays the shard.
const PAGE_MESSAGES: usize = 200;

/// A search for messages of a queue.
#[derive(Clone, Debug)]
pub struct Search {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Filter of the messages.
    pub filter: Arc<MessageFilter>,
    /// Time by which it is evaluated, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// Messages that a call has found, and how far it is.
#[derive(Clone, Debug)]
pub struct Found {
    /// By id.
    pub hits: Vec<Hit>,
    /// Number of messages that were looked at.
    pub scanned: u64,
    /// Number of messages of the queue, in the state that the filter names, if it is one.
    pub total: u64,
    /// Place at which the next call goes on; `None`: all were looked at.
    pub next: Option<u64>,
    /// The index of the queue that has found messages, of some of them at least.
    pub index: Option<SearchKind>,
}

/// A call that is at work.
#[derive(Debug)]
pub(crate) struct Work<'s> {
    search: &'s Search,
    limit: usize,
    began: Instant,
    bytes: u64,
    found: Found,
}

impl<'s> Work<'s> {
    /// A call that begins at a place, in a queue with so many messages.
    pub(crate) fn new(search: &'s Search, total: u64, cursor: Option<u64>, limit: usize) -> Work<'s> {
        let found = Found { hits: Vec::new(), scanned: 0, total, next: cursor, index: None };
        Work { search, limit, began: Instant::now(), bytes: 0, found }
    }

    /// The messages that were found.
    pub(crate) fn into_found(self) -> Found {
        self.found
    }

    /// The page that comes next.
    pub(crate) fn page(&self) -> Page {
        let Search { namespace, queue, filter, now_ms } = self.search;
        Page {
            namespace: *namespace,
            queue: Arc::clone(queue),
            filter: Arc::clone(filter),
            now_ms: *now_ms,
            cursor: self.found.next,
            last: None,
            messages_max: PAGE_MESSAGES,
        }
    }

    /// Reads and matches a page. True: the call ends.
    ///
    /// # Errors
    /// `overloaded` when the system is too short of something to read from the disk.
    pub(crate) async fn take(&mut self, seen: PageSeen) -> Result<bool, Error> {
        let PageSeen { mut messages, scanned, next, index, .. } = seen;
        self.found.index = self.found.index.or(index);
        let before = self.found.scanned;
        while !messages.is_empty() {
            let (portion, reads) = Portion::take(&mut messages, PORTION_BYTES);
            self.bytes += portion.bytes();
            let last = portion.last();
            for hit in matched(&self.search.filter, self.search.now_ms, portion, reads).await? {
                let (id, scanned) = (hit.view.id, before + hit.scanned);
                self.found.hits.push(Hit { scanned, ..hit });
                if self.found.hits.len() == self.limit {
                    self.ends_at(id, scanned);
                    return Ok(true);
                }
            }
            if let Some((id, scanned)) = last.filter(|_| self.is_enough() && !messages.is_empty()) {
                self.ends_at(id, before + scanned);
                return Ok(true);
            }
        }
        self.found.scanned = before + scanned;
        self.found.next = next;
        Ok(next.is_none() || self.is_enough())
    }

    fn ends_at(&mut self, last: MessageId, scanned: u64) {
        self.found.scanned = scanned;
        self.found.next = Some(last.sequence);
    }

    fn is_enough(&self) -> bool {
        self.bytes >= BYTES_MAX || self.began.elapsed() >= TIME_MAX
    }
}
