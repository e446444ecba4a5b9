//! The check of what a body names.

use sluice_engine::command::{Attach, Group, QueueItem, ReportItem, Send, SendItem, SettleItem};
use sluice_engine::id::{ConsumerId, Receipt};
use sluice_engine::item::Chain;
use sluice_engine::{Error, MessageId, NamespaceId};
use sluice_node::Sent;
use sluice_node::api::ReceiveOptions;

use super::consumer::Consumer;
use super::receive::{Receive, Receiving};
use super::traced::{Sending, Settling};
use crate::access::Right;
use crate::digest::{group_digest, send_digest};
use crate::error::CallError;
use crate::operation::{Operation, Subject};
use crate::permit::Permit;

/// A permit of a request whose caller may do it with all queues and messages that its body names.
#[derive(Clone, Copy, Debug)]
pub struct Cleared<'c>(Permit<'c>);

/// A permit of a request to send, whose messages lead only to queues that the caller may send to. The
/// messages that they wait for are still to be checked.
#[derive(Debug)]
pub struct Onward<'c> {
    permit: Permit<'c>,
    parents: Vec<MessageId>,
}

impl<'c> Permit<'c> {
    /// Clears a request to take messages from the queue that it names.
    ///
    /// # Errors
    /// `internal`: it is another request.
    pub fn cleared_by_name(self) -> Result<Cleared<'c>, CallError> {
        let operation = self.operation();
        if operation.subject() == Subject::Queue && operation.right() == Right::Receive {
            return Ok(Cleared(self));
        }
        Err(Error::Internal { reason: format!("{} is about more than its name", operation.name()) }.into())
    }

    /// Clears a request to send messages that lead nowhere, or of a caller who may send to every queue;
    /// `None`: what they lead to is to be checked.
    pub fn cleared_sends(self, items: &[SendItem<'_>]) -> Option<Cleared<'c>> {
        let plain = !self.proposes() && items.iter().all(|item| item.options.is_none());
        (plain || self.may_everywhere(Right::Send)).then_some(Cleared(self))
    }

    /// Clears a request of a caller who has the right in every queue of the namespace; `None`: they have not.
    #[inline]
    pub fn cleared_everywhere(self) -> Option<Cleared<'c>> {
        self.may_everywhere(self.operation().right()).then_some(Cleared(self))
    }

    /// Clears a request about these queues.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub fn cleared_queues<'q>(
        self,
        mut queues: impl Iterator<Item = &'q str>,
    ) -> Result<Cleared<'c>, CallError> {
        let right = self.operation().right();
        queues.try_for_each(|queue| self.allow_queue(right, queue))?;
        Ok(Cleared(self))
    }

    /// Clears a request about these messages, by the queues that they are in now.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub async fn cleared_messages(
        self,
        ids: impl Iterator<Item = MessageId>,
    ) -> Result<Cleared<'c>, CallError> {
        self.allow_messages(self.operation().right(), ids).await?;
        Ok(Cleared(self))
    }

    /// Checks the queues that messages to send lead to: for their results, and for the steps that follow.
    /// Checks as well that they are held, if the caller may send no others.
    ///
    /// # Errors
    /// `forbidden`, `unauthenticated`, or `approval_needed`.
    pub fn onward<'i>(
        self,
        items: impl IntoIterator<Item = &'i SendItem<'i>> + Clone,
    ) -> Result<Onward<'c>, CallError> {
        if self.may_everywhere(Right::Send) {
            return Ok(Onward { permit: self, parents: Vec::new() });
        }
        if self.proposes() {
            items.clone().into_iter().try_for_each(|item| self.allow_send(self.name(), item))?;
        }
        self.allow_queues_of(items.clone())?;
        let parents = |item: &SendItem<'i>| item.options.and_then(|options| options.depends_on);
        let parents = items.into_iter().filter_map(parents).flat_map(|parents| parents.ids()).collect();
        Ok(Onward { permit: self, parents })
    }

    fn allow_queues_of<'i>(
        &self,
        items: impl IntoIterator<Item = &'i SendItem<'i>>,
    ) -> Result<(), CallError> {
        for options in items.into_iter().filter_map(|item| item.options) {
            if !options.reply_to.is_empty() {
                self.allow_queue(Right::Send, options.reply_to)?;
            }
            if let Chain::Given(steps) = options.chain {
                for step in steps.steps.iter().chain(steps.on_failure) {
                    self.allow_queue(Right::Send, step.queue)?;
                    self.allow_queues_of([&step.item])?;
                }
            }
        }
        Ok(())
    }
}

