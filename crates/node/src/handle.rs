//! The async handle: turns calls into requests to shards and waits for the answers. It holds no rule of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::{Command, Receive, ReportItem, Send, SettleItem};
use sluice_engine::id::{MessageId, NamespaceId, Receipt};
use sluice_engine::limits::{Limits, SLICE_ITEMS};
use sluice_engine::outcome::Reply;
use sluice_engine::query::QueueView;
use sluice_engine::settings::QueuePatch;
use sluice_journal::{Backups, Keyring, RecoveryReport};
use tokio::sync::{oneshot, watch};

use crate::api::{Delivered, Options, ReceiveOptions, Sent, StartError};
use crate::begun::{Receiving, Sending, Settling, Slice};
use crate::bulk::Bulks;
use crate::driver::Threads;
use crate::keys::KeySource;
use crate::mailbox::Mailbox;
use crate::placement::Placement;
use crate::pulling::PullGuard;
pub(crate) use crate::shard::request::unexpected;
use crate::shard::request::{Answer, Looking, Proposal, Pull, PullReply, Read, ReplyTo, Request};

/// Wait after which a caller that found the mailbox full may come back.
const RETRY_AFTER_MS: u64 = 500;
/// Longest wait of a receive.
const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Payload bytes that one receive hands out at most, though at least one message.
pub(crate) const RECEIVE_BYTES_MAX: u32 = 16 << 20;

/// A running node; clones share it.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("shards", &self.inner.mailboxes.len()).finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) mailboxes: Vec<Mailbox<Request>>,
    pub(crate) placement: Placement,
    pub(crate) limits: Limits,
    pub(crate) threads: Threads,
    pub(crate) tickets: AtomicU64,
    pub(crate) stopping: AtomicBool,
    pub(crate) failure: watch::Receiver<Option<String>>,
    pub(crate) bulks: Bulks,
    /// Bytes of payloads that wait for the readers of consumers.
    pub(crate) unread_bytes: Arc<AtomicU64>,
    pub(crate) namespace_changes: Arc<tokio::sync::Mutex<()>>,
    /// Emptied when the node has stopped, since each holds its directory.
    pub(crate) backups: Mutex<Vec<Backups>>,
    /// Likewise.
    pub(crate) keyrings: Mutex<Vec<Keyring>>,
    pub(crate) key_source: Option<Arc<dyn KeySource>>,
    pub(crate) in_memory: bool,
    pub(crate) reports: Vec<RecoveryReport>,
}

impl Node {
    /// Opens the data directory, recovers, and starts the shards. Blocks until ready to serve.
    ///
    /// # Errors
    /// A sentence for the operator: what is wrong with the directory, the journal or the clock, and what to do.
    pub fn start(options: Options) -> Result<Node, StartError> {
        crate::start::start(options)
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// What each shard's journal found at the start.
    pub fn recovery_reports(&self) -> &[RecoveryReport] {
        &self.inner.reports
    }

    /// The way into the shard of a namespace, for callers with many requests on their way at once: they number them,
    /// and find the completions in a mailbox of their own. Nothing is checked here: [`Command::check`] first.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn mailbox(&self, namespace: NamespaceId) -> Result<Mailbox<Request>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        Ok(self.inner.mailboxes[shard as usize].clone())
    }

