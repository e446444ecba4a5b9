//! Schedules: each instant fires once and none too early; missed instants are caught up as the schedule says.

use sluice_engine::Engine;
use sluice_engine::command::{Command, Deliver, ScheduleFire, SchedulePut};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId};
use sluice_engine::outcome::Reply;

use super::item::blob_len;
use super::send::wrong_item;
use super::{Apply, Checked, ensure};
use super::{Message, ModelState};
use crate::workload::{Missed, Times};

/// Upper limit of missed instants that are caught up one by one.
const CAUGHT_UP_MAX: u64 = 1_000;
/// Delay up to which an instant still fires where missed ones are skipped, in microseconds.
const ON_TIME_US: u64 = 60_000_000;

/// One schedule.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Schedule {
    /// Changes with each change of the schedule; counted over all schedules of the shard.
    number: u64,
    spec: Vec<u8>,
    times: Times,
    queue: String,
    /// The message that it sends.
    template: Message,
    deliver: Deliver,
    /// Next instant, in microseconds since the Unix epoch; 0: it does not fire.
    next_us: u64,
    paused: bool,
    created_us: u64,
    fired: u64,
    refused: u64,
    last_us: Option<u64>,
    last_id: Option<MessageId>,
    last_error: Option<&'static str>,
    /// True when part of the missed instants was caught up and others are left.
    catching_up: bool,
}

impl Schedule {
    /// Blob of its message.
    pub(super) fn blob(&self) -> BlobRef {
        self.template.blob
    }

    /// True when this is the right action for the instant that has come.
    fn follows(&self, fire: &ScheduleFire, now_us: u64) -> bool {
        let (times, instant_us) = (self.times, fire.instant_us);
        let next_at_us = times.next_after(instant_us, now_us);
        let latest_us = (next_at_us - times.step_us).max(instant_us);
        let on_time = now_us - latest_us <= ON_TIME_US;
        let following_us = times.next_after(instant_us, instant_us);
        let one_by_one = ScheduleFire { send: true, next_at_us: following_us, ..*fire };
        let first_us = next_at_us.saturating_sub(CAUGHT_UP_MAX * times.step_us);
        let cut = first_us > instant_us;
        match times.missed {
            Missed::Once => *fire == ScheduleFire { send: true, next_at_us, ..*fire },
            Missed::Skip => *fire == ScheduleFire { send: on_time, next_at_us, ..*fire },
            Missed::All if cut && !(self.catching_up && *fire == one_by_one) => {
                *fire == ScheduleFire { send: false, next_at_us: first_us, ..*fire }
            }
            Missed::All => *fire == one_by_one,
        }
    }
}

