//! Applying one record: its command, then the consequences, then the checks that hold after every record.

use sluice_engine::blob::BlobHead;
use sluice_engine::command::{Command, DocumentPut};
use sluice_engine::id::BlobRef;

use super::budgets::compare_budgets;
use super::{Apply, Checked, Line, MessagePlace, ensure};

impl Apply<'_> {
    pub(super) fn run(&mut self, command: &Command<'_>) -> Checked {
        for released in &self.outcome.released {
            self.world.documents.remove(released);
        }
        match command {
            Command::Epoch { number, .. } => self.epoch(*number)?,
            Command::Configure(limits) => {
                self.succeeds()?;
                self.world.limits = limits.clone();
            }
            Command::ReceiptKey(_) | Command::Raise { .. } | Command::Consensus { .. } => self.succeeds()?,
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
            // No message is concerned: `lives` follows them.
            Command::LockAcquire(_)
            | Command::LockRenew { .. }
            | Command::LockRelease { .. }
            | Command::LockBreak { .. }
            | Command::LockWait { .. }
            | Command::LockLeave { .. }
            | Command::DocumentDelete(_)
            | Command::IndexPut { .. }
            | Command::IndexDelete { .. }
            | Command::IndexFill(_)
            | Command::SearchFill(_)
            | Command::DocumentCheck(_) => {}
            Command::DocumentPut(put) => self.document_put(put),
            Command::Transaction(transaction) => self.transaction(transaction)?,
            _ => self.administer(command)?,
        }
        self.follow_consequences(matches!(command, Command::Tick))?;
        if matches!(command, Command::LimitSet { .. }) {
            compare_budgets(self.world, self.engine)?;
        }
        Ok(())
    }

    /// Takes over the consequences of a record, in their order.
    fn follow_consequences(&mut self, ticked: bool) -> Checked {
        self.follow_timers(ticked)?;
        self.follow_overdue()?;
        self.follow_children(ticked)?;
        self.follow_overdue()?;
        self.follow_failures()?;
        self.follow_finished(ticked)?;
        if ticked {
            // Messages that end leave room for those that are redriven.
            self.follow_ends(false)?;
        }
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

    /// Notes a version that was written; one that was refused or is a repeat is let go of at once.
    fn document_put(&mut self, put: &DocumentPut<'_>) {
        let head = BlobHead::len(put.content_type, put.attributes);
        let blob = BlobRef { index: self.index, item: 0, len: (head + put.content.len()) as u32 };
        if !self.outcome.released.contains(&blob) {
            self.world.documents.insert(blob, put.namespace);
        }
    }

    pub(super) fn epoch(&mut self, number: u64) -> Checked {
        self.succeeds()?;
        ensure!(number > self.world.epoch, "epoch {number} follows epoch {}", self.world.epoch);
        self.world.epoch = number;
        self.world.detach_all();
        Ok(())
    }

    /// The next position among the messages that this record makes ready. Messages of timers are ordered by
    /// their deadlines.
    pub(super) fn next_line(&mut self) -> Line {
        self.place += 1;
        Line { step: self.world.step, place: self.firing.unwrap_or(self.place) }
    }

    /// The next position behind all messages of timers.
    pub(super) fn late_line(&mut self) -> Line {
        self.place += 1;
        Line { step: self.world.step, place: u64::MAX / 2 + self.place }
    }

    /// Forgets the order of what became ready in this record, in queues to which a consequence has added a
    /// message.
    pub(super) fn blur(&mut self) {
        let step = self.world.step;
        for queue in std::mem::take(&mut self.blurred) {
            let here = self.world.messages.values_mut().filter(|message| message.queue == queue);
            for message in here {
                if let MessagePlace::Ready { line } = &mut message.place
                    && line.step == step
                {
                    line.place = 0;
                }
            }
            self.world.forget_turns(queue);
        }
    }

    /// Takes over the last id of each namespace: a refused send may have used up ids.
    pub(super) fn follow_ids(&mut self) -> Checked {
        for (id, namespace) in &mut self.world.namespaces {
            let last = self.engine.last_sequence(*id).unwrap_or(0);
            ensure!(last >= namespace.last_sequence, "the ids of {id:?} go back to {last}");
            namespace.last_sequence = last;
        }
        Ok(())
    }

    /// Checks that the command as a whole has succeeded.
    pub(super) fn succeeds(&self) -> Checked {
        match &self.outcome.error {
            None => Ok(()),
            Some(error) => Err(format!("the engine refused what is allowed: {} ({error})", error.code())),
        }
    }

    /// Checks that the command as a whole was refused with this code.
    pub(super) fn fails(&self, code: &str) -> Checked {
        match &self.outcome.error {
            Some(error) if error.code() == code => Ok(()),
            Some(error) => Err(format!("expected {code}, the engine said {} ({error})", error.code())),
            None => Err(format!("expected {code}, the engine did it")),
        }
    }

    /// Checks that no released blob is still referred to.
    pub(super) fn check_released(&self) -> Checked {
        for released in &self.outcome.released {
            let holder = self.world.blobs().find(|(_, blob)| blob == released);
            ensure!(holder.is_none(), "{released:?} was released, and {holder:?} still has it");
        }
        Ok(())
    }
}
