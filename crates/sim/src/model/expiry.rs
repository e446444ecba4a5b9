//! Messages that end when they wait too long: after the time that their sender says, or that their queue
//! gives them from their coming on. When exactly one ends whose time is over is the engine's choice; that
//! none is delivered after it, and that a tick leaves none behind, are rules.

use sluice_engine::Engine;
use sluice_engine::id::MessageId;
use sluice_engine::item::Expires;
use sluice_engine::query::{MessageView, State};
use sluice_engine::settings::OnExpire;

use super::time::TICK_US;
use super::{Apply, Checked, ensure};
use super::{Message, MessagePlace, ModelState};

/// When a message ends that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// What its sender says.
    pub(super) expires: Expires,
    /// When its sender wants it to end; 0: never.
    own_us: u64,
    /// When it is too old for its queue; 0: never.
    age_us: u64,
}

impl Default for End {
    fn default() -> Self {
        End::of(Expires::Never)
    }
}

impl End {
    /// As the sender says; it begins to count when the message comes to its queue.
    pub(super) fn of(expires: Expires) -> End {
        End { expires, own_us: 0, age_us: 0 }
    }

    /// The end of a message that is sent now.
    pub(super) fn begun(self, now_us: u64) -> End {
        let own_us = match self.expires {
            Expires::Never => 0,
            Expires::AfterMs(ms) => now_us + ms * 1_000,
            Expires::AtUs(us) => us,
        };
        End { own_us, ..self }
    }

    /// Whether it has come by this time.
    pub(super) fn is_over(&self, at_us: u64) -> bool {
        self.first().is_some_and(|(end_us, _)| end_us <= at_us)
    }

    /// When and why.
    fn first(&self) -> Option<(u64, &'static str)> {
        let ends = [(self.own_us, "expired"), (self.age_us, "max_age")];
        ends.into_iter().filter(|(us, _)| *us > 0).min_by_key(|(us, _)| *us)
    }
}

impl Message {
    /// Whether it is delayed, ready, blocked or held.
    pub(super) fn waits(&self) -> bool {
        matches!(
            self.place,
            MessagePlace::Delayed { .. } | MessagePlace::Ready { .. } | MessagePlace::Held { .. }
        )
    }

    /// Whether the engine shows it as a dead letter for this reason, in its queue or in that for dead
    /// letters.
    pub(super) fn has_died(&self, view: &MessageView, reason: Option<&str>) -> bool {
        view.reason == reason && (view.state == State::Dead || view.queue != self.queue)
    }

    /// When it may be delivered at the earliest, if it waits; 0: at once.
    pub(super) fn due_us(&self) -> u64 {
        match self.place {
            MessagePlace::Delayed { until_us } => until_us,
            MessagePlace::Held { .. } => self.changes.due_us,
            _ => 0,
        }
    }

    /// Whether it must not be delivered any more at this time.
    pub(super) fn is_over(&self, at_us: u64) -> bool {
        self.end.is_over(at_us)
    }

    /// Whether the engine shows when it ends.
    pub(super) fn compare_end(&self, view: &MessageView) -> Checked {
        let matters = self.waits() || matches!(self.place, MessagePlace::Leased { .. });
        let end_us = self.end.first().map(|(end_us, _)| end_us).filter(|_| matters);
        ensure!(view.expires_at_us == end_us, "{} ends at {:?}, not {end_us:?}", view.id, view.expires_at_us);
        Ok(())
    }
}

impl ModelState {
    /// When the first of all messages that wait ends.
    pub(super) fn first_end_us(&self) -> Option<u64> {
        let waiting = self.messages.values().filter(|message| message.waits());
        waiting.filter_map(|message| message.end.first()).map(|(end_us, _)| end_us).min()
    }

    /// Whether the engine has let a message end.
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
    /// A message has come to its queue.
    pub(super) fn begin_end(&mut self, id: MessageId) {
        let now_us = self.now_us;
        let message = self.world.messages.get_mut(&id);
        message.into_iter().for_each(|message| message.end = message.end.begun(now_us));
        self.begin_age(id);
    }

    /// A message has come to its queue, or comes back from the dead letters: unless it stays dead, or is held
    /// for somebody to look at, its age counts from now.
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

    /// A message is held for somebody to look at, however long.
    pub(super) fn forget_end(&mut self, id: MessageId) {
        self.world.messages.get_mut(&id).into_iter().for_each(|message| message.end = End::default());
    }

    /// Lets a message end that would be over at this time, if the engine did: true then.
    pub(super) fn ends_instead(&mut self, id: MessageId, at_us: u64) -> bool {
        let over =
            self.world.messages.get(&id).is_some_and(|message| message.waits() && message.is_over(at_us));
        let ends = over && self.world.has_ended(id, self.engine);
        if ends {
            self.end_waiting(id);
        }
        ends
    }

    /// Ends messages that are over by the time that they may be delivered from, whatever else the record has
    /// done to them since; in the same record, unless the engine says that it goes on at once.
    pub(super) fn follow_overdue(&mut self) -> Checked {
        for id in std::mem::take(&mut self.ends) {
            let Some(message) = self.world.messages.get(&id) else { continue };
            let due_us = message.due_us();
            // One that is blocked may be left to a timer, which does not count parts of a millisecond.
            let over = message.waits() && message.is_over(due_us.max(self.now_us / TICK_US * TICK_US));
            let ended = self.ends_instead(id, due_us.max(self.now_us));
            ensure!(!over || ended || self.goes_on(), "message {id} did not end, and is over: {due_us}");
        }
        Ok(())
    }

    /// Ends as the queue says.
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

    /// Whether the engine may know nothing of a message any more whose timer has come: it was over then.
    pub(super) fn may_be_dropped(&self, id: MessageId) -> bool {
        let message = &self.world.messages[&id];
        message.is_over(self.now_us) && self.world.queues[&message.queue].settings.on_expire == OnExpire::Drop
    }

    /// Lets those messages end that the engine let end. After a tick all must have whose time is over, unless
    /// the engine says that it goes on at once.
    pub(super) fn follow_ends(&mut self, ticked: bool) -> Checked {
        let goes_on = self.engine.next_deadline().is_some_and(|next| next <= self.now_us);
        let over = |message: &Message| message.waits() && message.is_over(self.now_us);
        let all = self.world.messages.iter().filter(|(_, message)| over(message));
        let all: Vec<MessageId> = all.map(|(id, _)| *id).collect();
        // In which order they died is the engine's choice.
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

    /// A message is being delivered: its time must not be over.
    pub(super) fn keeps_end(&self, id: MessageId) -> Checked {
        let message = &self.world.messages[&id];
        ensure!(!message.is_over(self.now_us), "message {id} was delivered after its end: {message:?}");
        Ok(())
    }
}
