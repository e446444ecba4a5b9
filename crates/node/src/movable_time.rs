//! Time that tests move, on a server that keeps everything in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_engine::Error;
use tokio::sync::oneshot;

use crate::api::{Options, StartError};
use crate::handle::Node;
use crate::shard::request::{Advance, Request};

/// Largest lead of a moved time over the wall clock, in milliseconds: 50 years. Timers of the engine
/// end in 2109 (2^42 ms since 1970); what is set for later would be due at once.
pub const AHEAD_MS_MAX: u64 = 18_262 * 86_400_000;

/// The time of a server for tests. It goes on by itself as elsewhere, and is ahead of the wall clock by what
/// tests have moved it.
#[derive(Clone, Copy, Debug)]
pub struct MovableTime<'n> {
    node: &'n Node,
    ahead_us: &'n Mutex<u64>,
}

/// Refuses to let anybody move the time of stored data.
pub(crate) fn check(options: &Options) -> Result<(), StartError> {
    match &options.data_dir {
        Some(data_dir) if options.movable_time => Err(StartError::Refused(format!(
            "the time of a server with a data directory cannot be moved, since what {} holds would be ahead of every \
             clock: keep data in memory",
            data_dir.display()
        ))),
        _ => Ok(()),
    }
}

/// Lead of the time of a server that starts, if callers may move it.
pub(crate) fn of(options: &Options) -> Option<Mutex<u64>> {
    options.movable_time.then(Mutex::default)
}

impl Node {
    /// The time, if callers may move it.
    pub fn movable_time(&self) -> Option<MovableTime<'_>> {
        let ahead_us = self.inner.movable_time.as_ref()?;
        Some(MovableTime { node: self, ahead_us })
    }
}

impl MovableTime<'_> {
    /// The time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.node.clock().now_ms()
    }

    /// Time by which it was moved altogether, in milliseconds.
    pub fn ahead_ms(&self) -> u64 {
        *self.ahead() / 1_000
    }

    /// Moves the time of all shards forward. Returns when everything that was due by then is done: delays,
    /// leases and times to live are over, and schedules have fired for each instant in between. Callers wait
    /// as long as before: their time does not move.
    ///
    /// # Errors
    /// `invalid_argument`: it would be more than [`AHEAD_MS_MAX`] ahead; `overloaded`, `shutting_down`: some
    /// shards may have moved.
    pub async fn advance(&self, by_ms: u64) -> Result<(), Error> {
        let by_us = self.take_lead(by_ms)?;
        self.node.clock().skip(by_us);
        let mut waits = Vec::new();
        for shard in 0..self.node.inner.mailboxes.len() as u32 {
            let (reply, wait) = oneshot::channel();
            self.node.push(shard, Request::Advance(Advance { by_us, reply }))?;
            waits.push(wait);
        }
        for wait in waits {
            wait.await.map_err(|_| Error::ShuttingDown {})??;
        }
        Ok(())
    }

    /// Adds to the lead. Returns what was added, in microseconds.
    fn take_lead(&self, by_ms: u64) -> Result<u64, Error> {
        let mut ahead_us = self.ahead();
        let left_ms = AHEAD_MS_MAX - *ahead_us / 1_000;
        if by_ms > left_ms {
            let reason = format!(
                "the time may be moved by {AHEAD_MS_MAX} ms altogether, of which {left_ms} are left; got {by_ms}"
            );
            return Err(Error::InvalidArgument { field: "advance_ms".to_owned(), reason });
        }
        let by_us = by_ms * 1_000;
        *ahead_us += by_us;
        Ok(by_us)
    }

    fn ahead(&self) -> MutexGuard<'_, u64> {
        self.ahead_us.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
