//! The lives of messages, as clients and watchers see them. The [model](crate::model) predicts outcomes by
//! the rules of the engine; this module knows no such rule. It takes each record's command, answer,
//! deliveries and events, and checks what must be true of any queue server:
//!
//! - each message named in the answer to a send begins once, and ends once: acked, cancelled,
//!   dropped or dead; a dead letter may come back; no event is about a message that is gone. No id and no
//!   token is given twice;
//! - no two clients hold the same message; only its holder can settle it, which ends the lease;
//! - attempts and deliveries grow by one with each delivery; nothing is delivered before its time, after its
//!   end, or before its parents ended;
//! - of the messages of an ordering key one is leased at a time, and first deliveries are in the order of
//!   sending, unless a message was changed, held or tried before;
//! - each step of a chain is sent once, when the one before it is acked; a callback comes after all members
//!   of its group;
//! - no schedule fires twice at an instant;
//! - holders of a lock may hold it together, lines are served in order, and tokens only grow;
//! - a document is written under its condition alone, and what is read is what was written last;
//! - an attachment has the bytes of its upload, and they are let go of when nobody can read them;
//! - an index that is built finds what a look at each document would find, and one of messages what a look
//!   at each of them would;
//! - what comes of a transaction is what would come of its operations one by one, or nothing;
//! - counters equal the events, and listings show the messages that have not ended.
//!
//! It does not check how soon consequences follow, which of several comes first, and which are left to a
//! later slice.

mod answers;
mod attachments;
mod compare;
mod documents;
mod follows;
mod indexes;
mod life;
mod locks;
mod order;
mod search;
#[cfg(test)]
mod tests;
mod transactions;

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::Engine;
use sluice_engine::command::Command;
use sluice_engine::event::{Event, EventDetail, EventKind};
use sluice_engine::id::{MessageId, NamespaceId, QueueId};
use sluice_engine::outcome::{Delivery, Outcome};
use sluice_engine::query::{Counters, State};

use crate::model::{Checked, ensure};
use answers::Sends;
use attachments::Attachments;
use documents::Documents;
use follows::{Demand, Demands};
use life::{Life, Stage};
use locks::Locks;
use transactions::{Transactions, one_by_one};

/// The lives of the messages of one shard, up to some record.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    lives: BTreeMap<MessageId, Life>,
    /// Messages that are gone.
    gone: BTreeSet<MessageId>,
    /// Messages that have ended at least once; true: done at the first end.
    ended: BTreeMap<MessageId, bool>,
    /// Totals of each queue according to the events; as `replies_lost`, the demands that were not met.
    told: BTreeMap<QueueId, Counters>,
    /// Demands that may be met in a later slice.
    to_come: Vec<Demand>,
    last_token: u64,
    /// Numbers of schedules, and instants at which they fired, in microseconds since the Unix epoch.
    fired: BTreeSet<(u64, u64)>,
    /// Namespaces in which a queue ever let messages step aside.
    steps_aside: BTreeSet<NamespaceId>,
    /// Number of messages sent so far.
    sent: u64,
    locks: Locks,
    documents: Documents,
    attachments: Attachments,
    transactions: Transactions,
}

/// An applied record and its outcome.
struct Record<'a> {
    index: u64,
    now_us: u64,
    command: &'a Command<'a>,
    outcome: &'a Outcome,
    /// The engine that has just applied it.
    engine: &'a Engine,
}

impl Lives {
    /// State before the first record.
    pub fn new() -> Lives {
        Lives::default()
    }

    /// Takes in a record that `engine` has just applied.
    ///
    /// # Errors
    /// The rule that was broken, and how.
    pub fn follow(
        &mut self,
        now_us: u64,
        index: u64,
        command: &Command<'_>,
        outcome: &Outcome,
        engine: &Engine,
    ) -> Checked {
        let record = &Record { index, now_us, command, outcome, engine };
        let mut sends = Sends::of(record);
        let mut demands = Demands::of(std::mem::take(&mut self.to_come));
        self.receipts_hold(record)?;
        self.look_at_settings(record);
        for (number, event) in outcome.events.iter().enumerate() {
            let told = self.tell(record, number, event, &mut sends, &mut demands);
            told.map_err(|wrong| format!("{event:?}: {wrong}"))?;
        }
        sends.are_all_told()?;
        self.are_met(record, demands)?;
        self.fires_once(record)?;
        self.follow_kept(record)?;
        self.forget_namespace(record);
        Ok(())
    }

