//! Timers, backoff, and the place of a message after its attempt.

use sluice_engine::id::MessageId;
use sluice_engine::query::{AttemptEnd, MessageView, State};
use sluice_engine::settings::{Backoff, BackoffKind};

use super::{Apply, Checked, ensure};
use super::{Ended, Message, MessagePlace};

/// Resolution of timers in microseconds: a timer fires up to so much later, never earlier.
pub(super) const TICK_US: u64 = 1_000;

impl Apply<'_> {
    /// Fires the due timers that the engine has fired. After a tick all due ones must have fired, unless the
    /// engine reports that it goes on at once with another slice.
    pub(super) fn follow_timers(&mut self, ticked: bool) -> Checked {
        let goes_on = self.engine.next_deadline().is_some_and(|next| next <= self.now_us);
        let now_tick = self.now_us / TICK_US;
        for (tick, id) in self.due() {
            let must = ticked && !goes_on && tick <= now_tick;
            let place = self.world.messages[&id].place;
            let fired = match (self.view(id), place) {
                (Err(_), _) if self.is_cancelled(id) || self.may_be_dropped(id) => true,
                (Err(_), _) if self.may_be_cancelled(id) => continue,
                (Err(_), _) => return Err(format!("message {id} is lost: it was {place:?}")),
                (Ok(view), MessagePlace::Leased { token, .. }) => {
                    view.receipt.is_none_or(|receipt| receipt.token != token)
                }
                (Ok(view), _) => view.state != place.state(),
            };
            ensure!(fired || !must, "the timer of message {id} did not fire: {place:?} at {}", self.now_us);
            if fired {
                self.firing = Some(tick);
                self.fire(id);
                self.firing = None;
            }
        }
        Ok(())
    }

    /// Messages whose timer is due, to the millisecond, in the order of their deadlines. A message that also
    /// waits for its key has no timer, and goes on from the very microsecond at which its delay is over.
    fn due(&self) -> Vec<(u64, MessageId)> {
        let now_tick = self.now_us / TICK_US;
        let is_due = |message: &Message| match message.place {
            MessagePlace::Delayed { until_us } if until_us <= self.now_us => Some(until_us.div_ceil(TICK_US)),
            MessagePlace::Leased { until_us, .. } => {
                Some(until_us.div_ceil(TICK_US)).filter(|tick| *tick <= now_tick)
            }
            _ => None,
        };
        let messages = self.world.messages.iter();
        let mut due: Vec<_> = messages.filter_map(|(id, message)| Some((is_due(message)?, *id))).collect();
        due.sort_unstable();
        due
    }

    /// Fires the timer of a message.
    fn fire(&mut self, id: MessageId) {
        if let MessagePlace::Leased { .. } = self.world.messages[&id].place {
            if self.is_cancelled(id) {
                return self.remove_cancelled(id);
            }
            if self.world.is_given_back(id) {
                return self.release(id, 0, 0);
            }
            self.total(id, |totals| totals.expired += 1);
            self.end_attempt(id, AttemptEnd::Expired, 0);
            if self.is_spent(id) {
                return self.die(id, "max_attempts");
            }
        }
        self.make_ready(id);
    }

    fn is_spent(&self, id: MessageId) -> bool {
        let message = &self.world.messages[&id];
        message.attempts >= message.max_attempts(&self.world.queues[&message.queue].settings)
    }

    /// Notes the end of the running attempt.
    pub(super) fn end_attempt(&mut self, id: MessageId, end: AttemptEnd, error_len: u32) {
        if let Some(message) = self.world.messages.get_mut(&id)
            && let MessagePlace::Leased { since_us, .. } = message.place
        {
            let number = message.attempts;
            message.history.push(Ended { number, end, started_us: since_us, error_len });
        }
    }

    /// Handles a failed attempt: the message becomes a dead letter, or waits for the delay given or the
    /// backoff.
    pub(super) fn retry(&mut self, id: MessageId, delay_ms: Option<u64>) {
        if self.is_spent(id) {
            return self.die(id, "max_attempts");
        }
        let message = &self.world.messages[&id];
        let settings = self.world.queues[&message.queue].settings.clone();
        let backoff = message.backoff.unwrap_or(settings.backoff);
        let (least_us, most_us) = match delay_ms {
            Some(ms) => (ms * 1_000, ms * 1_000),
            None => backoff_us(&backoff, message.attempts),
        };
        self.wait(id, least_us, most_us);
    }

    /// Makes a message ready after a delay within these bounds.
    pub(super) fn wait(&mut self, id: MessageId, least_us: u64, most_us: u64) {
        self.put_ready(id);
        if self.world.messages.get(&id).is_some_and(|message| message.is_over(self.now_us)) {
            self.ends.push(id);
        } else if most_us > 0 {
            self.unsure.push((id, least_us, most_us));
        }
    }

    /// Takes over the deadlines that the engine has chosen, if they are within bounds.
    pub(super) fn resolve_unsure(&mut self) -> Checked {
        for (id, least_us, most_us) in std::mem::take(&mut self.unsure) {
            // The message may have ended or been dropped meanwhile.
            let waits = self.world.messages.get(&id).is_some_and(|message| message.waits());
            if !waits || self.ends_instead(id, self.now_us + most_us) || self.has_made_room(id) {
                continue;
            }
            let view = self.view(id)?;
            match (view.state, view.deadline_us) {
                (State::Delayed, Some(until_us)) => {
                    let bounds = self.now_us + least_us..=self.now_us + most_us;
                    ensure!(
                        bounds.contains(&until_us),
                        "message {id} is delayed until {until_us}, which is not in {bounds:?}"
                    );
                    self.admit(id, until_us);
                }
                (State::Ready | State::Blocked, None) if least_us == 0 => {}
                (State::Leased, _) if least_us == 0 && self.was_pushed(id) => {}
                (State::Blocked, Some(until_us)) => self.admit(id, until_us),
                (state, deadline) => {
                    return Err(format!(
                        "message {id} is {state:?} ({deadline:?}), and should wait {least_us} to {most_us} us"
                    ));
                }
            }
        }
        Ok(())
    }

    pub(super) fn view(&self, id: MessageId) -> Result<MessageView, String> {
        self.engine.message(id).map_err(|error| format!("the engine does not know message {id}: {error}"))
    }
}

/// Bounds of the delay after so many attempts, in microseconds; with jitter, one millisecond of rounding.
fn backoff_us(backoff: &Backoff, attempts: u16) -> (u64, u64) {
    let n = u64::from(attempts.max(1));
    let plain_ms = match backoff.kind {
        BackoffKind::None => return (0, 0),
        BackoffKind::Fixed => backoff.base_ms,
        BackoffKind::Linear => backoff.base_ms.saturating_mul(n),
        BackoffKind::Exponential => backoff.base_ms.saturating_mul(1u64 << (n - 1).min(40)),
    };
    let cap_us = backoff.cap_ms * 1_000;
    let plain_us = plain_ms.min(backoff.cap_ms) * 1_000;
    if backoff.jitter_percent == 0 {
        return (plain_us, plain_us);
    }
    let spread_us = plain_us * u64::from(backoff.jitter_percent) / 100;
    ((plain_us - spread_us).saturating_sub(1_000), (plain_us + spread_us + 1_000).min(cap_us))
}
