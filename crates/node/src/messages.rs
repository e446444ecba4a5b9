//! Sending, receiving and settling messages, through the handle.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::{Command, Receive, ReportItem, Send, SettleItem};
use sluice_engine::id::{NamespaceId, Receipt};
use sluice_engine::limits::{Limits, SLICE_ITEMS};
use tokio::sync::oneshot;

use crate::api::{Delivered, ReceiveOptions, Sent};
use crate::handle::Node;
use crate::pending::{Receiving, Sending, Settling, Slice};
use crate::receiving::PullGuard;
use crate::shard::release;
use crate::shard::request::{Proposal, Pull, PullReply, ReplyTo, Request};

/// Upper limit of a receive's wait.
const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Upper limit of the payload bytes of a receive, unless its first message alone is larger.
pub(crate) const RECEIVE_BYTES_MAX: u32 = 16 << 20;

impl Node {
    /// Sends messages to one queue, all or none.
    ///
    /// # Errors
    /// As [`Command::check`], and what the engine says of quotas, limits and idempotency.
    pub async fn send(&self, send: &Send<'_>) -> Result<Sent, Error> {
        self.begin_send(send)?.done().await
    }

    /// As [`Node::send`], proposed before the return: it precedes all that this caller begins later.
    ///
    /// # Errors
    /// As [`Command::check`]; `overloaded`.
    pub fn begin_send(&self, send: &Send<'_>) -> Result<Sending, Error> {
        let shard = self.inner.placement.shard_of(send.namespace)?;
        let command = Command::Send(send.clone());
        command.check(&self.limits())?;
        self.begin_proposal(shard, &command).map(Sending)
    }

    /// Receives messages, waiting for a first one if asked to. A dropped future gives back what was in
    /// flight.
    ///
    /// # Errors
    /// As [`Command::check`]; `queue_not_found` where queues are not created by use; `overloaded`.
    pub async fn receive(&self, receive: &ReceiveOptions<'_>) -> Result<Vec<Delivered>, Error> {
        self.begin_receive(receive)?.done().await
    }

    /// As [`Node::receive`], requested before the return.
    ///
    /// # Errors
    /// As [`Command::check`]; `overloaded`.
    pub fn begin_receive(&self, receive: &ReceiveOptions<'_>) -> Result<Receiving, Error> {
        check_receive(receive, &self.limits())?;
        let shard = self.inner.placement.shard_of(receive.namespace)?;
        let ticket = self.inner.tickets.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let pull = Pull {
            ticket,
            namespace: receive.namespace,
            queues: receive.queues.iter().map(|(name, weight)| ((*name).into(), *weight)).collect(),
            max_messages: receive.max_messages,
            max_bytes: RECEIVE_BYTES_MAX,
            lease_ms: receive.lease_ms,
            wait_us: receive.wait.as_micros() as u64,
            consumer: receive.consumer.into(),
            room: receive.room.clone(),
            reply: PullReply::Once(sender),
        };
        self.push(shard, Request::Pull(Box::new(pull)))?;
        Ok(Receiving(PullGuard::new(self.clone(), shard, ticket, receiver)))
    }

    /// Settles deliveries; one result per item, in order.
    ///
    /// # Errors
    /// When the batch as a whole is refused: too many items, unknown namespace, overload.
    pub async fn settle(
        &self,
        namespace: NamespaceId,
        items: &[SettleItem<'_>],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        self.begin_settle(namespace, items)?.done().await
    }

    /// As [`Node::settle`], proposed before the return.
    ///
    /// # Errors
    /// When the batch as a whole is refused.
    pub fn begin_settle(&self, namespace: NamespaceId, items: &[SettleItem<'_>]) -> Result<Settling, Error> {
        self.propose_slices(namespace, items, |items| Command::Settle { namespace, items })
    }

    /// Gives deliveries of one namespace back: their attempts do not count. Requested before the return,
    /// ahead of what waits, and not refused when there is much to do.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn give_deliveries_back(
        &self,
        namespace: NamespaceId,
        receipts: &[Receipt],
    ) -> Result<Settling, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let slices = receipts.chunks(SLICE_ITEMS).map(|slice| {
            let items: Vec<_> = slice.iter().copied().map(release).collect();
            let settle = Command::Settle { namespace, items: &items };
            let (sender, receiver) = oneshot::channel();
            self.push_surely(shard, Request::Propose(Proposal::new(&settle, ReplyTo::Once(sender))));
            Slice { items: slice.len(), proposed: Ok(receiver) }
        });
        Ok(Settling(slices.collect()))
    }

    /// Extends leases; one result per item, in order.
    ///
    /// # Errors
    /// When the batch as a whole is refused: too many items, a lease over the limit, unknown namespace,
    /// overload.
    pub async fn extend(
        &self,
        namespace: NamespaceId,
        items: &[(Receipt, u64)],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        self.propose_slices(namespace, items, |items| Command::Extend { namespace, items })?.done().await
    }

    /// Extends leases, and stores progress and checkpoints; one result per item, in order.
    ///
    /// # Errors
    /// As [`Node::extend`]; for a note or checkpoint that is too large, and on a full disk.
    pub async fn report(
        &self,
        namespace: NamespaceId,
        items: &[ReportItem<'_>],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let answer = self.propose(namespace, &Command::Report { namespace, items }).await?;
        answer.into_item_results(items.len())
    }

    /// Proposes a command of many items in slices; each item has a result of its own.
    fn propose_slices<'a, T>(
        &self,
        namespace: NamespaceId,
        items: &'a [T],
        command: impl Fn(&'a [T]) -> Command<'a>,
    ) -> Result<Settling, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        command(items).check(&self.limits())?;
        let slices = items.chunks(SLICE_ITEMS);
        let propose = |slice: &'a [T]| Slice {
            items: slice.len(),
            proposed: self.begin_proposal(shard, &command(slice)),
        };
        Ok(Settling(slices.map(propose).collect()))
    }
}

fn check_receive(receive: &ReceiveOptions<'_>, limits: &Limits) -> Result<(), Error> {
    if receive.wait > RECEIVE_WAIT_MAX {
        let reason = format!("{} is more than {} ms", receive.wait.as_millis(), RECEIVE_WAIT_MAX.as_millis());
        return Err(Error::InvalidArgument { field: "wait_ms".to_owned(), reason });
    }
    let command = Command::Receive(Receive {
        namespace: receive.namespace,
        queues: receive.queues,
        max_messages: receive.max_messages,
        max_bytes: RECEIVE_BYTES_MAX,
        lease_ms: receive.lease_ms,
        consumer: receive.consumer,
    });
    command.check(limits)
}
