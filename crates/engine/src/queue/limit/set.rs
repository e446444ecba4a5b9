//! Creation, change and deletion of limits; queues begin and cease to follow them.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::id::{NamespaceId, QueueId};
use crate::limit::{LIMIT_CHANGES_MAX, LIMIT_QUEUES_MAX, LIMITS_MAX, LimitRules};
use crate::outcome::{Outcome, Reply};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::limit::{COSTS_SINCE, SPENT_STAYS_SINCE};
use crate::queue::state::limit::{Limit, Timed};
use crate::queue::state::namespace_index::NamespaceIndex;
use crate::queue::state::work::Work;
use crate::queue::state::{LimitSlot, QueueSlot};
use crate::settings::QueuePatch;
use crate::store::slot::Slot;

/// Queues that an error names.
const NAMED_MAX: usize = 5;
/// Time after which a change that was refused may be tried again: the keys are looked at meanwhile.
const RETRY_CHANGE_MS: u64 = 1_000;

/// The limit with this name.
fn limit_of(index: &NamespaceIndex, name: &str) -> Result<LimitSlot, Error> {
    index.limits.get(name).copied().ok_or_else(|| Error::LimitNotFound { limit: name.to_owned() })
}

impl QueueModule {
    /// Sets the rules of a limit, which is made if it is missing. Rules that are the same change nothing: a
    /// look through all keys is not begun anew. A change is refused as long as the keys have yet to follow
    /// [`LIMIT_CHANGES_MAX`] others.
    pub(crate) fn limit_set(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        rules: LimitRules,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        if !rules.are_small() {
            core.expect_behaviour(COSTS_SINCE)?;
        }
        let found = self.indexes.get(namespace_slot).limits.get(name).copied();
        if found.is_none() && self.queue_limits.slots.used() >= LIMITS_MAX {
            return Err(Error::LimitExceeded { what: "limits", limit: u64::from(LIMITS_MAX) });
        }
        if found.is_some_and(|slot| self.queue_limits.slots.get(slot).rules() == &rules) {
            out.reply = Reply::Limit { created: false };
            return Ok(());
        }
        if found.is_some_and(|slot| self.queue_limits.slots.get(slot).past.len() >= LIMIT_CHANGES_MAX) {
            return Err(Error::Overloaded { what: "changes of this limit", retry_after_ms: RETRY_CHANGE_MS });
        }
        let slot = found.unwrap_or_else(|| {
            let slot = self.queue_limits.slots.insert(Limit::new(namespace_slot, name));
            self.indexes.get_mut(namespace_slot).limits.insert(name.into(), slot);
            slot
        });
        let spent_stays = core.expect_behaviour(SPENT_STAYS_SINCE).is_ok();
        self.queue_limits.slots.get_mut(slot).change_rules(rules, core.now_us, spent_stays);
        self.touch_limit(slot, true);
        if self.queue_limits.slots.get(slot).keys > 0 {
            self.look_at_keys_of(slot, core, out);
        }
        out.reply = Reply::Limit { created: found.is_none() };
        Ok(())
    }

    /// All keys of a limit are looked at, in slices.
    fn look_at_keys_of(&mut self, slot: LimitSlot, core: &mut Core, out: &mut Outcome) {
        let listed =
            std::mem::replace(&mut self.queue_limits.slots.get_mut(slot).cursor, Slot::new(0)) != Slot::NIL;
        if !listed {
            self.begin_work(Work::Limit(slot), core, out);
        }
    }

    pub(crate) fn limit_delete(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        let slot = limit_of(self.indexes.get(namespace_slot), name)?;
        let queues = &self.queue_limits.slots.get(slot).queues;
        if !queues.is_empty() {
            let mut names: Vec<&str> =
                queues.iter().take(NAMED_MAX).map(|queue| &*self.queues.get(*queue).name).collect();
            names.sort_unstable();
            let more = queues.len().saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let queues = format!("{}{more}", names.join(", "));
            return Err(Error::LimitInUse { limit: name.to_owned(), queues });
        }
        self.drop_limit(slot);
        self.look_at_keys_of(slot, core, out);
        Ok(())
    }

