//! Reads of queues and messages, each in bounded time.

use std::ops::Bound;

use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::error::Error;
use crate::id::{MessageId, NamespaceId, QueueId};
use crate::push::PushView;
use crate::query::{
    Changed, Counters, DeliveryDetails, MessageView, Page, Progress, QueueView, Redriving, State,
};
use crate::queue::QueueModule;
use crate::queue::state::changed::Entry;
use crate::queue::state::message::{BlockedBy, SIBLINGS, mark};
use crate::queue::state::options::Options;
use crate::queue::state::queue::Ready;
use crate::queue::state::{ExtrasSlot, MessageSlot, QueueSlot};
use crate::store::list::PLACE;
use crate::store::slot::Slot;

/// Messages that one page looks at.
const PAGE_EXAMINED_MAX: usize = 2_000;
/// Pages of the directory that one page of a listing looks at to find its place again.
const PAGE_DIRECTORY_MAX: usize = 16;

/// Ready bytes of a queue that are few, whoever takes how many of its messages.
const FEW_BYTES: u64 = 64 << 10;
/// Ready messages whose bytes are summed up one by one.
const NEXT_EXAMINED_MAX: u64 = 200;

impl QueueModule {
    pub(crate) fn queue_id(&self, namespace: NamespaceId, name: &str, core: &Core) -> Option<QueueId> {
        let slot = self.peek_queue(core.namespace_slot(namespace)?, name)?;
        Some(QueueId(self.queues.get(slot).number))
    }

    pub(crate) fn queue_name(&self, queue: QueueId, core: &Core) -> Option<&str> {
        self.queue_slot(queue, core).map(|slot| &*self.queues.get(slot).name)
    }

    pub(crate) fn ready_count(&self, queue: QueueId, core: &Core) -> u64 {
        let Some(slot) = self.queue_slot(queue, core) else { return 0 };
        let queue = self.queues.get(slot);
        queue.counters.states[State::Ready as usize].min(self.room_to_begin(queue, core))
    }

    pub(crate) fn next_bytes(&self, queue: QueueId, skipped: u64, count: u64, core: &Core) -> u64 {
        let Some(slot) = self.queue_slot(queue, core) else { return 0 };
        let queue = self.queues.get(slot);
        let (ready, all) = (queue.counters.states[State::Ready as usize], queue.bytes[State::Ready as usize]);
        if all <= FEW_BYTES {
            return all;
        }
        if skipped + count <= NEXT_EXAMINED_MAX && queue.fair.is_none() {
            let lens = self.first_ready(&queue.ready).skip(skipped as usize).take(count as usize);
            return lens.map(|slot| u64::from(self.messages.get(slot).blob_len)).sum();
        }
        let mean = all.checked_div(ready).unwrap_or(0);
        mean.saturating_mul(2).saturating_mul(count).min(all)
    }

    /// Slots of ready messages in the order of their lists, from the highest priority on.
    fn first_ready<'a>(&'a self, ready: &'a Ready) -> impl Iterator<Item = MessageSlot> + 'a {
        let there = |slot: MessageSlot| (slot != Slot::NIL).then_some(slot);
        ready.lists.iter().rev().flat_map(move |list| {
            std::iter::successors(there(list.head), move |&slot| {
                there(self.messages.get(slot).links[PLACE].next)
            })
        })
    }