impl Apply<'_> {
    pub(super) fn schedules(&mut self, command: &Command<'_>) -> Checked {
        match command {
            Command::SchedulePut(put) => self.schedule_put(put),
            Command::ScheduleDelete { namespace, schedule } => self.schedule_delete(*namespace, schedule),
            Command::SchedulePause { namespace, schedule, paused, next_at_us } => {
                self.schedule_pause(*namespace, schedule, *paused, *next_at_us)
            }
            Command::ScheduleTrigger { namespace, schedule } => self.schedule_trigger(*namespace, schedule),
            Command::ScheduleFire(fire) => self.schedule_fire(fire),
            other => Err(format!("{other:?} is no command of schedules")),
        }
    }

    fn schedule_put(&mut self, put: &SchedulePut<'_>) -> Checked {
        if !self.world.namespaces.contains_key(&put.namespace) {
            return self.fails("namespace_not_found");
        }
        if wrong_item(put.item) {
            return self.fails("invalid_argument");
        }
        self.succeeds()?;
        let Some(times) = Times::of(put.spec) else { return Err(format!("{put:?} has no times")) };
        self.world.last_schedule += 1;
        let key = (put.namespace, put.schedule.to_owned());
        let before = self.world.schedules.remove(&key);
        let expected = Reply::Schedule { created: before.is_none() };
        ensure!(self.outcome.reply == expected, "got {:?}, not {expected:?}", self.outcome.reply);
        let blob = BlobRef { index: self.index, item: 0, len: blob_len(put.item) };
        let mut schedule = Schedule {
            number: self.world.last_schedule,
            spec: put.spec.to_vec(),
            times,
            queue: put.queue.to_owned(),
            template: Message::of_item(blob, put.item),
            deliver: put.item.deliver,
            next_us: put.next_at_us,
            paused: false,
            created_us: self.now_us,
            fired: 0,
            refused: 0,
            last_us: None,
            last_id: None,
            last_error: None,
            catching_up: false,
        };
        if let Some(before) = before {
            schedule.keep(before);
        }
        self.world.schedules.insert(key, schedule);
        Ok(())
    }

    fn schedule_delete(&mut self, namespace: NamespaceId, name: &str) -> Checked {
        match self.world.schedules.remove(&(namespace, name.to_owned())) {
            Some(_) => self.succeeds(),
            None => self.no_schedule(namespace),
        }
    }

    fn no_schedule(&self, namespace: NamespaceId) -> Checked {
        let known = self.world.namespaces.contains_key(&namespace);
        self.fails(if known { "schedule_not_found" } else { "namespace_not_found" })
    }

    fn schedule_pause(&mut self, namespace: NamespaceId, name: &str, paused: bool, next_us: u64) -> Checked {
        let Some(schedule) = self.world.schedules.get_mut(&(namespace, name.to_owned())) else {
            return self.no_schedule(namespace);
        };
        if schedule.paused != paused {
            schedule.paused = paused;
            schedule.next_us = if paused { 0 } else { next_us };
            schedule.catching_up = false;
        }
        self.succeeds()
    }

    fn schedule_trigger(&mut self, namespace: NamespaceId, name: &str) -> Checked {
        let key = (namespace, name.to_owned());
        let Some(schedule) = self.world.schedules.get(&key).cloned() else {
            return self.no_schedule(namespace);
        };
        match self.send_scheduled(&key, &schedule, self.now_us)? {
            Ok(_) => self.succeeds(),
            Err(refusal) => self.fails(refusal),
        }
    }

    /// Applies a fire: only one for the instant that the schedule waits for has an effect.
    fn schedule_fire(&mut self, fire: &ScheduleFire) -> Checked {
        self.succeeds()?;
        let found = self.world.schedules.iter().find(|(_, schedule)| schedule.number == fire.number);
        let waited = found.filter(|(_, schedule)| schedule.next_us == fire.instant_us && fire.instant_us > 0);
        let Some((key, schedule)) = waited.map(|(key, schedule)| (key.clone(), schedule.clone())) else {
            let reply = self.outcome.reply;
            ensure!(reply == Reply::None, "{fire:?} has nothing to fire, and gave {reply:?}: {found:?}");
            return Ok(());
        };
        ensure!(fire.instant_us <= self.now_us, "{fire:?} comes before its time, at {}", self.now_us);
        ensure!(
            schedule.follows(fire, self.now_us),
            "{fire:?} at {} is not what {schedule:?} wants",
            self.now_us
        );
        // A schedule resumed late may wait for an instant that has fired.
        let sends = fire.send && schedule.last_us.is_none_or(|last_us| fire.instant_us > last_us);
        let sent = if sends { Some(self.send_scheduled(&key, &schedule, fire.instant_us)?) } else { None };
        let now_us = self.now_us;
        let Some(schedule) = self.world.schedules.get_mut(&key) else { return Ok(()) };
        schedule.next_us = fire.next_at_us;
        schedule.catching_up = schedule.times.missed == Missed::All && fire.next_at_us <= now_us;
        schedule.note(fire.instant_us, sent);
        Ok(())
    }

    /// Sends the schedule's message; or returns the code with which it was refused, as a client's send would
    /// be.
    fn send_scheduled(
        &mut self,
        (namespace, name): &(NamespaceId, String),
        schedule: &Schedule,
        instant_us: u64,
    ) -> Result<Result<MessageId, &'static str>, String> {
        let mut message = schedule.template.clone();
        if message.asked.correlation_id.is_empty() {
            message.asked.correlation_id = format!("{name}@{}", instant_us / 1_000).into_bytes();
        }
        let sent = self.own_send(*namespace, &schedule.queue, message, schedule.deliver)?;
        let expected = match sent {
            Ok(first) => Reply::Sent { first, count: 1, duplicate: false },
            Err(_) => Reply::None,
        };
        let reply = self.outcome.reply;
        ensure!(reply == expected, "the message of schedule {name:?} gave {reply:?}, not {expected:?}");
        Ok(sent)
    }
}

