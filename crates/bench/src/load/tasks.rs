//! The loops: one that sends, one that receives and acks. Each has a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sluice_client::{Client, Message, Receive};
use tokio::sync::Semaphore;

use super::ledger::{Ledger, NUMBER_BYTES, SendTime, write_number};

/// Wait of one receive, after which an idle worker checks whether the phase has ended.
const RECEIVE_WAIT: Duration = Duration::from_millis(200);
/// Without any progress for so long a run is given up: something is lost.
const STALLED: Duration = Duration::from_secs(60);

/// Longer times count as this one.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// Time for which the transaction of a batch is open.
const TRANSACTION_TTL: Duration = Duration::from_secs(30);

/// The way in which a batch is received and acked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// By a receive, and by acks of its receipts.
    Plain,
    /// By a receive that begins a transaction, and by its commit.
    Enlisted,
}

/// The client and the queue of one loop.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) client: Client,
    pub(crate) queue: String,
}

/// The state that all loops of a phase share.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) batch: usize,
    pub(crate) payload_bytes: usize,
    /// Number of the first message that is not sent any more.
    pub(crate) end: u64,
    /// End of sending in time; `None`: the number of messages alone ends it.
    pub(crate) until: Option<Instant>,
    /// Bounds what is sent and not yet acked; `None`: nothing does.
    pub(crate) in_flight: Option<Semaphore>,
    /// All that will be sent has been.
    pub(crate) sending_done: AtomicBool,
}

impl Phase {
    fn sends_more(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    fn all_acked(&self) -> bool {
        self.sending_done.load(Ordering::Acquire) && self.ledger.acked_count() >= self.ledger.sent_count()
    }
}

/// Times in nanoseconds, with three digits, up to [`TIME_MAX`].
pub(crate) fn histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, TIME_MAX.as_nanos() as u64, 3).map_err(|error| error.to_string())
}

/// Sends batches until the phase is over. The times of its sends.
pub(crate) async fn send(lane: Lane, phase: Arc<Phase>) -> Result<Histogram<u64>, String> {
    let mut times = histogram()?;
    let mut payloads = vec![vec![b'.'; phase.payload_bytes.max(NUMBER_BYTES)]; phase.batch];
    while phase.sends_more() {
        let numbers = phase.ledger.take(phase.batch as u64, phase.end);
        if numbers.is_empty() {
            break;
        }
        if let Some(in_flight) = &phase.in_flight {
            let permits = (numbers.end - numbers.start) as u32;
            in_flight.acquire_many(permits).await.map_err(|error| error.to_string())?.forget();
        }
        for (number, payload) in numbers.clone().zip(&mut payloads) {
            write_number(number, payload);
        }
        let messages: Vec<Message<'_>> =
            numbers.clone().zip(&payloads).map(|(_, payload)| Message::new(payload)).collect();
        let from_ns = phase.ledger.now_ns();
        phase.ledger.sending(numbers.clone(), from_ns);
        lane.client.send(&lane.queue, &messages).await.map_err(|error| format!("send: {error}"))?;
        let to_ns = phase.ledger.now_ns();
        times.saturating_record(to_ns - from_ns);
        phase.ledger.sent_within(numbers, SendTime { from_ns, to_ns });
    }
    Ok(times)
}

/// Receives and acks batches until all that was sent is acked. The times from the beginning of a send to the
/// acknowledgement of the ack.
pub(crate) async fn work(lane: Lane, phase: Arc<Phase>, way: Way) -> Result<Histogram<u64>, String> {
    let mut times = histogram()?;
    let receive = Receive::from_queue(&lane.queue).max(phase.batch as u32).wait(RECEIVE_WAIT);
    let mut last = Instant::now();
    let mut numbers = Vec::with_capacity(phase.batch);
    while !phase.all_acked() {
        let body = match way {
            Way::Plain => lane.client.receive_body(&receive).await,
            Way::Enlisted => lane.client.receive_and_begin(TRANSACTION_TTL, &receive).await,
        };
        let body = body.map_err(|error| format!("receive: {error}"))?;
        let (delivered, begun) = body.decode_enlisted().map_err(|error| format!("receive: {error}"))?;
        if delivered.is_empty() {
            if last.elapsed() > STALLED {
                let (acked, sent) = (phase.ledger.acked_count(), phase.ledger.sent_count());
                return Err(format!("nothing came for {STALLED:?}, with {acked} of {sent} messages acked"));
            }
            continue;
        }
        last = Instant::now();
        numbers.clear();
        for message in &delivered {
            numbers.push(phase.ledger.given(&message.payload));
        }
        match begun {
            None => {
                let mut receipts = delivered.iter().map(|message| message.receipt.as_ref());
                ack(&lane.client, &mut receipts).await?;
            }
            Some(begun) => commit(&lane.client, &begun.transaction, numbers.len()).await?,
        }
        acked(&phase, &numbers, &mut times);
    }
    Ok(times)
}

/// Acks deliveries by their receipts.
async fn ack(client: &Client, receipts: &mut (dyn Iterator<Item = &str> + Send)) -> Result<(), String> {
    let results = client.ack_many(receipts).await.map_err(|error| format!("ack: {error}"))?;
    match results.into_iter().find_map(|result| result.error) {
        Some(error) => Err(format!("ack: {}", error.message)),
        None => Ok(()),
    }
}

/// Commits a transaction that has received so many messages.
async fn commit(client: &Client, transaction: &str, received: usize) -> Result<(), String> {
    let done = client.transaction_commit(transaction).await.map_err(|error| format!("commit: {error}"))?;
    match done.results.len() {
        acked if acked == received => Ok(()),
        acked => Err(format!("a commit has acked {acked} messages of {received}")),
    }
}

/// Notes that messages are acked.
fn acked(phase: &Phase, numbers: &[Option<u64>], times: &mut Histogram<u64>) {
    let now = phase.ledger.now_ns();
    for number in numbers.iter().flatten() {
        if let Some(took) = phase.ledger.acked(*number, now) {
            times.saturating_record(took);
        }
    }
    if let Some(in_flight) = &phase.in_flight {
        in_flight.add_permits(numbers.len());
    }
}
