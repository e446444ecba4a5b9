//! The model: what must be true, told as naively as possible.
//!
//! It is given every committed command, with the engine's outcome, and follows: where the rules leave no
//! choice it predicts the outcome and compares; where they leave one (the order of what became ready at the
//! same moment, the jitter of a backoff, when exactly a due timer fires) it checks that the engine chose
//! within them, and goes on from what the engine chose. It keeps maps and counts by counting, so that it
//! shares no cleverness with the engine.
//!
//! What is true of crashes is not told here but in [`crate::world`]: the log that recovery gives is a prefix
//! of what was proposed, and the model is led along that prefix again.

mod admin;
mod change;
mod compare;
mod consumers;
mod dead;
mod expiry;
mod fair;
mod flows;
mod keys;
mod length;
mod own_sends;
mod placement;
mod places;
mod queues;
mod receive;
mod results;
mod schedules;
mod send;
mod settle;
mod state;
#[cfg(test)]
mod stories;
mod time;
mod unique;

use std::collections::BTreeSet;

use sluice_engine::command::Command;
use sluice_engine::id::{BlobRef, MessageId, QueueId};
use sluice_engine::outcome::Outcome;
use sluice_engine::{Engine, Error};

use fair::LaneKey;
pub use state::Holder;
use state::{Line, Message, Place, World};

/// What a rule says when it is broken.
pub type Checked = Result<(), String>;

/// Returns `Err` with a formatted sentence unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}
pub(crate) use ensure;

/// The model of one shard.
#[derive(Clone, Debug)]
pub struct Model {
    world: World,
}

/// One apply, as the model sees it.
struct Apply<'a> {
    world: &'a mut World,
    index: u64,
    now_us: u64,
    outcome: &'a Outcome,
    engine: &'a Engine,
    /// Messages that wait between these delays from now: which one exactly is the engine's choice.
    unsure: Vec<(MessageId, u64, u64)>,
    /// Places given in this apply's line.
    place: u64,
    /// The place of what the timer that fires now brings about.
    firing: Option<u64>,
    /// Replies that were lost for want of a queue: each may have used up an id.
    lost: u64,
    /// Lanes that keep their place although their first message may have come in this record.
    kept_lanes: BTreeSet<LaneKey>,
    /// Queues to which something has come as a consequence: when, among what else became ready in this
    /// record, is not followed.
    blurred: BTreeSet<QueueId>,
    /// Messages that end in this record if they are over.
    ends: Vec<MessageId>,
    /// What was seen to be wrong where there was nobody to tell.
    broken: Option<String>,
    /// Messages that have failed, as they were, and why; what follows them is seen at the end.
    failed: Vec<(MessageId, Message, &'static str)>,
}

impl Model {
    /// Before the first record.
    pub fn new() -> Model {
        Model { world: World::empty() }
    }

    /// Follows one record. `engine` has just applied it.
    ///
    /// # Errors
    /// Which rule was broken, and how.
    pub fn apply(
        &mut self,
        now_us: u64,
        index: u64,
        command: &Command<'_>,
        outcome: &Outcome,
        engine: &Engine,
    ) -> Checked {
        ensure!(now_us >= self.world.now_us, "time ran backwards: {} after {}", now_us, self.world.now_us);
        self.world.now_us = now_us;
        self.world.step += 1;
        let world = &mut self.world;
        let mut apply = Apply {
            world,
            index,
            now_us,
            outcome,
            engine,
            unsure: Vec::new(),
            place: 0,
            firing: None,
            lost: 0,
            kept_lanes: BTreeSet::new(),
            blurred: BTreeSet::new(),
            ends: Vec::new(),
            broken: None,
            failed: Vec::new(),
        };
        apply.run(command)
    }

    /// What lies in the log for messages and schedules, with whose it is.
    pub fn blobs(&self) -> impl Iterator<Item = (Holder<'_>, BlobRef)> {
        self.world.blobs()
    }
}

impl Default for Model {
    fn default() -> Self {
        Model::new()
    }
}