    pub(crate) fn admits_queues<'n>(
        &self,
        namespace: NamespaceId,
        names: impl Iterator<Item = &'n str>,
        core: &Core,
    ) -> Result<(), Error> {
        let namespace_slot = core.namespace_slot(namespace).ok_or_else(|| namespace.not_found())?;
        let mut missing = names.filter(|name| self.find_queue(namespace_slot, name).is_none()).peekable();
        match missing.peek() {
            None => Ok(()),
            Some(name) if !core.limits.auto_create => Err(Error::QueueNotFound { queue: (*name).to_owned() }),
            Some(_) => self.admit_queues(namespace_slot, missing.count() as u64, core),
        }
    }

    pub(crate) fn queue(&self, queue: QueueId, core: &Core) -> Option<QueueView> {
        self.queue_slot(queue, core).map(|slot| self.queue_view(slot, core))
    }

    pub(crate) fn queues(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Vec<QueueView> {
        let Some(slot) = core.namespace_slot(namespace) else { return Vec::new() };
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.indexes
            .get(slot)
            .queues
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(prefix))
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|(_, &slot)| self.queue_view(slot, core))
            .collect()
    }

    /// Queues that push, by number, behind `after`; at most `most` are looked at. Tells the last of these
    /// if there are more.
    pub(crate) fn pushes(
        &self,
        after: Option<QueueId>,
        most: usize,
        core: &Core,
    ) -> (Vec<PushView>, Option<QueueId>) {
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.0));
        let mut rest = self.pushes.range((from, Bound::Unbounded));
        let page: Vec<_> = rest.by_ref().take(most).collect();
        let last = page.last().map(|(number, _)| QueueId(**number)).filter(|_| rest.next().is_some());
        let view = |(&number, &slot): (&u32, &QueueSlot)| {
            let queue = self.queues.get(slot);
            let namespace = core.namespaces.get(queue.namespace);
            let settings = &queue.settings;
            (!namespace.deleted).then(|| PushView {
                namespace: NamespaceId(namespace.number),
                queue: QueueId(number),
                name: queue.name.clone(),
                url: settings.push_url.clone(),
                secrets: settings.push_secrets.clone(),
                timeout_ms: settings.push_timeout_ms,
                concurrency: settings.push_concurrency,
                rate: settings.push_rate,
                headers: settings.push_headers.clone(),
                paused: settings.push_paused || settings.paused,
            })
        };
        (page.into_iter().filter_map(view).collect(), last)
    }

    /// Slot of a queue that exists.
    #[inline]
    pub(crate) fn queue_slot(&self, queue: QueueId, core: &Core) -> Option<QueueSlot> {
        let last = self.last_queue;
        let is_last = last.index() < self.queues.slots() && self.queues.get(last).number == queue.0;
        let slot = if is_last { last } else { self.queue_numbers.get(u64::from(queue.0))? };
        let queue = self.queues.get(slot);
        (!queue.deleted && !core.namespaces.get(queue.namespace).deleted).then_some(slot)
    }

    fn queue_view(&self, slot: QueueSlot, core: &Core) -> QueueView {
        let queue = self.queues.get(slot);
        let first = self.first_in_line(slot);
        QueueView {
            id: QueueId(queue.number),
            namespace: NamespaceId(core.namespaces.get(queue.namespace).number),
            name: queue.name.to_string(),
            settings: queue.settings.clone(),
            counters: queue.counters,
            created_at_us: queue.created_at_us,
            blocked_by_ordering_key: queue.blocked_by[BlockedBy::OrderingKey as usize],
            blocked_by_limit: queue.blocked_by[BlockedBy::Limit as usize],
            blocked_by_parents: queue.blocked_by[BlockedBy::Parents as usize],
            blocked_by_consumer: queue.blocked_by[BlockedBy::Consumer as usize],
            redriving: (queue.redrive.left > 0)
                .then_some(Redriving { left: queue.redrive.left, per_second: queue.redrive.per_second }),
            oldest_ready_at_us: first.map(|slot| self.messages.get(slot).sent_at_us),
        }
    }

    pub(crate) fn message(&self, id: MessageId, core: &Core) -> Result<MessageView, Error> {
        let slot =
            self.message_slot(id, core).ok_or_else(|| Error::MessageNotFound { id: id.to_string() })?;
        let mut view = self.message_view(slot, core);
        let extras = self.messages.get(slot).extras;
        view.history = self.extras.history(extras).collect();
        if let Some(changed) = self.extras.changed(extras) {
            let entry = |entry: &Entry| Changed { verb: entry.verb, at_us: entry.at_us, note: entry.note };
            view.changes = changed.log.iter().map(entry).collect();
        }
        Ok(view)
    }

    pub(crate) fn delivery_details(&self, id: MessageId, core: &Core) -> Option<DeliveryDetails> {
        let slot = self.message_slot(id, core)?;
        let extras = self.messages.get(slot).extras;
        if !self.has_details(extras) {
            return None;
        }
        let mut details = DeliveryDetails {
            tags: self.extras.changed(extras).and_then(|changed| changed.tags),
            ..DeliveryDetails::default()
        };
        if let Some(results) = self.extras.results(extras) {
            details.correlation_id = results.correlation_id.clone();
            details.reply_to = results.reply_to.clone();
            details.checkpoint = results.checkpoint;
        }
        if let Some(origin) = self.extras.origin(extras) {
            details.from_queue = origin.queue.clone();
            details.reason = origin.reason.name();
        }
        let flow = self.extras.options(extras).map_or(Slot::NIL, |options| options.flow);
        details.headers = self.headers_of_step(flow);
        if let Some((done, dead)) = self.group_counts(flow) {
            details.headers = [("sluice-done", done), ("sluice-dead", dead)]
                .map(|(name, count)| (name.into(), count.to_string().into()))
                .into();
        }
        Some(details)
    }

    /// True if a delivery may carry more than the plain fields.
    #[inline]
    pub(crate) fn has_details(&self, extras: ExtrasSlot) -> bool {
        let beside = |options: &Options| {
            options.results != Slot::NIL
                || options.changed != Slot::NIL
                || options.origin != Slot::NIL
                || options.flow != Slot::NIL
        };
        self.extras.options(extras).is_some_and(beside)
    }

    pub(crate) fn messages(
        &self,
        queue: QueueId,
        state: Option<State>,
        cursor: Option<u64>,
        limit: usize,
        core: &Core,
    ) -> Page<MessageView> {
        let mut page = Page { items: Vec::new(), next: None };
        let Some(queue_slot) = self.queue_slot(queue, core) else { return page };
        if let Some(state @ (State::Dead | State::Held)) = state {
            return self.parked(queue_slot, state, cursor, limit, core);
        }
        let (at, until) = match self.place_of(queue_slot, cursor) {
            Ok(slot) => (slot, None),
            Err(looked) => (Slot::NIL, Some(looked)),
        };
        page.next = until;
        let mut last = cursor.unwrap_or(0);
        for (examined, slot) in self.by_id(queue_slot, at, cursor, until).enumerate() {
            if page.items.len() >= limit.clamp(1, PAGE_ITEMS_MAX) || examined >= PAGE_EXAMINED_MAX {
                page.next = Some(last);
                break;
            }
            let message = self.messages.get(slot);
            last = message.sequence;
            let wanted = state.is_none() || state == message.state;
            if wanted && !self.queues.get(queue_slot).is_stale(message) {
                page.items.push(self.message_view(slot, core));
            }
        }
        page
    }

    /// The messages of a queue by id: those that are linked, from the one at `at` on, and between them those
    /// that have arrived from elsewhere, from the cursor up to `until`.
    pub(crate) fn by_id(
        &self,
        queue_slot: QueueSlot,
        mut at: MessageSlot,
        cursor: Option<u64>,
        until: Option<u64>,
    ) -> impl Iterator<Item = MessageSlot> + '_ {
        let queue = self.queues.get(queue_slot);
        let directory = &self.indexes.get(queue.namespace).directory;
        let after = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let until = until.filter(|until| cursor.is_none_or(|cursor| *until >= cursor)).unwrap_or(u64::MAX);
        let arrived = queue.arrived.range((after, Bound::Unbounded)).take_while(move |it| **it <= until);
        let mut arrived =
            arrived.filter_map(|&sequence| Some((sequence, directory.get(sequence)?))).peekable();
        std::iter::from_fn(move || {
            let linked = (at != Slot::NIL).then(|| self.messages.get(at));
            let is_next =
                |&(sequence, _): &(u64, MessageSlot)| linked.is_none_or(|linked| sequence < linked.sequence);
            if let Some((_, slot)) = arrived.next_if(is_next) {
                return Some(slot);
            }
            let next = linked?.links[SIBLINGS].next;
            Some(std::mem::replace(&mut at, next))
        })
    }

    /// Dead or held messages by id.
    fn parked(
        &self,
        queue_slot: QueueSlot,
        state: State,
        cursor: Option<u64>,
        limit: usize,
        core: &Core,
    ) -> Page<MessageView> {
        let mut page = Page { items: Vec::new(), next: None };
        let queue = self.queues.get(queue_slot);
        let directory = &self.indexes.get(queue.namespace).directory;
        let after = cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = cursor;
        for (examined, &sequence) in queue.parked.range((after, Bound::Unbounded)).enumerate() {
            if page.items.len() >= limit.clamp(1, PAGE_ITEMS_MAX) || examined >= PAGE_EXAMINED_MAX {
                page.next = last;
                break;
            }
            last = Some(sequence);
            let Some(slot) = directory.get(sequence) else { continue };
            if self.messages.get(slot).state == Some(state) && !self.is_stale(slot) {
                page.items.push(self.message_view(slot, core));
            }
        }
        page
    }

    /// The first linked message after a cursor (`NIL`: none), or, when the message of the cursor is gone and
    /// the next one is not found soon, the cursor from which to look on.
    pub(crate) fn place_of(&self, queue_slot: QueueSlot, cursor: Option<u64>) -> Result<MessageSlot, u64> {
        let queue = self.queues.get(queue_slot);
        let Some(cursor) = cursor else { return Ok(queue.all.head) };
        let directory = &self.indexes.get(queue.namespace).directory;
        let is_here = |slot: &MessageSlot| {
            let message = self.messages.get(*slot);
            message.queue == queue_slot && !message.is_marked(mark::ARRIVED)
        };
        if let Some(slot) = directory.get(cursor).filter(is_here) {
            return Ok(self.messages.get(slot).links[SIBLINGS].next);
        }
        if queue.all.tail == Slot::NIL || self.messages.get(queue.all.tail).sequence <= cursor {
            return Ok(Slot::NIL);
        }
        if self.messages.get(queue.all.head).sequence > cursor {
            return Ok(queue.all.head);
        }
        let (mut found, looked) = directory.from(cursor + 1, PAGE_DIRECTORY_MAX);
        match (found.find(|(_, slot)| is_here(slot)), looked) {
            (Some((_, slot)), _) => Ok(slot),
            (None, Some(looked)) => Err(looked),
            (None, None) => Ok(Slot::NIL),
        }
    }

    pub(crate) fn peek(&self, queue: QueueId, limit: usize, core: &Core) -> Vec<MessageView> {
        let Some(slot) = self.queue_slot(queue, core) else { return Vec::new() };
        let first = self.in_line(slot, limit.min(PAGE_ITEMS_MAX));
        first.into_iter().map(|slot| self.message_view(slot, core)).collect()
    }

    /// See [`MessageView::deadline_us`].
    fn deadline_us(&self, slot: MessageSlot, state: State, time_us: u64, core: &Core) -> Option<u64> {
        match state {
            State::Delayed | State::Leased => Some(time_us),
            State::Blocked => Some(time_us).filter(|time_us| *time_us > core.now_us),
            State::Held => Some(self.due_of_held(slot)).filter(|due_us| *due_us > core.now_us),
            State::Ready | State::Dead | State::Done => None,
        }
    }

    pub(crate) fn message_view(&self, slot: MessageSlot, core: &Core) -> MessageView {
        let message = self.messages.get(slot);
        let queue = self.queues.get(message.queue);
        let id = self.id_of(message, queue, core);
        // A slot in use has a state.
        let state = message.state.unwrap_or(State::Held);
        let options = self.extras.options(message.extras);
        let ordering = options.map_or(Slot::NIL, |options| options.ordering);
        let (limit, cost) = self.line_and_cost(message.extras);
        let fair = self.fair_lane(message.extras);
        let unique = options.map_or(Slot::NIL, |options| options.unique);
        let ended = matches!(state, State::Dead | State::Held);
        let done = state == State::Done;
        let (token, time_us) = self.pins.lease(slot).unwrap_or((message.token, message.time_us));
        let ended_for_good = matches!(state, State::Dead | State::Done);
        let results = self.extras.results(message.extras);
        let changed = self.extras.changed(message.extras);
        let origin = self.extras.origin(message.extras);
        MessageView {
            id,
            queue: QueueId(queue.number),
            state,
            priority: message.priority,
            attempts: message.attempts,
            max_attempts: queue.max_attempts(message),
            deliveries: message.deliveries,
            sent_at_us: message.sent_at_us,
            deadline_us: self.deadline_us(slot, state, time_us, core),
            receipt: (state == State::Leased).then(|| core.receipt(id, token)),
            holder: self.holder(slot),
            backoff: self.extras.backoff(message.extras).unwrap_or(queue.settings.backoff),
            ordering_key: if ordering == Slot::NIL {
                Box::default()
            } else {
                self.ordering.key(ordering).into()
            },
            fair_key: if fair == Slot::NIL { Box::default() } else { self.lanes.key(fair).into() },
            limit_key: if limit == Slot::NIL {
                Box::default()
            } else {
                (*self.queue_limits.lines.slots.get(limit).key).into()
            },
            cost,
            expires_at_us: Some(self.expires_us(slot)).filter(|&end_us| end_us > 0 && !ended_for_good),
            unique_key: if unique == Slot::NIL { Box::default() } else { self.unique.key(unique).into() },
            blocked_by: message.blocked_by().map(BlockedBy::name),
            from_queue: origin.map_or_else(Box::default, |origin| origin.queue.clone()),
            reason: message.reason.name().or(origin.and_then(|origin| origin.reason.name())),
            reason_at_us: ended.then_some(message.time_us).or(origin.map(|origin| origin.died_at_us)),
            correlation_id: results.map_or_else(Box::default, |results| results.correlation_id.clone()),
            reply_to: results.map_or_else(Box::default, |results| results.reply_to.clone()),
            progress: results.and_then(|results| results.progress).map(|progress| Progress {
                percent: progress.percent,
                note: progress.note,
                at_us: progress.at_us,
            }),
            checkpoint: results.and_then(|results| results.checkpoint),
            result: results.and_then(|results| results.result),
            done_at_us: done.then_some(message.started_at_us),
            kept_until_us: (done && message.time_us > 0).then_some(message.time_us),
            blob: message.blob(),
            tags: changed.and_then(|changed| changed.tags),
            cancelled: changed.is_some_and(|changed| changed.cancelled),
            version: self.version(slot, core),
            changes: Vec::new(),
            history: Vec::new(),
        }
    }

    pub(crate) fn totals(&self) -> Counters {
        self.totals
    }

    pub(crate) fn queue_count(&self) -> u64 {
        u64::from(self.queues.used())
    }

    pub(crate) fn message_count(&self) -> u64 {
        u64::from(self.messages.used())
    }
}
