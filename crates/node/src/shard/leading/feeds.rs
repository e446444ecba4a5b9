//! Feeds of a shard: which exist, what goes into them, and for how long they are kept.
//!
//! A feed exists from its first reader on, and for a while after its last one has left, so that a reader that
//! comes back in time misses nothing. The engine reports events while there is a feed.

use std::hash::Hasher as _;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};
use sluice_engine::Error;
use sluice_engine::event::{Event, EventDetail};
use sluice_engine::id::NamespaceId;

use crate::api::EventOptions;
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::feed::{EventPlace, EventPosition, Feed, Told, ToldDetail, share};
use crate::shard::request::{Left, Reader, Topic, Watch};
use crate::shard::store::Store;

/// Upper limit of feeds of a shard.
const FEEDS_MAX: usize = 256;
/// Upper limit of events in all feeds of a shard, which share it evenly: 64 MiB, as a ring may have twice the
/// capacity that it fills.
const EVENTS_MAX: usize = (32 << 20) / size_of::<Told>();
/// Capacity for events of a step that a feed keeps.
const FRESH_MAX: usize = 1_024;
/// Wait suggested to a reader that found too many, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// A feed with its readers and the events of the current step.
#[derive(Debug)]
struct Kept {
    feed: Arc<Feed>,
    readers: usize,
    /// Monotonic time until which it is kept without readers, in microseconds.
    until_us: u64,
    /// Events of the current step.
    fresh: Vec<Told>,
}

/// The feeds of one namespace.
#[derive(Debug, Default)]
struct OfNamespace {
    whole: Option<Kept>,
    queues: FxHashMap<Box<str>, Kept>,
}

impl OfNamespace {
    fn get_mut(&mut self, queue: Option<&str>) -> Option<&mut Kept> {
        match queue {
            None => self.whole.as_mut(),
            Some(queue) => self.queues.get_mut(queue),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Kept> {
        self.whole.iter().chain(self.queues.values())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Kept> {
        self.whole.iter_mut().chain(self.queues.values_mut())
    }

    /// Number of feeds, and number of their readers.
    fn figures(&self) -> (usize, usize) {
        self.all().fold((0, 0), |(feeds, readers), kept| (feeds + 1, readers + kept.readers))
    }

    /// Removes feeds for which `is_over` is true; returns their number.
    fn forget(&mut self, is_over: impl Fn(&Kept) -> bool) -> usize {
        let before = self.all().count();
        self.whole = self.whole.take().filter(|kept| !is_over(kept));
        self.queues.retain(|_, kept| !is_over(kept));
        before - self.all().count()
    }
}

/// The identity of a leadership with its first reader at this time of the log. Those of one time have
/// different epochs: when the end of a log is lost in a crash, its time goes on from before. Those of one
/// epoch are of different shards, and began at different times.
fn run_of(now_us: u64, epoch: u64) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(now_us);
    hasher.write_u64(epoch);
    hasher.finish()
}

/// All feeds of a shard.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    options: EventOptions,
    /// Identity of this leadership: see [`run_of`].
    run: u64,
    namespaces: FxHashMap<NamespaceId, OfNamespace>,
    count: usize,
    readers: usize,
    /// True when the current step has events for a feed.
    fresh: bool,
    /// Monotonic time of the next search for abandoned feeds, in microseconds.
    look_us: Option<u64>,
}

impl Feeds {
    pub(super) fn new(options: EventOptions) -> Feeds {
        Feeds { options, ..Feeds::default() }
    }

    /// Ends every feed: its readers hear that nothing more will come.
    pub(super) fn end(&mut self) {
        let ended = std::mem::replace(self, Feeds::new(self.options));
        ended.namespaces.values().flat_map(OfNamespace::all).for_each(|kept| kept.feed.end());
    }

    /// Number of readers.
    pub(super) fn readers(&self) -> usize {
        self.readers
    }

    /// Monotonic time of the next search for abandoned feeds, in microseconds.
    pub(super) fn look_us(&self) -> Option<u64> {
        self.look_us
    }

    fn knows(&mut self, topic: &Topic) -> bool {
        let of_namespace = self.namespaces.get_mut(&topic.namespace);
        of_namespace.is_some_and(|known| known.get_mut(topic.queue.as_deref()).is_some())
    }

