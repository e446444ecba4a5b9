//! A consumer that is attached, as its caller sees it. Messages come to it as they become ready, as many as
//! it has credit for; settling one gives its credit back. Whatever becomes of the caller, what it has not got
//! returns to its queues, and the attempt does not count. What it has got counts if it is lost: a message
//! that ends its worker must not go round for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sluice_engine::Error;
use sluice_engine::command::{Attach, Command};
use sluice_engine::id::{ConsumerId, NamespaceId, Receipt};
use sluice_engine::query::{ConsumerView, HeldView};
use tokio::sync::oneshot;

use crate::api::Delivered;
use crate::handle::{LOOK_ITEMS, Node};
use crate::receiving::{give_back, give_back_later, load, take_all};
use crate::shard::channel::{Channel, DetachedBy, Handed, News};
use crate::shard::request::Attaching;
use crate::shard::request::{Given, Request, ShardView};

/// Event of a consumer.
#[derive(Debug)]
pub enum Event {
    /// Messages, in the order in which they were given.
    Delivered(Vec<Delivered>),
    /// Messages that it holds were cancelled: it may drop its work, and settle them in any way.
    Cancelled(Vec<Receipt>),
    /// A consumer that gets nothing more. What it holds stays its own for the time of grace.
    Detached(DetachedBy),
}

type Loading = Pin<Box<dyn Future<Output = Vec<Delivered>> + Send + Sync>>;

/// A consumer that is attached. Dropping it says that it was lost. What was given out by [`Consumer::next`]
/// stays its own for the time of grace that it was attached with; what is left then goes back, as a failed
/// attempt. Everything else returns at once, and the attempts do not count. Who ends in order has
/// [`Node::detach`].
pub struct Consumer {
    node: Node,
    shard: u32,
    namespace: NamespaceId,
    grace_ms: u64,
    id: ConsumerId,
    channel: Arc<Channel>,
    /// Bytes that are being read from the disk.
    loading: Option<Loading>,
    /// Deliveries that were taken and that nobody has got.
    outstanding: Vec<Receipt>,
    /// Token of the latest delivery that was given out, or that it went on with: tokens grow from delivery to
    /// delivery.
    reached: u64,
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Node {
    /// Attaches a consumer. When it is dropped, the server is told to stop, or the leader is lost, its
    /// receipts count on for its time of grace; then what is left of them goes back.
    ///
    /// # Errors
    /// As [`Command::check`]; `queue_not_found` where queues are not created by use; `limit_exceeded`;
    /// `overloaded`.
    pub async fn attach(&self, attach: &Attach<'_>) -> Result<Consumer, Error> {
        let (namespace, grace_ms) = (attach.namespace, attach.grace_ms);
        Command::Attach(*attach).check(&self.limits())?;
        let shard = self.inner.placement.shard_of(namespace)?;
        let channel = Arc::new(Channel::new(&self.inner.unread_bytes));
        let (sender, receiver) = oneshot::channel();
        let attaching = Attaching::new(attach, Arc::clone(&channel), sender);
        // Made before it is attached: when this future is dropped, it is what detaches.
        let mut consumer = Consumer {
            node: self.clone(),
            shard,
            namespace,
            grace_ms,
            id: ConsumerId(0),
            channel,
            loading: None,
            outstanding: Vec::new(),
            reached: 0,
        };
        self.push(shard, Request::Attach(Box::new(attaching)))?;
        consumer.id = receiver.await.map_err(|_| Error::OutcomeUnknown {})??;
        Ok(consumer)
    }
}

impl Node {
    /// Sets how many messages a consumer may hold at a time. What it holds beyond stays its own.
    ///
    /// # Errors
    /// `invalid_argument` for too much; `consumer_not_found` when it is not attached.
    pub async fn credit(
        &self,
        namespace: NamespaceId,
        consumer: ConsumerId,
        credit: u32,
    ) -> Result<(), Error> {
        let command = Command::Credit { namespace, consumer, credit };
        self.propose(namespace, &command).await?.result.map(|_| ())
    }

    /// Detaches a consumer. What it holds goes back after `grace_ms`, and the attempt does not count.
    ///
    /// # Errors
    /// `invalid_argument` for too long; `consumer_not_found` when it is not attached.
    pub async fn detach(
        &self,
        namespace: NamespaceId,
        consumer: ConsumerId,
        grace_ms: u64,
    ) -> Result<(), Error> {
        let command = Command::Detach { namespace, consumer, grace_ms, reached: 0 };
        self.propose(namespace, &command).await?.result.map(|_| ())
    }

