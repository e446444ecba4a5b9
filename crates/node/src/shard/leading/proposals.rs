//! Proposals: the batch of a step, records in flight, and what is done when the journal refuses.
//!
//! A disk can be so full that even draining records are refused. Nothing is lost by waiting then: what the
//! shard proposes by itself is delayed until there may be space, and never tried in a loop.

use std::collections::VecDeque;

use sluice_engine::command::Command;
use sluice_engine::{Error, NamespaceId};
use sluice_journal::{Batch, Class, Refused};
use sluice_record::write_record;
use sluice_replica::{BATCH_BYTES_MAX, GROUP_BYTES, UNCOMMITTED_BYTES_MAX};

use super::waiting_pulls::{Claims, WaitingPull};
use crate::clock::Clock;
use crate::plant::{self, Plant};
use crate::shard::Shard;
use crate::shard::request::{Acquiring, Answer, Attaching, Proposal, ReplyTo, class_of};
use crate::shard::store::Store;

/// Size from which a step's batch takes no further request, in bytes.
const STEP_BYTES: usize = GROUP_BYTES as usize;
/// Bytes in flight from which no further request is taken: the largest batch still has its place then.
const IN_FLIGHT_BYTES: usize = (UNCOMMITTED_BYTES_MAX - BATCH_BYTES_MAX) as usize;

/// Pause before a draining record that a full disk refused is proposed again, in microseconds. The journal
/// measures free space about as often.
const RETRY_US: u64 = 100_000;
/// Wait suggested to callers while too much is not committed, in milliseconds.
const RETRY_AFTER_MS: u64 = 100;

/// A caller whose claim was granted: a record takes the grant.
#[derive(Debug)]
pub(super) struct Taking {
    pub(super) acquiring: Acquiring,
    /// Number of times that the claim had been asked for.
    pub(super) calls: u16,
    /// Locks whose watchers are told when the grant is taken.
    pub(super) changed: Vec<(NamespaceId, String)>,
}

/// The caller that waits for a record to be committed and applied.
#[derive(Debug)]
pub(super) enum Pending {
    /// Nobody.
    Internal,
    /// The shard: a tick.
    Tick,
    /// The shard: the firing of the schedule with this number.
    Firing(u64),
    /// The shard: an owed record, which is proposed again when it is refused.
    Owed(Batch),
    /// The caller of a proposal.
    Reply(ReplyTo),
    /// The caller of a proposal that may remove queues.
    Removal(ReplyTo),
    /// A consumer that is to be attached.
    Attach(Box<Attaching>),
    /// The caller of a claim to locks.
    Acquire(Box<Acquiring>),
    /// The caller of a claim that was granted: a record that takes the grant.
    Take(Box<Taking>),
    /// A pull, with the ready messages that it claimed.
    Pull(WaitingPull, Claims),
}

/// There is one for each record in flight, and it is moved several times.
const _: () = assert!(size_of::<Pending>() <= 80);

impl Pending {
    /// Answers at the end of the leadership: the outcome of the record is unknown here.
    fn end(self) {
        match self {
            Pending::Reply(reply) | Pending::Removal(reply) => {
                reply.send(Answer::refused(Error::OutcomeUnknown {}));
            }
            Pending::Attach(attaching) => attaching.refuse(&Error::OutcomeUnknown {}),
            Pending::Acquire(acquiring) => acquiring.refuse(&Error::OutcomeUnknown {}),
            Pending::Take(taking) => taking.acquiring.refuse(&Error::OutcomeUnknown {}),
            Pending::Pull(waiter, _) => {
                let _ = waiter.pull.reply.send(Err(Error::ShuttingDown {}));
            }
            Pending::Internal | Pending::Tick | Pending::Firing(_) | Pending::Owed(_) => {}
        }
    }
}

/// A batch in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Index of its first record, if it is in the log.
    first_index: u64,
    /// Term in which it was proposed; 0 without replicas.
    term: u64,
    records: u32,
    bytes: usize,
}

/// Proposals of a shard.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    /// Batch of this step, not yet handed to the journal.
    pub(super) batch: Batch,
    /// Class of each record of `batch`, and who waits for it.
    pub(super) batch_pending: Vec<(Class, Pending)>,
    /// The caller that waits for each record in flight, in the order of the log.
    pub(super) in_flight: VecDeque<Pending>,
    /// The batches of these records.
    sent: VecDeque<Sent>,
    pub(super) in_flight_bytes_sum: usize,
    pub(super) tick_in_flight: bool,
    /// Records that are to be in the log sooner or later, without an answer.
    pub(super) owed: VecDeque<Batch>,
    /// Monotonic time before which the shard proposes nothing by itself, in microseconds, since a full disk
    /// has refused even draining records.
    pub(super) room_at_us: u64,
}

impl Proposals {
    /// Answers everybody who waits for a record, and drops owed records.
    pub(super) fn end(&mut self) {
        let Proposals { in_flight, batch_pending, .. } = std::mem::take(self);
        let of_batch = batch_pending.into_iter().map(|(_, pending)| pending);
        in_flight.into_iter().chain(of_batch).for_each(Pending::end);
    }

    /// Ends the leadership: drops what the shard proposed or owes by itself, which the next leader proposes
    /// from the state, and keeps callers whose records are in flight.
    pub(super) fn step_down(&mut self) {
        for pending in &mut self.in_flight {
            if matches!(pending, Pending::Tick | Pending::Firing(_) | Pending::Owed(_)) {
                *pending = Pending::Internal;
            }
        }
        self.owed.clear();
        self.tick_in_flight = false;
        self.room_at_us = 0;
    }

