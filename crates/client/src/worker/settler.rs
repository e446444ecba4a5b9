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
/// Most bytes of results and of texts of errors in one request, less than the server takes by default.
const BATCH_BYTES_MAX: usize = 4 << 20;
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
    let mut settler = Settler { client, link, events, patience, summary: Summary::default() };
    let mut batch = Vec::new();
    while incoming.recv_many(&mut batch, BATCH_MAX).await > 0 {
        settler.settle(&batch).await;
        unanswered.fetch_sub(batch.len(), Ordering::Relaxed);
        batch.clear();
    }
    settler.summary
}

struct Settler {
    client: Client,
    link: Option<Link>,
    events: mpsc::UnboundedSender<WorkerEvent>,
    patience: Duration,
    summary: Summary,
}

impl Settler {
    /// Settles what was handed over. The server takes a request or refuses all of it: one that it refuses is
    /// settled by halves, down to the message whose settlement it does not take, which is nacked instead.
    async fn settle(&mut self, batch: &[Settled]) {
        let mut open = requests(batch);
        open.reverse();
        while let Some(part) = open.pop() {
            match (self.answer(part).await, part) {
                (Err(error), [settled]) if is_refused(&error) => self.nack_instead(settled, &error).await,
                (Err(error), _) if is_refused(&error) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    open.extend([second, first]);
                }
                (result, _) => self.count(part, result),
            }
        }
    }

    async fn nack_instead(&mut self, refused: &Settled, error: &ClientError) {
        let outcome = refused.settle.name();
        let said = match &refused.settle {
            Settle::Nack { error, .. } | Settle::Reject { error } if !error.is_empty() => {
                format!("; the handler said: {error}")
            }
            _ => String::new(),
        };
        let reason = format!("the {outcome} was refused: {error}{said}");
        let (id, receipt, loss) = (refused.id.clone(), refused.receipt.clone(), refused.loss);
        let event = WorkerEvent::SettleFailed { id: id.clone(), outcome, reason: reason.clone() };
        let _ = self.events.send(event);
        let nack = [Settled { receipt, id, settle: Settle::Nack { error: reason, delay: None }, loss }];
        let result = self.answer(&nack).await;
        self.count(&nack, result);
    }

    /// Settles in one request, for as long as the leases may live.
    async fn answer(&self, batch: &[Settled]) -> Result<Vec<ItemResult>, ClientError> {
        if let [settled] = batch
            && size(settled) > BATCH_BYTES_MAX
        {
            // A frame of any size might end the session.
            let reason = format!("its {} bytes are more than {BATCH_BYTES_MAX}", size(settled));
            return Err(ClientError::refused(413, "batch_too_large", reason));
        }
        let items: Vec<SettleItem<'_>> =
            batch.iter().map(|s| SettleItem::of(s.receipt.as_str(), s.settle.clone())).collect();
        let give_up = Instant::now() + self.patience;
        let mut result = match &self.link {
            None => self.client.settle(&items).await,
            Some(link) => {
                let frame = SettleMany { items: items.iter().map(settlement).collect(), acks: Vec::new() };
                match link.ask(Frame::Settle(frame), items.len()).await {
                    Some(result) => result,
                    // The session broke off: what it has done all the same is settled already.
                    None => self.client.settle(&items).await,
                }
            }
        };
        while (result.as_ref().is_err_and(may_pass) || result.as_ref().is_ok_and(|it| is_open(it)))
            && Instant::now() < give_up
        {
            sleep(PAUSE).await;
            result = self.client.settle(&items).await;
        }
        result
    }

    fn count(&mut self, batch: &[Settled], result: Result<Vec<ItemResult>, ClientError>) {
        match result {
            Ok(results) => {
                for (settled, result) in batch.iter().zip(results) {
                    let reason = result.error.map_or_else(String::new, |e| e.message);
                    let result = if result.ok { Ok(()) } else { Err(Unsettled::Lost(reason)) };
                    count(settled, result, &self.events, &mut self.summary);
                }
            }
            Err(error) => {
                for settled in batch {
                    let unsettled = Unsettled::Unanswered(error.to_string());
                    count(settled, Err(unsettled), &self.events, &mut self.summary);
                }
            }
        }
    }
}

/// The requests for a batch: each of as many bytes as one may have, or of one message.
fn requests(batch: &[Settled]) -> Vec<&[Settled]> {
    let mut bytes = 0;
    let fits = |before: &Settled, next: &Settled| {
        bytes += size(before);
        let fits = bytes + size(next) <= BATCH_BYTES_MAX;
        bytes = if fits { bytes } else { 0 };
        fits
    };
    batch.chunk_by(fits).collect()
}

/// Number of bytes of the result, or of the text of the error.
fn size(settled: &Settled) -> usize {
    match &settled.settle {
        Settle::AckWith(result) => result.bytes.len(),
        Settle::Nack { error, .. } | Settle::Reject { error } => error.len(),
        Settle::Ack | Settle::Release { .. } => 0,
    }
}

/// True when the server refuses a request for what is in it.
fn is_refused(error: &ClientError) -> bool {
    matches!(error, ClientError::Server { status: 400 | 413, .. })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::WorkResult;

    fn with_result(bytes: usize) -> Settled {
        let settle = Settle::AckWith(WorkResult { content_type: None, bytes: vec![0; bytes] });
        Settled { receipt: String::new(), id: String::new(), settle, loss: None }
    }

    #[test]
    fn a_request_has_as_many_bytes_as_one_may_have_or_one_message() {
        let most = BATCH_BYTES_MAX;
        let lengths = |sizes: &[usize]| -> Vec<usize> {
            let batch: Vec<Settled> = sizes.iter().copied().map(with_result).collect();
            requests(&batch).into_iter().map(<[Settled]>::len).collect()
        };
        assert_eq!(lengths(&[0, 1, 2]), [3]);
        assert_eq!(lengths(&[most - 1, 1, 1]), [2, 1]);
        assert_eq!(lengths(&[most, 0, 1, most, 1]), [2, 1, 1, 1]);
        assert_eq!(lengths(&[most + 1, most + 1, 0]), [1, 1, 1]);
        assert_eq!(lengths(&[1, most / 2, most / 2, most / 2]), [2, 2]);
    }
}
