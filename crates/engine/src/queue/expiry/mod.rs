//! Messages end that wait too long: to the dead letters, or away, as their queue says. How long is what their
//! sender says, or what their queue had as `max_age_ms` when they came to it, whichever ends first.
//!
//! A message never ends while it is leased. Its timer may fire meanwhile; then it ends as soon as it comes
//! back, and so it does when it would come back too late. Whether a message is over is a question of the
//! time, not of whether its timer has fired: none is delivered after its end. Who redrives a dead letter
//! wants it delivered: from then on it has no end.

pub(crate) mod recount;

use crate::command::Deliver;
use crate::core::Core;
use crate::error::Error;
use crate::event::EventKind;
use crate::id::QueueId;
use crate::item::Expires;
use crate::limits::DELAY_MS_MAX;
use crate::outcome::Outcome;
use crate::query::State;
use crate::queue::QueueModule;
use crate::queue::state::message::Reason;
use crate::queue::state::{ExpirySlot, MessageSlot, QueueSlot};
use crate::settings::OnExpire;
use crate::store::slot::Slot;

impl QueueModule {
    /// When a message ends that is sent now; 0: never.
    pub(crate) fn end_us(&self, expires: Expires, core: &Core) -> u64 {
        match expires {
            Expires::Never => 0,
            Expires::AfterMs(ttl_ms) => core.now_us.saturating_add(ttl_ms.saturating_mul(1_000)),
            Expires::AtUs(at_us) => at_us,
        }
    }

    /// True if a message that is sent now with this end is over on arrival.
    pub(crate) fn has_ended(&self, expires: Expires, core: &Core) -> bool {
        let end_us = self.end_us(expires, core);
        end_us > 0 && end_us <= core.now_us
    }

    /// Refuses an end that is too far, or that comes before the message may be delivered. One that is past
    /// already is none of these: then the message ends at once.
    pub(crate) fn admit_expiry(&self, deliver: Deliver, expires: Expires, core: &Core) -> Result<(), Error> {
        let end_us = self.end_us(expires, core);
        let field = if matches!(expires, Expires::AfterMs(_)) { "ttl_ms" } else { "expires_at_ms" };
        let refuse = |reason| Err(Error::InvalidArgument { field: field.into(), reason });
        if end_us.saturating_sub(core.now_us) / 1_000 > DELAY_MS_MAX {
            let far_ms = (end_us - core.now_us) / 1_000;
            return refuse(format!(
                "{far_ms} ms from now is too far: use at most {DELAY_MS_MAX} (ten years)"
            ));
        }
        if self.comes_too_late(deliver, end_us, core) {
            return refuse(format!("the message would end before {} lets it be delivered", deliver.field()));
        }
        Ok(())
    }

    /// True if `deliver` puts a message off until its end or beyond. `end_us`: microseconds since the Unix
    /// epoch; 0: no end.
    pub(crate) fn comes_too_late(&self, deliver: Deliver, end_us: u64, core: &Core) -> bool {
        let due_us = self.due_us(deliver, core);
        end_us > 0 && due_us > core.now_us && end_us <= due_us
    }

    /// Refuses a new time of delivery for a waiting message that is at its end or beyond.
    pub(crate) fn admit_new_time(
        &self,
        slot: MessageSlot,
        deliver: Deliver,
        core: &Core,
    ) -> Result<(), Error> {
        let end_us = self.expires_us(slot);
        if !self.comes_too_late(deliver, end_us, core) {
            return Ok(());
        }
        let reason = format!(
            "the message would end before {} lets it be delivered: it ends at {} (ms since the Unix epoch)",
            deliver.field(),
            end_us / 1_000
        );
        Err(Error::InvalidArgument { field: deliver.field().into(), reason })
    }

    /// The end of a message that has one.
    #[inline]
    fn expiry(&self, slot: MessageSlot) -> ExpirySlot {
        self.extras.options(self.messages.get(slot).extras).map_or(Slot::NIL, |options| options.expiry)
    }

    /// True if a message that may be delivered from `time_us` on is over by then.
    #[inline]
    pub(crate) fn is_over(&self, slot: MessageSlot, time_us: u64, core: &Core) -> bool {
        self.is_past(self.expiry(slot), time_us, core)
    }

