//! The handle of a running node: async calls become requests to shards. It holds no rule of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sluice_engine::Error;
use sluice_engine::command::Command;
use sluice_engine::id::NamespaceId;
use sluice_engine::limits::Limits;
use sluice_journal::{Backups, Keyring, RecoveryReport};
use tokio::sync::{Notify, oneshot, watch};

use crate::agreed_clock::AgreedClock;
use crate::api::KeySource;
use crate::bulk::Bulks;
use crate::cluster::{ClusterOptions, Inboxes};
use crate::driver::Threads;
use crate::driving::Driving;
use crate::in_force::InForce;
use crate::known_indexes::KnownIndexes;
use crate::mailbox::Mailbox;
use crate::pace::Pace;
use crate::placement::Placement;
use crate::shard::leader::Leader;
use crate::shard::replicated::forgotten::Forgotten;
use crate::shard::request::{Answer, Proposal, Read, ReplyTo, Request, ShardView};

/// Wait suggested to a caller whose request found the mailbox full, in milliseconds.
const RETRY_AFTER_MS: u64 = 500;
/// Pause before a shard whose mailbox was full is looked at again.
const FULL_PAUSE: Duration = Duration::from_millis(10);
/// Items of a list that one look touches, so that no look delays the shard.
pub(crate) const LOOK_ITEMS: usize = 200;

/// A running node; clones share it.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
    /// True when reads may be behind.
    pub(crate) is_stale: bool,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("shards", &self.inner.mailboxes.len()).finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) mailboxes: Vec<Mailbox<Request>>,
    pub(crate) placement: Arc<Placement>,
    /// One per shard.
    pub(crate) leaders: Vec<Leader>,
    /// That of shard 0.
    pub(crate) agreed_clock: AgreedClock,
    pub(crate) inboxes: Inboxes,
    /// `None`: the node is alone.
    pub(crate) cluster: Option<ClusterOptions>,
    pub(crate) forgotten: Forgotten,
    /// One per shard: held while its namespaces are brought into line with shard 0.
    pub(crate) following: Vec<tokio::sync::Mutex<()>>,
    /// Limits in force.
    pub(crate) limits: Arc<InForce>,
    /// Told of changes of the server's own data by shard 0.
    pub(crate) system: Arc<Notify>,
    /// Limits of the settings.
    pub(crate) own_limits: Limits,
    /// Time by which tests have moved the time, in microseconds; `None`: nobody may move it.
    pub(crate) movable_time: Option<Mutex<u64>>,
    pub(crate) threads: Threads,
    pub(crate) tickets: AtomicU64,
    pub(crate) stopping: AtomicBool,
    pub(crate) failure: watch::Receiver<Option<String>>,
    pub(crate) bulks: Bulks,
    /// One per shard.
    pub(crate) paces: Vec<Pace>,
    pub(crate) known_indexes: KnownIndexes,
    pub(crate) driving: Driving,
    /// Bytes of payloads waiting for readers of consumers.
    pub(crate) unread_bytes: Arc<AtomicU64>,
    /// Held while something that shard 0 decides is changed.
    pub(crate) shared_changes: Arc<tokio::sync::Mutex<()>>,
    /// One per shard. Emptied when the node has stopped, since each holds its directory.
    pub(crate) backups: Mutex<Vec<Backups>>,
    /// As `backups`.
    pub(crate) keyrings: Mutex<Vec<Keyring>>,
    pub(crate) key_source: Option<Arc<dyn KeySource>>,
    /// `None`: data is in memory.
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) reports: Vec<RecoveryReport>,
    /// Damage of shards in whose places empty ones stand, by their numbers.
    pub(crate) damaged: BTreeMap<u32, String>,
}

impl Node {
    /// A handle whose reads show the state of this node, which may be behind when another one leads: they
    /// never wait for other nodes.
    #[must_use]
    pub fn stale(&self) -> Node {
        Node { inner: Arc::clone(&self.inner), is_stale: true }
    }

    /// True: this node of a cluster may have forgotten what it has acknowledged, because its machine lost
    /// power before that was synced, since a leader knows more of it, or since data of a shard is damaged or
    /// missing. All its shards are silent then: they neither vote nor count. It has to start again under a
    /// new number.
    pub fn has_forgotten(&self) -> bool {
        self.inner.forgotten.is_noted()
    }

