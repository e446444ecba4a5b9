//! Handing a step's batch to the journal, and what is done when it is refused.
//!
//! A disk can be so full that even records which drain are refused. Nothing is lost by waiting then: what the shard
//! proposes by itself is put off until there may be room, and never tried in a loop.

use std::collections::VecDeque;

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_journal::{Batch, Class, Refused};

use super::waiting_pulls::{Claims, WaitingPull};
use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::request::{Answer, Attaching, Proposal, ReplyTo, class_of, write_record};
use crate::shard::store::Store;

/// Bytes after which a step's batch is closed.
const STEP_BYTES: usize = 4 << 20;
/// Bytes proposed and not yet applied, beyond which no further request is taken.
const IN_FLIGHT_BYTES: usize = 64 << 20;

/// How soon to try again what a full disk has refused although it drains. The journal looks about as often how much
/// room there is.
const RETRY_US: u64 = 100_000;

/// What waits for its record to be committed.
#[derive(Debug)]
pub(super) enum Pending {
    /// Nothing to tell anybody.
    Internal,
    /// A tick of ours.
    Tick,
    /// The firing of a schedule, by its number.
    Firing(u64),
    /// A record of ours that is proposed again when it is refused.
    Owed(Batch),
    /// A proposal's answer.
    Reply(ReplyTo),
    /// An answer after which queues may be gone.
    Removal(ReplyTo),
    /// A consumer to attach.
    Attach(Box<Attaching>),
    /// A pull; what it claimed of each queue's ready messages.
    Pull(WaitingPull, Claims),
}

/// One for each record on its way, moved several times.
const _: () = assert!(size_of::<Pending>() <= 80);

impl Pending {
    /// Answers whoever waits, at the end of the leadership: what becomes of the record is not known here.
    fn end(self) {
        match self {
            Pending::Reply(reply) | Pending::Removal(reply) => {
                reply.send(Answer::refused(Error::OutcomeUnknown {}));
            }
            Pending::Attach(attaching) => attaching.refuse(&Error::OutcomeUnknown {}),
            Pending::Pull(waiter, _) => {
                let _ = waiter.pull.reply.send(Err(Error::ShuttingDown {}));
            }
            Pending::Internal | Pending::Tick | Pending::Firing(_) | Pending::Owed(_) => {}
        }
    }
}

/// Records on their way into the log.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    /// The batch of this step, not yet handed to the journal.
    pub(super) batch: Batch,
    /// Class of each record of `batch`, and who waits for it.
    pub(super) batch_pending: Vec<(Class, Pending)>,
    /// Who waits for each record that the journal has, in the order of the log.
    pub(super) in_flight: VecDeque<Pending>,
    /// First index and bytes of each batch that the journal has.
    pub(super) in_flight_bytes: VecDeque<(u64, usize)>,
    pub(super) in_flight_bytes_sum: usize,
    pub(super) tick_in_flight: bool,
    /// Records of ours that are to be proposed.
    pub(super) owed: VecDeque<Batch>,
    /// Monotonic time before which nothing of ours is proposed, in microseconds, since a full disk has refused even what
    /// drains.
    pub(super) room_at_us: u64,
}

impl Proposals {
    /// Answers whoever waits for a record, and forgets what is owed.
    pub(super) fn end(&mut self) {
        let Proposals { in_flight, batch_pending, .. } = std::mem::take(self);
        let of_batch = batch_pending.into_iter().map(|(_, pending)| pending);
        in_flight.into_iter().chain(of_batch).for_each(Pending::end);
    }

