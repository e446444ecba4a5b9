//! Checks of answers: the ids of sent messages, and the validity of receipts.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::command::{Command, Deliver, SendItem, Transaction};
use sluice_engine::event::Event;
use sluice_engine::id::{MessageId, Receipt};
use sluice_engine::item::{Chain, DependsMode, Expires, OnParentFailed, SendOptions, Step};
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;

use super::life::{Carried, Life};
use super::transactions::settled;
use super::{Lives, Record, ensure};
use crate::model::Checked;

/// Messages that the answer to a record names as sent, and for which no event has come yet.
#[derive(Debug, Default)]
pub(super) struct Sends(BTreeMap<MessageId, Life>);

impl Sends {
    pub(super) fn of(record: &Record<'_>) -> Sends {
        if let Some(transaction) = record.done_together() {
            return Sends::of_transaction(record, transaction);
        }
        let mut sends = Sends::default();
        let Reply::Sent { first, duplicate: false, .. } = record.outcome.reply else { return sends };
        match record.command {
            Command::Send(send) => sends.items(record, first, send.items),
            Command::Group(group) => {
                let members = group.members.iter().chain(std::iter::once(group.callback));
                let members = members.map(|member| &member.item);
                let count = group.members.len() as u64;
                for (number, item) in (0u64..).zip(members) {
                    let mut life = record.life_of(first, &[], item);
                    if number == count {
                        life.parents = (0..count).map(|number| nth(first, number)).collect();
                        life.one_parent_is_enough = false;
                    }
                    sends.0.insert(nth(first, number), life);
                }
            }
            // The template of the message is in an earlier record.
            Command::ScheduleFire(_) | Command::ScheduleTrigger { .. } => {
                let mut life = Life { strayed: true, ..Life::default() };
                if let Ok(view) = record.engine.message(first) {
                    life.reply_to = Some(view.reply_to.to_string()).filter(|queue| !queue.is_empty());
                    life.correlation_id = view.correlation_id.to_vec();
                }
                sends.0.insert(first, life);
            }
            _ => {}
        }
        sends
    }

    /// Messages that a transaction has sent.
    fn of_transaction(record: &Record<'_>, transaction: &Transaction<'_>) -> Sends {
        let mut sends = Sends::default();
        let ids: Vec<MessageId> = record.outcome.operations.iter().filter_map(sent_id).collect();
        let items = transaction.operations.iter().filter_map(Command::as_send).flat_map(|send| send.items);
        for (id, item) in ids.iter().zip(items) {
            sends.0.insert(*id, record.life_of(ids[0], &ids, item));
        }
        sends
    }

    fn items(&mut self, record: &Record<'_>, first: MessageId, items: &[SendItem<'_>]) {
        let ids = &record.outcome.ids;
        for (number, item) in (0u32..).zip(items) {
            if record.outcome.duplicates.contains(&number) {
                continue;
            }
            let id = ids.get(number as usize).copied().unwrap_or(nth(first, number.into()));
            self.0.insert(id, record.life_of(first, ids, item));
        }
    }

    pub(super) fn take(&mut self, id: MessageId) -> Option<Life> {
        self.0.remove(&id)
    }

    /// Checks that there was an event for each message that the answer names.
    pub(super) fn are_all_told(&self) -> Checked {
        let missing = self.0.keys().next();
        ensure!(missing.is_none(), "a send was answered with {missing:?}, which was not told of as sent");
        Ok(())
    }
}

fn sent_id(done: &OperationDone) -> Option<MessageId> {
    if let OperationDone::Sent { id } = done { Some(*id) } else { None }
}

fn nth(first: MessageId, number: u64) -> MessageId {
    MessageId { sequence: first.sequence + number, ..first }
}

fn carried(options: &SendOptions<'_>) -> Carried {
    let Chain::Given(chain) = options.chain else { return Carried::default() };
    let queue = |step: &Step<'_>| step.queue.to_owned();
    Carried { steps: chain.steps.iter().map(queue).collect(), on_failure: chain.on_failure.map(queue) }
}