    /// Consumers of a namespace in the order in which they came, after `after`; at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn consumers(
        &self,
        namespace: NamespaceId,
        after: Option<ConsumerId>,
        limit: usize,
    ) -> Result<Vec<ConsumerView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let mut after = after;
        let mut consumers = Vec::new();
        while consumers.len() < limit {
            let most = LOOK_ITEMS.min(limit - consumers.len());
            let page = self.look(shard, move |at| at.engine.consumers(namespace, after, most)).await?;
            let full = page.len() == most;
            after = page.last().map(|consumer| consumer.id);
            consumers.extend(page);
            if !full {
                break;
            }
        }
        Ok(consumers)
    }

    /// One consumer with what it holds, longest first, at most `limit` messages.
    ///
    /// # Errors
    /// `consumer_not_found`.
    pub async fn consumer_with_held(
        &self,
        namespace: NamespaceId,
        consumer: ConsumerId,
        limit: usize,
    ) -> Result<(ConsumerView, Vec<HeldView>), Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let see = move |at: &mut ShardView<'_>| {
            Some((at.engine.consumer(namespace, consumer)?, at.engine.held(namespace, consumer, limit)))
        };
        self.look(shard, see)
            .await?
            .ok_or_else(|| Error::ConsumerNotFound { consumer: consumer.0.to_string() })
    }

    /// Why a shard has ended.
    fn why_ended(&self) -> Error {
        match &*self.inner.failure.borrow() {
            None => Error::ShuttingDown {},
            Some(reason) => Error::JournalFailed { reason: reason.clone() },
        }
    }
}

impl Consumer {
    /// Its number, by which others know it.
    pub fn id(&self) -> ConsumerId {
        self.id
    }

    /// The namespace of its queues.
    pub fn namespace(&self) -> NamespaceId {
        self.namespace
    }

    /// Goes on with what it held before its connection broke, or what others hold: each lease begins anew. It
    /// may so hold more than its credit. One result per receipt, in order. Its place is before there is
    /// credit: what it was given earlier counts as given out from then on.
    ///
    /// # Errors
    /// When the whole is refused: too many receipts; `consumer_not_found` when it is not attached.
    pub async fn resume(&mut self, receipts: &[Receipt]) -> Result<Vec<Result<(), Error>>, Error> {
        let (namespace, consumer) = (self.namespace, self.id);
        let command = Command::Resume { namespace, consumer, receipts };
        let before = self.reached;
        // Whoever lets go of this future does not know which of them it got.
        self.reached = receipts.iter().map(|receipt| receipt.token).fold(before, u64::max);
        let resumed = self.node.propose(namespace, &command).await;
        self.reached = before;
        let results = resumed?.into_item_results(receipts.len())?;
        let taken = receipts.iter().zip(&results).filter(|(_, result)| result.is_ok());
        self.reached = taken.map(|(receipt, _)| receipt.token).fold(before, u64::max);
        Ok(results)
    }

    /// Waits until there is something for [`Consumer::next`] with the same bounds; tells how many bytes of
    /// payloads that will be, an empty one counted as 1. Nothing is taken: who has no room for so much may
    /// wait before it takes them.
    pub async fn ready(&self, messages: usize, bytes: u64) -> u64 {
        loop {
            match self.channel.takes(messages, bytes) {
                Some(bytes) => return bytes,
                None => self.channel.wait().await,
            }
        }
    }

    /// Messages that it holds and that were cancelled, as far as [`Event::Cancelled`] has not told it,
    /// without a wait; `None`: it gets nothing more, as [`Event::Detached`] or an error will say. Who begins
    /// the work on a message later than it was given out asks before it does.
    pub fn cancelled(&self) -> Option<Vec<Receipt>> {
        self.channel.take_cancelled()
    }

    /// Waits for the next event. Messages: at most so many, and so many bytes of them, though at least one.
    /// After [`Event::Detached`] the same comes again. The future may be dropped and made anew: nothing is
    /// lost.
    ///
    /// # Errors
    /// `shutting_down` or `journal_failed` when the shard has ended.
    pub async fn next(&mut self, messages: usize, bytes: u64) -> Result<Event, Error> {
        loop {
            match self.take_ready(messages, bytes).await? {
                Some(event) => return Ok(event),
                None => self.channel.wait().await,
            }
        }
    }

