//! Schedules: messages that are sent at instants. The node computes the instants, since time-zone data
//! differs between machines; the log carries them. A firing counts only at the instant that the schedule
//! waits for, so each instant fires once, however often it is proposed. An instant that is not after the last
//! one that fired sends nothing: a schedule that is resumed late may wait for such.

use std::ops::Bound;

use crate::command::{Deliver, ScheduleFire};
use crate::core::namespace::NamespaceSlot;
use crate::core::{Core, PAGE_ITEMS_MAX, internal};
use crate::error::Error;
use crate::id::{BlobRef, MessageId, NamespaceId};
use crate::limit::Cost;
use crate::limits::{
    ATTEMPTS_MAX, DELAY_MS_MAX, PRIORITY_MAX, SCHEDULE_SPEC_BYTES_MAX, SCHEDULES_MAX, SHARD_SCHEDULES_MAX,
};
use crate::outcome::{Outcome, Reply};
use crate::plant::{self, Plant};
use crate::query::{DueSchedule, MessageTemplate, ScheduleView};
use crate::queue::QueueModule;
use crate::queue::limit::COSTS_SINCE;
use crate::queue::message::lookup::queue_not_found;
use crate::queue::record::options::read_options;
use crate::queue::record::schedule::{SchedulePutRecord, read_template};
use crate::queue::send::own::{OwnSend, OwnSent};
use crate::queue::state::ScheduleSlot;
use crate::queue::state::schedule::Schedule;
use crate::rules::name_rule;

impl QueueModule {
    /// Creates a schedule, or replaces what it does. Its counters stay, it stays paused, and one that is as
    /// before keeps its next time, so that a caller who declares it again and again does not put it off.
    /// Where it is refused, its blob is released.
    pub(crate) fn schedule_put(
        &mut self,
        put: &SchedulePutRecord<'_>,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let blob = BlobRef { index: core.applied_index, item: 0, len: put.item.blob_len };
        let done = self.put_schedule(put, blob, core, out);
        if done.is_err() {
            out.released.push(blob);
        }
        done
    }

    fn put_schedule(
        &mut self,
        put: &SchedulePutRecord<'_>,
        blob: BlobRef,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let namespace_slot = core.find_namespace(put.namespace)?;
        check_template(put)?;
        let options = put.item.options.and_then(read_options).unwrap_or_default();
        if options.cost != Cost::default() {
            core.expect_behaviour(COSTS_SINCE)?;
        }
        self.admit_reply_to(namespace_slot, &options, core)?;
        if !core.limits.auto_create && self.find_queue(namespace_slot, put.queue).is_none() {
            return Err(queue_not_found(put.queue));
        }
        let found = self.indexes.get(namespace_slot).schedules.get(put.schedule).copied();
        let slot = match found {
            Some(slot) => slot,
            None => self.add_schedule(namespace_slot, put.schedule, core)?,
        };
        let number = self.schedules.new_number();
        let mut before = BlobRef::EMPTY;
        self.schedules.change(slot, |schedule| {
            before = std::mem::replace(&mut schedule.blob, blob);
            if schedule.next_at_us == 0 || *schedule.spec != *put.spec {
                schedule.next_at_us = if schedule.paused { 0 } else { put.next_at_us };
            }
            schedule.number = number;
            schedule.spec = put.spec.into();
            schedule.queue = put.queue.into();
            schedule.template = put.template.into();
        });
        core.release_blob(before, out);
        out.reply = Reply::Schedule { created: found.is_none() };
        Ok(())
    }

    fn add_schedule(
        &mut self,
        namespace_slot: NamespaceSlot,
        name: &str,
        core: &Core,
    ) -> Result<ScheduleSlot, Error> {
        let limit = |what, limit| Err(Error::LimitExceeded { what, limit: u64::from(limit) });
        if self.indexes.get(namespace_slot).schedules.len() >= SCHEDULES_MAX as usize {
            return limit("schedules of one namespace", SCHEDULES_MAX);
        }
        if self.schedules.slots.used() >= SHARD_SCHEDULES_MAX {
            return limit("schedules", SHARD_SCHEDULES_MAX);
        }
        let schedule = Schedule::new(namespace_slot, name, core.now_us);
        let slot = self.schedules.insert(schedule);
        self.indexes.get_mut(namespace_slot).schedules.insert(name.into(), slot);
        Ok(slot)
    }

    fn find_schedule(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
    ) -> Result<ScheduleSlot, Error> {
        let namespace_slot = core.find_namespace(namespace)?;
        let found = self.indexes.get(namespace_slot).schedules.get(name).copied();
        found.ok_or_else(|| Error::ScheduleNotFound { schedule: name.to_owned() })
    }

