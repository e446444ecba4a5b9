//! Sending.

use sluice_engine::blob::BlobHead;
use sluice_engine::command::{Deliver, Send, SendItem};
use sluice_engine::id::{BlobRef, EPOCH_SHIFT, MessageId, NamespaceId, QueueId};
use sluice_engine::limits::PRIORITY_MAX;
use sluice_engine::outcome::Reply;

use super::keys::Keys;
use super::results::Asked;
use super::state::{Keyed, Message, Place};
use super::{Apply, Checked, ensure};

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
        if let Some(refusal) = self.no_room(send) {
            return self.fails(refusal);
        }
        let queue = self.queue_for(send.namespace, send.queue)?;
        let first = self.sends(send.namespace, queue, send.items)?;
        if !send.idempotency_key.is_empty() {
            let (digest, count, at_us) = (send.request_digest, send.items.len() as u32, self.now_us);
            self.world
                .keys
                .insert((queue, send.idempotency_key.to_vec()), Keyed { digest, first, count, at_us });
        }
        Ok(())
    }

    /// What is wrong with the request itself.
    fn send_refusal(&self, send: &Send<'_>) -> Option<&'static str> {
        if !self.world.namespaces.contains_key(&send.namespace) {
            return Some("namespace_not_found");
        }
        if !valid_name(send.queue) {
            return Some("invalid_name");
        }
        let wrong = |item: &SendItem<'_>| item.priority > PRIORITY_MAX;
        send.items.iter().any(wrong).then_some("invalid_argument")
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
        Ok(())
    }

    /// Which quota refuses it.
    fn no_room(&self, send: &Send<'_>) -> Option<&'static str> {
        let quotas = self.world.namespaces.get(&send.namespace)?.quotas;
        let exists = self.world.queue_named(send.namespace, send.queue).is_some();
        if !exists && !self.world.limits.auto_create {
            return Some("queue_not_found");
        }
        let (messages, bytes) = self.world.usage(send.namespace);
        let queues = self.world.queues.values().filter(|q| q.namespace == send.namespace).count() as u64;
        let more: u64 = send.items.iter().map(|item| u64::from(blob_len(item))).sum();
        let over = |quota: u64, need: u64| quota > 0 && need > quota;
        let full = over(quotas.messages, messages + send.items.len() as u64)
            || over(quotas.bytes, bytes + more)
            || (!exists && over(quotas.queues, queues + 1));
        full.then_some("quota_exceeded")
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
            first.sequence >> EPOCH_SHIFT == u64::from(self.world.epoch),
            "id {first} is not of epoch {}",
            self.world.epoch
        );
        for (number, item) in items.iter().enumerate() {
            let id = MessageId { sequence: first.sequence + number as u64, ..first };
            self.place_sent(queue, id, number as u32, item);
        }
        Ok(first)
    }

    fn place_sent(&mut self, queue: QueueId, id: MessageId, number: u32, item: &SendItem<'_>) {
        let due_us = match item.deliver {
            Deliver::Now => 0,
            Deliver::AfterMs(ms) => self.now_us + ms * 1_000,
            Deliver::AtUs(us) => us,
        };
        let place = if due_us > self.now_us {
            Place::Delayed { until_us: due_us }
        } else {
            Place::Ready { line: self.next_line() }
        };
        let blob = BlobRef { index: self.index, item: number, len: blob_len(item) };
        let message = Message {
            priority: item.priority,
            max_attempts: item.max_attempts,
            backoff: item.backoff,
            keys: Keys::of(item.options),
            asked: Asked::of(item.options),
            ..Message::new(queue, blob, self.now_us, place)
        };
        self.add(id, message);
    }
}

/// Length of a message's blob.
fn blob_len(item: &SendItem<'_>) -> u32 {
    (BlobHead::len(item.content_type, item.headers) + item.payload.len()) as u32
}

/// Whether clients may use this name.
pub(super) fn valid_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.len() <= 128 && name.chars().all(allowed)
}
