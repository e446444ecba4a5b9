//! Transactions that are open on this node, and in `staged` what is staged in them. They are memory and
//! nothing else: one whose node ends, or whose time is over, leaves nothing behind.

mod staged;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom as _, SystemRandom};
use sluice_engine::Error;
use sluice_engine::id::NamespaceId;
use sluice_node::Committing;
use tokio::sync::OwnedMutexGuard;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::error::CallError;
use crate::fault::clip;
pub(crate) use staged::{Change, Place, Seen, Staged};
pub use staged::{Kept, Protocol};

/// Most bytes that one transaction holds: 4 MiB.
pub(crate) const STAGED_BYTES_MAX: usize = 4 << 20;
/// Most bytes that all of a node hold together: 64 MiB.
const ALL_BYTES_MAX: usize = 64 << 20;
/// Most transactions that are open on a node.
const OPEN_MAX: usize = 10_000;
/// Time for which one stays open longer whose commit may take effect.
const CLOSING_STAYS: Duration = Duration::from_secs(60);
/// Bytes of an id; in text each is two hexadecimal digits.
const ID_BYTES: usize = 16;

/// The open transactions of a node.
#[derive(Clone, Default)]
pub(crate) struct OpenTransactions(Arc<Shared>);

#[derive(Default)]
struct Shared {
    open: Mutex<HashMap<String, Arc<Open>>>,
    bytes: Arc<AtomicUsize>,
}

/// A namespace under one leader. Of the next one, transactions are lost, also if that is the same node again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Led {
    pub(crate) namespace: NamespaceId,
    /// Number of the epoch, which begins with each leadership.
    pub(crate) epoch: u64,
}

/// A transaction that is open.
pub(crate) struct Open {
    pub(crate) id: String,
    of: Led,
    ends_at: Instant,
    /// True from the beginning of a commit on until it is known to have done nothing: it may take effect.
    is_closing: AtomicBool,
    /// A commit that has no outcome yet. It goes on when its caller is gone: a repeat gets its outcome.
    pub(crate) in_flight: tokio::sync::Mutex<Option<InFlight>>,
    staged: Arc<tokio::sync::Mutex<Held>>,
    /// Ends it when its time is over.
    end: Mutex<Option<AbortHandle>>,
}

/// The staged operations, and the memory of them.
pub(crate) struct Held {
    pub(crate) staged: Staged,
    bytes: usize,
    of_all: Arc<AtomicUsize>,
}

/// A commit in flight.
pub(crate) struct InFlight {
    pub(crate) committing: Committing,
    /// Names of its operations but for those that check what was only read, in order.
    pub(crate) names: Vec<&'static str>,
}

impl fmt::Debug for OpenTransactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTransactions").field("open", &self.0.open().len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenTransactions {
    /// Begins a transaction that is open for `ttl`.
    ///
    /// # Errors
    /// `overloaded`: too many are open; `internal`: the system has no random bytes.
    pub(crate) fn begin(&self, of: Led, ttl: Duration) -> Result<Arc<Open>, Error> {
        let mut bytes = [0; ID_BYTES];
        let no_bytes = |_| Error::Internal { reason: "the system has no random bytes".into() };
        SystemRandom::new().fill(&mut bytes).map_err(no_bytes)?;
        let of_all = Arc::clone(&self.0.bytes);
        let held = Held { staged: Staged::default(), bytes: 0, of_all };
        let open = Arc::new(Open {
            id: HEXLOWER.encode(&bytes),
            of,
            ends_at: Instant::now() + ttl,
            is_closing: AtomicBool::new(false),
            in_flight: tokio::sync::Mutex::default(),
            staged: Arc::new(tokio::sync::Mutex::new(held)),
            end: Mutex::default(),
        });
        {
            let mut all = self.0.open();
            if all.len() >= OPEN_MAX {
                return Err(Error::Overloaded { what: "open transactions", retry_after_ms: 1_000 });
            }
            all.insert(open.id.clone(), Arc::clone(&open));
        }
        let (shared, id) = (Arc::downgrade(&self.0), open.id.clone());
        let end = tokio::spawn(end_after(ttl, shared, id)).abort_handle();
        *open.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        Ok(open)
    }

    /// The open transaction with an id.
    ///
    /// # Errors
    /// `transaction_lost`: it is not open here.
    pub(crate) fn find(&self, namespace: NamespaceId, id: &str) -> Result<Arc<Open>, CallError> {
        let found = self.0.open().get(id).cloned();
        let found = found.filter(|open| open.of.namespace == namespace && open.is_there());
        found.ok_or_else(|| lost(id))
    }

    /// Ends a transaction; nothing if it has ended.
    pub(crate) fn end(&self, id: &str) {
        let ended = self.0.open().remove(id);
        let end = ended.and_then(|open| open.end.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(end) = end {
            end.abort();
        }
    }

    /// True if a transaction has not ended.
    fn is_open(&self, id: &str) -> bool {
        self.0.open().contains_key(id)
    }
}