    /// A limit that no queue names is gone for all who ask; its keys are yet to be forgotten.
    pub(crate) fn drop_limit(&mut self, slot: LimitSlot) {
        self.queue_limits.set_timer(Timed::Limit(slot), 0);
        let limit = self.queue_limits.slots.get_mut(slot);
        limit.deleted = true;
        self.indexes.get_mut(limit.namespace).limits.remove(&limit.name);
        self.touch_limit(slot, false);
    }

    /// A namespace that is deleted, without queues: its limits go.
    pub(crate) fn drop_limits_of(&mut self, namespace_slot: NamespaceSlot, budget: &mut usize) -> bool {
        while *budget > 0 {
            let Some((_, &slot)) = self.indexes.get(namespace_slot).limits.first_key_value() else {
                return true;
            };
            *budget -= 1;
            self.drop_limit(slot);
            if std::mem::replace(&mut self.queue_limits.slots.get_mut(slot).cursor, Slot::new(0)) == Slot::NIL
            {
                self.list_work(Work::Limit(slot));
            }
        }
        false
    }

    /// Refuses a patch whose limit is missing, or has as many queues as it may. `queue_slot`: the queue,
    /// which may have the limit already; `None`: it is not there yet.
    pub(crate) fn check_limit(
        &self,
        namespace_slot: NamespaceSlot,
        queue_slot: Option<QueueSlot>,
        patch: &QueuePatch,
    ) -> Result<(), Error> {
        let Some(name) = patch.limit.as_deref().filter(|name| !name.is_empty()) else { return Ok(()) };
        let slot = limit_of(self.indexes.get(namespace_slot), name)?;
        let follows = queue_slot.is_some_and(|queue| self.queues.get(queue).limit == slot);
        if !follows && self.queue_limits.slots.get(slot).queues.len() >= LIMIT_QUEUES_MAX {
            return Err(Error::LimitExceeded { what: "queues of one limit", limit: LIMIT_QUEUES_MAX as u64 });
        }
        Ok(())
    }

    /// Lets a queue follow the limit that its settings name.
    pub(crate) fn follow_limit(&mut self, queue_slot: QueueSlot, core: &mut Core, out: &mut Outcome) {
        let queue = self.queues.get(queue_slot);
        let named = self.indexes.get(queue.namespace).limits.get(&*queue.settings.limit).copied();
        let wanted = named.unwrap_or(Slot::NIL);
        if queue.limit == wanted {
            return;
        }
        self.leave_limit(queue_slot);
        let queue = self.queues.get_mut(queue_slot);
        if wanted == Slot::NIL {
            if queue.ready.occupied != 0 {
                out.ready.push(QueueId(queue.number));
            }
        } else {
            self.join_limit(queue_slot, wanted);
        }
        let queue = self.queues.get_mut(queue_slot);
        if std::mem::replace(&mut queue.lines_cursor, Slot::new(0)) == Slot::NIL {
            self.begin_work(Work::LimitLines(queue_slot), core, out);
        }
    }

    /// A queue that follows no limit follows this one, with what is in flight.
    pub(crate) fn join_limit(&mut self, queue_slot: QueueSlot, slot: LimitSlot) {
        let queue = self.queues.get_mut(queue_slot);
        queue.limit = slot;
        let limit = self.queue_limits.slots.get_mut(slot);
        limit.in_flight += queue.counters.states[State::Leased as usize];
        let at = limit.queues.partition_point(|&other| other < queue_slot);
        limit.queues.insert(at, queue_slot);
        self.touch_limit(slot, true);
    }

    /// A queue leaves its limit with what is in flight.
    pub(crate) fn leave_limit(&mut self, queue_slot: QueueSlot) {
        let queue = self.queues.get_mut(queue_slot);
        let slot = std::mem::replace(&mut queue.limit, Slot::NIL);
        if slot == Slot::NIL {
            return;
        }
        let limit = self.queue_limits.slots.get_mut(slot);
        limit.in_flight -= queue.counters.states[State::Leased as usize];
        limit.queues.retain(|&other| other != queue_slot);
        self.touch_limit(slot, true);
    }
}
