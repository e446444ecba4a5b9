//! The phases on a server.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;
use sluice_client::Client;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::pace::{Pace, Rate, send_due};
use super::sessions::{SessionLoad, SessionRun, send, work};
use crate::load::{Amount, Done, Ledger, histogram};
use crate::process::Usage;
use crate::server::Target;

/// The results of the phases of one round.
#[derive(Clone, Debug)]
pub(super) struct SessionPhases {
    pub(super) send: Done,
    pub(super) work: Done,
    pub(super) combined: Done,
    /// Processor time of the server in the combined phase for each message; `None`: it is not ours.
    pub(super) server_cpu_us: Option<f64>,
}

/// The result of a run at a constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Paced {
    /// Messages that were due.
    pub(super) due: u64,
    /// From when a message was due to its delivery; the seconds run to the last ack.
    pub(crate) delivery: Done,
    /// From when a frame was due until it was handed to its connection, in nanoseconds.
    pub(super) sent_late: Histogram<u64>,
    /// Processor time of the server for each message, in microseconds; `None`: it is not known.
    pub(super) server_cpu_us: Option<f64>,
}

/// Runs the phases once. Each message is checked: sent once, acked once.
pub(super) async fn run(
    target: &Target,
    admin: &Client,
    shape: &SessionLoad,
) -> Result<SessionPhases, String> {
    let queue = queue_name();
    let ledger = Arc::new(Ledger::new());
    let begin = |amount| SessionRun::new(admin, &queue, &ledger, shape, amount);

    let send_done = sent(&begin(shape.amount)).await?;
    let work_done = worked(&begin(Amount::Messages(0))).await?;

    let cpu_before = target.usage()?;
    let combined = combined(&begin(shape.amount)).await?;
    let server_cpu_us = cpu_us(cpu_before, target.usage()?, combined.messages);

    finish(admin, &queue, &ledger).await?;
    Ok(SessionPhases { send: send_done, work: work_done, combined, server_cpu_us })
}

/// Runs at a fixed rate once, over a queue of its own. Each message is checked: sent once, acked once.
pub(super) async fn run_paced(
    target: &Target,
    admin: &Client,
    shape: &SessionLoad,
    rate: Rate,
) -> Result<Paced, String> {
    let queue = queue_name();
    let ledger = Arc::new(Ledger::new());
    let cpu_before = target.usage()?;
    let mut paced =
        paced(&SessionRun::new(admin, &queue, &ledger, shape, Amount::For(rate.duration)), rate).await?;
    paced.server_cpu_us = cpu_us(cpu_before, target.usage()?, paced.delivery.messages);
    finish(admin, &queue, &ledger).await?;
    Ok(paced)
}

/// The queue of all runs of this process.
pub(crate) fn queue_name() -> String {
    format!("bench-stream-{}", std::process::id())
}

/// Processor time for each message, in microseconds.
fn cpu_us(before: Option<Usage>, after: Option<Usage>, messages: u64) -> Option<f64> {
    let (before, after) = before.zip(after)?;
    Some(after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6 / messages.max(1) as f64)
}

/// Checks that each message was acked exactly once, and deletes the queue, in which none may be left.
pub(crate) async fn finish(admin: &Client, queue: &str, ledger: &Ledger) -> Result<(), String> {
    ledger.verify()?;
    match admin.queue_delete(queue).await {
        Ok(0) => Ok(()),
        Ok(left) => Err(format!("{left} messages were left after everything was acked")),
        Err(error) => Err(format!("cannot delete {queue}: {error}")),
    }
}

/// Sends only, as fast as may be. The times of the frames.
pub(crate) async fn sent(run: &Arc<SessionRun>) -> Result<Done, String> {
    let (before, start_ns) = (run.ledger.sent_count(), run.ledger.now_ns());
    let times = all(run.shape.sessions, || send(Arc::clone(run))).await?;
    Ok(done(run.ledger.sent_count() - before, start_ns, run.ledger.now_ns(), times))
}

