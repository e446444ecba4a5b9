//! Results, replies, progress, checkpoints, and the retention of finished messages.

use std::collections::BTreeMap;

use sluice_engine::blob::BlobHead;
use sluice_engine::command::{Deliver, ReportItem};
use sluice_engine::id::{BlobRef, MessageId, NamespaceId, QueueId};
use sluice_engine::item::SendOptions;
use sluice_engine::outcome::Delivery;
use sluice_engine::query::{MessageView, Progress};

use super::flows::Flow;
use super::time::TICK_US;
use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace};

/// Result options of a sent message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ResultOptions {
    pub(super) ttl_ms: u64,
    pub(super) correlation_id: Vec<u8>,
    pub(super) reply_to: String,
}

/// Progress and checkpoint reported by the holders of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct HolderReport {
    pub(super) progress: Option<Progress>,
    pub(super) checkpoint: Option<BlobRef>,
}

impl ResultOptions {
    pub(super) fn of(options: Option<&SendOptions<'_>>) -> ResultOptions {
        let Some(options) = options else { return ResultOptions::default() };
        ResultOptions {
            ttl_ms: options.result_ttl_ms,
            correlation_id: options.correlation_id.to_vec(),
            reply_to: options.reply_to.to_owned(),
        }
    }
}

impl Message {
    /// All blobs in the log that the message refers to, whatever their layout.
    pub(super) fn blobs(&self) -> impl Iterator<Item = BlobRef> {
        let result = match self.place {
            MessagePlace::Done { result, .. } => result,
            _ => None,
        };
        let note = self.told.progress.and_then(|progress| progress.note);
        [Some(self.blob), self.told.checkpoint, note, result]
            .into_iter()
            .flatten()
            .chain(self.changes.blobs())
            .chain(self.flow.blobs())
            .filter(|blob| *blob != BlobRef::EMPTY)
    }

    /// Checks that the engine shows the message's results, progress and checkpoint.
    pub(super) fn compare_results(&self, view: &MessageView) -> Checked {
        let (done_us, result) = match self.place {
            MessagePlace::Done { done_us, result, .. } => (Some(done_us), result),
            _ => (None, None),
        };
        let same = view.progress == self.told.progress
            && view.checkpoint == self.told.checkpoint
            && *view.correlation_id == *self.asked.correlation_id
            && *view.reply_to == *self.asked.reply_to
            && view.result == result
            && view.done_at_us == done_us;
        ensure!(same, "the engine shows {view:?}, the model has {self:?}");
        Ok(())
    }
}