    /// Findings of opening each shard's journal.
    pub fn recovery_reports(&self) -> &[RecoveryReport] {
        &self.inner.reports
    }

    /// Mailbox of a namespace's shard, for callers with many requests in flight, which number them and get
    /// the completions in a mailbox of their own. Requests are not checked: call [`Command::check`] first.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn mailbox(&self, namespace: NamespaceId) -> Result<Mailbox<Request>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        Ok(self.inner.mailboxes[shard as usize].clone())
    }

    /// Number of a namespace by its name.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn namespace_id(&self, name: &str) -> Result<NamespaceId, Error> {
        self.inner.placement.by_name(name).map(|place| place.namespace)
    }

    /// Names of those of these namespaces that exist, as far as this node knows, whoever leads.
    pub fn namespace_names(&self, of: &BTreeSet<NamespaceId>) -> BTreeMap<NamespaceId, String> {
        self.inner.placement.names(of)
    }

    /// True while requests are served: not while stopping, nor after a journal has failed.
    pub fn ready(&self) -> bool {
        !self.inner.stopping.load(Ordering::Relaxed) && self.inner.failure.borrow().is_none()
    }

    /// Waits until shard 0 of this node of a cluster has applied a change of the server's own data since the
    /// last call. One task waits.
    pub async fn system_changed(&self) {
        self.inner.system.notified().await;
    }

    /// Waits until a journal has failed; returns the reason. The process has to stop then.
    pub async fn failed(&self) -> String {
        let mut failure = self.inner.failure.clone();
        let reason = failure.wait_for(Option::is_some).await.map(|reason| reason.clone());
        match reason {
            Ok(reason) => reason.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Drains the node: waiting receives end empty, later ones do not wait; everything else goes on.
    pub fn drain(&self) {
        for mailbox in &self.inner.mailboxes {
            mailbox.push_surely(Request::Drain);
        }
    }

    /// Stops the node: new requests get `shutting_down`, waiting receives end empty, records in flight are
    /// finished and synced.
    ///
    /// # Errors
    /// `internal` when the shards did not end within the grace period; `journal_failed` when the last sync
    /// failed.
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

    /// Pushes a request that must not be refused: one that ends something that a shard has accepted.
    pub(crate) fn push_surely(&self, shard: u32, request: Request) {
        self.inner.mailboxes[shard as usize].push_surely(request);
    }

    /// Proposes a command on its namespace's shard and waits for the answer.
    pub(crate) async fn propose(
        &self,
        namespace: NamespaceId,
        command: &Command<'_>,
    ) -> Result<Answer, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        self.propose_on(shard, command).await
    }

    pub(crate) async fn propose_on(&self, shard: u32, command: &Command<'_>) -> Result<Answer, Error> {
        command.check(&self.limits())?;
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

    /// Runs a read of a shard's state between two batches. It must take bounded time.
    pub(crate) async fn look<T: std::marker::Send + 'static>(
        &self,
        shard: u32,
        look: impl FnOnce(&mut ShardView<'_>) -> T + std::marker::Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        let read = Read(Box::new(move |looking| {
            let _ = sender.send(looking.map(look));
        }));
        let request = if self.is_stale { Request::ReadStale(read) } else { Request::Read(read) };
        self.push(shard, request)?;
        receiver.await.map_err(|_| Error::ShuttingDown {})?
    }

    /// Looks at a shard, as [`Node::look`] does, and waits while its mailbox is full.
    ///
    /// # Errors
    /// Those of [`Node::look`] but `overloaded`.
    pub(crate) async fn look_in_turn<T: std::marker::Send + 'static>(
        &self,
        shard: u32,
        look: impl FnOnce(&mut ShardView<'_>) -> T + Copy + std::marker::Send + 'static,
    ) -> Result<T, Error> {
        loop {
            match self.look(shard, look).await {
                Err(Error::Overloaded { .. }) => tokio::time::sleep(FULL_PAUSE).await,
                other => return other,
            }
        }
    }
}