    /// The number behind a namespace's name.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn namespace_id(&self, name: &str) -> Result<NamespaceId, Error> {
        self.inner.placement.by_name(name).map(|place| place.namespace)
    }

    /// Sends messages to one queue, all or none.
    ///
    /// # Errors
    /// As [`Command::check`], and what the engine says of quotas, limits and idempotency.
    pub async fn send(&self, send: &Send<'_>) -> Result<Sent, Error> {
        self.begin_send(send)?.done().await
    }

    /// The same, with what is sent out of the hands of the caller at once: it goes before all that this caller begins later.
    ///
    /// # Errors
    /// As [`Command::check`]; `overloaded`.
    pub fn begin_send(&self, send: &Send<'_>) -> Result<Sending, Error> {
        let shard = self.inner.placement.shard_of(send.namespace)?;
        let command = Command::Send(send.clone());
        command.check(&self.inner.limits)?;
        self.begin_proposal(shard, &command).map(Sending)
    }

    /// Takes messages, waiting for a first one if told to. Dropping the future gives back what was on its way.
    ///
    /// # Errors
    /// As [`Command::check`]; `queue_not_found` where queues are not created by use; `overloaded`.
    pub async fn receive(&self, receive: &ReceiveOptions<'_>) -> Result<Vec<Delivered>, Error> {
        self.begin_receive(receive)?.done().await
    }

    /// The same, asked for at once.
    ///
    /// # Errors
    /// As [`Command::check`]; `overloaded`.
    pub fn begin_receive(&self, receive: &ReceiveOptions<'_>) -> Result<Receiving, Error> {
        check_receive(receive, &self.inner.limits)?;
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

    /// The same, out of the hands of the caller at once.
    ///
    /// # Errors
    /// When the batch as a whole is refused.
    pub fn begin_settle(&self, namespace: NamespaceId, items: &[SettleItem<'_>]) -> Result<Settling, Error> {
        self.propose_slices(namespace, items, |items| Command::Settle { namespace, items })
    }

    /// Extends leases; one result per item, in order.
    ///
    /// # Errors
    /// When the batch as a whole is refused: too many items, a lease over the limit, unknown namespace, overload.
    pub async fn extend(
        &self,
        namespace: NamespaceId,
        items: &[(Receipt, u64)],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        self.propose_slices(namespace, items, |items| Command::Extend { namespace, items })?.done().await
    }

    /// Extends leases, and takes down progress and checkpoints; one result per item, in order.
    ///
    /// # Errors
    /// As [`Node::extend`]; for a note or checkpoint that is too large, and on a full disk.
    pub async fn report(
        &self,
        namespace: NamespaceId,
        items: &[ReportItem<'_>],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let answer = self.propose(namespace, &Command::Report { namespace, items }).await?;
        item_results(answer, items.len())
    }

    /// Changes settings; with `create` makes a missing queue. Tells whether it is new.
    ///
    /// # Errors
    /// `queue_not_found` without `create`; `invalid_argument` for a setting out of range.
    pub async fn queue_set(
        &self,
        namespace: NamespaceId,
        queue: &str,
        patch: QueuePatch,
        create: bool,
    ) -> Result<(QueueView, bool), Error> {
        let command = Command::QueueSet { namespace, queue, patch, create };
        match self.propose(namespace, &command).await?.result? {
            Reply::Queue { created, .. } => Ok((self.queue(namespace, queue).await?, created)),
            other => Err(unexpected(&other)),
        }
    }

    /// Drops what waits in a queue; tells how many messages.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub async fn queue_purge(&self, namespace: NamespaceId, queue: &str) -> Result<u64, Error> {
        self.count(namespace, &Command::QueuePurge { namespace, queue }).await
    }

    /// Deletes a queue and all in it; tells how many messages.
    ///
    /// # Errors
    /// `queue_not_found`.
    pub async fn queue_delete(&self, namespace: NamespaceId, queue: &str) -> Result<u64, Error> {
        self.count(namespace, &Command::QueueDelete { namespace, queue }).await
    }

    /// Makes dead letters ready again; empty `ids`: all. Tells how many.
    ///
    /// # Errors
    /// `queue_not_found`, `message_not_found`, `wrong_state`.
    pub async fn dead_redrive(
        &self,
        namespace: NamespaceId,
        queue: &str,
        ids: &[MessageId],
    ) -> Result<u64, Error> {
        self.count(namespace, &Command::DeadRedrive { namespace, queue, ids }).await
    }

    /// Redrives those that are dead at this moment, so many per second; 0 ends what runs. Tells how many are left to be.
    ///
    /// # Errors
    /// `queue_not_found`; `invalid_argument` for a rate out of range.
    pub async fn dead_redrive_rate(
        &self,
        namespace: NamespaceId,
        queue: &str,
        per_second: u32,
    ) -> Result<u64, Error> {
        self.count(namespace, &Command::DeadRedriveRate { namespace, queue, per_second }).await
    }

    /// Deletes dead letters; empty `ids`: all. Tells how many.
    ///
    /// # Errors
    /// `queue_not_found`, `message_not_found`, `wrong_state`.
    pub async fn dead_delete(
        &self,
        namespace: NamespaceId,
        queue: &str,
        ids: &[MessageId],
    ) -> Result<u64, Error> {
        self.count(namespace, &Command::DeadDelete { namespace, queue, ids }).await
    }

    /// Whether requests are served: false while stopping and after a journal has failed.
    pub fn ready(&self) -> bool {
        !self.inner.stopping.load(Ordering::Relaxed) && self.inner.failure.borrow().is_none()
    }

    /// Resolves when a journal has failed, with the reason; the process has to stop then.
    pub async fn failed(&self) -> String {
        let mut failure = self.inner.failure.clone();
        let reason = failure.wait_for(Option::is_some).await.map(|reason| reason.clone());
        match reason {
            Ok(reason) => reason.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Waiting receives end empty, and later ones do not wait; everything else goes on.
    pub fn drain(&self) {
        for mailbox in &self.inner.mailboxes {
            mailbox.push_surely(Request::Drain);
        }
    }

    /// Stops: new requests get `shutting_down`, waiting receives end empty, what is in flight is finished and synced.
    ///
    /// # Errors
    /// `internal` when the shards did not end within the grace period; `journal_failed` when the last sync failed.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), Error> {
        self.inner.stopping.store(true, Ordering::Relaxed);
        for mailbox in &self.inner.mailboxes {
            mailbox.push_surely(Request::Stop);
        }
        let inner = Arc::clone(&self.inner);
        let joined = tokio::task::spawn_blocking(move || inner.threads.join());
        match tokio::time::timeout(grace, joined).await {
            Ok(_) => {
                self.inner.backups.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.inner.keyrings.lock().unwrap_or_else(PoisonError::into_inner).clear();
                match &*self.inner.failure.borrow() {
                    None => Ok(()),
                    Some(reason) => Err(Error::JournalFailed { reason: reason.clone() }),
                }
            }
            Err(_) => Err(Error::Internal { reason: format!("the shards did not end within {grace:?}") }),
        }
    }

    pub(crate) fn push(&self, shard: u32, request: Request) -> Result<(), Error> {
        if self.inner.stopping.load(Ordering::Relaxed) {
            return Err(Error::ShuttingDown {});
        }
        let overloaded = |_| Error::Overloaded { what: "requests", retry_after_ms: RETRY_AFTER_MS };
        self.inner.mailboxes[shard as usize].push(request).map_err(overloaded)
    }

    /// For what ends something that a shard has taken in: it is not refused, in whatever state the node is.
    pub(crate) fn push_surely(&self, shard: u32, request: Request) {
        self.inner.mailboxes[shard as usize].push_surely(request);
    }

    /// Puts a command into the log of its namespace's shard and waits for what comes of it.
    pub(crate) async fn propose(
        &self,
        namespace: NamespaceId,
        command: &Command<'_>,
    ) -> Result<Answer, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        self.propose_on(shard, command).await
    }

    pub(crate) async fn propose_on(&self, shard: u32, command: &Command<'_>) -> Result<Answer, Error> {
        command.check(&self.inner.limits)?;
        self.begin_proposal(shard, command)?.await.map_err(|_| Error::OutcomeUnknown {})
    }

    pub(crate) fn begin_proposal(
        &self,
        shard: u32,
        command: &Command<'_>,
    ) -> Result<oneshot::Receiver<Answer>, Error> {
        let (sender, receiver) = oneshot::channel();
        self.push(shard, Request::Propose(Proposal::new(command, ReplyTo::Once(sender))))?;
        Ok(receiver)
    }

    /// Proposes a command of many items, each with a result of its own.
    fn propose_slices<'a, T>(
        &self,
        namespace: NamespaceId,
        items: &'a [T],
        command: impl Fn(&'a [T]) -> Command<'a>,
    ) -> Result<Settling, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        command(items).check(&self.inner.limits)?;
        let slices = items.chunks(SLICE_ITEMS);
        let propose = |slice: &'a [T]| Slice {
            items: slice.len(),
            proposed: self.begin_proposal(shard, &command(slice)),
        };
        Ok(Settling(slices.map(propose).collect()))
    }

    async fn count(&self, namespace: NamespaceId, command: &Command<'_>) -> Result<u64, Error> {
        match self.propose(namespace, command).await?.result? {
            Reply::Count { messages } => Ok(messages),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs a look at a shard's state between two batches. It must take bounded time.
    pub(crate) async fn look<T: std::marker::Send + 'static>(
        &self,
        shard: u32,
        look: impl FnOnce(&mut Looking<'_>) -> T + std::marker::Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        let read = Read(Box::new(move |looking| {
            let _ = sender.send(looking.map(look));
        }));
        self.push(shard, Request::Read(read))?;
        receiver.await.map_err(|_| Error::ShuttingDown {})?
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

pub(crate) fn item_results(answer: Answer, items: usize) -> Result<Vec<Result<(), Error>>, Error> {
    answer.result?;
    Ok(if answer.results.is_empty() { vec![Ok(()); items] } else { answer.results })
}
