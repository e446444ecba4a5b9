//! Handing a step's batch to the journal, and what is done when it is refused.
//!
//! A disk can be so full that even records which drain are refused. Nothing is lost by waiting then: what the shard
//! proposes by itself is put off until there may be room, and never tried in a loop.

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_journal::{Batch, Class, Refused};

use super::request::{Answer, class_of, write_record};
use super::store::Store;
use super::{Pending, STEP_BYTES, Shard};
use crate::clock::Clock;

/// How soon to try again what a full disk has refused although it drains. The journal looks about as often how much
/// room there is.
const RETRY_US: u64 = 100_000;

impl<S: Store, C: Clock> Shard<S, C> {
    /// Puts a record of ours into the batch.
    pub(super) fn propose(&mut self, command: &Command<'_>, pending: Pending) {
        write_record(&mut self.batch, command);
        self.batch_pending.push((class_of(command), pending));
    }

    /// A record of ours that nobody waits for and that has to be in the log sooner or later.
    pub(super) fn owe(&mut self, command: &Command<'_>) {
        let mut record = Batch::with_capacity(0);
        write_record(&mut record, command);
        self.owed.push_back(record);
    }

    /// Puts what is owed into the batch.
    pub(super) fn propose_owed(&mut self) {
        while !self.waits_for_room()
            && self.batch.bytes() < STEP_BYTES
            && let Some(record) = self.owed.pop_front()
        {
            self.batch.append(&record);
            self.batch_pending.push((Class::Draining, Pending::Owed(record)));
        }
    }

    pub(super) fn propose_tick(&mut self) {
        let due = self.engine.next_deadline().is_some_and(|deadline| deadline <= self.now_us);
        if due && !self.tick_in_flight && !self.waits_for_room() {
            self.tick_in_flight = true;
            self.propose(&Command::Tick, Pending::Tick);
        }
    }

    /// Whether what we propose by ourselves was refused a moment ago.
    pub(super) fn waits_for_room(&self) -> bool {
        self.monotonic_us < self.room_at_us
    }

    pub(super) fn propose_batch(&mut self) -> bool {
        let mut worked = false;
        while !self.batch.is_empty() {
            worked = true;
            let growing = self.batch_pending.iter().any(|(class, _)| *class == Class::Growing);
            let class = if growing { Class::Growing } else { Class::Draining };
            let bytes = self.batch.bytes();
            match self.store.propose(&mut self.batch, self.now_us, class) {
                Ok(first_index) => {
                    self.in_flight.extend(self.batch_pending.drain(..).map(|(_, pending)| pending));
                    self.in_flight_bytes.push_back((first_index, bytes));
                    self.in_flight_bytes_sum += bytes;
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
        let mut pending = std::mem::take(&mut self.batch_pending);
        self.batch.replace(|record, body| {
            let (class, _) =
                pending.get_mut(record as usize).filter(|(class, _)| *class == Class::Growing)?;
            let without = self.engine.without_texts(body)?;
            *class = Class::Draining;
            Some(without)
        });
        self.batch.retain(|record| pending[record as usize].0 == Class::Draining);
        for (class, pending) in pending {
            match class {
                Class::Growing => self.refuse(pending, error),
                Class::Draining => self.batch_pending.push((class, pending)),
            }
        }
    }

    fn drop_batch(&mut self, error: &Error) {
        self.batch.retain(|_| false);
        for (_, pending) in std::mem::take(&mut self.batch_pending) {
            self.refuse(pending, error);
        }
    }

    /// A batch that was proposed did not enter the log, or nobody knows.
    pub(super) fn refuse_in_flight(&mut self, records: u32, before_index: u64, error: &Error) {
        for _ in 0..records {
            if let Some(pending) = self.in_flight.pop_front() {
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
                self.tick_in_flight = false;
                self.room_at_us = self.monotonic_us + RETRY_US;
            }
            Pending::Firing(number) => {
                self.schedules.refused(number);
                self.room_at_us = self.monotonic_us + RETRY_US;
            }
            Pending::Owed(record) => {
                self.owed.push_back(record);
                self.room_at_us = self.monotonic_us + RETRY_US;
            }
            Pending::Internal => {}
        }
    }
}

pub(super) fn refusal(why: &Refused) -> Error {
    match why {
        Refused::NotLeader => Error::OutcomeUnknown {},
        Refused::Full { free_bytes, needed_bytes } => {
            Error::DiskFull { free_bytes: *free_bytes, needed_bytes: *needed_bytes }
        }
        Refused::Failed(reason) => Error::JournalFailed { reason: reason.clone() },
    }
}
