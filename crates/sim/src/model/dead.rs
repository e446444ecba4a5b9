//! Redriving and deleting dead letters by command: named ones, or all of a queue.

use std::collections::BTreeSet;

use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::query::State;

use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace};

impl Message {
    pub(super) fn is_dead_in(&self, queue: QueueId) -> bool {
        self.queue == queue && matches!(self.place, MessagePlace::Dead { .. })
    }
}

impl Apply<'_> {
    /// The dead letters that a command means: the named ones, all of which must be dead in this queue, or
    /// all. `None`: the command was rightly refused.
    fn dead_of(&self, queue: QueueId, ids: &[MessageId]) -> Result<Option<BTreeSet<MessageId>>, String> {
        let here = |id: &MessageId| self.world.messages.get(id).filter(|message| message.queue == queue);
        for id in ids {
            match here(id) {
                None => return self.fails("message_not_found").map(|()| None),
                Some(message) if !message.is_dead_in(queue) => {
                    return self.fails("wrong_state").map(|()| None);
                }
                Some(_) => {}
            }
        }
        self.succeeds()?;
        if !ids.is_empty() {
            return Ok(Some(ids.iter().copied().collect()));
        }
        let all = self.world.messages_of(queue).filter(|(_, message)| message.is_dead_in(queue));
        Ok(Some(all.map(|(id, _)| *id).collect()))
    }

    pub(super) fn dead_redrive(&mut self, namespace: NamespaceId, name: &str, ids: &[MessageId]) -> Checked {
        let Some(queue) = self.existing(namespace, name)? else { return Ok(()) };
        if let Some(refusal) = self.redrive_refusal(queue, ids) {
            return self.fails(refusal);
        }
        let Some(dead) = self.dead_of(queue, ids)? else { return Ok(()) };
        if ids.is_empty() {
            self.world.redrives.remove(&queue);
            self.world.sweeps.remove(&queue);
        }
        let count = dead.len();
        let stay = self.redriven_of(dead)?;
        if self.goes_on() {
            self.world.sweeps.insert(queue, stay);
            return self.counted(count);
        }
        for id in &stay {
            ensure!(self.may_redrive(*id).is_err(), "dead letter {id} was not redriven, and could be");
        }
        self.stay_dead(&stay);
        self.counted(count)
    }

    /// Code of a redrive that is refused because a dead letter finds no room or its unique key is taken.
    /// `None` also if one does not exist, which is refused otherwise.
    fn redrive_refusal(&self, queue: QueueId, ids: &[MessageId]) -> Option<&'static str> {
        let dead: BTreeSet<MessageId> = ids.iter().copied().collect();
        let is_dead =
            |id: &MessageId| self.world.messages.get(id).is_some_and(|message| message.is_dead_in(queue));
        if dead.is_empty() || !dead.iter().all(is_dead) {
            return None;
        }
        let bytes = dead.iter().map(|id| u64::from(self.world.messages[id].blob.len)).sum();
        if !self.world.has_room(queue, dead.len() as u64, bytes) {
            return Some("queue_full");
        }
        self.world.are_rivals(&dead).then_some("unique_key_taken")
    }

    /// Takes over the messages that the engine has redriven; returns those that are still dead.
    fn redriven_of(&mut self, dead: BTreeSet<MessageId>) -> Result<BTreeSet<MessageId>, String> {
        let line = self.next_line();
        let is_dead = |id: &MessageId| self.view(*id).is_ok_and(|view| view.state == State::Dead);
        let (stay, given): (BTreeSet<_>, BTreeSet<_>) = dead.into_iter().partition(is_dead);
        for id in given {
            self.may_redrive(id)?;
            self.redrive_into(id, line);
        }
        Ok(stay)
    }

    /// Takes over redrives of more dead letters than one slice holds: the engine does the rest in later
    /// slices, as long as it reports that it goes on.
    pub(super) fn follow_sweeps(&mut self) -> Checked {
        for (queue, mut left) in std::mem::take(&mut self.world.sweeps) {
            left.retain(|id| self.world.messages.get(id).is_some_and(|message| message.is_dead_in(queue)));
            let left = self.redriven_of(left)?;
            if self.goes_on() {
                self.world.sweeps.insert(queue, left);
            } else {
                self.stay_dead(&left);
            }
        }
        Ok(())
    }

    /// True when the engine reports that it has work left to do at once.
    pub(super) fn goes_on(&self) -> bool {
        self.engine.next_deadline().is_some_and(|next| next <= self.now_us)
    }

    fn stay_dead(&mut self, those: &BTreeSet<MessageId>) {
        those.iter().for_each(|id| self.stays_dead(*id));
    }

    /// Checks that there is room for a dead letter, and that its unique key is free.
    pub(super) fn may_redrive(&self, id: MessageId) -> Checked {
        let message = &self.world.messages[&id];
        ensure!(
            self.world.has_room(message.queue, 1, message.blob.len.into()),
            "dead letter {id} was redriven, and there is no room"
        );
        let rival = self.world.rival(id);
        ensure!(rival.is_none(), "dead letter {id} was redriven, and {rival:?} has its unique key");
        Ok(())
    }

    /// Puts a dead letter that cannot be redriven behind all others.
    pub(super) fn stays_dead(&mut self, id: MessageId) {
        let line = self.late_line();
        self.world.messages.get_mut(&id).into_iter().for_each(|message| message.died = line);
    }

    pub(super) fn dead_delete(&mut self, namespace: NamespaceId, name: &str, ids: &[MessageId]) -> Checked {
        let Some(queue) = self.existing(namespace, name)? else { return Ok(()) };
        let Some(dead) = self.dead_of(queue, ids)? else { return Ok(()) };
        if ids.is_empty() {
            self.world.redrives.remove(&queue);
            self.world.sweeps.remove(&queue);
        }
        self.drop_all(&dead);
        self.counted(dead.len())
    }
}
