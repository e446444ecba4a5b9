//! Caller's side of a receive. Whatever happens to the caller, no message stays with nobody: what was in
//! flight to a caller that went is released.

use bytes::Bytes;
use sluice_engine::Error;
use sluice_engine::command::{Command, SettleItem, Settlement};
use sluice_engine::id::Receipt;
use sluice_engine::limits::SLICE_ITEMS;
use sluice_engine::outcome::Delivery;
use sluice_journal::{BlobRead, take_ahead};
use tokio::sync::oneshot;

use crate::api::{Delivered, DeliveredDetails};
use crate::blobs::{self, ReadFailure};
use crate::handle::Node;
use crate::log_limiter::LogLimiter;
use crate::shard::release;
use crate::shard::request::{Given, Request};

/// Delay of a message whose bytes could not be read now, in milliseconds.
const READ_AGAIN_MS: u64 = 1_000;

/// Wait for a pull, which cleans up when it is dropped before its end.
pub(crate) struct PullGuard {
    node: Node,
    shard: u32,
    ticket: u64,
    receiver: Option<oneshot::Receiver<Result<Vec<Given>, Error>>>,
    outstanding: Vec<Receipt>,
}

impl PullGuard {
    pub(crate) fn new(
        node: Node,
        shard: u32,
        ticket: u64,
        receiver: oneshot::Receiver<Result<Vec<Given>, Error>>,
    ) -> PullGuard {
        PullGuard { node, shard, ticket, receiver: Some(receiver), outstanding: Vec::new() }
    }

    pub(crate) async fn wait(mut self) -> Result<Vec<Delivered>, Error> {
        let Some(receiver) = &mut self.receiver else { return Ok(Vec::new()) };
        let given = receiver.await;
        self.receiver = None;
        let mut given = given.map_err(|_| Error::ShuttingDown {})??;
        if !take_all(given.iter_mut()) {
            self.outstanding.extend(given.iter().map(|given| given.delivery.receipt));
        }
        let delivered = load(&self.node, self.shard, given).await;
        self.outstanding.clear();
        Ok(delivered)
    }
}

/// Reads blobs that are not in the cache. A message with damaged bytes is held and left out; one whose bytes
/// cannot be read now is released with a delay, and this attempt does not count.
pub(crate) async fn load(node: &Node, shard: u32, given: Vec<Given>) -> Vec<Delivered> {
    if given.iter().all(is_bare) {
        return given.into_iter().filter_map(bare).collect();
    }
    let mut blobs = Vec::with_capacity(given.len());
    let mut places = Vec::with_capacity(given.len());
    for Given { delivery, queue, blob, details } in given {
        blobs.push(blob);
        let details = details.map(|details| {
            let there = details.blobs.each_ref().map(Option::is_some);
            blobs.extend(details.blobs.into_iter().flatten());
            (details.known, there)
        });
        places.push((delivery, queue, details));
    }
    let mut loaded = blobs::load(blobs).await.into_iter();
    let mut next = || loaded.next().unwrap_or(Err(ReadFailure::Later));
    let mut delivered = Vec::with_capacity(places.len());
    let mut later = Vec::new();
    for (delivery, queue, details) in places {
        let blob = next();
        let details = details.map(|(known, there)| -> Result<_, ReadFailure> {
            let [checkpoint, tags] = there.map(|there| there.then(&mut next));
            Ok(Box::new(DeliveredDetails {
                correlation_id: known.correlation_id,
                reply_to: known.reply_to,
                headers: known.headers,
                checkpoint: unless_damaged(&delivery, "checkpoint", checkpoint)?,
                tags: unless_damaged(&delivery, "list of tags", tags)?,
                from_queue: known.from_queue,
                reason: known.reason,
            }))
        });
        match (blob, details.transpose()) {
            (Ok(blob), Ok(details)) => delivered.push(Delivered { delivery, queue, blob, details }),
            (Err(ReadFailure::Damaged), _) => hold(node, shard, &delivery),
            _ => later.push(delivery.receipt),
        }
    }
    give_back_later(node, shard, &later);
    delivered
}

