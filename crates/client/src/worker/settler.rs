//! Settles in batches without waiting for one to fill: what gathers while a request is under way is the next
//! request.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sluice_proto::v1::SettleMany;
use sluice_proto::v1::client_frame::Frame;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::answers::ItemResult;
use crate::client::Client;
use crate::error::ClientError;
use crate::message::{Settle, SettleItem};
use crate::session::settlement;
use crate::worker::leases::Loss;
use crate::worker::link::Link;
use crate::worker::options::{Summary, WorkerEvent};

/// Most items of one request.
const BATCH_MAX: usize = 1_000;
/// Pause between two tries when the server does not answer, beyond the client's own patience.
const PAUSE: Duration = Duration::from_millis(500);

/// A message to settle.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) receipt: String,
    pub(super) id: String,
    pub(super) settle: Settle,
    /// Loss of its lease that the server has reported and an event has told.
    pub(super) loss: Option<Loss>,
}

/// The way to the settler, and how much is on it.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    to: mpsc::Sender<Settled>,
    unanswered: Arc<AtomicUsize>,
}

impl Settling {
    pub(super) fn new(to: mpsc::Sender<Settled>) -> Settling {
        Settling { to, unanswered: Arc::default() }
    }

    /// The count of what was handed over and is not done with.
    pub(super) fn unanswered(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.unanswered)
    }

    /// Counts a settlement that is about to be handed over.
    pub(super) fn count_in(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back a count: there is nothing to hand over.
    pub(super) fn count_out(&self) {
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
    }

    /// Hands over what was counted; waits while there is too much on the way.
    pub(super) async fn hand_over(&self, settled: Settled) {
        // The settler ends only after this sender is gone.
        let _ = self.to.send(settled).await;
    }

    /// True when every settlement has ended: answered by the server, or given up.
    pub(super) fn is_done(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) == 0
    }
}

/// Runs until every sender is gone and everything is settled. While the server does not answer, a batch is
/// tried for `patience`: as long as its leases may live.
pub(super) async fn run(
    client: Client,
    link: Option<Link>,
    mut incoming: mpsc::Receiver<Settled>,
    unanswered: Arc<AtomicUsize>,
    events: mpsc::UnboundedSender<WorkerEvent>,
    patience: Duration,
) -> Summary {
    let mut summary = Summary::default();
    let mut batch = Vec::new();
    while incoming.recv_many(&mut batch, BATCH_MAX).await > 0 {
        settle((&client, link.as_ref()), &batch, &events, patience, &mut summary).await;
        unanswered.fetch_sub(batch.len(), Ordering::Relaxed);
        batch.clear();
    }
    summary
}

async fn settle(
    (client, link): (&Client, Option<&Link>),
    batch: &[Settled],
    events: &mpsc::UnboundedSender<WorkerEvent>,
    patience: Duration,
    summary: &mut Summary,
) {
    let items: Vec<SettleItem<'_>> = batch
        .iter()
        .map(|s| SettleItem { receipt: Cow::Borrowed(&s.receipt), settle: s.settle.clone() })
        .collect();
    let give_up = Instant::now() + patience;
    let mut result = match link {
        None => client.settle(&items).await,
        Some(link) => {
            let frame = SettleMany { items: items.iter().map(settlement).collect(), acks: Vec::new() };
            match link.ask(Frame::Settle(frame), items.len()).await {
                Some(result) => result,
                // The session broke off: what it has done all the same is settled already.
                None => client.settle(&items).await,
            }
        }
    };
    while result.as_ref().is_err_and(may_pass) && Instant::now() < give_up {
        sleep(PAUSE).await;
        result = client.settle(&items).await;
    }
    match result {
        Ok(results) => {
            for (settled, result) in batch.iter().zip(results) {
                count(settled, result, events, summary);
            }
        }
        Err(error) => {
            summary.unsettled += batch.len() as u64;
            for settled in batch {
                tell(settled, error.to_string(), events);
            }
        }
    }
}

/// True when the error is transient.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Transport { .. } => true,
        ClientError::Server { status, .. } => *status >= 500 || *status == 429,
        _ => false,
    }
}

fn count(
    settled: &Settled,
    result: ItemResult,
    events: &mpsc::UnboundedSender<WorkerEvent>,
    summary: &mut Summary,
) {
    if !result.ok {
        summary.lost += 1;
        if settled.loss.is_none() {
            tell(settled, result.error.map_or_else(String::new, |e| e.message), events);
        }
        return;
    }
    // It goes, whatever the outcome says.
    if settled.loss == Some(Loss::Cancelled) {
        summary.cancelled += 1;
        return;
    }
    match settled.settle {
        Settle::Ack | Settle::AckWith(_) => summary.acked += 1,
        Settle::Nack { .. } => summary.nacked += 1,
        Settle::Release { .. } => summary.released += 1,
        Settle::Reject { .. } => summary.rejected += 1,
    }
}

fn tell(settled: &Settled, reason: String, events: &mpsc::UnboundedSender<WorkerEvent>) {
    // Nobody listens any more when the worker has ended.
    let event = WorkerEvent::SettleFailed { id: settled.id.clone(), outcome: settled.settle.name(), reason };
    let _ = events.send(event);
}