/// The proof that what a request of this operation names in this namespace was checked, for a request that
/// goes on later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    operation: Operation,
    namespace: NamespaceId,
}

impl<'c> Permit<'c> {
    /// Clears a request whose body was checked before.
    ///
    /// # Errors
    /// `internal`: the proof is of another operation or namespace.
    pub fn cleared_by(self, proof: Proof) -> Result<Cleared<'c>, CallError> {
        let own = Proof { operation: self.operation(), namespace: self.namespace_id()? };
        if own == proof {
            return Ok(Cleared(self));
        }
        Err(Error::Internal { reason: format!("{own:?} is not cleared by {proof:?}") }.into())
    }
}

impl<'c> Onward<'c> {
    /// Clears the request, if its messages wait for none whose queues would have to be looked up.
    pub fn cleared_at_once(&self) -> Option<Cleared<'c>> {
        self.parents.is_empty().then_some(Cleared(self.permit))
    }

    /// Clears the request if the caller may learn the end of the messages that these wait for.
    ///
    /// # Errors
    /// `forbidden`, or `unauthenticated`.
    pub async fn cleared(self) -> Result<Cleared<'c>, CallError> {
        if let Some(cleared) = self.cleared_at_once() {
            return Ok(cleared);
        }
        self.permit.allow_messages(Right::Result, self.parents.into_iter()).await?;
        Ok(Cleared(self.permit))
    }
}

