//! Threads that call the step functions: one for the shard, one that writes for it, one for the journal's
//! background work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sluice_engine::Error;
use sluice_journal::{Maintenance, Notice, Writer};
use tokio::sync::watch;

use crate::api::StartError;
use crate::clock::Clock;
use crate::failed;
use crate::mailbox::YIELDS_BEFORE_SLEEP;
use crate::shard::store::Store;
use crate::shard::{Shard, Step};

/// Number of records in flight up to which the shard's thread writes and syncs itself: for a lone caller two
/// thread switches cost more than the next batch could gain.
const INLINE_RECORDS: usize = 4;
/// Number of bytes in flight up to which it does so: writing more takes longer than a thread switch.
const INLINE_BYTES: usize = 64 << 10;
/// Number of yields of an idle shard of a cluster before it sleeps: other nodes answer later than the usual
/// number of them would last, and may need the processor for it.
const YIELDS_BETWEEN_NODES: u32 = 5;
/// Duration of a background step from which it is followed by a pause as long as itself.
const PACED_FROM: Duration = Duration::from_millis(1);
/// Upper limit of that pause.
const PACE_MAX: Duration = Duration::from_millis(10);

/// The threads of a node.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    pub(crate) fn spawn(&self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let spawned = std::thread::Builder::new().name(name.clone()).spawn(run);
        let handle = spawned.map_err(|error| {
            StartError::Failed(format!("the thread {name} could not be started: {error}"))
        })?;
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        Ok(())
    }

    /// Waits until all threads have ended.
    pub(crate) fn join(&self) {
        let handles = std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in handles {
            let _ = handle.join();
        }
    }
}

/// Party that writes for a shard.
#[derive(Clone)]
pub(crate) enum Writing {
    /// None: the journal is in memory.
    Memory,
    /// The shard's own thread: a write without a sync is short.
    Inline(Writer),
    /// The shard's thread for little, and a thread of its own for much, so that the next batch gathers during
    /// a sync.
    Threaded(Writer),
    /// A thread of its own: a disk that hangs must not hold up the shard of a cluster, which has to notice.
    Apart(Writer),
}

impl Writing {
    /// The writer, unless the journal is in memory.
    pub(crate) fn writer(&self) -> Option<&Writer> {
        match self {
            Writing::Memory => None,
            Writing::Inline(writer) | Writing::Threaded(writer) | Writing::Apart(writer) => Some(writer),
        }
    }

    /// Number of times that an idle shard lets others run before it sleeps.
    fn yields(&self) -> u32 {
        match self {
            Writing::Memory | Writing::Inline(_) | Writing::Threaded(_) => YIELDS_BEFORE_SLEEP,
            Writing::Apart(_) => YIELDS_BETWEEN_NODES,
        }
    }

    /// The writer, if it has a thread of its own.
    pub(crate) fn on_its_own(&self) -> Option<&Writer> {
        match self {
            Writing::Memory | Writing::Inline(_) => None,
            Writing::Threaded(writer) | Writing::Apart(writer) => Some(writer),
        }
    }
}

/// Party that hears of journals that fail.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    /// Reason of the failure, for the node.
    pub(crate) told: watch::Sender<Option<String>>,
    /// Data directory, in which it is noted for the next start; `None`: nothing needs to know of it then.
    pub(crate) noted_in: Option<PathBuf>,
}

impl Failing {
    fn tell(&self, reason: &str) {
        tracing::error!(reason, "the journal has failed: nothing is acknowledged any more");
        if let Some(Err(error)) = self.noted_in.as_deref().map(failed::note) {
            tracing::error!(%error, "the failure could not be noted for the next start");
        }
        self.told.send_replace(Some(reason.to_owned()));
    }
}

/// Flag that tells the shard of events in its journal.
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

/// Runs a shard until it is stopped or its journal fails. However it ends, every request is answered.
pub(crate) fn run_shard<S: Store, C: Clock>(
    shard: Shard<S, C>,
    writing: &Writing,
    events: &EventFlag,
    failing: &Failing,
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
        failing.tell(&reason);
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
            Step::Idle => {
                let at_most = shard.idle_us().map(Duration::from_micros);
                mailbox.sleep(writing.yields(), at_most, || events.is_raised());
            }
            Step::Stopped => return Ok(()),
            Step::Failed => return Err(shard.failure().unwrap_or_default().to_owned()),
        }
    }
}

fn write<S: Store, C: Clock>(shard: &Shard<S, C>, writing: &Writing) {
    match writing {
        // The store of a cluster wakes its writer itself: it also writes what other nodes tell it to.
        Writing::Memory | Writing::Apart(_) => {}
        Writing::Inline(writer) => {
            writer.step();
        }
        Writing::Threaded(writer) if writes_inline(shard.in_flight(), shard.in_flight_bytes()) => {
            writer.step();
        }
        Writing::Threaded(writer) => writer.notify(),
    }
}

fn writes_inline(records: usize, bytes: usize) -> bool {
    records <= INLINE_RECORDS && bytes <= INLINE_BYTES
}

/// Runs the writer of a shard.
pub(crate) fn run_writer(writer: &Writer) {
    while writer.wait() {
        writer.step();
    }
}

/// Runs the background work of a journal.
pub(crate) fn run_maintenance(mut maintenance: Maintenance, shard: u32) {
    let started = Instant::now();
    let mut wait = Some(Duration::ZERO);
    while maintenance.wait(wait) {
        let begun = Instant::now();
        let more = maintenance.step((begun - started).as_micros() as u64);
        maintenance.notices().iter().for_each(|notice| tell(shard, notice));
        wait = if more {
            // The disk is left to the log for as long as it was used.
            let took = begun.elapsed();
            std::thread::sleep(if took < PACED_FROM { Duration::ZERO } else { took.min(PACE_MAX) });
            Some(Duration::ZERO)
        } else {
            maintenance.idle_us(started.elapsed().as_micros() as u64).map(Duration::from_micros)
        };
    }
}

fn tell(shard: u32, notice: &Notice) {
    match notice {
        Notice::LowWater { free_bytes, low_water_bytes } => tracing::warn!(
            shard,
            free_bytes,
            low_water_bytes,
            "the disk has less free space than low_water: free some before sends are refused"
        ),
        Notice::Room { free_bytes } => {
            tracing::info!(shard, free_bytes, "the disk has more free space than low_water again");
        }
        Notice::OutOfHandles { error } => tracing::warn!(
            shard,
            error,
            "there are no file handles left: background work waits; raise the limit of open files (ulimit -n)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_large_records_are_left_to_the_writer() {
        assert!(writes_inline(1, 200));
        assert!(writes_inline(INLINE_RECORDS, INLINE_BYTES));
        assert!(!writes_inline(INLINE_RECORDS + 1, 200));
        assert!(!writes_inline(1, 1 << 20));
    }
}
