//! Sends: refusals, duplicates, and the first place of each message.

use sluice_engine::command::{Deliver, Send, SendItem};
use sluice_engine::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId, QueueId};
use sluice_engine::item::Expires;
use sluice_engine::limits::PRIORITY_MAX;
use sluice_engine::outcome::Reply;

use super::change::Changes;
use super::expiry::End;
use super::item::{blob_len, valid_name};
use super::keys::Keys;
use super::results::ResultOptions;
use super::unique::Unique;
use super::{Apply, Checked, ensure};
use super::{Keyed, Message, MessagePlace};

impl Apply<'_> {
    pub(super) fn send(&mut self, send: &Send<'_>) -> Checked {
        if let Some(refusal) = self.send_refusal(send) {
            return self.fails(refusal);
        }
        if let Some(earlier) = self.remembered(send) {
            if earlier.digest != send.request_digest {
                return self.fails("idempotency_mismatch");
            }
            return self.repeats(&earlier);
        }
        if self.lacks_a_parent(send.namespace, send.items) {
            return self.fails("parent_not_found");
        }
        let planned = self.plan(send);
        let whole = (send.items.len() as u64, blobs_len(send.items));
        let more = planned.as_ref().map_or(whole, |planned| planned.more);
        let delays = send.items.iter().map(|item| item.deliver);
        if let Some(refusal) = self.no_room(send.namespace, send.queue, more, delays) {
            return self.fails(refusal);
        }
        if planned.as_ref().is_some_and(|planned| self.outgrows(send, planned.replacement)) {
            return self.fails("queue_full");
        }
        let queue = self.queue_for(send.namespace, send.queue)?;
        let (first, duplicates) = match planned {
            Some(planned) => self.sends_planned(queue, send, planned)?,
            None => (self.sends(send.namespace, queue, send.items)?, None),
        };
        self.follow_overdue()?;
        self.make_room(queue);
        if !send.idempotency_key.is_empty() {
            let (digest, count, at_us) = (send.request_digest, send.items.len() as u32, self.now_us);
            self.world.keys.insert(
                (queue, send.idempotency_key.to_vec()),
                Keyed { digest, first, count, duplicates, at_us },
            );
        }
        Ok(())
    }

    /// Code of a refusal for the request itself.
    fn send_refusal(&self, send: &Send<'_>) -> Option<&'static str> {
        if !self.world.namespaces.contains_key(&send.namespace) {
            return Some("namespace_not_found");
        }
        if !valid_name(send.queue) {
            return Some("invalid_name");
        }
        send.items.iter().any(wrong_item).then_some("invalid_argument")
    }

    fn remembered(&self, send: &Send<'_>) -> Option<Keyed> {
        if send.idempotency_key.is_empty() {
            return None;
        }
        let window_us = self.world.limits.idempotency_window_ms * 1_000;
        let queue = self.world.queue_named(send.namespace, send.queue)?;
        let keyed = self.world.keys.get(&(queue, send.idempotency_key.to_vec()))?;
        (keyed.at_us + window_us > self.now_us).then(|| keyed.clone())
    }

    fn repeats(&self, earlier: &Keyed) -> Checked {
        self.succeeds()?;
        let expected = Reply::Sent { first: earlier.first, count: earlier.count, duplicate: true };
        ensure!(self.outcome.reply == expected, "a repeat got {:?}, not {expected:?}", self.outcome.reply);
        self.tells_of(earlier.duplicates.as_ref())
    }

    /// Code of a refusal for want of room for so many more messages and bytes; the request itself is valid.
    pub(super) fn no_room(
        &self,
        namespace: NamespaceId,
        queue: &str,
        (count, bytes): (u64, u64),
        mut delays: impl Iterator<Item = Deliver>,
    ) -> Option<&'static str> {
        let quotas = self.world.namespaces.get(&namespace)?.quotas;
        let existing = self.world.queue_named(namespace, queue);
        if existing.is_some_and(|queue| self.world.queues[&queue].settings.closed) {
            return Some("queue_closed");
        }
        let (messages, used) = self.world.usage(namespace);
        let over = |quota: u64, need: u64| quota > 0 && need > quota;
        if over(quotas.messages, messages + count) || over(quotas.bytes, used + bytes) {
            return Some("quota_exceeded");
        }
        let Some(existing) = existing else { return self.cannot_be_made(namespace, queue) };
        if delays.any(|deliver| !self.world.outlives(existing, deliver)) {
            return Some("invalid_argument");
        }
        (!self.world.takes(existing, count, bytes)).then_some("queue_full")
    }

    /// True when a payload that replaces another one is by itself larger than all that its queue may hold.
    fn outgrows(&self, send: &Send<'_>, replacement: u64) -> bool {
        let queue = self.world.queue_named(send.namespace, send.queue);
        queue.is_some_and(|queue| !self.world.fits(queue, (0, 0), (0, replacement)))
    }

    fn sends(
        &mut self,
        namespace: NamespaceId,
        queue: QueueId,
        items: &[SendItem<'_>],
    ) -> Result<MessageId, String> {
        self.succeeds()?;
        let Reply::Sent { first, count, duplicate } = self.outcome.reply else {
            return Err(format!("a send got {:?}", self.outcome.reply));
        };
        ensure!(!duplicate, "a first send was taken for a repeat");
        ensure!(count as usize == items.len(), "{count} ids for {} messages", items.len());
        ensure!(first.namespace == namespace, "id {first} is of another namespace than {namespace:?}");
        let Some(namespace) = self.world.namespaces.get_mut(&namespace) else { return Ok(first) };
        let last = std::mem::replace(&mut namespace.last_sequence, first.sequence + u64::from(count) - 1);
        ensure!(first.sequence > last, "id {first} was given, after one with sequence {last}");
        ensure!(
            first.sequence >> EPOCH_SHIFT == self.world.epoch,
            "id {first} is not of epoch {}",
            self.world.epoch
        );
        let mut next_blob = count;
        for (number, item) in items.iter().enumerate() {
            let id = MessageId { sequence: first.sequence + number as u64, ..first };
            let blob = BlobRef { index: self.index, item: number as u32, len: blob_len(item) };
            let flow = self.flow_of(item.options, first, &mut next_blob);
            self.place_sent(id, Message { queue, flow, ..Message::of_item(blob, item) }, item.deliver);
        }
        Ok(first)
    }

    /// Places a message that is sent now.
    pub(super) fn place_sent(&mut self, id: MessageId, message: Message, deliver: Deliver) {
        let (due_us, held) = (self.due_us(deliver), message.changes.hold);
        self.add(id, Message { sent_us: self.now_us, ..message });
        if held {
            self.put(id, MessagePlace::Delayed { until_us: due_us });
            self.hold(id, "hold");
            self.ends.push(id);
        } else {
            self.admit(id, due_us);
        }
    }
}

impl Message {
    /// A message as its sender describes it; it has no place yet.
    pub(super) fn of_item(blob: BlobRef, item: &SendItem<'_>) -> Message {
        Message {
            priority: item.priority,
            max_attempts: item.max_attempts,
            backoff: item.backoff,
            keys: Keys::of(item.options),
            asked: ResultOptions::of(item.options),
            changes: Changes::of(item.options),
            end: End::of(item.options.map_or(Expires::Never, |options| options.expires)),
            unique: Unique::of(item.options),
            ..Message::new(blob)
        }
    }
}

/// True for a message that nobody may send.
pub(super) fn wrong_item(item: &SendItem<'_>) -> bool {
    item.priority > PRIORITY_MAX
}

fn blobs_len(items: &[SendItem<'_>]) -> u64 {
    items.iter().map(|item| u64::from(blob_len(item))).sum()
}
