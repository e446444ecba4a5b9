//! The caller's side of a receive. Whatever happens to the caller, no message is left in nobody's hands: what was on
//! its way to a caller that went is given back.

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::outcome::Delivery;
use tokio::sync::oneshot;

use crate::api::Delivered;
use crate::blobs;
use crate::handle::Node;
use crate::shard::release;
use crate::shard::request::{Given, Proposal, ReplyTo, Request};

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

    /// Reads what is not in the cache. A message whose bytes are damaged is held and left out.
    async fn load(&self, given: Vec<Given>) -> Vec<Delivered> {
        let (places, blobs): (Vec<_>, Vec<_>) =
            given.into_iter().map(|Given { delivery, queue, blob }| ((delivery, queue), blob)).unzip();
        let loaded = blobs::load(blobs).await;
        let mut delivered = Vec::with_capacity(places.len());
        for ((delivery, queue), blob) in places.into_iter().zip(loaded) {
            match blob {
                Some(blob) => delivered.push(Delivered { delivery, queue, blob }),
                None => self.hold(&delivery),
            }
        }
        delivered
    }

    fn hold(&self, delivery: &Delivery) {
        tracing::error!(message = %delivery.receipt.id, "the stored payload is damaged: the message is held");
        let hold = Command::HoldDamaged { id: delivery.receipt.id, blob: delivery.blob };
        let _ = self.node.push(self.shard, Request::Propose(Proposal::new(&hold, ReplyTo::Nobody)));
    }

    fn give_back(&self, deliveries: &[Delivery]) {
        let Some(first) = deliveries.first() else { return };
        let items: Vec<_> = deliveries.iter().map(release).collect();
        let settle = Command::Settle { namespace: first.receipt.id.namespace, items: &items };
        let _ = self.node.push(self.shard, Request::Propose(Proposal::new(&settle, ReplyTo::Nobody)));
    }
}

impl Drop for PullGuard {
    fn drop(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            let _ = self.node.push(self.shard, Request::Cancel { ticket: self.ticket });
            receiver.close();
            if let Ok(Ok(given)) = receiver.try_recv() {
                self.outstanding.extend(given.iter().map(|given| given.delivery));
            }
        }
        self.give_back(&self.outstanding);
    }
}