/// Waits, and ends a transaction; one whose commit may take effect stays for a while, for a repeat.
async fn end_after(ttl: Duration, shared: Weak<Shared>, id: String) {
    sleep(ttl).await;
    let find = || shared.upgrade().and_then(|shared| shared.open().get(&id).cloned());
    if find().is_some_and(|open| open.is_closing()) {
        sleep(CLOSING_STAYS).await;
    }
    if let Some(shared) = shared.upgrade() {
        shared.open().remove(&id);
    }
}

/// The error for a transaction that is not open.
#[cold]
pub(crate) fn lost(id: &str) -> CallError {
    let id = clip(id);
    let message = format!(
        "transaction {id:?} is not open: it has ended, its time is over, or another node leads by now. Nothing \
         of it is done unless its commit has said so: begin a new one"
    );
    CallError::new("transaction_lost", message).with(|it| it.text("transaction", &id))
}

impl Open {
    fn is_there(&self) -> bool {
        self.ends_at > Instant::now() || self.is_closing()
    }

    /// True if a commit has begun, and may take effect.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Notes whether a commit may take effect.
    pub(crate) fn set_closing(&self, is_closing: bool) {
        self.is_closing.store(is_closing, Ordering::Relaxed);
    }

    /// Refuses what changes or ends it without a commit, while a commit may take effect.
    ///
    /// # Errors
    /// `wrong_state`.
    pub(crate) fn expect_no_commit(&self) -> Result<(), CallError> {
        if self.is_closing() {
            let message = "a commit of the transaction has begun, and may take effect: repeat the commit";
            return Err(CallError::new("wrong_state", message));
        }
        Ok(())
    }

    /// Refuses it under another leader than the one under which it was begun.
    ///
    /// # Errors
    /// `transaction_lost`.
    pub(crate) fn expect_led(&self, led: Led) -> Result<(), CallError> {
        if self.of == led { Ok(()) } else { Err(lost(&self.id)) }
    }

    /// Waits until no other call works on it.
    ///
    /// # Errors
    /// `transaction_lost`: it has ended meanwhile.
    pub(crate) async fn lock(&self, all: &OpenTransactions) -> Result<OwnedMutexGuard<Held>, CallError> {
        let held = Arc::clone(&self.staged).lock_owned().await;
        if all.is_open(&self.id) { Ok(held) } else { Err(lost(&self.id)) }
    }
}