    /// Like [`Consumer::next`], but waits for nothing more than the bytes of messages. `None`: there is
    /// nothing, which may be so after [`Consumer::ready`] too, since messages may have left it meanwhile, and
    /// those that turn out to be damaged are held.
    ///
    /// # Errors
    /// As of [`Consumer::next`].
    pub async fn take_ready(&mut self, messages: usize, bytes: u64) -> Result<Option<Event>, Error> {
        loop {
            if let Some(loading) = &mut self.loading {
                let delivered = loading.await;
                self.loading = None;
                self.outstanding.clear();
                if !delivered.is_empty() {
                    return Ok(Some(self.give_out(delivered)));
                }
            }
            match self.channel.take(messages, bytes) {
                None => return Ok(None),
                Some(News::Cancelled(receipts)) => return Ok(Some(Event::Cancelled(receipts))),
                Some(News::Detached(DetachedBy::ShardEnded)) => return Err(self.node.why_ended()),
                Some(News::Detached(by)) => return Ok(Some(Event::Detached(by))),
                Some(News::Handed(mut handed)) => {
                    if !are_here(&mut handed) {
                        self.load(handed);
                        continue;
                    }
                    let given = handed.into_iter().filter_map(Handed::into_given).collect();
                    // All is in memory: it does not wait for anything, so nothing can be lost on the way.
                    let delivered = load(&self.node, self.shard, given).await;
                    return Ok(Some(self.give_out(delivered)));
                }
            }
        }
    }

    fn give_out(&mut self, delivered: Vec<Delivered>) -> Event {
        if let Some(last) = delivered.last() {
            self.reached = last.delivery.receipt.token;
        }
        Event::Delivered(delivered)
    }

    /// Begins to read what has to be read from the disk, or to be fetched first.
    fn load(&mut self, handed: Vec<Handed>) {
        self.outstanding.extend(handed.iter().map(|handed| handed.delivery().receipt));
        let (node, shard) = (self.node.clone(), self.shard);
        self.loading = Some(Box::pin(async move {
            let given = fetch(&node, shard, handed).await;
            load(&node, shard, given).await
        }));
    }

    /// Drops it, and gives back messages that it did give out and that did not reach whoever was to work on
    /// them: all from one of them on.
    pub fn abandon(mut self, unsent: impl IntoIterator<Item = Receipt>) {
        for receipt in unsent {
            self.reached = self.reached.min(receipt.token.saturating_sub(1));
            self.outstanding.push(receipt);
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if let Some(consumer) = self.channel.leave() {
            let (namespace, grace_ms, reached) = (self.namespace, self.grace_ms, self.reached);
            let detach = Command::Detach { namespace, consumer, grace_ms, reached };
            self.node.push_surely(self.shard, Request::surely(&detach));
        }
        give_back(&self.node, self.shard, &self.outstanding);
    }
}

fn are_here(handed: &mut [Handed]) -> bool {
    !handed.iter().any(Handed::is_bare) && take_all(handed.iter_mut().filter_map(Handed::given_mut))
}

/// Fetches the bytes of those that came without, in order. What cannot be looked up now comes again later.
async fn fetch(node: &Node, shard: u32, handed: Vec<Handed>) -> Vec<Given> {
    let mut given = Vec::with_capacity(handed.len());
    let mut handed = handed.into_iter().peekable();
    while handed.peek().is_some() {
        let page: Vec<Handed> = handed.by_ref().take(LOOK_ITEMS).collect();
        if !page.iter().any(Handed::is_bare) {
            given.extend(page.into_iter().filter_map(Handed::into_given));
            continue;
        }
        let receipts: Vec<Receipt> = page.iter().map(|handed| handed.delivery().receipt).collect();
        let fetched = node.look(shard, move |at| {
            let fetch = |handed| match handed {
                Handed::Given(given) => Some(given),
                Handed::Bare(delivery) => at.fetch(delivery),
            };
            page.into_iter().filter_map(fetch).collect::<Vec<_>>()
        });
        match fetched.await {
            Ok(fetched) => given.extend(fetched),
            Err(_) => give_back_later(node, shard, &receipts),
        }
    }
    given
}
