//! The caller's side of a receive. Whatever happens to the caller, no message is left in nobody's hands: what was on
//! its way to a caller that went is given back.

use sluice_engine::Error;
use sluice_engine::command::{Command, SettleItem, Settlement};
use sluice_engine::outcome::Delivery;
use tokio::sync::oneshot;

use crate::api::Delivered;
use crate::blobs::{self, Unread};
use crate::handle::Node;
use crate::shard::release;
use crate::shard::request::{Given, Request};

/// When a message comes again whose bytes could not be read now, though they are there.
const READ_AGAIN_MS: u64 = 1_000;

/// Waits for a pull, and cleans up when dropped before its end.
pub(crate) struct PullGuard {
    node: Node,
    shard: u32,
    ticket: u64,
    receiver: Option<oneshot::Receiver<Result<Vec<Given>, Error>>>,
    outstanding: Vec<Delivery>,
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
        let given = given.map_err(|_| Error::ShuttingDown {})??;
        if given.iter().any(|given| !blobs::is_cached(&given.blob)) {
            self.outstanding.extend(given.iter().map(|given| given.delivery));
        }
        let delivered = self.load(given).await;
        self.outstanding.clear();
        Ok(delivered)
    }

    /// Reads what is not in the cache. A message whose bytes are damaged is held and left out; one whose bytes cannot be
    /// read now comes again later, and this attempt does not count.
    async fn load(&self, given: Vec<Given>) -> Vec<Delivered> {
        let (places, blobs): (Vec<_>, Vec<_>) =
            given.into_iter().map(|Given { delivery, queue, blob }| ((delivery, queue), blob)).unzip();
        let loaded = blobs::load(blobs).await;
        let mut delivered = Vec::with_capacity(places.len());
        let mut later = Vec::new();
        for ((delivery, queue), blob) in places.into_iter().zip(loaded) {
            match blob {
                Ok(blob) => delivered.push(Delivered { delivery, queue, blob }),
                Err(Unread::Damaged) => self.hold(&delivery),
                Err(Unread::Later) => later.push(release_after(&delivery, READ_AGAIN_MS)),
            }
        }
        self.settle(&later);
        delivered
    }

    fn hold(&self, delivery: &Delivery) {
        tracing::error!(message = %delivery.receipt.id, "the stored payload is damaged: the message is held");
        let hold = Command::HoldDamaged { id: delivery.receipt.id, blob: delivery.blob };
        self.node.push_surely(self.shard, Request::surely(&hold));
    }

    fn settle(&self, items: &[SettleItem<'_>]) {
        if let Some(first) = items.first() {
            let settle = Command::Settle { namespace: first.receipt.id.namespace, items };
            self.node.push_surely(self.shard, Request::surely(&settle));
        }
    }
}

fn release_after(delivery: &Delivery, delay_ms: u64) -> SettleItem<'static> {
    SettleItem { settlement: Settlement::Release { delay_ms }, ..release(delivery) }
}

impl Drop for PullGuard {
    fn drop(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            // Closed before the cancellation, which may overtake the pull: the shard lines no closed pull up.
            receiver.close();
            self.node.push_surely(self.shard, Request::Cancel { ticket: self.ticket });
            if let Ok(Ok(given)) = receiver.try_recv() {
                self.outstanding.extend(given.iter().map(|given| given.delivery));
            }
        }
        let items: Vec<_> = self.outstanding.iter().map(release).collect();
        self.settle(&items);
    }
}