impl Schedule {
    /// Takes over what stays when a schedule is put again.
    fn keep(&mut self, before: Schedule) {
        let same_times = before.spec == self.spec && before.next_us > 0;
        if same_times {
            self.next_us = before.next_us;
            self.catching_up = before.catching_up;
        } else if before.paused {
            self.next_us = 0;
        }
        self.paused = before.paused;
        self.created_us = before.created_us;
        (self.fired, self.refused) = (before.fired, before.refused);
        (self.last_us, self.last_id) = (before.last_us, before.last_id);
        self.last_error = before.last_error;
    }

    /// Notes a past instant, and the result of its message if one was to be sent.
    fn note(&mut self, instant_us: u64, sent: Option<Result<MessageId, &'static str>>) {
        let Some(sent) = sent else { return };
        self.last_us = Some(instant_us);
        match sent {
            Ok(id) => {
                self.fired += 1;
                self.last_id = Some(id);
                self.last_error = None;
            }
            Err(refusal) => {
                self.refused += 1;
                self.last_error = Some(refusal);
            }
        }
    }
}

/// Checks that the engine shows the same schedules.
pub(super) fn compare_schedules(world: &ModelState, engine: &Engine) -> Checked {
    for namespace in world.namespaces.keys() {
        let names = world.schedules.keys().filter(|(of, _)| of == namespace).map(|(_, name)| name.clone());
        let names: Vec<String> = names.collect();
        let listed: Vec<String> =
            engine.schedules(*namespace, None, usize::MAX).into_iter().map(|view| view.name).collect();
        ensure!(listed == names, "{namespace:?} lists schedules {listed:?}, the model has {names:?}");
    }
    for ((namespace, name), schedule) in &world.schedules {
        compare_schedule(*namespace, name, schedule, engine)?;
    }
    let next = world.schedules.values().map(|schedule| schedule.next_us).filter(|next| *next > 0).min();
    let first = engine.schedules_by_time().next().map(|due| due.instant_us);
    let told = engine.next_schedule();
    ensure!(
        told == first,
        "the next schedule is told to fire at {told:?}, the first that waits at {first:?}"
    );
    // Those of a deleted namespace are there until they are swept, and fire no more.
    let is_swept = world.deleted_namespaces.is_empty();
    let is_there = |number: u64| world.schedules.values().any(|schedule| schedule.number == number);
    let mut waiting = engine.schedules_by_time().filter(|due| is_swept || is_there(due.number));
    let shown = waiting.next().map(|due| due.instant_us);
    ensure!(shown == next, "the next schedule fires at {shown:?}, in the model at {next:?}");
    Ok(())
}

fn compare_schedule(namespace: NamespaceId, name: &str, schedule: &Schedule, engine: &Engine) -> Checked {
    let Some(view) = engine.schedule(namespace, name) else {
        return Err(format!("schedule {name:?} is lost: {schedule:?}"));
    };
    let (item, options) = view.message.fields();
    let template = &schedule.template;
    let same_message = item.priority == template.priority
        && item.max_attempts == template.max_attempts
        && item.backoff == template.backoff
        && item.deliver == schedule.deliver
        && *options.correlation_id == *template.asked.correlation_id;
    let same = *view.spec == *schedule.spec
        && view.queue == schedule.queue
        && view.blob == template.blob
        && view.next_at_us.unwrap_or(0) == schedule.next_us
        && view.paused == schedule.paused
        && view.created_at_us == schedule.created_us
        && (view.fired, view.duplicates, view.refused) == (schedule.fired, 0, schedule.refused)
        && (view.last_at_us, view.last_id) == (schedule.last_us, schedule.last_id)
        && view.last_error.as_deref() == schedule.last_error;
    ensure!(same && same_message, "the engine shows {view:?}, the model has {schedule:?}");
    Ok(())
}
