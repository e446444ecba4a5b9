//! The task of one bulk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sluice_engine::change::Change;
use sluice_engine::command::Command;
use sluice_engine::id::{BlobRef, MessageId};
use sluice_engine::limits::Limits;
use sluice_engine::query::MessageView;
use sluice_engine::{Engine, Error, QueueId};
use sluice_journal::BlobRead;

use super::filter::Content;
use super::{Bulk, BulkAction, BulkRequest, BulkState, BulkView};
use crate::blobs::{self, Unread};
use crate::handle::{Node, item_results};
use crate::shard::request::Looking;
use crate::shard::store;

/// Messages of one page, and so of one record.
const PAGE_MESSAGES: usize = 128;
/// Bytes that are read at once for the filter; one message may have more.
const READ_BYTES_MAX: u64 = 4 << 20;
/// Shortest and longest rest between two pages; in between, as long as the page took.
const REST: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// Further tries of what could not be done now, and the pause before each.
const RETRIES: u32 = 60;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Refuses what is wrong whatever the state is.
pub(super) fn check(request: &BulkRequest, limits: &Limits) -> Result<(), Error> {
    let BulkRequest { namespace, filter, action, by, why, .. } = request;
    if let BulkAction::Move { to } = action
        && *to == filter.queue
    {
        let reason = format!("the messages are in queue {to:?} already");
        return Err(Error::InvalidArgument { field: "to".to_owned(), reason });
    }
    // As for a single message; which one does not matter.
    let items = [(MessageId { namespace: *namespace, sequence: 1 }, 0)];
    action.lend(|action| {
        Command::Change(Change { namespace: *namespace, items: &items, action, by, why }).check(limits)
    })?;
    filter.check(action.verb())
}

/// A bulk that can begin.
pub(super) struct Begun {
    pub(super) view: BulkView,
    /// The last message that it is about.
    pub(super) last: MessageId,
}

/// Looks whether the queues are there, and what is in them.
pub(super) async fn begin(node: &Node, shard: u32, request: &Arc<BulkRequest>) -> Result<Begun, Error> {
    let request = Arc::clone(request);
    let look = move |at: &mut Looking<'_>| {
        let queue = find(at.engine, &request, &request.filter.queue)?;
        if let BulkAction::Move { to } = &request.action {
            find(at.engine, &request, to)?;
        }
        let counters = at.engine.queue(queue).map(|view| view.counters).unwrap_or_default();
        let total = match request.filter.state {
            Some(state) => counters.states[state as usize],
            None => counters.states.iter().sum(),
        };
        let last = MessageId {
            namespace: request.namespace,
            sequence: at.engine.last_sequence(request.namespace).unwrap_or(0),
        };
        let view = BulkView {
            id: 0,
            request,
            state: BulkState::Running,
            total,
            scanned: 0,
            matched: 0,
            changed: 0,
            skipped: 0,
            started_at_us: at.engine.time_us(),
            ended_at_us: None,
            error: None,
        };
        Ok(Begun { view, last })
    };
    node.look(shard, look).await?
}

fn find(engine: &Engine, request: &BulkRequest, queue: &str) -> Result<QueueId, Error> {
    let found = engine.queue_id(request.namespace, queue);
    found.ok_or_else(|| Error::QueueNotFound { queue: queue.to_owned() })
}

/// Goes through the queue to the end, and tells how that was.
pub(super) async fn run(node: Node, shard: u32, bulk: Arc<Bulk>, last: MessageId) {
    let request = Arc::clone(&bulk.view().request);
    let mut task = Task { node, shard, bulk, request, last, now_us: 0 };
    let ended = task.go().await;
    let mut view = task.bulk.view();
    match ended {
        Ok(state) => view.state = state,
        Err(error) => {
            view.state = BulkState::Failed;
            view.error = Some(error);
        }
    }
    view.ended_at_us = Some(task.now_us.max(view.started_at_us));
    drop(view);
    task.bulk.ended.send_replace(Some(Instant::now()));
}

struct Task {
    node: Node,
    shard: u32,
    bulk: Arc<Bulk>,
    request: Arc<BulkRequest>,
    last: MessageId,
    /// The shard's time at the latest look.
    now_us: u64,
}

/// A page as it comes from the shard.
struct Seen {
    messages: Vec<SeenMessage>,
    scanned: u64,
    next: Option<u64>,
    now_us: u64,
}

/// A message that matches as far as its index tells, and where its bytes are.
struct SeenMessage {
    view: MessageView,
    blob: Option<BlobRead>,
    tags: Option<BlobRead>,
    errors: Vec<BlobRead>,
}

impl SeenMessage {
    fn bytes(&self) -> u64 {
        if self.blob.is_some() { u64::from(self.view.blob.len) } else { 0 }
    }
}

impl Task {
    async fn go(&mut self) -> Result<BulkState, Error> {
        let mut cursor = None;
        loop {
            if self.bulk.cancelled.load(Ordering::Relaxed) {
                return Ok(BulkState::Cancelled);
            }
            let began = Instant::now();
            let seen = self.look(cursor).await?;
            self.now_us = seen.now_us;
            self.bulk.view().scanned += seen.scanned;
            let matching = self.matching(seen.messages).await?;
            self.change(&matching).await?;
            cursor = seen.next;
            if cursor.is_none_or(|cursor| cursor >= self.last.sequence) {
                return Ok(BulkState::Done);
            }
            tokio::time::sleep(began.elapsed().clamp(REST.0, REST.1)).await;
        }
    }

