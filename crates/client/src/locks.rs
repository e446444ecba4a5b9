//! Locks: how they are asked for, and those that are held.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::client::Client;
use crate::documents::Document;
use crate::error::ClientError;
use crate::sse::EventStream;
use crate::stop::Stop;

/// Pause before a renewal is tried again that has failed.
const RETRY: Duration = Duration::from_millis(250);

/// Way in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LockMode {
    /// By one holder.
    #[default]
    Exclusive,
    /// By any number of holders that share it.
    Shared,
    /// By as many holders as this, the one that asks among them.
    Counting(u32),
}

/// Locks to acquire: of one key, or of several together, all or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRequest<'a> {
    /// Keys, each once.
    pub keys: Vec<&'a str>,
    /// Name of who asks, for those who look; may be empty.
    pub owner: &'a str,
    /// Way in which they will be held.
    pub mode: LockMode,
    /// Time after which the grant ends unless it is renewed.
    pub ttl: Duration,
    /// Longest wait while others hold a lock or came before.
    pub wait: Duration,
    /// True: granted only if nobody holds one of the keys or waits for it, whatever the mode; without a wait.
    pub if_absent: bool,
    /// Text by which a repeat of the request is known; `None`: the client makes one, for its own repeats.
    pub request_id: Option<&'a str>,
    /// True: the grant comes with the document of the key, of which there is one.
    pub with_document: bool,
}

impl<'a> LockRequest<'a> {
    /// Time after which a grant ends unless it is renewed, where no other is given.
    pub const TTL_DEFAULT: Duration = Duration::from_secs(30);
    /// Longest wait that a server allows.
    pub const WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);

    /// The exclusive lock of a key, for which nothing is waited.
    pub fn new(key: &'a str) -> LockRequest<'a> {
        LockRequest {
            keys: vec![key],
            owner: "",
            mode: LockMode::Exclusive,
            ttl: LockRequest::TTL_DEFAULT,
            wait: Duration::ZERO,
            if_absent: false,
            request_id: None,
            with_document: false,
        }
    }

    /// The same, waiting for as long as the caller stays.
    pub fn waiting(key: &'a str) -> LockRequest<'a> {
        LockRequest { wait: LockRequest::WAIT_MAX, ..LockRequest::new(key) }
    }
}

/// A grant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LockGrant {
    /// Proof of the grant: renews and releases it.
    pub token: String,
    /// Number to give to other systems with each write, in decimal digits: later grants have larger ones.
    pub fencing_token: String,
    /// When the grant ends unless it is renewed, in milliseconds since the Unix epoch, by the server's clock.
    pub expires_at_ms: u64,
    /// Document of the key, if it was asked for and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Box<Document>>,
}

/// A lock that is held or waited for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// Its key.
    pub key: String,
    /// Number of holders.
    pub holder_count: u64,
    /// Number of those that wait.
    pub waiter_count: u64,
    /// Holders in the order of their grants: the first 100 of one lock, the first of each in a list.
    pub holders: Vec<LockHolder>,
    /// Waiting claims in their order: the first 100 of one lock; empty in a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiters: Vec<LockWaiter>,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A holder of a lock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LockHolder {
    /// Name that it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `exclusive`, `shared` or `counting`.
    pub mode: String,
    /// Its fencing token, in decimal digits.
    pub fencing_token: String,
    /// When its grant ends unless it is renewed, in milliseconds since the Unix epoch.
    pub expires_at_ms: u64,
    /// Number of keys that its grant is for.
    pub keys: u64,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One that waits for a lock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LockWaiter {
    /// Name that it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `exclusive`, `shared` or `counting`.
    pub mode: String,
    /// Number of keys that it waits for.
    pub keys: u64,
    /// Fields of a newer server that this client does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A stream of the states of a lock. It connects again when the connection breaks, and then tells the current
/// state first.
#[derive(Debug)]
pub struct LockWatch {
    path: String,
    stream: EventStream<Lock>,
}

impl LockWatch {
    pub(crate) fn new(client: Client, path: String) -> LockWatch {
        LockWatch { path, stream: EventStream::new(client, None) }
    }

    /// True when the server has sent anything yet. An error after that is worth a retry.
    pub fn has_begun(&self) -> bool {
        self.stream.has_begun()
    }

    /// The first time the lock as it is, then waits until it has changed. The future may be dropped and made
    /// anew: nothing is lost.
    ///
    /// # Errors
    /// `namespace_not_found`, `forbidden`, `overloaded` when too many watch; or that the server could not be
    /// reached for as long as the client's options tell it to try.
    pub async fn next(&mut self) -> Result<Lock, ClientError> {
        let LockWatch { path, stream } = self;
        stream.next(|_, _| path.clone()).await.map(|(_, lock)| lock)
    }
}

/// A lock that is held: renewed in the background until it is released, lost or dropped. Dropped, it is
/// released in the background.
#[derive(Debug)]
pub struct HeldLock {
    client: Client,
    grant: LockGrant,
    lost: Stop,
    renewing: JoinHandle<()>,
    /// The runtime in which it is renewed. It may be dropped elsewhere.
    runtime: Handle,
    is_released: bool,
}

impl HeldLock {
    /// Holds a grant that was asked for at `asked_at`, for `ttl` from then on at least.
    pub(crate) fn hold(client: Client, grant: LockGrant, ttl: Duration, asked_at: Instant) -> HeldLock {
        let lost = Stop::new();
        let renewing =
            Renewing { client: client.clone(), token: grant.token.clone(), ttl, lost: lost.clone() };
        let runtime = Handle::current();
        let renewing = runtime.spawn(renewing.run(asked_at));
        HeldLock { client, grant, lost, renewing, runtime, is_released: false }
    }

    /// The grant, as it was given.
    pub fn grant(&self) -> &LockGrant {
        &self.grant
    }

    /// Completes when the lock is lost: it was broken, or could not be renewed in time. Told in good time:
    /// before the server gives it to another, as far as the clocks of both run alike.
    pub async fn lost(&self) {
        self.lost.stopped().await;
    }

    /// True when the lock is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.is_stopped()
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// `lease_lost`: it was lost before.
    pub async fn release(mut self) -> Result<(), ClientError> {
        self.renewing.abort();
        self.is_released = true;
        self.client.lock_release(&self.grant.token).await
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.renewing.abort();
        if !self.is_released && !self.is_lost() {
            let (client, token) = (self.client.clone(), self.grant.token.clone());
            // Where it fails the grant ends by itself.
            self.runtime.spawn(async move {
                let _ = client.lock_release(&token).await;
            });
        }
    }
}

/// Renewal of a grant.
struct Renewing {
    client: Client,
    token: String,
    ttl: Duration,
    lost: Stop,
}

impl Renewing {
    async fn run(self, mut since: Instant) {
        loop {
            sleep_until(since + self.ttl / 3).await;
            match self.renew(since).await {
                Some(renewed) => since = renewed,
                None => return self.lost.stop(),
            }
        }
    }

    /// Renews a grant that holds since then; the time from which it holds now. `None`: it is lost.
    async fn renew(&self, since: Instant) -> Option<Instant> {
        // Part of the time is left for a holder that has to stop.
        let until = since + self.ttl - self.ttl / 10;
        loop {
            let asked_at = Instant::now();
            let renewal = self.client.lock_renew(&self.token, None);
            match tokio::time::timeout_at(until, renewal).await {
                Ok(Ok(_)) => return Some(asked_at),
                Ok(Err(error)) if error.code() == Some("lease_lost") => return None,
                Ok(Err(_)) if Instant::now() + RETRY < until => tokio::time::sleep(RETRY).await,
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    }
}