    pub(crate) fn schedule_delete(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let slot = self.find_schedule(namespace, name, core)?;
        self.drop_schedule(slot, core, out);
        Ok(())
    }

    /// A paused schedule lets its instants go by; resumed, it waits for the next one. Nothing changes when it
    /// is as wanted.
    pub(crate) fn schedule_pause(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        paused: bool,
        next_at_us: u64,
        core: &mut Core,
    ) -> Result<(), Error> {
        let slot = self.find_schedule(namespace, name, core)?;
        if self.schedules.slots.get(slot).paused != paused {
            self.schedules.change(slot, |schedule| {
                schedule.paused = paused;
                schedule.next_at_us = if paused { 0 } else { next_at_us };
            });
        }
        Ok(())
    }

    /// An instant has come. It counts only if it is the one that the schedule waits for: see the module.
    pub(crate) fn schedule_fire(
        &mut self,
        fire: &ScheduleFire,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let Some(slot) = self.schedules.find(fire.number) else { return Ok(()) };
        let schedule = self.schedules.slots.get(slot);
        if schedule.next_at_us != fire.instant_us || fire.instant_us == 0 {
            return Ok(());
        }
        if fire.next_at_us != 0 && fire.next_at_us <= fire.instant_us {
            let reason = format!("{} does not follow the instant {}", fire.next_at_us, fire.instant_us);
            return Err(internal(Error::InvalidArgument { field: "next_at_us".into(), reason }));
        }
        if core.namespaces.get(schedule.namespace).deleted {
            self.drop_schedule(slot, core, out);
            return Ok(());
        }
        let again = plant::is(Plant::FireTwice) && schedule.fired % 8 == 3;
        let has_fired = fire.instant_us <= schedule.last_at_us && !plant::is(Plant::FireTwice);
        if !again {
            self.schedules.change(slot, |schedule| schedule.next_at_us = fire.next_at_us);
        }
        if fire.send && !has_fired {
            self.fire_schedule(slot, fire.instant_us, core, out);
        }
        Ok(())
    }

    /// A message that is refused does not stop the schedule: it is counted, and shown with the schedule.
    fn fire_schedule(&mut self, slot: ScheduleSlot, instant_us: u64, core: &mut Core, out: &mut Outcome) {
        let sent = self.send_scheduled(slot, instant_us, core, out);
        let schedule = self.schedules.slots.get_mut(slot);
        schedule.last_at_us = instant_us;
        match sent {
            Ok(OwnSent { id, duplicate }) => {
                *(if duplicate { &mut schedule.duplicates } else { &mut schedule.fired }) += 1;
                schedule.last_sequence = id.sequence;
                schedule.last_error = Box::default();
                out.reply = Reply::Sent { first: id, count: 1, duplicate };
            }
            Err(error) => {
                schedule.refused += 1;
                schedule.last_error = error.code().into();
            }
        }
    }

