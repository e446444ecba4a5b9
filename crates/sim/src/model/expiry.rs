//! Messages that end after waiting too long: at the end set by the sender, or at the maximum age set by the
//! queue. The engine chooses when exactly it ends a message whose time is over; the rules are that none is
//! delivered after its end, and that a tick leaves none behind.

use sluice_engine::Engine;
use sluice_engine::id::MessageId;
use sluice_engine::item::Expires;
use sluice_engine::query::{MessageView, State};
use sluice_engine::settings::OnExpire;

use super::time::TICK_US;
use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState};

/// Ends of a waiting message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// The end requested by the sender.
    pub(super) expires: Expires,
    /// End set by the sender, in microseconds since the Unix epoch; 0: never.
    own_us: u64,
    /// End by the queue's maximum age, in microseconds since the Unix epoch; 0: never.
    age_us: u64,
}

impl Default for End {
    fn default() -> Self {
        End::of(Expires::Never)
    }
}

impl End {
    /// The sender's request; its time begins to count when the message comes to its queue.
    pub(super) fn of(expires: Expires) -> End {
        End { expires, own_us: 0, age_us: 0 }
    }

    /// The ends of a message that is sent now.
    pub(super) fn begun(self, now_us: u64) -> End {
        let own_us = match self.expires {
            Expires::Never => 0,
            Expires::AfterMs(ms) => now_us + ms * 1_000,
            Expires::AtUs(us) => us,
        };
        End { own_us, ..self }
    }

    /// True when an end has come by this time.
    pub(super) fn is_over(&self, at_us: u64) -> bool {
        self.first().is_some_and(|(end_us, _)| end_us <= at_us)
    }

    /// The earlier end and its reason.
    fn first(&self) -> Option<(u64, &'static str)> {
        let ends = [(self.own_us, "expired"), (self.age_us, "max_age")];
        ends.into_iter().filter(|(us, _)| *us > 0).min_by_key(|(us, _)| *us)
    }
}

impl Message {
    /// True when the message is delayed, ready, blocked or held.
    pub(super) fn waits(&self) -> bool {
        matches!(
            self.place,
            MessagePlace::Delayed { .. } | MessagePlace::Ready { .. } | MessagePlace::Held { .. }
        )
    }

    /// True when the engine shows it as a dead letter for this reason, in its own queue or in the dead-letter
    /// queue.
    pub(super) fn has_died(&self, view: &MessageView, reason: Option<&str>) -> bool {
        view.reason == reason && (view.state == State::Dead || view.queue != self.queue)
    }

    /// Earliest time at which a waiting message may be delivered; 0: at once.
    pub(super) fn due_us(&self) -> u64 {
        match self.place {
            MessagePlace::Delayed { until_us } => until_us,
            MessagePlace::Held { .. } => self.changes.due_us,
            _ => 0,
        }
    }

    /// True when the message must not be delivered any more at this time.
    pub(super) fn is_over(&self, at_us: u64) -> bool {
        self.end.is_over(at_us)
    }

    /// Checks that the engine shows the message's end.
    pub(super) fn compare_end(&self, view: &MessageView) -> Checked {
        let matters = self.waits() || matches!(self.place, MessagePlace::Leased { .. });
        let end_us = self.end.first().map(|(end_us, _)| end_us).filter(|_| matters);
        ensure!(view.expires_at_us == end_us, "{} ends at {:?}, not {end_us:?}", view.id, view.expires_at_us);
        Ok(())
    }
}

impl ModelState {
    /// The earliest end of all waiting messages.
    pub(super) fn first_end_us(&self) -> Option<u64> {
        let waiting = self.messages.values().filter(|message| message.waits());
        waiting.filter_map(|message| message.end.first()).map(|(end_us, _)| end_us).min()
    }

    /// True when the engine has ended a message.
    fn has_ended(&self, id: MessageId, engine: &Engine) -> bool {
        let message = &self.messages[&id];
        let reason = message.end.first().map(|(_, reason)| reason);
        match engine.message(id) {
            Ok(view) => message.has_died(&view, reason),
            Err(_) => self.queues[&message.queue].settings.on_expire == OnExpire::Drop,
        }
    }
}