impl Apply<'_> {
    /// Finishes an acked message: keeps it for a while or removes it, and sends its reply in the same record.
    pub(super) fn finish(&mut self, id: MessageId, result: Option<BlobRef>) -> Checked {
        self.total(id, |totals| totals.acked += 1);
        if !self.send_next_step(id, result)? {
            return Ok(());
        }
        self.end_in_flows(id, true);
        let now_us = self.now_us;
        let Some(message) = self.world.messages.get_mut(&id) else { return Ok(()) };
        let (queue, asked) = (message.queue, message.asked.clone());
        if asked.ttl_ms > 0 || self.world.queues[&queue].settings.retains_done() {
            message.told = HolderReport::default();
            message.place =
                MessagePlace::Done { done_us: now_us, until_us: now_us + asked.ttl_ms * 1_000, result };
        } else {
            self.remove(id);
        }
        if asked.reply_to.is_empty() {
            return Ok(());
        }
        let correlation_id =
            if asked.correlation_id.is_empty() { id.to_text().into() } else { asked.correlation_id };
        self.reply(queue, id.namespace, &asked.reply_to, correlation_id, result.unwrap_or(BlobRef::EMPTY))
    }

    /// Sends the reply; where a send may be refused, the reply may be lost, which is counted. A second reply
    /// would show when messages are compared.
    fn reply(
        &mut self,
        from: QueueId,
        namespace: NamespaceId,
        to: &str,
        correlation_id: Vec<u8>,
        blob: BlobRef,
    ) -> Checked {
        let existing = self.world.queue_named(namespace, to);
        let closed = existing.is_some_and(|queue| self.world.queues[&queue].settings.closed);
        let sent = self.sent_by_engine(namespace, |view| {
            let details = self.engine.delivery_details(view.id).unwrap_or_default();
            view.blob == blob
                && details.reason.is_none()
                && details.headers.is_empty()
                && Flow::default().compare_steps(view.id, self.engine).is_ok()
                && self.engine.queue_name(view.queue) == Some(to)
                && *view.correlation_id == *correlation_id
        });
        let Some(id) = sent else {
            ensure!(self.may_refuse(from, to), "no reply was sent to {to:?} from {from:?}");
            self.lost += u64::from(existing.is_none());
            if let Some(queue) = self.world.queues.get_mut(&from) {
                queue.totals.replies_lost += 1;
            }
            return Ok(());
        };
        ensure!(!closed, "reply {id} was sent to {to:?}, which takes nothing");
        let queue = self.queue_for(namespace, to)?;
        let mut reply = Message { queue, ..Message::new(blob) };
        reply.asked.correlation_id = correlation_id;
        self.give_id(id);
        self.blurred.insert(queue);
        self.place_sent(id, reply, Deliver::Now);
        self.make_room(queue);
        Ok(())
    }

    /// Extends leases and notes reports; an item with a receipt that holds nothing changes nothing.
    pub(super) fn report(&mut self, namespace: NamespaceId, items: &[ReportItem<'_>]) -> Checked {
        if !self.world.namespaces.contains_key(&namespace) {
            return self.fails("namespace_not_found");
        }
        self.succeeds()?;
        self.one_result_each(items.len())?;
        let mut blobs = 0;
        for (number, item) in items.iter().enumerate() {
            let note = item.progress.map(|progress| progress.note.len()).filter(|len| *len > 0);
            let note = note.map(|len| self.blob_of_record(&mut blobs, len));
            let checkpoint = item.checkpoint.map(|bytes| BlobHead::len("", &[]) + bytes.len());
            let checkpoint = checkpoint.map(|len| self.blob_of_record(&mut blobs, len));
            if !self.may_extend(number, namespace, item.receipt)? {
                continue;
            }
            self.extend_one(item.receipt, item.lease_ms);
            self.add_cost(item.receipt.id, item.add_cost);
            let Some(message) = self.world.messages.get_mut(&item.receipt.id) else { continue };
            if let Some(progress) = item.progress {
                let percent = progress.percent;
                message.told.progress = Some(Progress { percent, note, at_us: self.now_us });
            }
            message.told.checkpoint = checkpoint.or(message.told.checkpoint);
        }
        Ok(())
    }

    /// The next blob of the record that is applied.
    pub(super) fn blob_of_record(&self, blobs: &mut u32, len: usize) -> BlobRef {
        let item = *blobs;
        *blobs += 1;
        BlobRef { index: self.index, item, len: len as u32 }
    }

    /// Checks that a delivery carries the last checkpoint and the fields that a reply needs.
    pub(super) fn carries_details(&self, delivery: &Delivery) -> Checked {
        let message = &self.world.messages[&delivery.receipt.id];
        let details = self.engine.delivery_details(delivery.receipt.id).unwrap_or_default();
        let same = details.checkpoint == message.told.checkpoint
            && message.changes.has_tags(details.tags)
            && *details.correlation_id == *message.asked.correlation_id
            && *details.reply_to == *message.asked.reply_to
            && *details.from_queue == *message.origin_queue();
        ensure!(same, "{delivery:?} carries {details:?}, the model has {message:?}");
        let plain = message.told == HolderReport::default()
            && message.asked == ResultOptions::default()
            && details.tags.is_none();
        ensure!(delivery.has_details || plain, "{delivery:?} hides that {message:?} carries more");
        Ok(())
    }

    /// Removes finished messages that the engine has removed, if it may. After a tick, all that must be
    /// removed are, unless the engine reports that it goes on at once.
    pub(super) fn follow_finished(&mut self, ticked: bool) -> Checked {
        let goes_on = self.engine.next_deadline().is_some_and(|next| next <= self.now_us);
        let must = ticked && !goes_on;
        for (queue, finished) in self.finished() {
            let settings = self.world.queues[&queue].settings.clone();
            let retain_us = settings.retain_done_ms * 1_000;
            // Messages due within the present millisecond may not have been removed yet.
            let (mut stay, mut stay_surely) = (0, 0);
            // The latest first: they may stay, and those before them must make room.
            for (done_us, id, until_us) in finished.into_iter().rev() {
                let over = |at_us: u64| at_us <= self.now_us;
                let over_to_the_tick = |at_us: u64| at_us.div_ceil(TICK_US) * TICK_US <= self.now_us;
                let ends_us = match retain_us {
                    _ if !settings.retains_done() => Some(until_us),
                    0 => None,
                    retain_us => Some(until_us.max(done_us + retain_us)),
                };
                let count = settings.retain_done_count as usize;
                let (full, full_surely) = (count > 0 && stay >= count, count > 0 && stay_surely >= count);
                if self.engine.message(id).is_ok() {
                    let late =
                        ends_us.is_some_and(over_to_the_tick) || (full_surely && over_to_the_tick(until_us));
                    ensure!(!must || !late, "finished message {id} stays too long: done at {done_us}");
                    stay += usize::from(over(until_us));
                    stay_surely += usize::from(over_to_the_tick(until_us));
                    continue;
                }
                let may = ends_us.is_some_and(over) || (full && over(until_us));
                ensure!(may, "finished message {id} is gone, done at {done_us}, kept until {until_us}");
                self.remove(id);
            }
        }
        Ok(())
    }

    /// Finished messages by queue, in the order of finishing: time, id, and end of the retention in any case.
    fn finished(&self) -> BTreeMap<QueueId, Vec<(u64, MessageId, u64)>> {
        let mut finished: BTreeMap<QueueId, Vec<_>> = BTreeMap::new();
        for (id, message) in &self.world.messages {
            if let MessagePlace::Done { done_us, until_us, .. } = message.place {
                finished.entry(message.queue).or_default().push((done_us, *id, until_us));
            }
        }
        finished.values_mut().for_each(|list| list.sort_unstable());
        finished
    }
}