impl Held {
    /// Replaces what is staged, if there is memory for it.
    ///
    /// # Errors
    /// `batch_too_large`: for one transaction; `overloaded`: for all of the node.
    pub(crate) fn replace(&mut self, staged: Staged) -> Result<(), Error> {
        let bytes = staged.bytes();
        staged_at_most(bytes)?;
        let more = bytes.saturating_sub(self.bytes);
        if self.of_all.fetch_add(more, Ordering::Relaxed) + more > ALL_BYTES_MAX {
            self.of_all.fetch_sub(more, Ordering::Relaxed);
            return Err(Error::Overloaded { what: "bytes of open transactions", retry_after_ms: 1_000 });
        }
        self.of_all.fetch_sub(self.bytes.saturating_sub(bytes), Ordering::Relaxed);
        self.bytes = bytes;
        self.staged = staged;
        Ok(())
    }
}

/// Refuses more than one transaction may hold.
pub(crate) fn staged_at_most(bytes: usize) -> Result<(), Error> {
    if bytes <= STAGED_BYTES_MAX {
        return Ok(());
    }
    let (size, limit) = (bytes as u64, STAGED_BYTES_MAX as u64);
    Err(Error::BatchTooLarge { what: "bytes of an open transaction", size, limit })
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of_all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: NamespaceId = NamespaceId::DEFAULT;
    const LED: Led = Led { namespace: NAMESPACE, epoch: 1 };

    #[tokio::test(start_paused = true)]
    async fn one_ends_with_its_time_and_gives_its_memory_back() {
        let all = OpenTransactions::default();
        let open = all.begin(LED, Duration::from_secs(5)).unwrap();
        let other = all.begin(LED, Duration::from_secs(50)).unwrap();
        open.lock(&all).await.unwrap().replace(Staged::of_bytes(1_000)).unwrap();
        assert_eq!(all.0.bytes.load(Ordering::Relaxed), 1_000);
        assert!(all.find(NamespaceId(7), &open.id).is_err(), "of another namespace");
        assert!(open.expect_led(LED).is_ok() && open.expect_led(Led { epoch: 2, ..LED }).is_err());
        let id = all.find(NAMESPACE, &open.id).unwrap().id.clone();
        drop(open);
        sleep(Duration::from_secs(6)).await;
        assert_eq!(all.find(NAMESPACE, &id).err().unwrap().code(), "transaction_lost");
        assert_eq!(all.0.bytes.load(Ordering::Relaxed), 0);
        assert!(all.find(NAMESPACE, &other.id).is_ok());
        other.set_closing(true);
        assert_eq!(other.expect_no_commit().unwrap_err().code(), "wrong_state");
        sleep(Duration::from_secs(60)).await;
        assert!(all.find(NAMESPACE, &other.id).is_ok(), "a repeat of its commit comes to know");
        sleep(Duration::from_secs(60)).await;
        assert_eq!(other.lock(&all).await.err().unwrap().code(), "transaction_lost");
    }

    #[tokio::test]
    async fn memory_is_bounded_for_one_and_for_all() {
        let all = OpenTransactions::default();
        let mut held = Vec::new();
        for _ in 0..ALL_BYTES_MAX / STAGED_BYTES_MAX {
            let open = all.begin(LED, Duration::from_secs(50)).unwrap();
            let mut one = open.lock(&all).await.unwrap();
            let too_large = one.replace(Staged::of_bytes(STAGED_BYTES_MAX + 1)).unwrap_err();
            assert_eq!(too_large.code(), "batch_too_large");
            one.replace(Staged::of_bytes(STAGED_BYTES_MAX)).unwrap();
            drop(one);
            held.push(open);
        }
        let open = all.begin(LED, Duration::from_secs(50)).unwrap();
        let mut one = open.lock(&all).await.unwrap();
        assert_eq!(one.replace(Staged::of_bytes(1)).unwrap_err().code(), "overloaded");
        held[0].lock(&all).await.unwrap().replace(Staged::of_bytes(5)).unwrap();
        one.replace(Staged::of_bytes(1)).unwrap();
        assert_eq!(all.0.bytes.load(Ordering::Relaxed), ALL_BYTES_MAX - STAGED_BYTES_MAX + 6);
    }
}
