//! Results of acked messages: the reply, and how long the result is kept.
//!
//! A finished message stays until the end of its `result_ttl_ms`, and from then on as its queue says: for
//! `retain_done_ms` from its end, and not longer than `retain_done_count` others have finished after it. Only
//! those that stay for the queue's sake count.

use crate::core::Core;
use crate::core::namespace::NamespaceSlot;
use crate::error::Error;
use crate::event::{EventKind, Watched};
use crate::id::{BlobRef, MessageId};
use crate::item::SendOptions;
use crate::outcome::{Ended, Outcome};
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::flow::End;
use crate::queue::state::message::Reason;
use crate::queue::state::pending::{PendingKind, PendingSend};
use crate::queue::state::work::Work;
use crate::queue::state::{MessageSlot, QueueSlot, ResultsSlot};
use crate::store::slot::Slot;

/// Finished messages that make room for a newer one at once; more than one only after the queue's rule was
/// changed.
const TRIM_AT_ONCE: usize = 4;

impl QueueModule {
    /// Leased to done, or away if nobody wants to hear of it any more.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        slot: MessageSlot,
        result: Option<BlobRef>,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        let message = self.messages.get(slot);
        let retained = self.queues.get(message.queue).settings.retains_done();
        if message.extras == Slot::NIL && result.is_none() && !retained {
            if core.watched.any() {
                self.tell_done(slot, core, out);
            }
            return self.remove(slot, End::Done, core, out);
        }
        self.finish_with_result(slot, result, retained, core, out);
    }

    /// A message of which nothing is kept was acked.
    #[cold]
    fn tell_done(&self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        self.tell(slot, EventKind::Acked, core, out);
        self.tell_gone(slot, core, out);
    }

    /// A message that is done is about to go.
    fn tell_gone(&self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        if core.watched.has(Watched::ENDS) {
            out.ended.push(Ended { id: self.id_of_slot(slot, core), state: Some(State::Done) });
        }
    }

    #[inline(never)]
    fn finish_with_result(
        &mut self,
        slot: MessageSlot,
        result: Option<BlobRef>,
        retained: bool,
        core: &mut Core,
        out: &mut Outcome,
    ) {
        self.tell(slot, EventKind::Acked, core, out);
        let asked = self.extras.results(self.messages.get(slot).extras);
        let ttl_ms = asked.map_or(0, |asked| asked.ttl_ms);
        let reply_to = asked.map_or(Box::default(), |asked| asked.reply_to.clone());
        let stays = ttl_ms > 0 || retained;
        let Ok(next) = self.take_next_step(slot, stays, result, core) else {
            if let Some(result) = result {
                core.release_blob(result, out);
            }
            return self.make_dead(slot, Reason::NextStepRefused, core, out);
        };
        let reply = (!reply_to.is_empty()).then(|| self.reply(slot, reply_to, result, core));
        if stays {
            if let Some(result) = result {
                let results = self.results_slot(slot);
                self.extras.results.get_mut(results).result = Some(result);
                if reply.is_some() {
                    core.share_blob(result);
                }
            }
            self.make_done(slot, ttl_ms, core, out);
        } else {
            if reply.is_none()
                && let Some(result) = result
            {
                core.release_blob(result, out);
            }
            self.tell_gone(slot, core, out);
            self.remove(slot, End::Done, core, out);
        }
        if let Some(next) = next {
            self.send_next_step(next, core, out);
        }
        // The ack does not fail because of its reply: one that cannot be sent is counted.
        if let Some(reply) = reply {
            self.list_send(reply);
        }
    }

    fn reply(&self, slot: MessageSlot, to: Box<str>, result: Option<BlobRef>, core: &Core) -> PendingSend {
        let from = self.queues.get(self.messages.get(slot).queue).number;
        let correlation_id = self.correlation_id_of(slot, core);
        let blob = result.unwrap_or(BlobRef::EMPTY);
        PendingSend::new(self.id_of_slot(slot, core), from, &correlation_id, blob, PendingKind::Reply(to))
    }

    /// Leased to done, for `ttl_ms` and then as the queue says.
    fn make_done(&mut self, slot: MessageSlot, ttl_ms: u64, core: &mut Core, out: &mut Outcome) {
        self.leave(slot);
        let message = self.messages.get_mut(slot);
        message.state = Some(State::Done);
        message.started_at_us = core.now_us;
        message.generation = 0;
        message.time_us = 0;
        if let Some(results) = self.extras.results_slot(message.extras) {
            for blob in self.extras.results.get_mut(results).end_work() {
                core.release_blob(blob, out);
            }
        }
        self.count_in(slot);
        self.give_up(slot, End::Done, core, out);
        if ttl_ms == 0 {
            return self.retain(slot, core, out);
        }
        self.messages.get_mut(slot).time_us = core.now_us + ttl_ms * 1_000;
        self.wheel.insert(&mut self.messages, slot, core.now_us);
    }

    /// The time is over that a finished message was kept for.
    pub(crate) fn end_keeping(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        self.wheel.remove(&mut self.messages, slot);
        let message = self.messages.get_mut(slot);
        message.time_us = 0;
        message.generation = 0;
        self.queues.get_mut(message.queue).done.remove(&(message.started_at_us, message.sequence));
        self.retain(slot, core, out);
    }

    /// A finished message, on no timer, from here on stays as its queue says.
    fn retain(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get_mut(slot);
        let queue = self.queues.get_mut(message.queue);
        let settings = &queue.settings;
        let until_us = match settings.retain_done_ms {
            0 => u64::MAX,
            retain_ms => message.started_at_us + retain_ms * 1_000,
        };
        let queue_slot = message.queue;
        if !settings.retains_done() || until_us <= core.now_us {
            self.remove(slot, End::Done, core, out);
            return self.trim_some(queue_slot, core, out);
        }
        message.generation = 1;
        queue.done.insert((message.started_at_us, message.sequence));
        if until_us < u64::MAX {
            message.time_us = until_us;
            self.wheel.insert(&mut self.messages, slot, core.now_us);
        }
        self.trim_some(queue_slot, core, out);
    }

    fn trim_some(&mut self, queue_slot: QueueSlot, core: &mut Core, out: &mut Outcome) {
        if !self.trim_done(queue_slot, &mut { TRIM_AT_ONCE }, core, out) {
            self.list_work(Work::Queue(queue_slot));
        }
    }

    /// The queue may have another rule than when its oldest finished message came to be kept: it ends by the
    /// rule of now.
    fn time_oldest_done(&mut self, slot: MessageSlot, retain_us: u64, core: &Core) {
        let message = self.messages.get(slot);
        let until_us = if retain_us == 0 { 0 } else { message.started_at_us + retain_us };
        if message.time_us == until_us {
            return;
        }
        if message.is_timed() {
            self.wheel.remove(&mut self.messages, slot);
        }
        self.messages.get_mut(slot).time_us = until_us;
        if until_us > 0 {
            self.wheel.insert(&mut self.messages, slot, core.now_us);
        }
    }

    /// Removes the oldest finished messages that the queue does not want to keep any more; false when the
    /// budget was used up before.
    pub(crate) fn trim_done(
        &mut self,
        queue_slot: QueueSlot,
        budget: &mut usize,
        core: &mut Core,
        out: &mut Outcome,
    ) -> bool {
        loop {
            let queue = self.queues.get(queue_slot);
            let Some(&(done_at_us, sequence)) = queue.done.first() else { return true };
            let settings = &queue.settings;
            let (count, retain_us) = (settings.retain_done_count as usize, settings.retain_done_ms * 1_000);
            let too_many = count > 0 && queue.done.len() > count;
            let too_old = retain_us > 0 && done_at_us + retain_us <= core.now_us;
            let stays = !too_many && !too_old && settings.retains_done();
            if *budget == 0 && !stays {
                return false;
            }
            let directory = &self.indexes.get(queue.namespace).directory;
            let Some(slot) = directory.get(sequence) else { return true };
            if stays {
                self.time_oldest_done(slot, retain_us, core);
                return true;
            }
            *budget -= 1;
            self.remove(slot, End::Done, core, out);
        }
    }

    /// The slot of what a message has of results, which it gets if it has none.
    pub(crate) fn results_slot(&mut self, slot: MessageSlot) -> ResultsSlot {
        let extras = self.extras_slot(slot);
        self.extras.enter_results(extras)
    }

    pub(crate) fn id_of_slot(&self, slot: MessageSlot, core: &Core) -> MessageId {
        let message = self.messages.get(slot);
        self.id_of(message, self.queues.get(message.queue), core)
    }

    /// A message is gone or dead: tells of it, if anybody watches.
    pub(crate) fn tell_end(&self, slot: MessageSlot, core: &Core, out: &mut Outcome) {
        let state = self.messages.get(slot).state;
        let state = state.filter(|state| matches!(state, State::Done | State::Dead));
        out.ended.push(Ended { id: self.id_of_slot(slot, core), state });
    }

    /// Refuses a reply queue that does not exist, where queues are not created by use.
    pub(crate) fn admit_reply_to(
        &self,
        namespace_slot: NamespaceSlot,
        options: &SendOptions<'_>,
        core: &Core,
    ) -> Result<(), Error> {
        let missing = !options.reply_to.is_empty()
            && !core.limits.auto_create
            && self.find_queue(namespace_slot, options.reply_to).is_none();
        if missing { Err(crate::queue::message::lookup::queue_not_found(options.reply_to)) } else { Ok(()) }
    }
}