    /// The same for a message with this end, if any.
    #[inline]
    pub(crate) fn is_past(&self, expiry: ExpirySlot, time_us: u64, core: &Core) -> bool {
        if expiry == Slot::NIL {
            return false;
        }
        let end_us = self.expiry.slots.get(expiry).end_us;
        end_us > 0 && end_us <= core.now_us.max(time_us)
    }

    /// When a message ends if it still waits then; 0: never.
    pub(crate) fn expires_us(&self, slot: MessageSlot) -> u64 {
        let expiry = self.expiry(slot);
        if expiry == Slot::NIL { 0 } else { self.expiry.slots.get(expiry).end_us }
    }

    /// Ends a waiting message as its queue says: as a dead letter, or dropped.
    pub(crate) fn end_waiting(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        let expiry = self.expiry.slots.get(self.expiry(slot));
        let reason = if expiry.end_us == expiry.own_us { Reason::Expired } else { Reason::MaxAge };
        match self.queues.get(message.queue).settings.on_expire {
            OnExpire::DeadLetter => self.make_dead(slot, reason, core, out),
            OnExpire::Drop => {
                self.count_each(slot, |counters| counters.dropped += 1);
                self.tell_why(slot, EventKind::Dropped, reason, core, out);
                self.remove_failed(slot, reason, core, out);
            }
        }
    }

    /// Messages whose end has come end, a slice at a time.
    pub(crate) fn fire_expiries(&mut self, budget: &mut usize, core: &mut Core, out: &mut Outcome) {
        while self.expiry.wheel.len() > 0
            && let Some(expiry) = self.expiry.wheel.due(&mut self.expiry.slots, core.now_us, budget)
        {
            self.expiry.disarm(expiry);
            self.fire_expiry(self.expiry.slots.get(expiry).message, core, out);
            self.settle_within(budget, core, out);
        }
    }

    fn fire_expiry(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        if self.is_stale(slot) {
            return self.sweep_message(slot, core, out);
        }
        if self.messages.get(slot).waits() {
            self.end_waiting_in_line(slot, core, out);
        }
    }

    /// Like [`QueueModule::end_waiting`], for a message that may be ready: tells of those behind it.
    pub(crate) fn end_waiting_in_line(&mut self, slot: MessageSlot, core: &mut Core, out: &mut Outcome) {
        let message = self.messages.get(slot);
        let (queue, ready) = (message.queue, message.state == Some(State::Ready));
        self.end_waiting(slot, core, out);
        if ready {
            self.announce_ready(queue, out);
        }
    }

    /// Tells of a queue that has messages ready still: a receive may have stopped before a long row of
    /// messages that were over.
    pub(crate) fn announce_ready(&mut self, queue_slot: QueueSlot, out: &mut Outcome) {
        let queue = self.queues.get(queue_slot);
        let number = QueueId(queue.number);
        if queue.ready.occupied != 0 && out.ready.last() != Some(&number) {
            out.ready.push(number);
        }
    }

    /// A message that waits, or is about to, has come to its queue: from now on its age counts there.
    pub(crate) fn begin_age(&mut self, slot: MessageSlot, core: &Core) {
        let max_age_ms = self.queues.get(self.messages.get(slot).queue).settings.max_age_ms;
        let mut expiry = self.expiry(slot);
        if expiry == Slot::NIL {
            if max_age_ms == 0 {
                return;
            }
            let extras = self.extras_slot(slot);
            let options = self.extras.enter_options(extras);
            expiry = self.expiry.add(slot, 0, core.now_us);
            self.extras.options.get_mut(options).expiry = expiry;
        }
        let own_us = self.expiry.slots.get(expiry).own_us;
        let end_us = match max_age_ms {
            0 => own_us,
            _ if own_us == 0 => core.now_us + max_age_ms * 1_000,
            _ => own_us.min(core.now_us + max_age_ms * 1_000),
        };
        self.expiry.set(expiry, end_us, core.now_us);
    }

    /// A message is dead, done or gone: its end no longer matters.
    pub(crate) fn disarm(&mut self, slot: MessageSlot) {
        let expiry = self.expiry(slot);
        if expiry != Slot::NIL {
            self.expiry.disarm(expiry);
        }
    }

    /// A dead letter that comes back has no end any more.
    pub(crate) fn forget_end(&mut self, slot: MessageSlot) {
        let expiry = self.expiry(slot);
        if expiry != Slot::NIL {
            let expiry = self.expiry.slots.get_mut(expiry);
            (expiry.end_us, expiry.own_us) = (0, 0);
        }
    }
}