impl Record<'_> {
    /// True when the answer names new messages.
    pub(super) fn sends_one(&self) -> bool {
        matches!(self.outcome.reply, Reply::Sent { duplicate: false, .. })
    }

    /// The initial life of an item of a send. `ids`: those of all items; empty if they follow each other from
    /// `first`.
    fn life_of(&self, first: MessageId, ids: &[MessageId], item: &SendItem<'_>) -> Life {
        let options = item.options.copied().unwrap_or_default();
        let place = |place: u32| ids.get(place as usize).copied().unwrap_or(nth(first, place.into()));
        let parents = options.depends_on.map_or(Vec::new(), |depends_on| {
            depends_on.ids().chain(depends_on.places().map(place)).collect()
        });
        Life {
            due_us: match item.deliver {
                Deliver::Now => 0,
                Deliver::AfterMs(ms) => self.now_us + ms * 1_000,
                Deliver::AtUs(us) => us,
            },
            end_us: match options.expires {
                Expires::Never => 0,
                Expires::AfterMs(ms) => self.now_us + ms * 1_000,
                Expires::AtUs(us) => us,
            },
            ordering: options.ordering_key.to_vec(),
            strayed: options.hold,
            parents,
            one_parent_is_enough: options.depends_on.is_some_and(|it| it.mode == DependsMode::Any),
            held_on_failure: options.depends_on.is_some_and(|it| it.on_parent_failed == OnParentFailed::Hold),
            carried: carried(&options),
            correlation_id: options.correlation_id.to_vec(),
            reply_to: Some(options.reply_to.to_owned()).filter(|queue| !queue.is_empty()),
            ..Life::default()
        }
    }
}

impl Lives {
    /// Checks that each accepted receipt belongs to the message's holder.
    pub(super) fn receipts_hold(&mut self, record: &Record<'_>) -> Checked {
        let results = &record.outcome.results;
        let good = |number: &usize| results.get(*number).is_some_and(Result::is_ok);
        let receipts: Vec<Receipt> = match record.command {
            Command::Settle { items, .. } => items.iter().map(|item| item.receipt).collect(),
            Command::Extend { items, .. } => items.iter().map(|(receipt, _)| *receipt).collect(),
            Command::Report { items, .. } => items.iter().map(|item| item.receipt).collect(),
            Command::Resume { receipts, .. } => receipts.to_vec(),
            Command::Transaction(transaction) => {
                let receipts = settled(transaction, record.outcome);
                receipts.iter().try_for_each(|receipt| self.receipt_holds(*receipt))?;
                return settled_once(record, receipts.into_iter());
            }
            Command::Detach { .. } | Command::Epoch { .. } => {
                self.lives.values_mut().for_each(Life::changes_lease);
                return Ok(());
            }
            _ => return Ok(()),
        };
        for number in (0..receipts.len()).filter(good) {
            self.receipt_holds(receipts[number])?;
        }
        if !matches!(record.command, Command::Settle { .. }) {
            return Ok(());
        }
        let accepted = receipts.iter().zip(results).filter(|(_, result)| result.is_ok());
        settled_once(record, accepted.map(|(receipt, _)| *receipt))
    }

    /// Checks that a receipt that was accepted is that of the message's holder.
    fn receipt_holds(&mut self, receipt: Receipt) -> Checked {
        let Receipt { id, token, .. } = receipt;
        let Some(life) = self.lives.get_mut(&id) else {
            return Err(format!("{id}, which is not there, was settled or extended with token {token}"));
        };
        ensure!(life.holds(token), "token {token} was good for {id}, which is {life:?}");
        life.changes_lease();
        Ok(())
    }
}

/// Checks that each receipt settles once, with an event for it.
fn settled_once(record: &Record<'_>, receipts: impl Iterator<Item = Receipt>) -> Checked {
    let mut settled = BTreeSet::new();
    for receipt in receipts {
        ensure!(settled.insert(receipt), "{receipt} has settled twice");
    }
    let is_told =
        |receipt: &Receipt| record.outcome.events.iter().any(|event: &Event| event.id == Some(receipt.id));
    let untold = settled.iter().find(|receipt| !is_told(receipt));
    ensure!(untold.is_none(), "{untold:?} has settled, and nothing was told of it");
    Ok(())
}