impl Apply<'_> {
    /// Starts the time of a message that has come to its queue.
    pub(super) fn begin_end(&mut self, id: MessageId) {
        let now_us = self.now_us;
        let message = self.world.messages.get_mut(&id);
        message.into_iter().for_each(|message| message.end = message.end.begun(now_us));
        self.begin_age(id);
    }

    /// Starts the age of a message that has come to its queue or back from the dead letters, unless it stays
    /// dead or is held for inspection.
    pub(super) fn begin_age(&mut self, id: MessageId) {
        let Some(message) = self.world.messages.get_mut(&id) else { return };
        let max_age_ms = self.world.queues.get(&message.queue).map_or(0, |queue| queue.settings.max_age_ms);
        let held = matches!(message.place, MessagePlace::Held { reason: "payload_damaged" });
        let age_us = if max_age_ms == 0 || held { 0 } else { self.now_us + max_age_ms * 1_000 };
        message.end.age_us = age_us;
        if message.end.first().is_some()
            && let Some(queue) = self.world.queues.get_mut(&message.queue)
        {
            queue.ends = true;
        }
    }

    /// Drops the ends of a message that is held for inspection.
    pub(super) fn forget_end(&mut self, id: MessageId) {
        self.world.messages.get_mut(&id).into_iter().for_each(|message| message.end = End::default());
    }

    /// Ends a message whose end comes by this time, if the engine did. Returns true if it ended.
    pub(super) fn ends_instead(&mut self, id: MessageId, at_us: u64) -> bool {
        let over =
            self.world.messages.get(&id).is_some_and(|message| message.waits() && message.is_over(at_us));
        let ends = over && self.world.has_ended(id, self.engine);
        if ends {
            self.end_waiting(id);
        }
        ends
    }

    /// Ends messages whose end comes before they may be delivered, whatever else the record did to them; in
    /// the same record, unless the engine reports that it goes on at once.
    pub(super) fn follow_overdue(&mut self) -> Checked {
        for id in std::mem::take(&mut self.ends) {
            let Some(message) = self.world.messages.get(&id) else { continue };
            let due_us = message.due_us();
            // The end of a blocked message may be left to a timer, which counts whole milliseconds.
            let over = message.waits() && message.is_over(due_us.max(self.now_us / TICK_US * TICK_US));
            let ended = self.ends_instead(id, due_us.max(self.now_us));
            ensure!(!over || ended || self.goes_on(), "message {id} did not end, and is over: {due_us}");
        }
        Ok(())
    }

    /// Ends a message as its queue's settings say.
    pub(super) fn end_waiting(&mut self, id: MessageId) {
        let message = &self.world.messages[&id];
        let Some((_, reason)) = message.end.first() else { return };
        match self.world.queues[&message.queue].settings.on_expire {
            OnExpire::DeadLetter => self.die(id, reason),
            OnExpire::Drop => {
                self.total(id, |totals| totals.dropped += 1);
                self.remove(id);
            }
        }
    }

    /// True when the engine may have dropped a message whose timer has fired: its end had come by then.
    pub(super) fn may_be_dropped(&self, id: MessageId) -> bool {
        let message = &self.world.messages[&id];
        message.is_over(self.now_us) && self.world.queues[&message.queue].settings.on_expire == OnExpire::Drop
    }

    /// Takes over the messages that the engine has ended. After a tick all messages whose time is over must
    /// have ended, unless the engine reports that it goes on at once.
    pub(super) fn follow_ends(&mut self, ticked: bool) -> Checked {
        let goes_on = self.engine.next_deadline().is_some_and(|next| next <= self.now_us);
        let over = |message: &Message| message.waits() && message.is_over(self.now_us);
        let all = self.world.messages.iter().filter(|(_, message)| over(message));
        let all: Vec<MessageId> = all.map(|(id, _)| *id).collect();
        // The order in which they died is the engine's choice.
        let died = self.late_line();
        for id in all {
            if self.ends_instead(id, self.now_us) {
                self.world.messages.get_mut(&id).into_iter().for_each(|message| message.died = died);
                continue;
            }
            let message = &self.world.messages[&id];
            let late = message.is_over(self.now_us / TICK_US * TICK_US);
            ensure!(!ticked || goes_on || !late, "message {id} did not end: {message:?} at {}", self.now_us);
        }
        Ok(())
    }

    /// Checks that a message that is being delivered has not reached its end.
    pub(super) fn keeps_end(&self, id: MessageId) -> Checked {
        let message = &self.world.messages[&id];
        ensure!(!message.is_over(self.now_us), "message {id} was delivered after its end: {message:?}");
        Ok(())
    }
}