    /// True when another request may be taken into the batch of this step.
    pub(in crate::shard) fn take_more(&self) -> bool {
        self.batch.bytes() < STEP_BYTES && self.in_flight_bytes_sum < IN_FLIGHT_BYTES
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    /// Adds a caller's record to the step's batch.
    pub(in crate::shard) fn take_proposal(&mut self, proposal: Proposal) {
        self.leading.proposals.batch.take_in(proposal.record);
        let pending = if proposal.removes_queues {
            Pending::Removal(proposal.reply)
        } else {
            Pending::Reply(proposal.reply)
        };
        self.leading.proposals.batch_pending.push((proposal.class, pending));
    }

    /// Adds a record of the shard to the step's batch.
    pub(super) fn propose(&mut self, command: &Command<'_>, pending: Pending) {
        write_record(&mut self.leading.proposals.batch, command);
        self.leading.proposals.batch_pending.push((class_of(command), pending));
    }

    /// Adds a command that is to be in the log sooner or later, without an answer.
    pub(in crate::shard) fn owe(&mut self, command: &Command<'_>) {
        let mut record = Batch::with_capacity(0);
        write_record(&mut record, command);
        self.owe_record(record);
    }

    /// Adds a record that is to be in the log sooner or later, without an answer. A follower owes nothing:
    /// such a record hastens what the end of a lease or of a time of grace brings about as well.
    pub(in crate::shard) fn owe_record(&mut self, record: Batch) {
        if !self.follows() {
            self.leading.proposals.owed.push_back(record);
        }
    }

    /// Adds owed records to the step's batch.
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

    /// True while the shard waits for disk space before it proposes by itself.
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
            let (bytes, records) =
                (self.leading.proposals.batch.bytes(), self.leading.proposals.batch.records());
            match self.store.propose(&mut self.leading.proposals.batch, self.now_us, class) {
                Ok(first_index) => {
                    self.leading
                        .proposals
                        .in_flight
                        .extend(self.leading.proposals.batch_pending.drain(..).map(|(_, pending)| pending));
                    let term = self.term();
                    self.leading.proposals.sent.push_back(Sent { first_index, term, records, bytes });
                    self.leading.proposals.in_flight_bytes_sum += bytes;
                }
                Err(why @ Refused::Full { .. }) if growing => self.drop_growing(&refusal(&why)),
                Err(why) => self.drop_batch(&refusal(&why)),
            }
        }
        worked
    }

    /// Handles a disk that is full for growing records: leaves out the texts of settlements, refuses the
    /// other growing records, and keeps draining ones for another try.
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

    /// Refuses what is not handed to the journal at the end of the leadership. Such records can come of the
    /// records that are applied before the shard looks at its place: a receive that found nothing is proposed
    /// anew.
    pub(super) fn drop_unproposed(&mut self) {
        self.drop_batch(&Error::NoLeader {});
    }

    /// Refuses the next `records` records in flight, which did not enter the log or may not have.
    pub(in crate::shard) fn refuse_in_flight(&mut self, records: u32, before_index: u64, error: &Error) {
        for _ in 0..records {
            if let Some(pending) = self.leading.proposals.in_flight.pop_front() {
                self.refuse(pending, error);
            }
        }
        self.settle_in_flight_bytes(before_index);
    }

    /// Answers that a record did not enter the log, or may not have. Records of the shard are proposed again:
    /// repeating them does no harm.
    fn refuse(&mut self, pending: Pending, error: &Error) {
        match pending {
            Pending::Reply(reply) | Pending::Removal(reply) => reply.send(Answer::refused(error.clone())),
            Pending::Pull(waiter, claims) => {
                self.unclaim(&claims);
                let _ = waiter.pull.reply.send(Err(error.clone()));
            }
            Pending::Attach(attaching) => attaching.refuse(error),
            Pending::Acquire(acquiring) => acquiring.refuse(error),
            Pending::Take(taking) => self.refuse_taking(*taking, error),
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

    /// Stops counting the bytes of batches whose first index is smaller than `applied_before`.
    pub(in crate::shard) fn settle_in_flight_bytes(&mut self, applied_before: u64) {
        while self.leading.proposals.sent.front().is_some_and(|sent| sent.first_index < applied_before) {
            self.leading.proposals.in_flight_bytes_sum -=
                self.leading.proposals.sent.pop_front().map_or(0, |sent| sent.bytes);
        }
    }

    /// Compares a committed batch with those in flight. True when it is the next of them. Those of earlier
    /// terms are not in the log: their callers hear that nothing was done.
    pub(in crate::shard) fn decide(&mut self, first_index: u64, term: u64) -> bool {
        while let Some(sent) = self.leading.proposals.sent.front().copied() {
            if plant::is(Plant::DecideByIndex) && sent.first_index == first_index {
                return true;
            }
            if sent.term >= term {
                return (sent.first_index, sent.term) == (first_index, term);
            }
            let why = self.unled();
            self.refuse_in_flight(sent.records, sent.first_index + 1, &why);
        }
        false
    }

    /// Answers callers whose records are in flight that the outcome is unknown.
    pub(in crate::shard) fn give_up_in_flight(&mut self) {
        let records = self.leading.proposals.in_flight.len() as u32;
        self.refuse_in_flight(records, u64::MAX, &Error::OutcomeUnknown {});
    }
}

pub(in crate::shard) fn refusal(why: &Refused) -> Error {
    match why {
        Refused::NotLeader => Error::NoLeader {},
        Refused::Uncommitted => {
            Error::Overloaded { what: "bytes to be agreed on", retry_after_ms: RETRY_AFTER_MS }
        }
        Refused::Full { free_bytes, needed_bytes } => {
            Error::DiskFull { free_bytes: *free_bytes, needed_bytes: *needed_bytes }
        }
        Refused::Failed(reason) => Error::JournalFailed { reason: reason.clone() },
    }
}
