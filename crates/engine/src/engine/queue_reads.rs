//! Reads of queues, messages, flows, queue limits, schedules and consumers, each in bounded time.
//!
//! Everything here is answered by the module of queues.

use crate::engine::Engine;
use crate::error::Error;
use crate::flow::FlowView;
use crate::id::{ConsumerId, MessageId, NamespaceId, QueueId, Receipt};
use crate::push::PushView;
use crate::query::{
    ConsumerTotals, ConsumerView, Counters, DefaultsView, DeliveryDetails, DueSchedule, GroupView, HeldView,
    LimitKeyView, LimitView, MessageView, Page, QueueView, ScheduleView, SearchPage, State,
};
use crate::search::{SearchKind, SearchTerm, SearchWork};

impl Engine {
    /// The number behind a queue's name.
    pub fn queue_id(&self, namespace: NamespaceId, name: &str) -> Option<QueueId> {
        self.queue.queue_id(namespace, name, &self.core)
    }

    /// The name of a queue.
    pub fn queue_name(&self, queue: QueueId) -> Option<&str> {
        self.queue.queue_name(queue, &self.core)
    }

    /// Number of messages that a receive could take now; 0 for an unknown queue.
    pub fn ready_count(&self, queue: QueueId) -> u64 {
        self.queue.ready_count(queue, &self.core)
    }

    /// Bytes of the contents of `count` ready messages of a queue, after the `skipped` ones that receives
    /// take before them. Exact as long as few are ready, or they are near the front and no turns are taken;
    /// else twice what the mean says.
    pub fn next_bytes(&self, queue: QueueId, skipped: u64, count: u64) -> u64 {
        self.queue.next_bytes(queue, skipped, count, &self.core)
    }