    /// Adds a reader to a feed, which is made if needed. `now`: position of the next event; `run`: identity
    /// of the start if this is its first reader.
    fn enter(&mut self, topic: &Topic, now: EventPlace, run: u64) -> Result<Arc<Feed>, Error> {
        let of_namespace = self.namespaces.get(&topic.namespace);
        let (feeds, readers) = of_namespace.map_or((0, 0), OfNamespace::figures);
        if self.readers >= self.options.readers || readers >= share(self.options.readers) {
            return Err(Error::Overloaded { what: "readers of events", retry_after_ms: RETRY_AFTER_MS });
        }
        if self.run == 0 {
            self.run = run;
        }
        let known = self.namespaces.get_mut(&topic.namespace);
        if let Some(kept) = known.and_then(|of_namespace| of_namespace.get_mut(topic.queue.as_deref())) {
            kept.readers += 1;
            self.readers += 1;
            return Ok(Arc::clone(&kept.feed));
        }
        let has_room = match (feeds >= share(FEEDS_MAX), self.count >= FEEDS_MAX) {
            (true, _) => self.forget_oldest(Some(topic.namespace)),
            (false, true) => self.forget_oldest(None),
            (false, false) => true,
        };
        if !has_room {
            return Err(Error::Overloaded { what: "feeds of events", retry_after_ms: RETRY_AFTER_MS });
        }
        let feed = Arc::new(Feed::new(self.run, now));
        let kept = Kept { feed: Arc::clone(&feed), readers: 1, until_us: 0, fresh: Vec::new() };
        let of_namespace = self.namespaces.entry(topic.namespace).or_default();
        match &topic.queue {
            None => of_namespace.whole = Some(kept),
            Some(queue) => drop(of_namespace.queues.insert(queue.clone(), kept)),
        }
        self.count += 1;
        self.readers += 1;
        let window = self.window();
        if window < self.options.window {
            let all = self.namespaces.values().flat_map(OfNamespace::all);
            all.for_each(|kept| kept.feed.shrink(window));
        }
        Ok(feed)
    }

    /// Upper limit of events of one feed.
    fn window(&self) -> usize {
        self.options.window.min(EVENTS_MAX / self.count.max(1))
    }

