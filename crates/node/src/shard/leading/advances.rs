//! Moves of the log's time, as tests ask for them: the time jumps, and whoever asked hears of it when all
//! that was due by then is done. Nothing here concerns waits of callers, whose time is the monotonic one.

use sluice_engine::Error;
use sluice_engine::limits::TIMER_LATE_US_MAX;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::shard::Shard;
use crate::shard::request::Advance;
use crate::shard::store::Store;

/// Moves of the time.
#[derive(Debug, Default)]
pub(super) struct Advances {
    /// Callers whose move is not answered yet.
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Time of the log right after the last move, in microseconds since the Unix epoch; 0: there was none.
    moved_to_us: u64,
}

impl Advances {
    /// True for an instant that a move may have passed. It did not pass while the server was away: no
    /// schedule has missed it.
    pub(super) fn has_passed(&self, instant_us: u64) -> bool {
        instant_us <= self.moved_to_us
    }

    /// Answers that the shard ends.
    pub(super) fn end(&mut self) {
        for reply in self.waiting.drain(..) {
            let _ = reply.send(Err(Error::ShuttingDown {}));
        }
    }
}

impl<S: Store, C: Clock> Shard<S, C> {
    pub(in crate::shard) fn take_advance(&mut self, advance: Advance) {
        self.log_clock.skip(advance.by_us);
        self.look_at_the_clock();
        self.leading.advances.moved_to_us = self.now_us;
        self.leading.advances.waiting.push(advance.reply);
    }

    /// Answers moves of the time, once nothing is due any more.
    pub(super) fn answer_advances(&mut self) {
        if self.leading.advances.waiting.is_empty() || self.has_due() {
            return;
        }
        for reply in self.leading.advances.waiting.drain(..) {
            let _ = reply.send(Ok(()));
        }
    }

    /// True if something is due by the time of this step and not done, or is being done. Timers fire a moment
    /// late, so that those which are about to fire may be due too.
    fn has_due(&self) -> bool {
        let next = [self.engine.next_deadline(), self.engine.next_schedule()];
        let is_due = next.into_iter().flatten().any(|at_us| at_us < self.now_us + TIMER_LATE_US_MAX);
        is_due || self.leading.proposals.tick_in_flight || self.leading.schedules.is_firing()
    }
}