    /// Sends a schedule's message now. Its instants stay as they are.
    pub(crate) fn trigger(
        &mut self,
        namespace: NamespaceId,
        name: &str,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<(), Error> {
        let slot = self.find_schedule(namespace, name, core)?;
        let OwnSent { id: first, duplicate } = self.send_scheduled(slot, core.now_us, core, out)?;
        out.reply = Reply::Sent { first, count: 1, duplicate };
        Ok(())
    }

    /// The message has the instant in its correlation id, unless it has one of its own.
    fn send_scheduled(
        &mut self,
        slot: ScheduleSlot,
        instant_us: u64,
        core: &mut Core,
        out: &mut Outcome,
    ) -> Result<OwnSent, Error> {
        let schedule = self.schedules.slots.get(slot);
        let namespace = NamespaceId(core.namespaces.get(schedule.namespace).number);
        let (blob, queue, template) = (schedule.blob, schedule.queue.clone(), schedule.template.clone());
        let instant = format!("{}@{}", schedule.name, instant_us / 1_000);
        let unreadable = || Error::Internal { reason: "a schedule's message cannot be read".into() };
        let item = read_template(&template).ok_or_else(unreadable)?;
        let send = OwnSend { queue: &queue, blob, item, correlation_id: instant.as_bytes() };
        core.share_blob(blob);
        let sent = self.send_of_engine(namespace, &send, None, core, out);
        if sent.is_err() {
            core.release_blob(blob, out);
        }
        sent
    }

    fn drop_schedule(&mut self, slot: ScheduleSlot, core: &mut Core, out: &mut Outcome) {
        let schedule = self.schedules.remove(slot);
        self.indexes.get_mut(schedule.namespace).schedules.remove(&schedule.name);
        core.release_blob(schedule.blob, out);
    }

    /// Drops the schedules of a deleted namespace; false when the budget was used up before.
    pub(crate) fn drop_schedules_of(
        &mut self,
        namespace_slot: NamespaceSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        while *budget > 0 {
            let schedules = &self.indexes.get(namespace_slot).schedules;
            let Some((_, &slot)) = schedules.first_key_value() else { return true };
            *budget -= 1;
            self.drop_schedule(slot, core, out);
        }
        false
    }

    pub(crate) fn next_schedule(&self) -> Option<u64> {
        self.schedules.by_time().next().map(|(at_us, _)| at_us)
    }

    pub(crate) fn schedules_by_time(&self) -> impl Iterator<Item = DueSchedule<'_>> + '_ {
        self.schedules.by_time().map(|(instant_us, schedule)| DueSchedule {
            number: schedule.number,
            instant_us,
            spec: &schedule.spec,
        })
    }

    pub(crate) fn schedule(&self, namespace: NamespaceId, name: &str, core: &Core) -> Option<ScheduleView> {
        let namespace_slot = core.namespace_slot(namespace)?;
        let slot = *self.indexes.get(namespace_slot).schedules.get(name)?;
        Some(self.schedule_view(self.schedules.slots.get(slot), core))
    }

    pub(crate) fn schedules(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
        core: &Core,
    ) -> Vec<ScheduleView> {
        let Some(namespace_slot) = core.namespace_slot(namespace) else { return Vec::new() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.indexes.get(namespace_slot).schedules.range::<str, _>((from, Bound::Unbounded));
        let found = found.take(limit.min(PAGE_ITEMS_MAX));
        found.map(|(_, &slot)| self.schedule_view(self.schedules.slots.get(slot), core)).collect()
    }

    fn schedule_view(&self, schedule: &Schedule, core: &Core) -> ScheduleView {
        let namespace = NamespaceId(core.namespaces.get(schedule.namespace).number);
        let given = |us: u64| (us > 0).then_some(us);
        ScheduleView {
            name: schedule.name.to_string(),
            spec: schedule.spec.clone(),
            queue: schedule.queue.to_string(),
            message: MessageTemplate::new(&schedule.template),
            blob: schedule.blob,
            next_at_us: given(schedule.next_at_us),
            paused: schedule.paused,
            created_at_us: schedule.created_at_us,
            fired: schedule.fired,
            duplicates: schedule.duplicates,
            refused: schedule.refused,
            last_at_us: given(schedule.last_at_us),
            last_id: given(schedule.last_sequence).map(|sequence| MessageId { namespace, sequence }),
            last_error: given(schedule.last_error.len() as u64).map(|_| schedule.last_error.to_string()),
        }
    }

    /// Compares what is kept of schedules with a full count.
    pub(crate) fn recount_schedules(&self, core: &Core) -> Result<(), String> {
        let mut named = 0;
        for (slot, _) in core.namespaces.iter() {
            for (name, &at) in &self.indexes.get(slot).schedules {
                let schedule = self.schedules.slots.get(at);
                if schedule.name != *name || schedule.namespace != slot {
                    return Err(format!("schedule {name:?} is listed in another's place"));
                }
                named += 1;
            }
        }
        if named != self.schedules.slots.used() {
            return Err(format!("schedules: {named} named, {} kept", self.schedules.slots.used()));
        }
        self.schedules.recount()
    }
}

/// Checks again what the check before the proposal should have refused.
fn check_template(put: &SchedulePutRecord<'_>) -> Result<(), Error> {
    let item = &put.item;
    if let Some(backoff) = &item.backoff {
        backoff.check("backoff").map_err(internal)?;
    }
    let delay_ms = match item.deliver {
        Deliver::Now => 0,
        Deliver::AfterMs(delay_ms) => delay_ms,
        Deliver::AtUs(_) => u64::MAX,
    };
    let sound = item.priority <= PRIORITY_MAX
        && item.max_attempts <= ATTEMPTS_MAX
        && delay_ms <= DELAY_MS_MAX
        && put.spec.len() <= SCHEDULE_SPEC_BYTES_MAX;
    if !sound {
        return Err(Error::Internal { reason: "a schedule record is out of range".into() });
    }
    name_rule("schedule", put.schedule).map_err(internal)?;
    name_rule("queue", put.queue).map_err(internal)
}
