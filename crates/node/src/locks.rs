//! Caller's side of locks.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_engine::command::{Command, LockAcquire};
use sluice_engine::locks::{LockGrant, LockToken, LockView};
use sluice_engine::outcome::Reply;
use sluice_engine::{Error, NamespaceId};
use tokio::sync::oneshot;

use crate::handle::{LOOK_ITEMS, Node};
use crate::shard::lock_watches::LockChanges;
use crate::shard::request::{Acquiring, Granted, Request, ShardView, unexpected};

/// Gives the grant back, or leaves the lines, when the caller goes before the answer.
struct Waiting<'a> {
    node: &'a Node,
    shard: u32,
    ticket: u64,
    receiver: Option<oneshot::Receiver<Result<Granted, Error>>>,
    /// True: the caller may ask again.
    stays: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(mut receiver) = self.receiver.take() else { return };
        // Closed before the cancellation, which may overtake the request: the shard makes no closed claim.
        receiver.close();
        let ticket = self.ticket;
        let request = if self.stays { Request::Forget { ticket } } else { Request::Cancel { ticket } };
        self.node.push_surely(self.shard, request);
        if let Ok(Ok(Granted { grant, .. })) = receiver.try_recv() {
            self.node.give_back(self.shard, grant);
        }
    }
}

impl Node {
    /// Acquires locks, waiting for them for `wait` at most; `wait_ms` of the request does not count. Dropping
    /// the future gives up: what was granted meanwhile goes back. `stopping` resolves when nothing is to be
    /// waited for any more. The grant has the document of the first key if it is wanted.
    ///
    /// # Errors
    /// `lock_held` when they were not free in time; `limit_exceeded`; `overloaded` when too many wait;
    /// `outcome_unknown` when the leader changed or stops: the same request, made again, has its place in
    /// line.
    pub async fn lock_acquire(
        &self,
        acquire: LockAcquire<'_>,
        wait: Duration,
        with_document: bool,
        stopping: impl Future<Output = ()>,
    ) -> Result<Granted, Error> {
        let shard = self.inner.placement.shard_of(acquire.namespace)?;
        Command::LockAcquire(LockAcquire { wait_ms: 0, ..acquire }).check(&self.limits())?;
        let ticket = self.inner.tickets.fetch_add(1, Ordering::Relaxed);
        let (reply, receiver) = oneshot::channel();
        let acquiring = Acquiring { with_document, ..Acquiring::new(ticket, acquire, wait, reply) };
        self.push(shard, Request::Acquire(Box::new(acquiring)))?;
        let mut waiting = Waiting { node: self, shard, ticket, receiver: Some(receiver), stays: false };
        let Some(receiver) = &mut waiting.receiver else { return Err(Error::ShuttingDown {}) };
        let answer = tokio::select! {
            biased;
            answer = receiver => Some(answer),
            () = stopping, if !wait.is_zero() => None,
        };
        let unknown = Error::OutcomeUnknown {};
        let Some(answer) = answer else {
            waiting.stays = true;
            return Err(unknown);
        };
        waiting.receiver = None;
        answer.map_err(|_| unknown)?
    }

    /// Ends a grant of which its caller was not told, unless the caller has asked again meanwhile.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub fn lock_give_back(&self, namespace: NamespaceId, grant: LockGrant) -> Result<(), Error> {
        self.give_back(self.inner.placement.shard_of(namespace)?, grant);
        Ok(())
    }

    fn give_back(&self, shard: u32, grant: LockGrant) {
        let leave = Command::LockLeave { claim: grant.claim(), calls: grant.calls };
        self.push_surely(shard, Request::surely(&leave));
    }

    /// Begins the time of a grant anew, in milliseconds; 0: with the time that it had.
    ///
    /// # Errors
    /// `lease_lost`.
    pub async fn lock_renew(
        &self,
        namespace: NamespaceId,
        token: LockToken,
        ttl_ms: u32,
    ) -> Result<LockGrant, Error> {
        let renew = Command::LockRenew { namespace, token, ttl_ms };
        match self.propose(namespace, &renew).await?.result? {
            Reply::LockGranted { grant } => Ok(grant),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends a grant; one that was released with this token before is no error.
    ///
    /// # Errors
    /// `lease_lost`.
    pub async fn lock_release(&self, namespace: NamespaceId, token: LockToken) -> Result<(), Error> {
        self.propose(namespace, &Command::LockRelease { namespace, token }).await?.result.map(|_| ())
    }

    /// Ends all grants of a key; the number of holders that it had.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn lock_break(&self, namespace: NamespaceId, key: &str) -> Result<u32, Error> {
        match self.propose(namespace, &Command::LockBreak { namespace, key }).await?.result? {
            Reply::LockBroken { holders } => Ok(holders),
            other => Err(unexpected(&other)),
        }
    }

    /// The lock of a key with the first `detail` of its holders and of those that wait; `None`: it is free.
    ///
    /// # Errors
    /// `namespace_not_found`; `invalid_argument` for a key that no lock can have.
    pub async fn lock(
        &self,
        namespace: NamespaceId,
        key: &str,
        detail: usize,
    ) -> Result<Option<LockView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        // The rule of keys is that of commands.
        Command::LockBreak { namespace, key }.check(&self.limits())?;
        let key = key.to_owned();
        self.look(shard, move |at| at.engine.lock(namespace, &key, detail)).await
    }

    /// Changes of the lock of a key from now on.
    ///
    /// # Errors
    /// `namespace_not_found`; `invalid_argument` for a key that no lock can have; `overloaded`: there are too
    /// many watchers.
    pub async fn lock_changes(&self, namespace: NamespaceId, key: &str) -> Result<LockChanges, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        Command::LockBreak { namespace, key }.check(&self.limits())?;
        let key = key.to_owned();
        let watch = move |at: &mut ShardView<'_>| match at.engine.namespace(namespace) {
            Some(_) => at.lock_watches.watch(namespace, &key),
            None => Err(namespace.not_found()),
        };
        self.look(shard, watch).await?
    }

    /// Locks that are not free, by key after `after`, at most `limit`.
    ///
    /// # Errors
    /// `namespace_not_found`.
    pub async fn locks(
        &self,
        namespace: NamespaceId,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LockView>, Error> {
        let shard = self.inner.placement.shard_of(namespace)?;
        let (mut locks, mut after) = (Vec::new(), after.map(str::to_owned));
        while locks.len() < limit {
            let (from, most) = (after.clone(), LOOK_ITEMS.min(limit - locks.len()));
            let prefix = prefix.to_owned();
            let look = move |engine: &sluice_engine::Engine| {
                engine.locks_after(namespace, &prefix, from.as_deref(), most)
            };
            let page = self.look(shard, move |at| look(at.engine)).await?;
            let is_full = page.len() == most;
            after = page.last().map(|lock| lock.key.clone());
            locks.extend(page);
            if !is_full {
                break;
            }
        }
        Ok(locks)
    }
}
