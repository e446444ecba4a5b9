//! Load on a server: loops that send and loops that receive and ack, and a ledger of every message.

mod ledger;
mod tasks;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sluice_client::{Client, Options};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::endpoint::Endpoint;
pub(super) use ledger::{Ledger, NUMBER_BYTES, SendTime, read_number, write_number};
pub(super) use tasks::{Lane, Phase, Way, histogram};

/// Amount of messages of a phase: a number, or as many as a duration allows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Amount {
    Messages(u64),
    For(Duration),
}

/// Loops that send, or that receive and ack, each on a connection of its own.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// One loop each; a loop that sends and one that works have different connections.
    pub(super) lanes: Vec<Lane>,
    pub(super) batch: usize,
    pub(super) payload_bytes: usize,
}

/// The result of a phase.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) messages: u64,
    pub(super) seconds: f64,
    /// Latencies in nanoseconds: of each send in a phase that only sends, else from the send of a message to
    /// its ack.
    pub(super) times: Histogram<u64>,
}

impl Done {
    pub(super) fn per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.messages as f64 / self.seconds } else { 0.0 }
    }

    pub(super) fn ms(&self, percent: f64) -> f64 {
        self.times.value_at_percentile(percent) as f64 / 1e6
    }
}

/// Threads for the client's side: as few as will do, since the server needs the processor. They take memory
/// as it does.
pub(super) fn runtime(threads: usize) -> Result<Runtime, String> {
    // Huge pages are cleared whole when they are first touched: time that would be taken for that of the
    // client. A system that cannot turn them off measures with them.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let mut builder = match threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().map_err(|error| format!("cannot start a runtime: {error}"))
}

/// A client with one connection, as each loop has.
pub(super) fn connection(to: &Endpoint) -> Result<Client, String> {
    to.client(Options { connections_max: 1, ..Options::default() })
}

impl Load {
    /// Loops of so many workers, spread over the queues; each with its own connection.
    pub(super) fn new(
        to: &Endpoint,
        namespaces: &[String],
        queues: &[String],
        workers: usize,
        batch: usize,
        payload_bytes: usize,
    ) -> Result<Load, String> {
        let lane = |worker: usize| {
            let client = connection(to)?;
            let client = match namespaces {
                [] => client,
                _ => client.in_namespace(&namespaces[worker % namespaces.len()]),
            };
            Ok::<Lane, String>(Lane { client, queue: queues[worker % queues.len()].clone() })
        };
        let lanes = (0..workers).map(lane).collect::<Result<_, _>>()?;
        Ok(Load { lanes, batch, payload_bytes })
    }

    fn phase(&self, ledger: &Arc<Ledger>, amount: Amount, in_flight: Option<usize>) -> Arc<Phase> {
        let next = ledger.next_number();
        Arc::new(Phase {
            ledger: Arc::clone(ledger),
            batch: self.batch,
            payload_bytes: self.payload_bytes,
            end: match amount {
                Amount::Messages(messages) => next + messages,
                Amount::For(_) => u64::MAX,
            },
            until: match amount {
                Amount::Messages(_) => None,
                Amount::For(duration) => Some(Instant::now() + duration),
            },
            in_flight: in_flight.map(|most| Semaphore::new(most.max(self.batch))),
            sending_done: AtomicBool::new(false),
        })
    }

    /// Sends only.
    pub(super) async fn send(&self, ledger: &Arc<Ledger>, amount: Amount) -> Result<Done, String> {
        let phase = self.phase(ledger, amount, None);
        let before = ledger.sent_count();
        let start = Instant::now();
        let times = all(self.lanes.iter().map(|lane| tasks::send(lane.clone(), Arc::clone(&phase)))).await?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Done { messages: ledger.sent_count() - before, seconds, times })
    }

    /// Receives and acks all that is there.
    pub(super) async fn work(&self, ledger: &Arc<Ledger>) -> Result<Done, String> {
        self.work_in(Way::Plain, ledger).await
    }

    /// As [`Load::work`], in one of the ways.
    pub(super) async fn work_in(&self, way: Way, ledger: &Arc<Ledger>) -> Result<Done, String> {
        let phase = self.phase(ledger, Amount::Messages(0), None);
        phase.sending_done.store(true, Ordering::Release);
        let (before, start_ns) = (ledger.acked_count(), ledger.now_ns());
        let loops = self.lanes.iter().map(|lane| tasks::work(lane.clone(), Arc::clone(&phase), way));
        let times = all(loops).await?;
        // The last receives wait for nothing: the phase ended with the last ack.
        let seconds = ledger.last_ack_ns().saturating_sub(start_ns) as f64 / 1e9;
        Ok(Done { messages: ledger.acked_count() - before, seconds, times })
    }

    /// Both at once, with at most so many messages unacknowledged: without a bound, the time from send to ack
    /// would only tell how long the backlog has become.
    pub(super) async fn combined(
        &self,
        workers: &Load,
        ledger: &Arc<Ledger>,
        amount: Amount,
        in_flight: usize,
    ) -> Result<Done, String> {
        let phase = self.phase(ledger, amount, Some(in_flight));
        let (before, start_ns) = (ledger.acked_count(), ledger.now_ns());
        let sending = async {
            let sent = all(self.lanes.iter().map(|lane| tasks::send(lane.clone(), Arc::clone(&phase)))).await;
            phase.sending_done.store(true, Ordering::Release);
            sent
        };
        let loops =
            workers.lanes.iter().map(|lane| tasks::work(lane.clone(), Arc::clone(&phase), Way::Plain));
        let working = all(loops);
        let (_, times) = tokio::try_join!(sending, working)?;
        let seconds = ledger.last_ack_ns().saturating_sub(start_ns) as f64 / 1e9;
        Ok(Done { messages: ledger.acked_count() - before, seconds, times })
    }
}

/// Runs loops side by side; the first failure ends them all.
async fn all<F>(loops: impl Iterator<Item = F>) -> Result<Histogram<u64>, String>
where
    F: Future<Output = Result<Histogram<u64>, String>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for each in loops {
        running.spawn(each);
    }
    let mut times = histogram()?;
    while let Some(ended) = running.join_next().await {
        let part = ended.map_err(|error| format!("a loop failed: {error}"))??;
        times.add(part).map_err(|error| error.to_string())?;
    }
    Ok(times)
}
