//! Settles in batches without waiting for one to fill: what gathers while a request is under way is the next
//! request.

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

/// The end of a handler's work on a message.
#[derive(Debug)]
pub(super) enum Ending {
    /// The message is to be settled.
    Settle(Settle),
    /// The handler has settled it, or could not.
    Settled(Settle, Result<(), Unsettled>),
    /// The handler could not settle it: it was cancelled.
    Cancelled,
}

/// The reason why a message was not settled, with a text.
#[derive(Debug)]
pub(super) enum Unsettled {
    /// Its lease was over, or it is gone.
    Lost(String),
    /// The server did not answer.
    Unanswered(String),
}

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
    let items: Vec<SettleItem<'_>> =
        batch.iter().map(|s| SettleItem::of(s.receipt.as_str(), s.settle.clone())).collect();
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
    while (result.as_ref().is_err_and(may_pass) || result.as_ref().is_ok_and(|it| is_open(it)))
        && Instant::now() < give_up
    {
        sleep(PAUSE).await;
        result = client.settle(&items).await;
    }
    match result {
        Ok(results) => {
            for (settled, result) in batch.iter().zip(results) {
                let reason = result.error.map_or_else(String::new, |e| e.message);
                let result = if result.ok { Ok(()) } else { Err(Unsettled::Lost(reason)) };
                count(settled, result, events, summary);
            }
        }
        Err(error) => {
            for settled in batch {
                count(settled, Err(Unsettled::Unanswered(error.to_string())), events, summary);
            }
        }
    }
}

/// True when a transaction that is being decided settles one of the messages, or lets go of it in a moment.
/// The others are settled by then, which a repeat takes as success.
fn is_open(results: &[ItemResult]) -> bool {
    results.iter().any(|result| result.error.as_ref().is_some_and(|error| error.code == "in_doubt"))
}

/// True when the error is transient.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Transport { .. } => true,
        ClientError::Server { status, .. } => *status >= 500 || *status == 429,
        _ => false,
    }
}

/// Counts a message, and tells why it was not settled unless that is known.
pub(super) fn count(
    settled: &Settled,
    result: Result<(), Unsettled>,
    events: &mpsc::UnboundedSender<WorkerEvent>,
    summary: &mut Summary,
) {
    let counted = match (&result, settled.loss, &settled.settle) {
        (Err(Unsettled::Lost(_)), _, _) => &mut summary.lost,
        (Err(Unsettled::Unanswered(_)), _, _) => &mut summary.unsettled,
        // It goes, whatever the outcome says.
        (Ok(()), Some(Loss::Cancelled), _) => &mut summary.cancelled,
        (Ok(()), _, Settle::Ack | Settle::AckWith(_)) => &mut summary.acked,
        (Ok(()), _, Settle::Nack { .. }) => &mut summary.nacked,
        (Ok(()), _, Settle::Release { .. }) => &mut summary.released,
        (Ok(()), _, Settle::Reject { .. }) => &mut summary.rejected,
    };
    *counted += 1;
    let reason = match result {
        Err(Unsettled::Lost(reason)) if settled.loss.is_none() => reason,
        Err(Unsettled::Unanswered(reason)) => reason,
        Ok(()) | Err(Unsettled::Lost(_)) => return,
    };
    let event = WorkerEvent::SettleFailed { id: settled.id.clone(), outcome: settled.settle.name(), reason };
    // Nobody listens any more when the worker has ended.
    let _ = events.send(event);
}
