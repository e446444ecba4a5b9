//! What can be read of limits.

use std::ops::Bound;

use crate::engine::{Engine, PAGE_ITEMS_MAX};
use crate::id::NamespaceId;
use crate::query::{LimitKeyView, LimitView, Page, State};
use crate::queue::message::state::BlockedBy;
use crate::store::NIL;

/// Keys, of whichever limit, that one page looks at.
const PAGE_KEYS_EXAMINED_MAX: usize = 2_000;

impl Engine {
    /// Limits of a namespace by name, after `after`; at most `limit` and [`PAGE_ITEMS_MAX`].
    pub fn limits_of(&self, namespace: NamespaceId, after: Option<&str>, limit: usize) -> Vec<LimitView> {
        let Some(slot) = self.namespace_slot(namespace) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.indexes
            .get(slot)
            .limits
            .range::<str, _>((from, Bound::Unbounded))
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|(_, &slot)| self.limit_view(slot))
            .collect()
    }

    /// One limit.
    pub fn limit(&self, namespace: NamespaceId, name: &str) -> Option<LimitView> {
        let slot = self.indexes.get(self.namespace_slot(namespace)?).limits.get(name)?;
        Some(self.limit_view(*slot))
    }

    fn limit_view(&self, slot: u32) -> LimitView {
        let limit = self.queue_limits.slots.get(slot);
        let queues = || limit.queues.iter().map(|queue| self.queues.get(*queue));
        let used_up = limit.room(self.now_us) == 0;
        let blocked: u64 = queues().map(|queue| queue.blocked_by[BlockedBy::Limit as usize]).sum();
        let ready: u64 = queues().map(|queue| queue.counters.states[State::Ready as usize]).sum();
        let by_rate = limit.pace.filter(|pace| pace.allowed(limit.arrival_ns, self.now_us) == 0);
        let mut names: Vec<String> = queues().map(|queue| queue.name.to_string()).collect();
        names.sort_unstable();
        LimitView {
            name: limit.name.to_string(),
            rules: *limit.rules(),
            queues: names,
            in_flight: limit.in_flight,
            waiting: blocked + if used_up { ready } else { 0 },
            next_at_us: by_rate.map(|pace| pace.next_us(limit.arrival_ns)),
        }
    }

    /// Keys of a limit that have messages or whose rate remembers some, in no order that means anything; at most `limit` and
    /// [`PAGE_ITEMS_MAX`]. `cursor` is the `next` of the page before: keys that are there all the time are given once.
    /// With `waiting` only those that hold something back. A page looks at a bounded number of keys, so it may be empty and
    /// not the last.
    pub fn limit_keys(
        &self,
        namespace: NamespaceId,
        name: &str,
        waiting: bool,
        cursor: Option<u64>,
        limit: usize,
    ) -> Page<LimitKeyView> {
        let mut page = Page { items: Vec::new(), next: None };
        let found = self.namespace_slot(namespace).map(|slot| &self.indexes.get(slot).limits);
        let Some(&slot) = found.and_then(|limits| limits.get(name)) else { return page };
        let from = cursor.map_or(0, |cursor| u32::try_from(cursor).unwrap_or(u32::MAX));
        let (keys, next) = self.queue_limits.keys.slots.range(from, PAGE_KEYS_EXAMINED_MAX);
        page.next = next.map(u64::from);
        for (at, _) in keys.filter(|(_, key)| key.limit == slot) {
            let Some(view) = self.limit_key_view(at).filter(|view| !waiting || view.waiting > 0) else {
                continue;
            };
            if page.items.len() >= limit.clamp(1, PAGE_ITEMS_MAX) {
                page.next = Some(u64::from(at));
                break;
            }
            page.items.push(view);
        }
        page
    }

    /// One key of a limit; `None`: nothing is known of it.
    pub fn limit_key(&self, namespace: NamespaceId, name: &str, key: &[u8]) -> Option<LimitKeyView> {
        let slot = self.indexes.get(self.namespace_slot(namespace)?).limits.get(name)?;
        self.limit_key_view(self.queue_limits.keys.find(*slot, key)?)
    }

    /// What is told of a key; `None`: it has no messages, and its rate remembers none.
    fn limit_key_view(&self, slot: u32) -> Option<LimitKeyView> {
        let key = self.queue_limits.keys.slots.get(slot);
        let (mut members, mut waiting, mut line) = (0, 0, key.lines);
        while line != NIL {
            let of = self.queue_limits.lines.slots.get(line);
            members += u64::from(of.members);
            let queue = self.queues.get(of.queue);
            if of.generation == queue.waiting_generation && !queue.deleted {
                waiting += u64::from(of.waiting_count);
            }
            line = of.next;
        }
        let pace = self.queue_limits.slots.get(key.limit).pace_per_key;
        let arrival_ns = self.key_arrival(slot);
        if members == 0 && (pace.is_none() || arrival_ns <= self.now_us * 1_000) {
            return None;
        }
        let used_up = pace.filter(|pace| pace.allowed(arrival_ns, self.now_us) == 0);
        Some(LimitKeyView {
            key: (*key.key).into(),
            in_flight: u64::from(key.in_flight),
            waiting,
            next_at_us: used_up.map(|pace| pace.next_us(arrival_ns)),
        })
    }
}