    /// Whether another request may be taken into the batch of this step.
    pub(in crate::shard) fn take_more(&self) -> bool {
        self.batch.bytes() < STEP_BYTES && self.in_flight_bytes_sum < IN_FLIGHT_BYTES
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Takes a caller's record into the step's batch.
    pub(in crate::shard) fn take_proposal(&mut self, proposal: Proposal) {
        self.leading.proposals.batch.append(&proposal.record);
        let pending = if proposal.removes_queues {
            Pending::Removal(proposal.reply)
        } else {
            Pending::Reply(proposal.reply)
        };
        self.leading.proposals.batch_pending.push((proposal.class, pending));
    }

    /// Puts a record of ours into the batch.
    pub(super) fn propose(&mut self, command: &Command<'_>, pending: Pending) {
        write_record(&mut self.leading.proposals.batch, command);
        self.leading.proposals.batch_pending.push((class_of(command), pending));
    }

    /// A record of ours that nobody waits for and that has to be in the log sooner or later.
    pub(in crate::shard) fn owe(&mut self, command: &Command<'_>) {
        let mut record = Batch::with_capacity(0);
        write_record(&mut record, command);
        self.leading.proposals.owed.push_back(record);
    }

    /// Puts what is owed into the batch.
    pub(super) fn propose_owed(&mut self) {
        while !self.waits_for_room()
            && self.leading.proposals.batch.bytes() < STEP_BYTES
            && let Some(record) = self.leading.proposals.owed.pop_front()
        {
            self.leading.proposals.batch.append(&record);
            self.leading.proposals.batch_pending.push((Class::Draining, Pending::Owed(record)));
        }
    }

    pub(super) fn propose_tick(&mut self) {
        let due = self.engine.next_deadline().is_some_and(|deadline| deadline <= self.now_us);
        if due && !self.leading.proposals.tick_in_flight && !self.waits_for_room() {
            self.leading.proposals.tick_in_flight = true;
            self.propose(&Command::Tick, Pending::Tick);
        }
    }

    /// Whether what we propose by ourselves was refused a moment ago.
    pub(in crate::shard) fn waits_for_room(&self) -> bool {
        self.monotonic_us < self.leading.proposals.room_at_us
    }

    pub(super) fn propose_batch(&mut self) -> bool {
        let mut worked = false;
        while !self.leading.proposals.batch.is_empty() {
            worked = true;
            let growing =
                self.leading.proposals.batch_pending.iter().any(|(class, _)| *class == Class::Growing);
            let class = if growing { Class::Growing } else { Class::Draining };
            let bytes = self.leading.proposals.batch.bytes();
            match self.store.propose(&mut self.leading.proposals.batch, self.now_us, class) {
                Ok(first_index) => {
                    self.leading
                        .proposals
                        .in_flight
                        .extend(self.leading.proposals.batch_pending.drain(..).map(|(_, pending)| pending));
                    self.leading.proposals.in_flight_bytes.push_back((first_index, bytes));
                    self.leading.proposals.in_flight_bytes_sum += bytes;
                }
                Err(why @ Refused::Full { .. }) if growing => self.drop_growing(&refusal(&why)),
                Err(why) => self.drop_batch(&refusal(&why)),
            }
        }
        worked
    }

    /// No room for what stays: leaves out the texts of settlements, refuses the rest of what stays, and keeps
    /// what drains for another try.
    fn drop_growing(&mut self, error: &Error) {
        let mut pending = std::mem::take(&mut self.leading.proposals.batch_pending);
        self.leading.proposals.batch.replace(|record, body| {
            let (class, _) =
                pending.get_mut(record as usize).filter(|(class, _)| *class == Class::Growing)?;
            let without = self.engine.without_texts(body)?;
            *class = Class::Draining;
            Some(without)
        });
        self.leading.proposals.batch.retain(|record| pending[record as usize].0 == Class::Draining);
        for (class, pending) in pending {
            match class {
                Class::Growing => self.refuse(pending, error),
                Class::Draining => self.leading.proposals.batch_pending.push((class, pending)),
            }
        }
    }

    fn drop_batch(&mut self, error: &Error) {
        self.leading.proposals.batch.retain(|_| false);
        for (_, pending) in std::mem::take(&mut self.leading.proposals.batch_pending) {
            self.refuse(pending, error);
        }
    }

    /// A batch that was proposed did not enter the log, or nobody knows.
    pub(in crate::shard) fn refuse_in_flight(&mut self, records: u32, before_index: u64, error: &Error) {
        for _ in 0..records {
            if let Some(pending) = self.leading.proposals.in_flight.pop_front() {
                self.refuse(pending, error);
            }
        }
        self.settle_in_flight_bytes(before_index);
    }

    /// Tells who waits for a record that it did not enter the log, or that nobody knows. Our own are tried again: they
    /// do no harm when they come twice.
    fn refuse(&mut self, pending: Pending, error: &Error) {
        match pending {
            Pending::Reply(reply) | Pending::Removal(reply) => reply.send(Answer::refused(error.clone())),
            Pending::Pull(waiter, claims) => {
                self.unclaim(&claims);
                let _ = waiter.pull.reply.send(Err(error.clone()));
            }
            Pending::Attach(attaching) => attaching.refuse(error),
            Pending::Tick => {
                self.leading.proposals.tick_in_flight = false;
                self.leading.proposals.room_at_us = self.monotonic_us + RETRY_US;
            }
            Pending::Firing(number) => {
                self.leading.schedules.refused(number);
                self.leading.proposals.room_at_us = self.monotonic_us + RETRY_US;
            }
            Pending::Owed(record) => {
                self.leading.proposals.owed.push_back(record);
                self.leading.proposals.room_at_us = self.monotonic_us + RETRY_US;
            }
            Pending::Internal => {}
        }
    }

    /// Forgets the bytes of batches that are applied: those whose first index is smaller.
    pub(in crate::shard) fn settle_in_flight_bytes(&mut self, applied_before: u64) {
        while self.leading.proposals.in_flight_bytes.front().is_some_and(|(first, _)| *first < applied_before)
        {
            self.leading.proposals.in_flight_bytes_sum -=
                self.leading.proposals.in_flight_bytes.pop_front().map_or(0, |(_, bytes)| bytes);
        }
    }
}

pub(in crate::shard) fn refusal(why: &Refused) -> Error {
    match why {
        Refused::NotLeader => Error::OutcomeUnknown {},
        Refused::Full { free_bytes, needed_bytes } => {
            Error::DiskFull { free_bytes: *free_bytes, needed_bytes: *needed_bytes }
        }
        Refused::Failed(reason) => Error::JournalFailed { reason: reason.clone() },
    }
}