    /// Looks at the next page; tries again while the shard has too much to do.
    async fn look(&self, cursor: Option<u64>) -> Result<Seen, Error> {
        let mut retries = RETRIES;
        loop {
            let (request, last) = (Arc::clone(&self.request), self.last);
            let seen = self.node.look(self.shard, move |at| see(at, &request, last, cursor)).await;
            match seen {
                Err(error) => self.rest_or_fail(error, &mut retries).await?,
                Ok(seen) => return seen,
            }
        }
    }

    /// What passes by itself is waited for.
    async fn rest_or_fail(&self, error: Error, retries: &mut u32) -> Result<(), Error> {
        let passes = matches!(error, Error::Overloaded { .. } | Error::DiskFull { .. });
        if !passes || *retries == 0 || self.bulk.cancelled.load(Ordering::Relaxed) {
            return Err(error);
        }
        *retries -= 1;
        tokio::time::sleep(RETRY_PAUSE).await;
        Ok(())
    }

    /// Those messages of a page whose bytes match as well, which are read in portions.
    async fn matching(&self, mut seen: Vec<SeenMessage>) -> Result<Vec<MessageView>, Error> {
        if !self.request.filter.needs_bytes() {
            return Ok(seen.into_iter().map(|message| message.view).collect());
        }
        let mut matching = Vec::new();
        while !seen.is_empty() {
            let mut bytes = 0;
            let fit = seen.iter().take_while(|message| {
                bytes += message.bytes();
                bytes <= READ_BYTES_MAX
            });
            let fit = fit.count().max(1);
            let rest = seen.split_off(fit);
            for (view, content) in self.load(seen).await? {
                if self.request.filter.matches_bytes(&content) {
                    matching.push(view);
                }
            }
            seen = rest;
        }
        Ok(matching)
    }

    async fn load(&self, seen: Vec<SeenMessage>) -> Result<Vec<(MessageView, Content)>, Error> {
        let mut reads = Vec::new();
        let mut shapes = Vec::with_capacity(seen.len());
        for SeenMessage { view, blob, tags, errors } in seen {
            shapes.push((view, blob.is_some(), tags.is_some(), errors.len()));
            reads.extend(blob.into_iter().chain(tags).chain(errors));
        }
        let loaded = blobs::load(reads).await;
        if loaded.contains(&Err(Unread::Later)) {
            return Err(Error::Overloaded { what: "reads from the disk", retry_after_ms: 1_000 });
        }
        // What is damaged matches nothing.
        let mut loaded = loaded.into_iter().map(Result::ok);
        let mut next =
            |wanted: bool| -> Option<Bytes> { if wanted { loaded.next().flatten() } else { None } };
        let content = shapes.into_iter().map(|(view, has_blob, has_tags, errors)| {
            let (blob, tags) = (next(has_blob), next(has_tags));
            let errors = (0..errors).filter_map(|_| next(true)).collect();
            (view, Content { blob, tags, errors })
        });
        Ok(content.collect())
    }

    /// Changes what matches, as one record, and counts.
    async fn change(&self, matching: &[MessageView]) -> Result<(), Error> {
        let states = self.request.action.verb().states();
        let items: Vec<(MessageId, u64)> = matching
            .iter()
            .filter(|view| states.contains(&view.state))
            .map(|view| (view.id, view.version))
            .collect();
        self.bulk.view().matched += matching.len() as u64;
        let changed = match items.as_slice() {
            [] => 0,
            _ if self.request.dry_run => items.len(),
            items => self.propose(items).await?,
        } as u64;
        let mut view = self.bulk.view();
        view.changed += changed;
        view.skipped += matching.len() as u64 - changed;
        Ok(())
    }

    /// Returns how many were changed.
    async fn propose(&self, items: &[(MessageId, u64)]) -> Result<usize, Error> {
        let BulkRequest { namespace, action, by, why, .. } = &*self.request;
        let mut retries = RETRIES;
        loop {
            let proposed = action.lend(|action| {
                let change = Change { namespace: *namespace, items, action, by, why };
                self.node.begin_proposal(self.shard, &Command::Change(change))
            });
            let answer = match proposed {
                Ok(answer) => answer.await.map_err(|_| Error::OutcomeUnknown {}),
                Err(error) => Err(error),
            };
            let results = answer.and_then(|answer| item_results(answer, items.len()));
            match results {
                Ok(results) => return Ok(results.iter().filter(|result| result.is_ok()).count()),
                Err(error) => self.rest_or_fail(error, &mut retries).await?,
            }
        }
    }
}

/// One page: bounded, since it is looked at on the shard's thread.
fn see(
    at: &mut Looking<'_>,
    request: &BulkRequest,
    last: MessageId,
    cursor: Option<u64>,
) -> Result<Seen, Error> {
    let filter = &request.filter;
    let queue = find(at.engine, request, &filter.queue)?;
    let page = at.engine.messages(queue, filter.state, cursor, PAGE_MESSAGES);
    let mut seen = Seen { messages: Vec::new(), scanned: 0, next: page.next, now_us: at.engine.time_us() };
    for view in page.items {
        if view.id > last {
            seen.next = None;
            break;
        }
        seen.scanned += 1;
        if filter.matches_index(&view) {
            seen.messages.push(see_message(at, request, view));
        }
    }
    Ok(seen)
}

fn see_message(at: &mut Looking<'_>, request: &BulkRequest, view: MessageView) -> SeenMessage {
    let filter = &request.filter;
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