impl<'c> Cleared<'c> {
    /// The proof of it, which may be kept.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn proof(&self) -> Result<Proof, Error> {
        Ok(Proof { operation: self.0.operation(), namespace: self.0.namespace_id()? })
    }

    /// The permit.
    pub fn permit(&self) -> &Permit<'c> {
        &self.0
    }

    /// Begins to send `items` to the queue that the request names. An empty key is none; else a repeat with
    /// it gets the outcome of the first.
    ///
    /// # Errors
    /// Those of the engine's checks before the proposal; `overloaded`.
    pub fn begin_send(&self, idempotency_key: &[u8], items: &[SendItem<'_>]) -> Result<Sending, Error> {
        let (namespace, queue) = (self.0.namespace_id()?, self.0.name());
        let request_digest = if idempotency_key.is_empty() { 0 } else { send_digest(queue, items) };
        let send = Send { namespace, queue, idempotency_key, request_digest, items };
        let sending = self.0.node().begin_send(&send)?;
        Ok(Sending::new(sending, self.0.calls().traces(), queue, items))
    }

    /// Sends the members of a group, and its callback.
    ///
    /// # Errors
    /// Those of the engine; `forbidden` for a queue that the caller may not send to.
    pub async fn send_group(
        &self,
        idempotency_key: &[u8],
        members: &[QueueItem<'_>],
        callback: &QueueItem<'_>,
    ) -> Result<Sent, CallError> {
        let all = members.iter().chain([callback]);
        all.clone().try_for_each(|member| self.0.allow_queue(Right::Send, member.queue))?;
        let request_digest = if idempotency_key.is_empty() { 0 } else { group_digest(all) };
        let namespace = self.0.namespace_id()?;
        let group = Group { namespace, idempotency_key, request_digest, members, callback };
        Ok(self.0.node().group_send(&group).await?)
    }

    /// Begins to take messages.
    ///
    /// # Errors
    /// Those of the engine's checks before the proposal; `overloaded`.
    pub fn begin_receive(&self, receive: Receive<'_>) -> Result<Receiving, Error> {
        let Receive { queues, max_messages, lease_ms, wait, consumer, room } = receive;
        let namespace = self.0.namespace_id()?;
        let options = ReceiveOptions { namespace, queues, max_messages, lease_ms, wait, consumer, room };
        let name = self.0.named_namespace().filter(|_| !wait.is_zero());
        Ok(Receiving::new(self.0.node().begin_receive(&options)?, name, self.0.calls().traces().cloned()))
    }

    /// Begins to settle deliveries.
    ///
    /// # Errors
    /// Those of the engine's checks before the proposal; `overloaded`.
    pub fn begin_settle(&self, items: &[SettleItem<'_>]) -> Result<Settling, Error> {
        let settling = self.0.node().begin_settle(self.0.namespace_id()?, items)?;
        Ok(Settling::new(settling, self.0.calls().traces(), items))
    }

    /// Settles deliveries; one result for each, in their order.
    ///
    /// # Errors
    /// Those of the node. An item that fails does not fail the others.
    pub async fn settle(&self, items: &[SettleItem<'_>]) -> Result<Vec<Result<(), Error>>, Error> {
        match items.is_empty() {
            true => self.0.namespace_id().map(|_| Vec::new()),
            false => self.begin_settle(items)?.done().await,
        }
    }

    /// Extends leases, by receipt and milliseconds from now; 0: those of the queue. One result for each, in
    /// their order.
    ///
    /// # Errors
    /// Those of the node. An item that fails does not fail the others.
    pub async fn extend(&self, items: &[(Receipt, u64)]) -> Result<Vec<Result<(), Error>>, Error> {
        let namespace = self.0.namespace_id()?;
        match items.is_empty() {
            true => Ok(Vec::new()),
            false => self.0.node().extend(namespace, items).await,
        }
    }

    /// Extends leases and keeps what their holders report. One result for each, in their order.
    ///
    /// # Errors
    /// Those of the node. An item that fails does not fail the others.
    pub async fn report(&self, items: &[ReportItem<'_>]) -> Result<Vec<Result<(), Error>>, Error> {
        let namespace = self.0.namespace_id()?;
        match items.is_empty() {
            true => Ok(Vec::new()),
            false => self.0.node().report(namespace, items).await,
        }
    }

    /// Attaches a consumer.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn attach(&self, consumer: Attached<'_>) -> Result<Consumer, Error> {
        let Attached { name, queues, credit, lease_ms, grace_ms } = consumer;
        let namespace = self.0.namespace_id()?;
        let attach = Attach { namespace, name, queues, credit, lease_ms, grace_ms };
        Ok(Consumer::new(self.0.node().attach(&attach).await?, self.0.calls().traces()))
    }

    /// Sets the credit of a consumer, in messages.
    ///
    /// # Errors
    /// `consumer_not_found`.
    pub async fn credit(&self, consumer: ConsumerId, credit: u32) -> Result<(), Error> {
        self.0.node().credit(self.0.namespace_id()?, consumer, credit).await
    }

    /// Detaches a consumer; what it holds goes back after `grace_ms`.
    ///
    /// # Errors
    /// `consumer_not_found`.
    pub async fn detach(&self, consumer: ConsumerId, grace_ms: u64) -> Result<(), Error> {
        self.0.node().detach(self.0.namespace_id()?, consumer, grace_ms).await
    }
}

/// A consumer to attach.
#[derive(Clone, Copy, Debug)]
pub struct Attached<'a> {
    /// Its name, for those who look.
    pub name: &'a str,
    /// The queues that it takes messages from.
    pub queues: &'a [&'a str],
    /// Number of messages that it may hold at first.
    pub credit: u32,
    /// Its leases, in milliseconds; 0: those of each queue.
    pub lease_ms: u64,
    /// Time after which its messages go back when it is lost without being detached, in milliseconds.
    pub grace_ms: u64,
}