    /// Removes a reader. Its feed may have ended, and another of the same subject may exist.
    fn leave(&mut self, left: &Left, monotonic_us: u64) {
        let Left { feed, topic } = left;
        let known = self.namespaces.get_mut(&topic.namespace);
        let kept = known.and_then(|of_namespace| of_namespace.get_mut(topic.queue.as_deref()));
        let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.feed, feed)) else { return };
        kept.readers -= 1;
        self.readers -= 1;
        if kept.readers == 0 {
            kept.until_us = monotonic_us + self.options.keep.as_micros() as u64;
            self.look_us = Some(self.look_us.unwrap_or(u64::MAX).min(kept.until_us));
        }
    }

    /// Removes the feed that was abandoned longest ago, of a namespace or of all. False when all have
    /// readers.
    fn forget_oldest(&mut self, of: Option<NamespaceId>) -> bool {
        let namespaces =
            self.namespaces.iter().filter(|(namespace, _)| of.is_none_or(|of| of == **namespace));
        let all = namespaces.flat_map(|(_, of_namespace)| of_namespace.all());
        let Some(oldest_us) = all.filter(|kept| kept.readers == 0).map(|kept| kept.until_us).min() else {
            return false;
        };
        self.forget(of, |kept| kept.readers == 0 && kept.until_us <= oldest_us);
        true
    }

    fn forget(&mut self, of: Option<NamespaceId>, is_over: impl Fn(&Kept) -> bool) {
        let namespaces =
            self.namespaces.iter_mut().filter(|(namespace, _)| of.is_none_or(|of| of == **namespace));
        for (_, of_namespace) in namespaces {
            self.count -= of_namespace.forget(&is_over);
        }
        self.namespaces.retain(|_, of_namespace| of_namespace.all().next().is_some());
    }

    /// Removes feeds that were abandoned for long enough.
    fn forget_abandoned(&mut self, monotonic_us: u64) {
        self.forget(None, |kept| kept.readers == 0 && kept.until_us <= monotonic_us);
        let all = self.namespaces.values().flat_map(OfNamespace::all);
        self.look_us = all.filter(|kept| kept.readers == 0).map(|kept| kept.until_us).min();
    }

    /// Puts the step's events into the feeds.
    pub(super) fn flush(&mut self) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        let window = self.window();
        let all = self.namespaces.values_mut().flat_map(OfNamespace::all_mut);
        for kept in all.filter(|kept| !kept.fresh.is_empty()) {
            kept.feed.put(&mut kept.fresh, window);
            kept.fresh.shrink_to(FRESH_MAX);
        }
    }

    fn end_namespace(&mut self, namespace: NamespaceId) {
        let Some(of_namespace) = self.namespaces.remove(&namespace) else { return };
        for kept in of_namespace.all() {
            kept.feed.end();
            self.readers -= kept.readers;
            self.count -= 1;
        }
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(in crate::shard) fn take_watch(&mut self, watch: Watch) {
        let Watch { topic, after, reply } = watch;
        let reader = self.reader(topic, after);
        // A reader that nobody takes leaves at once.
        drop(reply.send(reader));
    }

    fn reader(&mut self, topic: Topic, after: Option<EventPosition>) -> Result<Reader, Error> {
        let namespace = topic.namespace;
        if self.engine.namespace(namespace).is_none() {
            return Err(namespace.not_found());
        }
        // Who comes back to a queue that is deleted by now may wait for it to be made again.
        if let Some(queue) = &topic.queue
            && self.engine.queue_id(namespace, queue).is_none()
            && !self.leading.feeds.knows(&topic)
        {
            return Err(Error::QueueNotFound { queue: queue.chars().take(128).collect() });
        }
        let now = (self.engine.applied_index() + 1, 0);
        let feed = self.leading.feeds.enter(&topic, now, run_of(self.now_us, self.engine.epoch()))?;
        self.engine.watch_events(true);
        let cursor = feed.enter(after, now);
        Ok(Reader { feed, cursor, topic, mailbox: self.mailbox.clone() })
    }

    /// Removes a reader.
    pub(in crate::shard) fn end_watch(&mut self, left: &Left) {
        self.leading.feeds.leave(left, self.monotonic_us);
    }

    /// Adds the events of the last applied record to their feeds.
    #[cold]
    pub(super) fn tell_events(&mut self, index: u64) {
        let mut events = std::mem::take(&mut self.outcome.events);
        for (number, event) in (1..).zip(events.drain(..)) {
            self.tell_event((index, number), event);
        }
        self.outcome.events = events;
    }

    fn tell_event(&mut self, place: EventPlace, event: Event) {
        if !self.leading.feeds.namespaces.contains_key(&event.namespace) {
            return;
        }
        let (queue, detail) = match event.detail {
            EventDetail::Many { messages, why, name } => (name.into(), ToldDetail::Many(messages, why)),
            EventDetail::None => (self.name_of(event.queue), ToldDetail::None),
            EventDetail::Until(until_us) => (self.name_of(event.queue), ToldDetail::Until(until_us)),
            EventDetail::Lease { until_us, consumer } => {
                (self.name_of(event.queue), ToldDetail::Lease(until_us, consumer))
            }
            EventDetail::Why(why) => (self.name_of(event.queue), ToldDetail::Why(why)),
            EventDetail::From(from) => (self.name_of(event.queue), ToldDetail::From(self.name_of(from))),
        };
        let Event { kind, id, attempt, .. } = event;
        let told = Told { place, kind, at_us: self.engine.time_us(), queue, id, attempt, detail };
        let Some(of_namespace) = self.leading.feeds.namespaces.get_mut(&event.namespace) else { return };
        if let ToldDetail::From(from) = &told.detail
            && let Some(kept) = of_namespace.queues.get_mut(&**from)
        {
            kept.fresh.push(told.clone());
        }
        if let Some(kept) = of_namespace.queues.get_mut(&*told.queue) {
            kept.fresh.push(told.clone());
        }
        if let Some(kept) = &mut of_namespace.whole {
            kept.fresh.push(told);
        }
        self.leading.feeds.fresh = true;
    }

    /// Removes feeds that were abandoned for long enough.
    pub(super) fn end_feeds(&mut self) {
        if self.leading.feeds.look_us.is_some_and(|look_us| look_us <= self.monotonic_us) {
            self.leading.feeds.forget_abandoned(self.monotonic_us);
            self.engine.watch_events(self.leading.feeds.count > 0);
        }
    }

    /// Ends the feeds of deleted namespaces.
    pub(super) fn end_orphaned_feeds(&mut self) {
        if self.leading.feeds.count == 0 {
            return;
        }
        self.leading.feeds.flush();
        let engine = &self.engine;
        let gone: Vec<NamespaceId> = self
            .leading
            .feeds
            .namespaces
            .keys()
            .copied()
            .filter(|&id| engine.namespace(id).is_none())
            .collect();
        for namespace in gone {
            self.leading.feeds.end_namespace(namespace);
        }
        self.engine.watch_events(self.leading.feeds.count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_namespace_leaves_feeds_and_readers_to_others() {
        let mut feeds = Feeds::new(EventOptions { readers: 400, ..EventOptions::default() });
        let mut enter = |namespace: u32, queue: usize| {
            let topic = Topic { namespace: NamespaceId(namespace), queue: Some(queue.to_string().into()) };
            feeds.enter(&topic, (1, 0), 1).is_ok()
        };
        assert_eq!((0..FEEDS_MAX).filter(|queue| enter(1, *queue)).count(), 192);
        assert_eq!((0..400).filter(|_| enter(1, 0)).count(), 300 - 192);
        assert!(enter(2, 0) && enter(2, 1), "others have the rest");
    }
}
