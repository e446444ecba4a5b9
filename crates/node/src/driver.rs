//! Thin threads around the steps: one for the shard, one that writes for it, one for the journal's background work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_journal::{Maintenance, Writer};
use tokio::sync::watch;

use crate::api::{Durability, StartError};
use crate::clock::Clock;
use crate::shard::store::Store;
use crate::shard::{Shard, Step};

/// Up to so many records in flight, the shard's thread writes and syncs itself: for a lone caller two thread
/// hand-overs cost more than the next batch could gain.
const INLINE_RECORDS: usize = 4;
/// Longest pause of the background thread between two looks for work.
const MAINTENANCE_PAUSE: Duration = Duration::from_millis(100);

/// The threads of a node.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    pub(crate) fn spawn(&self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let spawned = std::thread::Builder::new().name(name.clone()).spawn(run);
        let handle = spawned
            .map_err(|error| StartError(format!("the thread {name} could not be started: {error}")))?;
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        Ok(())
    }

    /// Waits until all have ended.
    pub(crate) fn join(&self) {
        let handles = std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in handles {
            let _ = handle.join();
        }
    }
}

/// Who writes for a shard.
#[derive(Clone)]
pub(crate) enum Writing {
    /// Nobody: the journal is in memory.
    Memory,
    /// The shard's own thread: a write without a sync is short.
    Inline(Writer),
    /// A thread of its own when there is much to do, so that the next batch gathers while one is being synced.
    Threaded(Writer),
}

impl Writing {
    /// Writes and syncs for a shard, unless its journal is in memory.
    pub(crate) fn writer(&self) -> Option<&Writer> {
        match self {
            Writing::Memory => None,
            Writing::Inline(writer) | Writing::Threaded(writer) => Some(writer),
        }
    }
}

/// Tells the shard that the journal has something to say.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFlag(Arc<AtomicBool>);

impl EventFlag {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn lower(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Runs a shard until it is stopped or its journal fails. However it ends, whoever asks it gets an answer.
pub(crate) fn run_shard<S: Store, C: Clock>(
    shard: Shard<S, C>,
    writing: &Writing,
    events: &EventFlag,
    failure: &watch::Sender<Option<String>>,
) {
    let mailbox = shard.mailbox().clone();
    mailbox.own();
    let ended = catch_unwind(AssertUnwindSafe(|| drive(shard, writing, events)));
    let ended = ended.unwrap_or_else(|_| Err("the thread of a shard panicked".to_owned()));
    let finished = match ended {
        Ok(()) => {
            mailbox.close(Error::ShuttingDown {});
            writing.writer().map_or(Ok(()), Writer::finish)
        }
        failed => failed,
    };
    if let Err(reason) = finished {
        fail(&reason, failure);
        writing.writer().inspect(|writer| writer.stop());
        mailbox.close(Error::JournalFailed { reason });
    }
}

/// Steps until the shard has stopped.
///
/// # Errors
/// Why its journal has failed. What was in flight is dropped, which its callers take as an unknown outcome.
fn drive<S: Store, C: Clock>(
    mut shard: Shard<S, C>,
    writing: &Writing,
    events: &EventFlag,
) -> Result<(), String> {
    let mailbox = shard.mailbox().clone();
    loop {
        events.lower();
        match shard.step() {
            Step::Worked => write(&shard, writing),
            Step::Idle => mailbox.sleep(shard.idle_us().map(Duration::from_micros), || events.is_raised()),
            Step::Stopped => return Ok(()),
            Step::Failed => return Err(shard.failure().unwrap_or_default().to_owned()),
        }
    }
}

fn write<S: Store, C: Clock>(shard: &Shard<S, C>, writing: &Writing) {
    match writing {
        Writing::Memory => {}
        Writing::Inline(writer) => {
            writer.step();
        }
        Writing::Threaded(writer) if shard.in_flight() <= INLINE_RECORDS => {
            writer.step();
        }
        Writing::Threaded(writer) => writer.notify(),
    }
}

fn fail(reason: &str, failure: &watch::Sender<Option<String>>) {
    tracing::error!(reason, "the journal has failed: nothing is acknowledged any more");
    failure.send_replace(Some(reason.to_owned()));
}

/// Writes what shards propose.
pub(crate) fn run_writer(writer: &Writer) {
    while writer.wait() {
        writer.step();
    }
}

/// Does the journal's background work.
pub(crate) fn run_maintenance(mut maintenance: Maintenance, durability: Durability) {
    let pause = match durability {
        Durability::Interval(interval) => interval.min(MAINTENANCE_PAUSE),
        Durability::Always | Durability::Os => MAINTENANCE_PAUSE,
    };
    let started = Instant::now();
    while maintenance.wait(pause) {
        while maintenance.step(started.elapsed().as_micros() as u64) {}
    }
}
