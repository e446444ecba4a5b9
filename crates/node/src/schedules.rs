//! Schedules of namespaces, through the handle. Instants are computed here, on the caller's side, from the
//! log's time.

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::command::{Command, SchedulePut, SendItem};
use sluice_engine::id::{MessageId, NamespaceId};
use sluice_engine::outcome::Reply;
use sluice_engine::query::ScheduleView;

use crate::blobs;
use crate::handle::{LOOK_ITEMS, Node};
use crate::schedule::ScheduleSpec;
use crate::shard::request::{of_done, unexpected};
use crate::shard::store;

/// Most instants that are told ahead.
pub const NEXT_MAX: usize = 100;

/// A schedule as it is shown.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// State of the schedule in the engine.
    pub view: ScheduleView,
    /// When it fires; `None`: a later version has written that.
    pub spec: Option<ScheduleSpec>,
}

impl Node {
    /// Creates a schedule, or replaces what it does. Tells whether it is new.
    ///
    /// # Errors
    /// `invalid_argument` for what can never fire, an unknown time zone, and as a send; `limit_exceeded`.
    pub async fn schedule_put(
        &self,
        namespace: NamespaceId,
        schedule: &str,
        queue: &str,
        spec: &ScheduleSpec,
        item: &SendItem<'_>,
    ) -> Result<(Schedule, bool), Error> {
        let next_at_us = spec.first_after(self.log_time_us(namespace).await?)?;
        let spec = &spec.to_bytes();
        let put = SchedulePut { namespace, schedule, queue, spec, next_at_us, item };
        match self.propose(namespace, &Command::SchedulePut(put)).await?.result? {
            Reply::Schedule { created } => Ok((of_done(self.schedule(namespace, schedule).await)?, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes a schedule; what it has sent stays.
    ///
    /// # Errors
    /// `schedule_not_found`.
    pub async fn schedule_delete(&self, namespace: NamespaceId, schedule: &str) -> Result<(), Error> {
        self.propose(namespace, &Command::ScheduleDelete { namespace, schedule }).await?.result.map(|_| ())
    }

    /// Pauses a schedule, whose instants go by then, or resumes it with the next one.
    ///
    /// # Errors
    /// `schedule_not_found`.
    pub async fn schedule_pause(
        &self,
        namespace: NamespaceId,
        schedule: &str,
        paused: bool,
    ) -> Result<Schedule, Error> {
        let next_at_us = if paused {
            0
        } else {
            let spec = self.schedule(namespace, schedule).await?.readable()?;
            spec.first_after(self.log_time_us(namespace).await?)?
        };
        let command = Command::SchedulePause { namespace, schedule, paused, next_at_us };
        self.propose(namespace, &command).await?.result?;
        of_done(self.schedule(namespace, schedule).await)
    }

    /// Sends a schedule's message now. Tells its id, and whether it is one that was there with the same
    /// unique key.
    ///
    /// # Errors
    /// `schedule_not_found`, and as a send.
    pub async fn schedule_trigger(
        &self,
        namespace: NamespaceId,
        schedule: &str,
    ) -> Result<(MessageId, bool), Error> {
        let command = Command::ScheduleTrigger { namespace, schedule };
        match self.propose(namespace, &command).await?.result? {
            Reply::Sent { first, duplicate, .. } => Ok((first, duplicate)),
            other => Err(unexpected(&other)),
        }
    }

    /// One schedule.
    ///
    /// # Errors
    /// `schedule_not_found`.
    pub async fn schedule(&self, namespace: NamespaceId, schedule: &str) -> Result<Schedule, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let name = schedule.to_owned();
        let found = self.look(shard, move |at| at.engine.schedule(namespace, &name)).await?;
        found.map(Schedule::new).ok_or_else(|| not_found(schedule))
    }

    /// One schedule, with content type, headers and payload of what it sends: see [`sluice_engine::blob`].
    ///
    /// # Errors
    /// `schedule_not_found`; `overloaded`, `payload_damaged` when the bytes cannot be read.
    pub async fn schedule_message(
        &self,
        namespace: NamespaceId,
        schedule: &str,
    ) -> Result<(Schedule, Bytes), Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let name = schedule.to_owned();
        let found = self
            .look(shard, move |at| {
                let view = at.engine.schedule(namespace, &name)?;
                let blob = store::read(at.journal, view.blob);
                Some((view, blob))
            })
            .await?;
        let (view, blob) = found.ok_or_else(|| not_found(schedule))?;
        match blobs::load(vec![blob]).await.pop() {
            Some(Ok(bytes)) => Ok((Schedule::new(view), bytes)),
            Some(Err(blobs::ReadFailure::Later)) => {
                Err(Error::Overloaded { what: "reads from the disk", retry_after_ms: 1_000 })
            }
            _ => Err(Error::PayloadDamaged { id: format!("of schedule {schedule}") }),
        }
    }

    /// Schedules by name, after `after`; at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn schedules(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Schedule>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let mut after = after.map(str::to_owned);
        let mut schedules = Vec::new();
        while schedules.len() < limit {
            let (from, most) = (after.clone(), LOOK_ITEMS.min(limit - schedules.len()));
            let page =
                self.look(shard, move |at| at.engine.schedules(namespace, from.as_deref(), most)).await?;
            let full = page.len() == most;
            after = page.last().map(|view| view.name.clone());
            schedules.extend(page.into_iter().map(Schedule::new));
            if !full {
                break;
            }
        }
        Ok(schedules)
    }

    /// The next instants of a schedule, in microseconds since the Unix epoch; at most `count` and
    /// [`NEXT_MAX`]. None while it is paused.
    ///
    /// # Errors
    /// `schedule_not_found`.
    pub async fn schedule_next(
        &self,
        namespace: NamespaceId,
        schedule: &str,
        count: usize,
    ) -> Result<Vec<u64>, Error> {
        let found = self.schedule(namespace, schedule).await?;
        let plan = found.readable()?.plan()?;
        let following = |at_us: &u64| plan.next_after(*at_us, *at_us);
        Ok(std::iter::successors(found.view.next_at_us, following).take(count.min(NEXT_MAX)).collect())
    }

    async fn log_time_us(&self, namespace: NamespaceId) -> Result<u64, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        self.look(shard, |at| at.now_us).await
    }
}

impl Schedule {
    fn new(view: ScheduleView) -> Schedule {
        Schedule { spec: ScheduleSpec::from_bytes(&view.spec), view }
    }

    fn readable(&self) -> Result<ScheduleSpec, Error> {
        let reason = || format!("when schedule {:?} fires cannot be read: put it again", self.view.name);
        self.spec.clone().ok_or_else(|| Error::InvalidArgument { field: "schedule".into(), reason: reason() })
    }
}

fn not_found(schedule: &str) -> Error {
    Error::ScheduleNotFound { schedule: schedule.chars().take(128).collect() }
}