impl Apply<'_> {
    fn run(&mut self, command: &Command<'_>) -> Checked {
        match command {
            Command::Epoch { number, .. } => self.epoch(*number)?,
            Command::Configure(limits) => {
                self.succeeds()?;
                self.world.limits = limits.clone();
            }
            Command::ReceiptKey(_) => self.succeeds()?,
            Command::Tick => {}
            Command::Send(send) => self.send(send)?,
            Command::Receive(receive) => self.receive(receive)?,
            Command::Settle { namespace, items } => self.settle(*namespace, items)?,
            Command::Extend { namespace, items } => self.extend(*namespace, items)?,
            Command::Group(group) => self.group(group)?,
            Command::Report { namespace, items } => self.report(*namespace, items)?,
            Command::Change(change) => self.change(change)?,
            Command::DefaultsSet { .. }
            | Command::DefaultsDelete { .. }
            | Command::DeadRedriveRate { .. } => self.queues(command)?,
            Command::Attach(_) | Command::Credit { .. } | Command::Resume { .. } | Command::Detach { .. } => {
                self.consumers(command)?
            }
            Command::LimitSet { .. } | Command::LimitDelete { .. } => self.limits(command)?,
            Command::SchedulePut(_)
            | Command::ScheduleDelete { .. }
            | Command::SchedulePause { .. }
            | Command::ScheduleTrigger { .. }
            | Command::ScheduleFire(_) => self.schedules(command)?,
            _ => self.administer(command)?,
        }
        let ticked = matches!(command, Command::Tick);
        self.follow_timers(ticked)?;
        self.follow_overdue()?;
        self.follow_children(ticked)?;
        self.follow_overdue()?;
        self.follow_failures()?;
        self.follow_finished(ticked)?;
        self.follow_redrives()?;
        self.follow_sweeps()?;
        self.resolve_unsure()?;
        self.follow_overdue()?;
        self.follow_ends(ticked)?;
        self.follow_length()?;
        self.follow_ids()?;
        self.blur();
        self.follow_lanes();
        self.follow_grace(ticked)?;
        self.follow_pushed()?;
        self.all_is_given()?;
        self.broken.take().map_or(Ok(()), Err)?;
        self.check_released()
    }

    fn epoch(&mut self, number: u64) -> Checked {
        self.succeeds()?;
        ensure!(number > self.world.epoch, "epoch {number} follows epoch {}", self.world.epoch);
        self.world.epoch = number;
        self.world.detach_all();
        Ok(())
    }

    /// The next place in the line of what this apply makes ready. Of what timers bring about the earlier
    /// deadline stands first.
    fn next_line(&mut self) -> Line {
        self.place += 1;
        Line { step: self.world.step, place: self.firing.unwrap_or(self.place) }
    }

    /// The same, behind all that timers bring about.
    fn late_line(&mut self) -> Line {
        self.place += 1;
        Line { step: self.world.step, place: u64::MAX / 2 + self.place }
    }

    /// What became ready in this record stands in no certain order where a part of it has come as a
    /// consequence.
    fn blur(&mut self) {
        let step = self.world.step;
        for queue in std::mem::take(&mut self.blurred) {
            let here = self.world.messages.values_mut().filter(|message| message.queue == queue);
            for message in here {
                if let Place::Ready { line } = &mut message.place
                    && line.step == step
                {
                    line.place = 0;
                }
            }
            self.world.forget_turns(queue);
        }
    }

    /// A send that was refused may have used up ids.
    fn follow_ids(&mut self) -> Checked {
        for (id, namespace) in &mut self.world.namespaces {
            let last = self.engine.last_sequence(*id).unwrap_or(0);
            ensure!(last >= namespace.last_sequence, "the ids of {id:?} go back to {last}");
            namespace.last_sequence = last;
        }
        Ok(())
    }

    /// The command as a whole must have gone well.
    fn succeeds(&self) -> Checked {
        match &self.outcome.error {
            None => Ok(()),
            Some(error) => Err(format!("the engine refused what is allowed: {} ({error})", error.code())),
        }
    }

    /// The command as a whole must have been refused, with this code.
    fn fails(&self, code: &str) -> Checked {
        match &self.outcome.error {
            Some(error) if error.code() == code => Ok(()),
            Some(error) => Err(format!("expected {code}, the engine said {} ({error})", error.code())),
            None => Err(format!("expected {code}, the engine did it")),
        }
    }

    /// A blob that somebody still has must not be let go of.
    fn check_released(&self) -> Checked {
        for released in &self.outcome.released {
            let holder = self.world.blobs().find(|(_, blob)| blob == released);
            ensure!(holder.is_none(), "{released:?} was released, and {holder:?} still has it");
        }
        Ok(())
    }
}

/// The code of an item's result, `ok` for success.
fn code(result: &Result<(), Error>) -> &'static str {
    result.as_ref().map_or_else(Error::code, |()| "ok")
}