/// Takes and acks all that is there, as fast as may be. The times from send to delivery.
pub(crate) async fn worked(run: &Arc<SessionRun>) -> Result<Done, String> {
    run.sending_done.store(true, Ordering::Release);
    let (before, start_ns) = (run.ledger.acked_count(), run.ledger.now_ns());
    let times = all(run.shape.sessions, || work(Arc::clone(run))).await?;
    Ok(done(run.ledger.acked_count() - before, start_ns, run.ledger.last_ack_ns(), times))
}

/// Sends and works at once, as fast as may be. The times from send to delivery.
pub(crate) async fn combined(run: &Arc<SessionRun>) -> Result<Done, String> {
    let (before, start_ns) = (run.ledger.acked_count(), run.ledger.now_ns());
    let (_, times) = beside(run, || send(Arc::clone(run))).await?;
    Ok(done(run.ledger.acked_count() - before, start_ns, run.ledger.last_ack_ns(), times))
}

/// Sends at a fixed rate, in frames that are due at even distances, and works.
pub(crate) async fn paced(run: &Arc<SessionRun>, rate: Rate) -> Result<Paced, String> {
    let before = run.ledger.acked_count();
    let (pace, mut dues) = Pace::new(run, rate);
    let due = pace.messages();
    let sender = || send_due(Arc::clone(run), dues.pop());
    let (start_ns, (sent_late, times)) = tokio::try_join!(pace.keep(), beside(run, sender))?;
    let delivery = done(run.ledger.acked_count() - before, start_ns, run.ledger.last_ack_ns(), times);
    Ok(Paced { due, delivery, sent_late, server_cpu_us: None })
}

fn done(messages: u64, start_ns: u64, end_ns: u64, times: Histogram<u64>) -> Done {
    Done { messages, seconds: end_ns.saturating_sub(start_ns) as f64 / 1e9, times }
}

/// Sends and works at once. The times of the sessions that send, and of those that work.
async fn beside<F>(
    run: &Arc<SessionRun>,
    sender: impl FnMut() -> F,
) -> Result<(Histogram<u64>, Histogram<u64>), String>
where
    F: Future<Output = Result<Histogram<u64>, String>> + Send + 'static,
{
    let sending = async {
        let sent = all(run.shape.sessions, sender).await;
        run.sending_done.store(true, Ordering::Release);
        sent
    };
    let working = all(run.shape.sessions, || work(Arc::clone(run)));
    tokio::try_join!(sending, working)
}

/// Runs so many loops side by side; the first failure ends them all.
async fn all<F>(count: usize, mut one: impl FnMut() -> F) -> Result<Histogram<u64>, String>
where
    F: Future<Output = Result<Histogram<u64>, String>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for _ in 0..count {
        running.spawn(one());
    }
    let mut times = histogram()?;
    while let Some(ended) = running.join_next().await {
        let part = ended.map_err(|error| format!("a loop failed: {error}"))??;
        times.add(part).map_err(|error| error.to_string())?;
    }
    Ok(times)
}

impl SessionRun {
    /// Loops on a queue, each with a session of its own.
    pub(crate) fn new(
        client: &Client,
        queue: &str,
        ledger: &Arc<Ledger>,
        shape: &SessionLoad,
        amount: Amount,
    ) -> Arc<SessionRun> {
        let end = match amount {
            Amount::Messages(messages) => ledger.next_number() + messages,
            Amount::For(_) => u64::MAX,
        };
        let until = match amount {
            Amount::Messages(_) => None,
            Amount::For(duration) => Some(std::time::Instant::now() + duration),
        };
        Arc::new(SessionRun {
            client: client.clone(),
            queue: queue.to_owned().into(),
            ledger: Arc::clone(ledger),
            shape: *shape,
            end,
            until,
            sending_done: false.into(),
            ready: Semaphore::new(0),
        })
    }
}