/// True for a payload in memory without optional fields.
fn is_bare(given: &Given) -> bool {
    given.details.is_none() && matches!(given.blob, BlobRead::Cached(_))
}

/// The message, where [`is_bare`] is true.
fn bare(given: Given) -> Option<Delivered> {
    let Given { delivery, queue, blob: BlobRead::Cached(blob), details: None } = given else { return None };
    Some(Delivered { delivery, queue, blob, details: None })
}

fn hold(node: &Node, shard: u32, delivery: &Delivery) {
    tracing::error!(message = %delivery.receipt.id, "the stored payload is damaged: the message is held");
    let hold = Command::HoldDamaged { id: delivery.receipt.id, blob: delivery.blob };
    node.push_surely(shard, Request::surely(&hold));
}

/// Settles deliveries of one namespace, without an answer.
fn settle_surely(node: &Node, shard: u32, items: &[SettleItem<'_>]) {
    if let Some(first) = items.first() {
        let settle = Command::Settle { namespace: first.receipt.id.namespace, items };
        node.push_surely(shard, Request::surely(&settle));
    }
}

/// Releases deliveries of one namespace; the attempts do not count.
pub(crate) fn give_back(node: &Node, shard: u32, receipts: &[Receipt]) {
    for slice in receipts.chunks(SLICE_ITEMS) {
        let items: Vec<_> = slice.iter().copied().map(release).collect();
        settle_surely(node, shard, &items);
    }
}

/// Releases deliveries whose bytes could not be read now, with a delay.
pub(crate) fn give_back_later(node: &Node, shard: u32, receipts: &[Receipt]) {
    let items: Vec<_> = receipts.iter().map(|receipt| release_after(*receipt, READ_AGAIN_MS)).collect();
    settle_surely(node, shard, &items);
}

/// Takes read-ahead bytes into these messages. True when all their bytes are in memory.
pub(crate) fn take_all<'a>(given: impl Iterator<Item = &'a mut Given>) -> bool {
    let details = |given: &'a mut Given| {
        let details = given.details.iter_mut().flat_map(|details| details.blobs.iter_mut().flatten());
        details.chain([&mut given.blob])
    };
    let mut on_disk: Vec<&mut BlobRead> =
        given.flat_map(details).filter(|blob| !blobs::is_cached(blob)).collect();
    on_disk.is_empty() || take_ahead(&mut on_disk)
}

static DAMAGED: LogLimiter = LogLimiter::new();

/// Leaves out a damaged checkpoint, without which the work begins anew, and damaged tags.
fn unless_damaged(
    delivery: &Delivery,
    what: &str,
    loaded: Option<Result<Bytes, ReadFailure>>,
) -> Result<Option<Bytes>, ReadFailure> {
    match loaded.transpose() {
        Err(ReadFailure::Damaged) => {
            // Each of its deliveries finds the damage anew.
            if let Some(left_out) = DAMAGED.due() {
                let message = delivery.receipt.id;
                tracing::error!(%message, left_out, "the stored {what} is damaged: it is left out");
            }
            Ok(None)
        }
        other => other,
    }
}

fn release_after(receipt: Receipt, delay_ms: u64) -> SettleItem<'static> {
    SettleItem { settlement: Settlement::GiveBack { delay_ms }, ..release(receipt) }
}

impl Drop for PullGuard {
    fn drop(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            // Closed before the cancellation, which may overtake the pull: the shard lines no closed pull up.
            receiver.close();
            self.node.push_surely(self.shard, Request::Cancel { ticket: self.ticket });
            if let Ok(Ok(given)) = receiver.try_recv() {
                self.outstanding.extend(given.iter().map(|given| given.delivery.receipt));
            }
        }
        give_back(&self.node, self.shard, &self.outstanding);
    }
}
