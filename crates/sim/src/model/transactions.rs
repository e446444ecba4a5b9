//! Transactions: their messages and settlements. What comes of their documents and locks, `lives` follows.

use std::collections::{BTreeMap, BTreeSet};

use sluice_engine::blob::BlobHead;
use sluice_engine::command::{Command, SendItem, SettleItem, Transaction};
use sluice_engine::id::{BlobRef, EPOCH_SHIFT, MessageId};
use sluice_engine::outcome::Reply;
use sluice_engine::transactions::OperationDone;

use super::item::blob_len;
use super::{Apply, Checked, Message, ensure};

impl Apply<'_> {
    pub(super) fn transaction(&mut self, transaction: &Transaction<'_>) -> Checked {
        if !self.world.namespaces.contains_key(&transaction.namespace) {
            return self.fails("namespace_not_found");
        }
        if self.outcome.error.is_some() {
            return self.is_refused_with_reason(transaction);
        }
        match self.outcome.reply {
            Reply::Committed { duplicate: true } => return Ok(()),
            Reply::Committed { duplicate: false } => {}
            other => return Err(format!("a transaction got {other:?}")),
        }
        ensure!(self.not_held(transaction).is_none(), "{:?} has settled", self.not_held(transaction));
        let refusal = self.no_room_together(transaction);
        ensure!(refusal.is_none(), "a transaction was done, and should have got {refusal:?}");
        let mut blobs = self.sends_together(transaction)?;
        for operation in transaction.operations {
            match operation {
                Command::Settle { items, .. } => {
                    for item in *items {
                        self.settle_together(item, &mut blobs)?;
                    }
                }
                Command::DocumentPut(put) => {
                    let len = BlobHead::len(put.content_type, put.attributes) + put.content.len();
                    let blob = self.blob_of_record(&mut blobs, len);
                    if !self.outcome.released.contains(&blob) {
                        self.world.documents.insert(blob, put.namespace);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks a refusal as far as messages are concerned: nothing that could be done is refused.
    fn is_refused_with_reason(&self, transaction: &Transaction<'_>) -> Checked {
        let of_messages = |it: &Command<'_>| matches!(it, Command::Send(_) | Command::Settle { .. });
        let is_known = self.outcome.error.as_ref().is_some_and(|it| it.code() == "idempotency_mismatch");
        let all_here = transaction.operations.iter().all(of_messages);
        let could = self.not_held(transaction).is_none() && self.no_room_together(transaction).is_none();
        ensure!(!(all_here && could) || is_known, "{transaction:?} was refused: {:?}", self.outcome.error);
        Ok(())
    }

    /// The first delivery that cannot be settled with others.
    fn not_held<'t>(&self, transaction: &'t Transaction<'_>) -> Option<&'t SettleItem<'t>> {
        let items = transaction.operations.iter().filter_map(|operation| match operation {
            Command::Settle { items, .. } => Some(items.iter()),
            _ => None,
        });
        items.flatten().find(|item| {
            let holds = self.standing(transaction.namespace, item.receipt) == ["ok"];
            !holds || self.is_cancelled(item.receipt.id)
        })
    }

    /// Code of a refusal of the messages for want of room, by what is known of messages alone.
    fn no_room_together(&self, transaction: &Transaction<'_>) -> Option<&'static str> {
        let quotas = self.world.namespaces.get(&transaction.namespace)?.quotas;
        let mut brings: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (queue, item) in messages(transaction) {
            let (count, bytes) = brings.entry(queue).or_default();
            (*count, *bytes) = (*count + 1, *bytes + u64::from(blob_len(item)));
        }
        if brings.is_empty() {
            return None;
        }
        let there = |queue: &str| self.world.queue_named(transaction.namespace, queue);
        let missing: BTreeSet<&str> = brings.keys().copied().filter(|it| there(it).is_none()).collect();
        let cannot = missing.iter().find_map(|queue| self.cannot_be_made(transaction.namespace, queue));
        if cannot.is_some() {
            return cannot;
        }
        let (messages, bytes) = self.world.usage(transaction.namespace);
        let queues =
            self.world.queues.values().filter(|queue| queue.namespace == transaction.namespace).count();
        let more = brings.values().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let over = |quota: u64, need: u64| quota > 0 && need > quota;
        if over(quotas.messages, messages + more.0)
            || over(quotas.bytes, bytes + more.1)
            || (!missing.is_empty() && over(quotas.queues, (queues + missing.len()) as u64))
        {
            return Some("quota_exceeded");
        }
        for (queue, (count, bytes)) in brings {
            let Some(queue) = there(queue) else { continue };
            if self.world.queues[&queue].settings.closed {
                return Some("queue_closed");
            }
            if !self.world.takes(queue, count, bytes) {
                return Some("queue_full");
            }
        }
        None
    }

    /// Places the messages; returns the number of the first blob that is none of theirs.
    fn sends_together(&mut self, transaction: &Transaction<'_>) -> Result<u32, String> {
        let ids: Vec<MessageId> = self.outcome.operations.iter().filter_map(sent_id).collect();
        let count = messages(transaction).count();
        ensure!(ids.len() == count, "{} ids for {count} messages", ids.len());
        let mut next_blob = count as u32;
        let mut queues = BTreeSet::new();
        for (number, ((queue, item), id)) in (0u32..).zip(messages(transaction).zip(&ids)) {
            let last = self.world.namespaces.get(&id.namespace).map_or(0, |of| of.last_sequence);
            ensure!(id.sequence > last, "id {id} was given, after one with sequence {last}");
            ensure!(id.sequence >> EPOCH_SHIFT == self.world.epoch, "{id} is not of {}", self.world.epoch);
            let queue = self.queue_for(transaction.namespace, queue)?;
            let blob = BlobRef { index: self.index, item: number, len: blob_len(item) };
            let flow = self.flow_of(item.options, ids[0], &mut next_blob);
            self.give_id(*id);
            self.place_sent(*id, Message { queue, flow, ..Message::of_item(blob, item) }, item.deliver);
            queues.insert(queue);
        }
        self.follow_overdue()?;
        queues.into_iter().for_each(|queue| self.make_room(queue));
        Ok(next_blob)
    }

    fn settle_together(&mut self, item: &SettleItem<'_>, blobs: &mut u32) -> Checked {
        *blobs += u32::from(!item.error.is_empty());
        let len = item.result.map(|result| BlobHead::len(result.content_type, &[]) + result.bytes.len());
        let result = len.map(|len| self.blob_of_record(blobs, len));
        self.settle_one(item, result)
    }
}

/// The messages of a transaction with their queues.
fn messages<'t>(transaction: &'t Transaction<'_>) -> impl Iterator<Item = (&'t str, &'t SendItem<'t>)> {
    let sends = transaction.operations.iter().filter_map(Command::as_send);
    sends.flat_map(|send| send.items.iter().map(|item| (send.queue, item)))
}

fn sent_id(done: &OperationDone) -> Option<MessageId> {
    if let OperationDone::Sent { id } = done { Some(*id) } else { None }
}
