//! Reads of limits and limit keys.

use std::ops::Bound;

use crate::core::{Core, PAGE_ITEMS_MAX};
use crate::id::NamespaceId;
use crate::query::{LimitKeyView, LimitView, Page, State};
use crate::queue::QueueModule;
use crate::queue::state::message::BlockedBy;
use crate::queue::state::{LimitKeySlot, LimitSlot};
use crate::store::slot::Slot;

/// Keys, of whichever limit, that one page looks at.
const PAGE_KEYS_EXAMINED_MAX: usize = 2_000;

impl QueueModule {
    pub(crate) fn limits_of(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Vec<LimitView> {
        let Some(slot) = core.namespace_slot(namespace) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.indexes
            .get(slot)
            .limits
            .range::<str, _>((from, Bound::Unbounded))
            .take(limit.min(PAGE_ITEMS_MAX))
            .map(|(_, &slot)| self.limit_view(slot, core))
            .collect()
    }

    pub(crate) fn limit(&self, namespace: NamespaceId, name: &str, core: &Core) -> Option<LimitView> {
        let slot = self.indexes.get(core.namespace_slot(namespace)?).limits.get(name)?;
        Some(self.limit_view(*slot, core))
    }

    fn limit_view(&self, slot: LimitSlot, core: &Core) -> LimitView {
        let limit = self.queue_limits.slots.get(slot);
        let queues = || limit.queues.iter().map(|queue| self.queues.get(*queue));
        let used_up = limit.room(core.now_us) == 0;
        let blocked: u64 = queues().map(|queue| queue.blocked_by[BlockedBy::Limit as usize]).sum();
        let ready: u64 = queues().map(|queue| queue.counters.states[State::Ready as usize]).sum();
        let by_rate = limit.pace.filter(|pace| pace.allowed(limit.arrival_ns, core.now_us) == 0);
        let mut names: Vec<String> = queues().map(|queue| queue.name.to_string()).collect();
        names.sort_unstable();
        LimitView {
            name: limit.name.to_string(),
            rules: *limit.rules(),
            queues: names,
            in_flight: limit.in_flight,
            waiting: blocked + if used_up { ready } else { 0 },
            next_at_us: by_rate.map(|pace| pace.next_us(limit.arrival_ns)),
            spent: limit.pace.map(|pace| pace.spent(limit.arrival_ns, core.now_us)),
        }
    }

    pub(crate) fn limit_keys(
        &self,
        namespace: NamespaceId,
        name: &str,
        waiting: bool,
        cursor: Option<u64>,
        limit: usize,
        core: &Core,
    ) -> Page<LimitKeyView> {
        let mut page = Page { items: Vec::new(), next: None };
        let found = core.namespace_slot(namespace).map(|slot| &self.indexes.get(slot).limits);
        let Some(&slot) = found.and_then(|limits| limits.get(name)) else { return page };
        let from = cursor.map_or(0, |cursor| u32::try_from(cursor).unwrap_or(u32::MAX));
        let (keys, next) = self.queue_limits.keys.slots.range(from, PAGE_KEYS_EXAMINED_MAX);
        page.next = next.map(u64::from);
        for (at, _) in keys.filter(|(_, key)| key.limit == slot) {
            let Some(view) = self.limit_key_view(at, core).filter(|view| !waiting || view.waiting > 0) else {
                continue;
            };
            if page.items.len() >= limit.clamp(1, PAGE_ITEMS_MAX) {
                page.next = Some(u64::from(at.index()));
                break;
            }
            page.items.push(view);
        }
        page
    }

    pub(crate) fn limit_key(
        &self,
        namespace: NamespaceId,
        name: &str,
        key: &[u8],
        core: &Core,
    ) -> Option<LimitKeyView> {
        let slot = self.indexes.get(core.namespace_slot(namespace)?).limits.get(name)?;
        self.limit_key_view(self.queue_limits.keys.find(*slot, key)?, core)
    }

    /// The view of a key; `None`: it has no messages, and its rate remembers no delivery.
    fn limit_key_view(&self, slot: LimitKeySlot, core: &Core) -> Option<LimitKeyView> {
        let key = self.queue_limits.keys.slots.get(slot);
        let (mut members, mut waiting, mut line) = (0, 0, key.lines);
        while line != Slot::NIL {
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
        if members == 0 && (pace.is_none() || arrival_ns <= core.now_us * 1_000) {
            return None;
        }
        let used_up = pace.filter(|pace| pace.allowed(arrival_ns, core.now_us) == 0);
        Some(LimitKeyView {
            key: (*key.key).into(),
            in_flight: u64::from(key.in_flight),
            waiting,
            next_at_us: used_up.map(|pace| pace.next_us(arrival_ns)),
            spent: pace.map(|pace| pace.spent(arrival_ns, core.now_us)),
        })
    }
}
