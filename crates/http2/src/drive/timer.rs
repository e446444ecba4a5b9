//! The time of a connection, and one timer for all its deadlines.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

#[derive(Debug)]
pub(super) struct Timer {
    begun: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
    /// End of `sleep`, in microseconds.
    armed_us: u64,
}

impl Timer {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), sleep: None, armed_us: u64::MAX }
    }

    /// Microseconds since the connection began.
    pub(super) fn now_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    /// Ready once a deadline has come, or one that was asked for before: deadlines mostly move to later, and
    /// it would cost more to move the timer each time than to look once too often.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, deadline_us: Option<u64>) -> Poll<()> {
        let Some(deadline_us) = deadline_us else { return Poll::Pending };
        let at = self.begun + Duration::from_micros(deadline_us);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if deadline_us < self.armed_us {
            sleep.as_mut().reset(at);
            self.armed_us = deadline_us;
        }
        let polled = sleep.as_mut().poll(context);
        if polled.is_ready() {
            self.armed_us = u64::MAX;
        }
        polled
    }
}