    /// Follows locks and documents, those of a transaction operation by operation.
    fn follow_kept(&mut self, record: &Record<'_>) -> Checked {
        if let Command::Transaction(transaction) = record.command {
            self.transactions.follow(record, transaction)?;
        }
        let Some(transaction) = record.done_together() else {
            self.documents.follow(record, &self.locks)?;
            self.attachments.follow(record, &self.documents)?;
            self.locks.follow(record)?;
            return self.are_as_told(record);
        };
        let each = one_by_one(transaction, record.outcome);
        let before = self.locks.clone();
        for (command, outcome) in &each {
            let record = &record.of(command, outcome);
            self.documents.follow(record, &before)?;
            self.locks.follow(record)?;
        }
        // Attachments are made when all documents are there.
        let is_commit = |it: &&(Command<'_>, Outcome)| matches!(it.0, Command::AttachmentCommit(_));
        let (commits, others): (Vec<_>, Vec<_>) = each.iter().partition(is_commit);
        for (command, outcome) in others.into_iter().chain(commits) {
            self.attachments.follow(&record.of(command, outcome), &self.documents)?;
        }
        self.are_as_told(record)
    }

    fn are_as_told(&mut self, record: &Record<'_>) -> Checked {
        self.documents.are_as_written(record)?;
        search::are_searched(record)?;
        self.attachments.are_as_told(record)
    }

    fn tell(
        &mut self,
        record: &Record<'_>,
        number: usize,
        event: &Event,
        sends: &mut Sends,
        demands: &mut Demands,
    ) -> Checked {
        let Some(id) = event.id else { return self.tell_many(event) };
        self.count(event);
        if event.kind == EventKind::Sent {
            return self.begin(record, event.queue, id, sends, demands);
        }
        ensure!(!self.gone.contains(&id), "it is gone");
        let Some(life) = self.lives.get(&id) else { return Err("nobody has sent it".to_owned()) };
        ensure!(life.queue == event.queue || event.kind == EventKind::Moved, "it is in {:?}", life.queue);
        if event.kind == EventKind::Delivered {
            return self.deliver(record, id, event);
        }
        demands.note(record, number, life, id);
        let forwarded = event.kind == EventKind::Moved && self.is_forwarded(record, id);
        let Some(life) = self.lives.get_mut(&id) else { return Ok(()) };
        life.tell(record, event, forwarded)?;
        if life.stage.is_end() {
            let done = record.is_done(number, id);
            self.ended.entry(id).or_insert(done);
        }
        if life.stage == Stage::Waits && event.kind == EventKind::Approved {
            life.goes_on_without(&self.ended);
        }
        if life.stage == Stage::Gone {
            self.lives.remove(&id);
            self.gone.insert(id);
        }
        Ok(())
    }

    /// Adds a message that an event reports as sent.
    fn begin(
        &mut self,
        record: &Record<'_>,
        queue: QueueId,
        id: MessageId,
        sends: &mut Sends,
        demands: &mut Demands,
    ) -> Checked {
        let known = self.lives.contains_key(&id) || self.gone.contains(&id);
        ensure!(!known, "the id was given before");
        self.sent += 1;
        let mut life = match sends.take(id) {
            Some(asked) => asked,
            None => self.follows(record, demands, id, queue)?,
        };
        (life.queue, life.number) = (queue, self.sent);
        self.lives.insert(id, life);
        Ok(())
    }

    fn deliver(&mut self, record: &Record<'_>, id: MessageId, event: &Event) -> Checked {
        let Some(delivery) = record.delivery_of(id) else { return Err("nobody got it".to_owned()) };
        let token = delivery.receipt.token;
        ensure!(token > self.last_token, "token {token} comes after {}", self.last_token);
        self.last_token = token;
        self.keeps_order(record, id)?;
        self.keeps_parents(id)?;
        let Some(life) = self.lives.get_mut(&id) else { return Ok(()) };
        ensure!(event.attempt == delivery.attempt, "it was delivered as {delivery:?}");
        life.deliver(record.now_us, delivery)
    }

    /// Checks a delivery: the message's parents have ended; all, or one where one is enough.
    fn keeps_parents(&self, id: MessageId) -> Checked {
        let life = &self.lives[&id];
        let open: Vec<_> = life.parents.iter().filter(|parent| !self.ended.contains_key(parent)).collect();
        let enough = open.is_empty() || (life.one_parent_is_enough && open.len() < life.parents.len());
        ensure!(enough, "it is delivered, and waits for {open:?}");
        Ok(())
    }

    /// Takes in an event about many messages of a queue that are gone at once.
    fn tell_many(&mut self, event: &Event) -> Checked {
        let EventDetail::Many { messages, why, .. } = event.detail else {
            return Err("it is about nothing".to_owned());
        };
        let meant = |stage: Stage| match why {
            "purged" => stage == Stage::Waits,
            "deleted" => stage == Stage::Dead,
            _ => true,
        };
        let here = self.lives.iter().filter(|(_, life)| life.queue == event.queue && meant(life.stage));
        let here: Vec<(MessageId, Stage)> = here.map(|(id, life)| (*id, life.stage)).collect();
        // Acked messages may have been kept, or be gone.
        let kept = here.iter().filter(|(_, stage)| matches!(stage, Stage::Acked { .. })).count() as u64;
        let (most, least) = (here.len() as u64, here.len() as u64 - kept);
        ensure!((least..=most).contains(&messages), "they were {least} to {most}");
        for (id, _) in here {
            self.lives.remove(&id);
            self.gone.insert(id);
            self.ended.entry(id).or_insert(false);
        }
        self.told.entry(event.queue).or_default().dropped += messages;
        Ok(())
    }

    fn count(&mut self, event: &Event) {
        let told = self.told.entry(event.queue).or_default();
        let total = match event.kind {
            EventKind::Sent => &mut told.sent,
            EventKind::Delivered => &mut told.delivered,
            EventKind::Acked => &mut told.acked,
            EventKind::Nacked => &mut told.nacked,
            EventKind::Released => &mut told.released,
            EventKind::Rejected => &mut told.rejected,
            EventKind::Expired => &mut told.expired,
            EventKind::Died => &mut told.died,
            EventKind::Redriven => &mut told.redriven,
            EventKind::Dropped => &mut told.dropped,
            EventKind::Cancelled => &mut told.cancelled,
            EventKind::Moved => &mut told.moved_in,
            EventKind::Delayed
            | EventKind::Due
            | EventKind::Retried
            | EventKind::Held
            | EventKind::Approved
            | EventKind::Changed => return,
        };
        *total += 1;
        if let EventDetail::From(from) = event.detail {
            self.told.entry(from).or_default().moved_out += 1;
        }
    }

    /// True when a `Moved` event means that a dead letter went to a dead-letter queue. A dead letter moved by
    /// a person stays dead.
    fn is_forwarded(&self, record: &Record<'_>, id: MessageId) -> bool {
        let dead = self.lives.get(&id).is_some_and(|life| life.stage == Stage::Dead);
        let by_person = matches!(record.command, Command::Change(_));
        dead && (!by_person || record.engine.message(id).is_ok_and(|view| view.state != State::Dead))
    }

    /// Checks that a schedule fires once at an instant.
    fn fires_once(&mut self, record: &Record<'_>) -> Checked {
        let Command::ScheduleFire(fire) = record.command else { return Ok(()) };
        let fires = record.sends_one();
        let news = !fires || self.fired.insert((fire.number, fire.instant_us));
        ensure!(news, "schedule {} has fired at {} before", fire.number, fire.instant_us);
        Ok(())
    }

    /// Drops the messages of a deleted namespace, whose number may be given again.
    fn forget_namespace(&mut self, record: &Record<'_>) {
        let Command::NamespaceDelete { namespace, .. } = record.command else { return };
        if record.outcome.error.is_none() {
            self.lives.retain(|id, _| id.namespace != *namespace);
            self.gone.retain(|id| id.namespace != *namespace);
            self.ended.retain(|id, _| id.namespace != *namespace);
            self.forget_demands(*namespace);
            self.transactions.forget(*namespace);
        }
    }
}

impl Record<'_> {
    /// True when the engine has work left to do at once.
    fn goes_on(&self) -> bool {
        self.engine.next_deadline().is_some_and(|next| next <= self.now_us)
    }

    /// True when the event with this number means that a message is done. A message that is acked and whose
    /// next step is refused dies in the same record.
    fn is_done(&self, number: usize, id: MessageId) -> bool {
        let mut rest = self.outcome.events[number..].iter().filter(|event| event.id == Some(id));
        let acked = rest.next().is_some_and(|event| event.kind == EventKind::Acked);
        acked && !rest.any(|event| event.kind == EventKind::Died)
    }

    fn delivery_of(&self, id: MessageId) -> Option<&Delivery> {
        let pushed = self.outcome.pushed.iter().map(|(_, delivery)| delivery);
        self.outcome.deliveries.iter().chain(pushed).find(|delivery| delivery.receipt.id == id)
    }
}