    /// True if there is a queue of each of these names, which differ, or their first use may make all that
    /// are missing now.
    ///
    /// # Errors
    /// `queue_not_found` where queues are not made by use; `quota_exceeded`, `limit_exceeded`,
    /// `namespace_not_found`.
    pub fn admits_queues<'n>(
        &self,
        namespace: NamespaceId,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), Error> {
        self.queue.admits_queues(namespace, names, &self.core)
    }

    /// One queue.
    pub fn queue(&self, queue: QueueId) -> Option<QueueView> {
        self.queue.queue(queue, &self.core)
    }

    /// Queues that push, by number, behind `after`; at most `most` are looked at. Tells the last of these
    /// if there are more.
    pub fn pushes(&self, after: Option<QueueId>, most: usize) -> (Vec<PushView>, Option<QueueId>) {
        self.queue.pushes(after, most, &self.core)
    }

    /// Queues of a namespace whose names begin with `prefix`, by name, after `after`; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn queues(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<QueueView> {
        self.queue.queues(namespace, prefix, after, limit, &self.core)
    }

    /// One message, with its history.
    ///
    /// # Errors
    /// [`Error::MessageNotFound`] if it is not here, or no longer.
    pub fn message(&self, id: MessageId) -> Result<MessageView, Error> {
        self.queue.message(id, &self.core)
    }

    /// Fields of a delivery beside the plain ones, as long as it lasts.
    pub fn delivery_details(&self, id: MessageId) -> Option<DeliveryDetails> {
        self.queue.delivery_details(id, &self.core)
    }

    /// Messages of a queue by id, in one state or in all; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX). `cursor` is the `next` of the page before. A page looks at
    /// a bounded number of messages, so it may be empty and not the last.
    pub fn messages(
        &self,
        queue: QueueId,
        state: Option<State>,
        cursor: Option<u64>,
        limit: usize,
    ) -> Page<MessageView> {
        self.queue.messages(queue, state, cursor, limit, &self.core)
    }

    /// Messages of a queue behind a cursor that may have one of some terms of a kind, in one state or in all,
    /// by id: at most `limit`. A page looks at a bounded number of messages, so it may be empty and not the
    /// last. `None`: the queue has no index of this kind, or it ends before. Then, and behind
    /// [`SearchPage::until`], there are [`Engine::messages`].
    pub fn search_page(
        &self,
        queue: QueueId,
        terms: (SearchKind, &[SearchTerm]),
        state: Option<State>,
        cursor: Option<u64>,
        limit: usize,
    ) -> Option<SearchPage> {
        self.queue.search_page(queue, terms, state, cursor, limit, &self.core)
    }

    /// Messages whose terms an index does not know, at most `most`, of the first of some indexes from number
    /// `from` on; and the number to go on from, `None`: all were looked at.
    pub fn search_work(&self, from: u32, most: usize) -> (Option<SearchWork>, Option<u32>) {
        self.queue.search_work(from, most, &self.core)
    }

    /// Number of terms of messages in all indexes of queues, and the bytes that they take.
    pub fn search_postings(&self) -> (u64, u64) {
        self.queue.search_postings()
    }

    /// The messages that stand first in line; at most `limit` and [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn peek(&self, queue: QueueId, limit: usize) -> Vec<MessageView> {
        self.queue.peek(queue, limit, &self.core)
    }

    /// Counters over all queues.
    pub fn totals(&self) -> Counters {
        self.queue.totals()
    }

    /// Queues, those included that are deleted and not yet swept.
    pub fn queue_count(&self) -> u64 {
        self.queue.queue_count()
    }

    /// Messages, those included that are purged or deleted and not yet swept.
    pub fn message_count(&self) -> u64 {
        self.queue.message_count()
    }

    /// Progress of the group whose callback has this id; `None`: it is gone, or the callback of none.
    pub fn group_view(&self, callback: MessageId) -> Option<GroupView> {
        self.queue.group_view(callback, &self.core)
    }

    /// A message with what it waits for and what waits for it.
    ///
    /// # Errors
    /// [`Error::MessageNotFound`] if it is not here, or no longer.
    pub fn flow_view(&self, id: MessageId) -> Result<FlowView, Error> {
        self.queue.flow_view(id, &self.core)
    }

    /// Default settings of new queues whose names match this pattern.
    ///
    /// # Errors
    /// [`Error::DefaultsNotFound`].
    pub fn defaults(&self, namespace: NamespaceId, pattern: &str) -> Result<DefaultsView, Error> {
        self.queue.defaults(namespace, pattern, &self.core)
    }

    /// Patterns of a namespace by name, after `after`; at most `limit` and
    /// [`QUEUE_DEFAULTS_MAX`](crate::limits::QUEUE_DEFAULTS_MAX).
    pub fn defaults_after(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<DefaultsView> {
        self.queue.defaults_after(namespace, after, limit, &self.core)
    }

    /// Limits of a namespace by name, after `after`; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn limits_of(&self, namespace: NamespaceId, after: Option<&str>, limit: usize) -> Vec<LimitView> {
        self.queue.limits_of(namespace, after, limit, &self.core)
    }

    /// One limit.
    pub fn limit(&self, namespace: NamespaceId, name: &str) -> Option<LimitView> {
        self.queue.limit(namespace, name, &self.core)
    }

    /// Keys of a limit that have messages or whose rate remembers some, in no order that means anything; at
    /// most `limit` and [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX). `cursor` is the `next` of the page before:
    /// keys that are there all the time are given once. With `waiting` only those that hold something back. A
    /// page looks at a bounded number of keys, so it may be empty and not the last.
    pub fn limit_keys(
        &self,
        namespace: NamespaceId,
        name: &str,
        waiting: bool,
        cursor: Option<u64>,
        limit: usize,
    ) -> Page<LimitKeyView> {
        self.queue.limit_keys(namespace, name, waiting, cursor, limit, &self.core)
    }

    /// One key of a limit; `None`: nothing is known of it.
    pub fn limit_key(&self, namespace: NamespaceId, name: &str, key: &[u8]) -> Option<LimitKeyView> {
        self.queue.limit_key(namespace, name, key, &self.core)
    }

    /// The earliest instant at which a schedule fires, in microseconds; `None`: there is none.
    pub fn next_schedule(&self) -> Option<u64> {
        self.queue.next_schedule()
    }

    /// Schedules by their next instant, earliest first. Take few.
    pub fn schedules_by_time(&self) -> impl Iterator<Item = DueSchedule<'_>> + '_ {
        self.queue.schedules_by_time()
    }

    /// One schedule.
    pub fn schedule(&self, namespace: NamespaceId, name: &str) -> Option<ScheduleView> {
        self.queue.schedule(namespace, name, &self.core)
    }

    /// Schedules of a namespace by name, after `after`; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn schedules(&self, namespace: NamespaceId, after: Option<&str>, limit: usize) -> Vec<ScheduleView> {
        self.queue.schedules(namespace, after, limit, &self.core)
    }

    /// Consumers of a namespace in the order in which they came, after `after`; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn consumers(
        &self,
        namespace: NamespaceId,
        after: Option<ConsumerId>,
        limit: usize,
    ) -> Vec<ConsumerView> {
        self.queue.consumers(namespace, after, limit)
    }

    /// All that are attached, together.
    pub fn consumer_totals(&self) -> ConsumerTotals {
        self.queue.consumer_totals()
    }

    /// One consumer.
    pub fn consumer(&self, namespace: NamespaceId, consumer: ConsumerId) -> Option<ConsumerView> {
        self.queue.consumer(namespace, consumer)
    }

    /// Deliveries that a consumer holds, longest first; at most `limit` and
    /// [`PAGE_ITEMS_MAX`](crate::PAGE_ITEMS_MAX).
    pub fn held(&self, namespace: NamespaceId, consumer: ConsumerId, limit: usize) -> Vec<HeldView> {
        self.queue.held(namespace, consumer, limit)
    }

    /// True if the lease behind a receipt goes on at this time.
    pub fn is_held(&self, receipt: &Receipt, now_us: u64) -> bool {
        self.queue.is_held(receipt, now_us, &self.core)
    }

    /// The messages whose content type, headers and payload are a blob, named by record index and item, of
    /// which `is_sought` says so, searched among `limit` slots. `cursor` is the `next` of the search before;
    /// a page without `next` is the last.
    pub fn find_blobs(
        &self,
        is_sought: impl Fn(u64, u32) -> bool,
        cursor: Option<u64>,
        limit: usize,
    ) -> Page<MessageView> {
        self.queue.find_blobs(is_sought, cursor, limit, &self.core)
    }
}
